"""``stiefelsync convert``: from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stiefelsync import io
from stiefelsync.cli.options import Format, Input, Json, Unused
from stiefelsync.cli.terminal import show, show_json

__all__ = ["run"]


def run(
    input: Input,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="File to write; its ending names the format.", show_default=False)
    ],
    format: Format = None,
    to: Annotated[
        str | None, typer.Option("--to", help="Format of the output; told from its ending by default.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Drop the lighter of matches that are not one-to-one.")
    ] = False,
    json: Json = False,
    seed: Unused = 0,
) -> None:
    """Convert a file of matches and say what the new format cannot hold.

    Example: stiefelsync convert matches.csv matches.npz
    """
    options = {"on_conflict": "repair"} if repair else {}
    lost = io.convert(input, output, source_format=format, target_format=to, read_options=options)
    if json:
        show_json({"input": str(input), "output": str(output), "lost": lost})
    else:
        show(f"wrote {output}", *(lost or ["nothing was lost"]))
