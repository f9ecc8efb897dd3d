"""``stiefelsync convert``: from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stiefelsync import io
from stiefelsync.cli.options import (
    Add,
    Features,
    Force,
    Format,
    Input,
    Json,
    Like,
    Options,
    Quiet,
    To,
    Unused,
    parse_options,
)
from stiefelsync.cli.terminal import show, show_json

__all__ = ["run"]


def run(
    input: Input,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="File to write; its ending names the format.", show_default=False)
    ],
    format: Format = None,
    to: To = None,
    like: Like = None,
    add: Add = None,
    features: Features = None,
    option: Options = [],  # noqa: B006  typer copies it
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Unused = 0,
) -> None:
    """Convert a file of matches and say what the new format cannot hold.

    Example: stiefelsync convert matches.csv matches.npz --option one_to_many=repair
    Example: stiefelsync convert clean.db tracks.csv --to tracks
    Example: stiefelsync convert tracks.csv new.db --like database.db
    """
    lost = io.convert(
        input,
        output,
        source_format=format,
        target_format=to,
        like=like,
        add=add,
        force=force,
        **parse_options(option, features),
    )
    if json:
        show_json({"input": str(input), "output": str(output), "lost": lost})
    elif not quiet:
        show(f"wrote {output}", *(lost or ["nothing was lost"]))
