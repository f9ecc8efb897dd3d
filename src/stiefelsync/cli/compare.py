"""``stiefelsync compare``: several methods on one problem."""

from __future__ import annotations

import csv as csv_module
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from stiefelsync import io
from stiefelsync.cli.options import (
    Certificate,
    Features,
    Force,
    Format,
    Input,
    Json,
    Options,
    Quiet,
    Seed,
    Universe,
    parse_options,
    parse_universe,
)
from stiefelsync.cli.terminal import number, percent, show, show_json, table, track
from stiefelsync.io.dispatch import find
from stiefelsync.io.files import check_outputs, replacing
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.choose import fits
from stiefelsync.sync.comparison import USUAL, Comparison, compare, default_methods

__all__ = ["run"]

NUMBERS = ("fscore", "precision", "recall", "objective", "cycle_error", "gap", "seconds")
BY_TRUTH = NUMBERS[:3]
SHOWN: dict[str, Callable[[float | None], str]] = {
    "objective": lambda value: number(value, 1),
    "cycle_error": percent,
    "gap": percent,
    "seconds": lambda value: number(value, 2),
}


def run(
    input: Input,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help=f"Names with commas between; options follow a colon: NAME:OPTION=VALUE. By default "
            f"{', '.join(USUAL)}; tracks in place of the first two where the universe is too large for them.",
        ),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", help="True matches; the input's own by default, if it has them.")
    ] = None,
    universe: Universe = "auto",
    format: Format = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the table to this file, too.")] = None,
    features: Features = None,
    option: Options = [],  # noqa: B006  typer copies it
    certificate: Certificate = False,
    quiet: Quiet = False,
    force: Force = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Run several methods on one problem and print how well each did, the best first.

    Sorted by fscore where the truth is known, else by objective. A star marks methods whose answers
    need not be cycle-consistent; they come last.

    Example: stiefelsync compare problem.npz --methods accurate,matchals,spectral
    """
    began = time.perf_counter()
    reader, given = io.detect(input) if format is None else find(format), parse_options(option, features)
    check_outputs([csv], reads=[input, truth, *reader.check("read", given)], force=force)
    problem = io.read(input, reader.name, **given)
    known = io.read_truth(input) if truth is None else _read_truth(truth)
    size = parse_universe(universe)
    if methods is None:
        names = default_methods(problem, size)
    else:
        names = [name.strip() for name in methods.split(",") if name.strip()]
    with track("comparing", len(names)) as advance:
        rows = compare(problem, names, universe=size, truth=known, certificate=certificate, rng=seed, callback=advance)
    if csv is not None:
        _write_csv(csv, rows, force)
    if json:
        show_json(
            {"input": str(input), "seed": seed, "truth": known is not None, "methods": [asdict(row) for row in rows]}
        )
        return
    if quiet:
        return
    absent = {*(() if known is not None else BY_TRUTH), *(() if certificate else ("gap",))}
    shown = [name for name in NUMBERS if name not in absent]
    cells = [[_name(row), *(SHOWN.get(name, number)(getattr(row, name)) for name in shown)] for row in rows]
    show(table(str(input), ["method", *(name.replace("_", " ") for name in shown)], cells))
    if any(not row.consistent for row in rows):
        show("* the answer need not be cycle-consistent")
    if handed := [row for row in rows if row.handed_over]:
        show(_handed_over(handed, problem))
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


def _write_csv(path: Path, rows: list[Comparison], force: bool) -> None:
    with replacing(path, force=force) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        columns = ["method", "ran", "consistent", "universe", *NUMBERS, "error"]
        # Every method runs once here: means and deviations of several runs have no column.
        writer = csv_module.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
