"""``stiefelsync sync``: matches in, consistent matches out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stiefelsync import io, plotting, report
from stiefelsync.cli.options import (
    Add,
    Force,
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
from stiefelsync.cli.terminal import facts, number, percent, progress, show, show_json
from stiefelsync.errors import InputError, counted
from stiefelsync.io.base import Written
from stiefelsync.io.convert import find, output_format, write_to
from stiefelsync.io.files import check_outputs, outputs
from stiefelsync.matching.graph import conflicts
from stiefelsync.sync.method import find_method
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
    add: Add = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to draw: .png, .pdf or .svg.")] = None,
    page: Annotated[Path | None, typer.Option("--report", help="Web page to write, which shows what changed.")] = None,
    images: Images = None,
    option: Options = [],  # noqa: B006  typer copies it
    force: Force = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Make the matches of a file consistent and write them to another file.

    Matches that contradict the others are removed, matches that follow from others are added. The input is not changed.

    Example: stiefelsync sync database.db -o clean.db --report changes.html --images photos
    Example: stiefelsync sync matches.csv -o tracks.csv --to tracks
    """
    check_outputs([output, plot, page], reads=[input, like, images], force=force)
    if plot is not None:
        plotting.check_path(plot)
    if page is not None:
        report.check_path(page, source=input, force=force)
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
    if size != "auto" and not find_method(method).sized:
        raise InputError(f"method {method!r} finds the size of the universe itself; leave --universe {size} out")
    reads = [input, like, images, *reader.files_of(given["reader"]), *writer.files_of(given["writer"])]
    check_outputs([output, plot, page], reads=reads, force=force)
    problem = io.read(input, format, **given["reader"])
    with progress(f"synchronising {input.name}") as callback:
        result = synchronise(problem, size, method=method, rng=seed, callback=callback, **given["method"])
    # Drawn before and written after the answer: what cannot be drawn leaves no file, nor does an answer not saved.
    figures = _figures(result, writer.whole or (writer.adds if add is None else add))
    text = None if page is None else report.render(problem, result, images=images, adds=figures["added_written"])
    figure = None if plot is None else plotting.overview(result, added=figures["added_written"])
    writer.check("write", given["writer"])
    with outputs(output, plot, page, reads=reads, force=force) as staged:
        written = write_to(staged[output], result, writer, like=model, add=add, **given["writer"])
        near = given["writer"].get("merge_px", 0)
        notes = _notes(figures, written, output, like is None, near)
        figures["lost"] = _lost(result, writer, figures["added_written"], written)
        if written is not None:
            figures |= _of_file(figures, written)
            if written.to_verify:
                figures["pairs_to_verify"] = written.to_verify
            if written.target and (near or like is not None or written.target != written.source):
                for name, path in (("before", model), ("after", staged[output])):
                    table = io.read(path, writer.name, source=written.target)
                    figures[f"conflicts_{name}"] = conflicts(table).count
        if page is not None and text is not None:
            staged[page].write_bytes(report.encoded(report.add_notes(text, notes)))
        if plot is not None and figure is not None:
            plotting.save_to(staged[plot], figure)
    if json:
        files = {"input": input, "output": output, "plot": plot, "report": page}
        show_json({name: path for name, path in files.items() if path is not None} | {"seed": seed} | figures)
        return
    show(facts(f"{input} → {output}", _lines(figures, result, near)), *figures["lost"])
    if written is not None and writer.name == "colmap":
        command = io.next_command(output, target=written.target, images="IMAGES" if images is None else images)
        show("", "next:", f"  {command}")


def _figures(result: Synchronisation, adds: bool) -> dict[str, Any]:
    """Return the figures of the result, together with what they mean for a file that holds it."""
    figures = result.as_dict()
    repair = result.input.repair
    figures["matches_dropped"] = 0 if repair is None else repair.dropped
    figures["matches_read"] = result.input.n_matches + figures["matches_dropped"]
    figures["added_written"] = adds
    figures["matches_after"] = figures["matches_kept"] + (figures["matches_added"] if adds else 0)
    figures["conflicts_before"] = conflicts(result.input).count
    answer = result.matchings() if adds else result.input.keep(result.kept)
    figures["conflicts_after"] = 0 if result.consistent else conflicts(answer).count
    return figures


def _of_file(figures: dict[str, Any], written: Written) -> dict[str, Any]:
    """Return the figures of a changed copy: they count its own matches, not those of the problem it was read as."""
    answer = figures["matches_kept"] + figures["matches_added"]
    return {
        "matches_before": written.before,
        "matches_kept": written.kept,
        "matches_removed": written.before - written.kept,
        "matches_added": written.added if figures["added_written"] else answer - written.distinct,
        "matches_after": written.after,
        **({"table_read": written.source, "table_written": written.target} if written.target else {}),
    }


def _lost(result: Synchronisation, writer: io.Format, adds: bool, written: Written | None) -> list[str]:
    """Return sentences on what of the answer the file does not hold."""
    answer = result.matchings() if adds else result.input.keep(result.kept)
    lost = writer.loses(answer)
    if result.input.weights is not None and answer.weights is None and written is None:
        lost.append("The matches of the answer have no weights: those of the input are not written.")
    return lost


def _notes(figures: dict[str, Any], written: Written | None, output: Path, own: bool, near: float) -> list[str]:
    """Say on the page, which `figures` count, where the file differs; `own`: it is a copy of the one that was read."""
    notes = []
    if near:
        notes.append(
            f"On this page connected keypoints within {near:g} px are one point (merge_px); "
            f"{output.name} holds the matches of each of them."
        )
    counted_here = figures["matches_before"], figures["matches_after"]
    if written is not None and (written.source != written.target or (written.before, written.after) != counted_here):
        f = {name: number(value) for name, value in _of_file(figures, written).items() if isinstance(value, int)}
        shown = "the matches that were read"
        if written.source and own:
            shown += f" from the table {written.source}"
        table = f"the table {written.target} of {output.name}" if written.target else output.name
        more = f", {f['matches_added']} added" if figures["added_written"] else ""
        notes.append(
            f"This page counts {shown}. What was written is {table}: {f['matches_before']} matches became "
            f"{f['matches_after']} ({f['matches_kept']} kept, {f['matches_removed']} removed{more})."
        )
    if figures["matches_added"] and not figures["added_written"]:
        notes.append(
            "The matches that would follow are shown on this page only: "
            f"without --add they are not written to {output.name}."
        )
    return notes


def _lines(figures: dict[str, Any], result: Synchronisation, near: float) -> dict[str, str]:
    f = {name: number(value) for name, value in figures.items() if isinstance(value, int)}
    lines = {}
    if figures["matches_dropped"]:
        lines["read"] = (
            f"{f['matches_read']} matches, {f['matches_dropped']} of them left out of account to make them one-to-one"
        )
    elif figures["matches_read"] != figures["matches_before"]:
        lines["read"] = f"{f['matches_read']} matches"
    if figures.get("table_read") != figures.get("table_written"):
        lines["table"] = (
            f"{figures['table_written']}, not {figures['table_read']}, was written and holds {f['matches_after']} "
            "matches now"
        )
    if figures.get("pairs_to_verify"):
        lines["verified"] = (
            f"the verified matches of {counted(figures['pairs_to_verify'], 'pair')} are to be computed again"
        )
    more = "added" if figures["added_written"] else "more would follow (--add)"
    # One that falls apart may leave several that hold copies of a keypoint.
    repaired = max(figures["conflicts_before"] - figures["conflicts_after"], 0)
    noun = "one" if repaired == 1 else "ones"
    verb = "discarded" if result.method == "union-find" else "repaired"
    tracks = f"{number(repaired)} conflicting {noun} {verb}, {f['conflicts_after']} left"
    if near and result.consistent and figures["conflicts_after"]:
        tracks += f": copies of keypoints within {near:g} px, which merge_px keeps"
    rules = {"rules": how_decided(figures)} if "points_by_rule" in figures else {}
    return lines | {
        "matches": f"{f['matches_before']} → {f['matches_after']}: {f['matches_kept']} kept, "
        f"{f['matches_removed']} removed, {f['matches_added']} {more}",
        "tracks": f"{f['tracks']}; {tracks}" if result.consistent else f"none: not cycle-consistent; {tracks}",
        **rules,
        "universe": f["universe_size"] + ("" if result.estimate is None else " (estimated)"),
        "certificate": f"objective {number(result.objective, 1)}, no answer exceeds {number(result.upper_bound, 1)}: "
        f"gap {percent(result.gap, 2)}",
        "method": f"{result.method}, {number(sum(result.timings.values()), 2)} s, {result.status}",
    }
