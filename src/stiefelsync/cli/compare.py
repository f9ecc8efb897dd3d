"""``stiefelsync compare``: several methods on one problem."""

from __future__ import annotations

import csv as csv_module
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from stiefelsync import io, plotting
from stiefelsync.cli.options import (
    Certificate,
    Features,
    Force,
    Format,
    Json,
    Options,
    Quiet,
    Seed,
    Universe,
    parse_options,
    parse_universe,
)
from stiefelsync.cli.standard_input import keep_all
from stiefelsync.cli.terminal import number, percent, show, show_json, table, track
from stiefelsync.errors import InputError
from stiefelsync.io.dispatch import find
from stiefelsync.io.files import outputs
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.choose import fits
from stiefelsync.sync.comparison import NUMBERS, USUAL, Comparison, Comparisons, compare, default_methods, told

__all__ = ["run"]

BY_TRUTH = NUMBERS[:3]
SHOWN: dict[str, Callable[[float | None], str]] = {
    "objective": lambda value: number(value, 1),
    "cycle_error": percent,
    "gap": percent,
    "seconds": lambda value: number(value, 2),
}


def run(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUT...",
            help="File with matches (- is standard input). For several files means are printed.",
            callback=keep_all,
            show_default=False,
        ),
    ],
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help=f"Names separated by commas; options follow a colon: NAME:OPTION=VALUE. By default "
            f"{', '.join(USUAL)}; tracks instead of the first two if the universe is too large for them.",
        ),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", help="True matches; the input's own by default, if it has them.")
    ] = None,
    universe: Universe = "auto",
    format: Format = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the table to this file, too.")] = None,
    latex: Annotated[Path | None, typer.Option("--latex", help="Write the table in LaTeX, too.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Picture to draw, means with their standard deviations: .png, .pdf or .svg."),
    ] = None,
    features: Features = None,
    option: Options = [],  # noqa: B006  typer copies it
    certificate: Certificate = False,
    quiet: Quiet = False,
    force: Force = False,
    json: Json = False,
    seed: Seed = 0,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="Run with this many seeds, from --seed on.")
    ] = 1,
) -> None:
    """Run several methods on one problem or several, and print how well each did, the best first.

    Sorted by fscore where the truth is known, else by objective. Of several problems or seeds the
    table has means and standard deviations. A star marks methods whose answers are not
    cycle-consistent; they come last.

    Example: stiefelsync compare problem.npz --methods accurate,matchals,spectral
    Example: stiefelsync compare drawn*.npz --seeds 5 --plot fscores.pdf --latex table.tex
    """
    began = time.perf_counter()
    given, numbers = parse_options(option, features), list(range(seed, seed + seeds))
    readers = [io.detect(path) if format is None else find(format) for path in inputs]
    reads = [*inputs, truth, *(path for reader in readers for path in reader.check("read", given))]
    if plot is not None:
        plotting.check_path(plot)
    if truth is not None and len(inputs) > 1:
        raise InputError("--truth is of one problem; several bring their own truths, or none")
    with outputs(csv, latex, plot, reads=reads, force=force) as staged:
        problems = [io.read(path, reader.name, **given) for path, reader in zip(inputs, readers, strict=True)]
        known = [io.read_truth(path) for path in inputs] if truth is None else [_read_truth(truth)]
        truths = known if all(labels is not None for labels in known) else None
        size = parse_universe(universe)
        if methods is None:
            names = default_methods(problems[0], size)
        else:
            names = [name.strip() for name in methods.split(",") if name.strip()]
        with track("comparing", len(names) * len(problems) * seeds) as advance:
            done = count()
            rows = compare(
                problems, names, universe=size, truth=truths, certificate=certificate, rng=numbers,
                callback=lambda _, name: advance(next(done), name),
            )  # fmt: skip
        if csv is not None:
            _write_csv(staged[csv], rows)
        if latex is not None:
            staged[latex].write_text(rows.to_latex() + "\n", encoding="utf-8")
        if plot is not None:
            plotting.save_to(staged[plot], plotting.comparison(rows))
    if json:
        about = {"input": str(inputs[0]), "inputs": [str(path) for path in inputs], "seed": seed, "seeds": numbers}
        show_json(about | {"truth": truths is not None, "methods": [asdict(row) for row in rows]})
        return
    if quiet:
        return
    absent = {*(() if truths is not None else BY_TRUTH), *(() if certificate else ("gap",))}
    shown = [name for name in NUMBERS if name not in absent]
    if any(row.runs > 1 for row in rows):
        cells = [[_name(row), *(told(row, name) for name in shown)] for row in rows]
    else:
        cells = [[_name(row), *(SHOWN.get(name, number)(getattr(row, name)) for name in shown)] for row in rows]
    title = str(inputs[0]) if len(inputs) == 1 else f"{len(inputs)} problems"
    title += f", mean ± standard deviation of {len(inputs) * seeds} runs" if len(inputs) * seeds > 1 else ""
    show(table(title, ["method", *(name.replace("_", " ") for name in shown)], cells))
    if any(not row.consistent for row in rows):
        show("* the answer is not cycle-consistent")
    if handed := [row for row in rows if row.handed_over]:
        show(_handed_over(handed, problems[0]))
    for row in rows:
        if row.error is not None:
            show(f"{row.method} did not run: {row.error}")
    show(f"{number(time.perf_counter() - began, 2)} s in all")


def _handed_over(rows: list[Comparison], problem: Matchings) -> str:
    """Say which methods did not run themselves, and how they would where they can."""
    them = "it" if len(rows) == 1 else "them"
    text = f"{', '.join(row.method for row in rows)}: too large for {them}, so {rows[0].ran} ran instead"
    size = max(rows[0].universe or 0, int(problem.sizes.max()))
    if not fits(problem, size):
        return text
    return f"{text}; --universe N, such as {size}, runs {them} all the same"


def _read_truth(path: Path) -> NDArray[np.int64] | Matchings:
    """Return the true labels of a file if it has any, else its matches."""
    labels = io.read_truth(path)
    return io.read(path) if labels is None else labels


def _name(row: Comparison) -> str:
    return (f"{row.ran} (for {row.method})" if row.handed_over else row.method) + ("" if row.consistent else " *")


def _write_csv(path: Path, rows: Comparisons) -> None:
    spread = [f"{name}_sd" for name in NUMBERS] if any(row.runs > 1 for row in rows) else []
    with path.open("w", newline="", encoding="utf-8") as file:
        columns = ["method", "ran", "consistent", "universe", *NUMBERS, *spread, *(["runs"] if spread else []), "error"]
        writer = csv_module.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow(asdict(row) | {f"{name}_sd": value for name, value in row.sd.items()})
