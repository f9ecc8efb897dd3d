"""``stiefelsync merge``: several answers in, one consistent answer out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stiefelsync.cli.options import (
    Add,
    Columns,
    Duplicates,
    Force,
    Format,
    Json,
    Method,
    Options,
    Quiet,
    Seed,
    Threshold,
    To,
    parse_options,
)
from stiefelsync.cli.terminal import facts, number, progress, show, show_json, spent
from stiefelsync.errors import counted
from stiefelsync.merging import merge

__all__ = ["run"]


def run(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT INPUT...", help="Answers or matches.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.", show_default=False)],
    method: Method = None,
    format: Format = None,
    to: To = None,
    add: Add = None,
    constraints: Annotated[
        list[Path],
        typer.Option("--constraints", metavar="FILE", help="Points that must, or cannot, be the same."),
    ] = [],  # noqa: B006  typer copies it
    columns: Columns = None,
    duplicates: Duplicates = None,
    threshold: Threshold = None,
    option: Options = [],  # noqa: B006  typer copies it
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Make one consistent answer of several that share images, points or records.

    Images are told by name, records by source and id. Where the inputs contradict each other, the
    matches of all decide. The inputs are not changed.

    Example: stiefelsync merge a.db b.db -o all.db
    Example: stiefelsync merge monday.csv tuesday.csv -o both.csv
    """
    given = parse_options(option, columns=columns, duplicates=duplicates, threshold=threshold)
    with progress(f"merging {inputs[0].name} …", quiet=quiet) as callback:
        done = merge(
            inputs, output, method=method, constraints=constraints, format=format, to=to, add=add, force=force,
            rng=seed, callback=callback, **given,
        )  # fmt: skip
    if json:
        show_json(done.as_dict() | {"seed": seed})
    elif not quiet:
        what = "object" if done.result.input.records is None else "record"
        lines = {
            str(part.path): f"{counted(part.matches, 'match')}; {counted(part.shared, f'shared {what}')};"
            f" {number(part.lost)} contradicted by others"
            for part in done.parts
        }
        figures = done.result.as_dict()
        lines["tracks"] = f"{number(figures['tracks'])} of {counted(figures['objects'], 'object')}"
        lines["time"] = spent(done.seconds)
        show(facts(f"{len(inputs)} inputs → {output}", lines), *done.lost)
        if done.next_command is not None:
            show("", "next:", f"  {done.next_command}")
