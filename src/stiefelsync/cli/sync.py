"""``stiefelsync sync``: matches in, consistent matches out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stiefelsync import io, plotting
from stiefelsync.cli.options import Format, Input, Json, Method, Seed, Universe, parse_universe
from stiefelsync.cli.paths import check_outputs
from stiefelsync.cli.terminal import facts, number, percent, progress, show, show_json
from stiefelsync.matching.graph import conflicts
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

__all__ = ["run"]


def run(
    input: Input,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.", show_default=False)],
    method: Method = "accurate",
    universe: Universe = "auto",
    format: Format = None,
    add: Annotated[
        bool | None,
        typer.Option(
            "--add/--no-add", help="Also write matches that follow from others; by default as usual for the format."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to draw: .png, .pdf or .svg.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes for large problems.")] = None,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Make the matches of a file consistent and write them to another file.

    Matches that contradict the others are removed, matches that follow from others are added. The input is not changed.

    Example: stiefelsync sync database.db -o clean.db
    """
    check_outputs(input, output, plot)
    if plot is not None:
        plotting.check_path(plot)
    problem = io.read(input, format)
    options = {} if workers is None else {"workers": workers}
    size = parse_universe(universe)
    with progress(f"synchronising {input.name}") as callback:
        result = synchronise(problem, size, method=method, rng=seed, callback=callback, **options)
    if plot is not None:
        plotting.save(plotting.overview(result), plot)
    io.write(result if result.consistent else result.matchings(), output, like=input, add=add)
    adds = io.detect(output).adds if add is None else add
    figures = _figures(result, adds)
    if json:
        show_json({"input": str(input), "output": str(output), "plot": plot, "seed": seed, **figures})
    else:
        show(facts(f"{input} → {output}", _lines(figures, result)), *_next(output))


def _figures(result: Synchronisation, adds: bool) -> dict[str, Any]:
    """Return the figures of the result, together with what they mean for the file."""
    figures = result.as_dict()
    figures["added_written"] = adds or not result.consistent
    figures["matches_after"] = figures["matches_kept"] + (figures["matches_added"] if figures["added_written"] else 0)
    figures["conflicts_before"] = conflicts(result.input).count
    figures["conflicts_after"] = 0 if result.consistent else conflicts(result.matchings()).count
    return figures


def _lines(figures: dict[str, Any], result: Synchronisation) -> dict[str, str]:
    f = {name: number(value) if isinstance(value, int) else value for name, value in figures.items()}
    added = f"{f['matches_added']} added" if figures["added_written"] else (
        f"{f['matches_added']} more follow, write them with --add"
    )  # fmt: skip
    repaired = number(figures["conflicts_before"] - figures["conflicts_after"])
    estimate = result.estimate
    lines = {
        "matches": f"{f['matches_before']} → {f['matches_after']}: {f['matches_kept']} kept, "
        f"{f['matches_removed']} removed, {added}",
        "tracks": f"{repaired} conflicting tracks repaired, {f['conflicts_after']} left",
        "universe": f["universe_size"] + ("" if estimate is None else " (estimated)"),
        "certificate": f"objective {number(result.objective, 1)}, no answer exceeds {number(result.upper_bound, 1)}: "
        f"gap {percent(result.gap, 2)}",
        "method": f"{result.method}, {number(sum(result.timings.values()), 2)} s, {result.status}",
    }
    if result.consistent:
        lines["tracks"] = f"{f['tracks']}, {lines['tracks']}"
    return lines


def _next(output: Path) -> list[str]:
    """Return the command to type next, where the format tells."""
    if io.detect(output).name != "colmap":
        return []
    return [
        "",
        "next, with the folder of the images:",
        f"  mkdir -p sparse && colmap mapper --database_path {output} --image_path IMAGES --output_path sparse",
    ]
