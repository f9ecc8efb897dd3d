"""``stiefelsync sync``: matches in, consistent matches out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stiefelsync import io, plotting, report
from stiefelsync.cli.options import (
    Format,
    Images,
    Input,
    Json,
    Like,
    Method,
    Options,
    Seed,
    To,
    Universe,
    parse_universe,
    share_out,
)
from stiefelsync.cli.paths import check_outputs
from stiefelsync.cli.terminal import facts, number, percent, progress, show, show_json
from stiefelsync.errors import InputError
from stiefelsync.io.convert import find, output_format
from stiefelsync.matching.graph import conflicts
from stiefelsync.sync.registry import find_method
from stiefelsync.sync.result import Synchronisation, how_decided
from stiefelsync.sync.synchronise import synchronise

__all__ = ["run"]


def run(
    input: Input,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.", show_default=False)],
    method: Method = "accurate",
    universe: Universe = "auto",
    format: Format = None,
    to: To = None,
    like: Like = None,
    add: Annotated[
        bool | None,
        typer.Option(
            "--add/--no-add", help="Also write matches that follow from others; by default as usual for the format."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to draw: .png, .pdf or .svg.")] = None,
    page: Annotated[Path | None, typer.Option("--report", help="Web page to write, which shows what changed.")] = None,
    images: Images = None,
    option: Options = [],  # noqa: B006  typer copies it
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Make the matches of a file consistent and write them to another file.

    Matches that contradict the others are removed, matches that follow from others are added. The input is not changed.

    Example: stiefelsync sync database.db -o clean.db --report changes.html --images photos
    Example: stiefelsync sync matches.csv -o tracks.csv --to tracks
    """
    check_outputs(input, output, plot, page)
    check_outputs(like, output, plot, page)
    if plot is not None:
        plotting.check_path(plot)
    if page is not None:
        report.check_path(page, source=input)
    if images is not None and (page is None or not images.is_dir()):
        raise InputError("--images goes with --report" if page is None else f"{images} is no folder of images")
    size = parse_universe(universe)
    reader = io.detect(input) if format is None else find(format)
    model = input if like is None else like
    writer = output_format(output, to, model)
    writer.check_original(model)
    given = share_out(
        option, reader=reader.read_options, writer=writer.write_options, method=find_method(method).options
    )
    problem = io.read(input, format, **given["reader"])
    with progress(f"synchronising {input.name}") as callback:
        result = synchronise(problem, size, method=method, rng=seed, callback=callback, **given["method"])
    # Drawn before and written after the answer: what cannot be drawn leaves no file, nor does an answer not saved.
    figures = _figures(result, writer.adds if add is None else add)
    text = None if page is None else report.render(problem, result, images=images, notes=_notes(figures, output))
    figure = None if plot is None else plotting.overview(result, added=figures["added_written"])
    io.write(result, output, writer.name, like=model, add=add, **given["writer"])
    if page is not None and text is not None:
        report.save(text, page, source=input)
    if plot is not None and figure is not None:
        plotting.save(figure, plot)
    if json:
        files = {"input": input, "output": output, "plot": plot, "report": page}
        show_json({name: path for name, path in files.items() if path is not None} | {"seed": seed} | figures)
        return
    show(facts(f"{input} → {output}", _lines(figures, result)))
    if writer.name == "colmap":
        target = given["writer"].get("target", "two_view_geometries")
        command = io.next_command(output, target=target, images="IMAGES" if images is None else images)
        show("", "next:", f"  {command}")


def _figures(result: Synchronisation, adds: bool) -> dict[str, Any]:
    """Return the figures of the result, together with what they mean for the file."""
    figures = result.as_dict()
    figures["added_written"] = adds
    figures["matches_after"] = figures["matches_kept"] + (figures["matches_added"] if adds else 0)
    figures["conflicts_before"] = conflicts(result.input).count
    figures["conflicts_after"] = 0 if result.consistent else conflicts(result.matchings()).count
    return figures


def _notes(figures: dict[str, Any], output: Path) -> list[str]:
    """Say on the page what of it the file does not have."""
    if figures["added_written"] or not figures["matches_added"]:
        return []
    return [f"Added matches are shown on this page only: without --add, {output.name} holds those that were kept."]


def _lines(figures: dict[str, Any], result: Synchronisation) -> dict[str, str]:
    f = {name: number(value) for name, value in figures.items() if isinstance(value, int)}
    more = "added" if figures["added_written"] else "more would follow (--add)"
    repaired = figures["conflicts_before"] - figures["conflicts_after"]
    noun = "one" if repaired == 1 else "ones"
    tracks = f"{number(repaired)} conflicting {noun} repaired, {f['conflicts_after']} left"
    rules = {"rules": how_decided(figures)} if "points_by_rule" in figures else {}
    return {
        "matches": f"{f['matches_before']} → {f['matches_after']}: {f['matches_kept']} kept, "
        f"{f['matches_removed']} removed, {f['matches_added']} {more}",
        "tracks": f"{f['tracks']}; {tracks}" if result.consistent else f"none: not cycle-consistent; {tracks}",
        **rules,
        "universe": f["universe_size"] + ("" if result.estimate is None else " (estimated)"),
        "certificate": f"objective {number(result.objective, 1)}, no answer exceeds {number(result.upper_bound, 1)}: "
        f"gap {percent(result.gap, 2)}",
        "method": f"{result.method}, {number(sum(result.timings.values()), 2)} s, {result.status}",
    }
