"""The options that verbs share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stiefelsync.errors import InputError

__all__ = ["Format", "Input", "Json", "Method", "Seed", "Universe", "Unused", "parse_universe"]

Input = Annotated[Path, typer.Argument(metavar="INPUT", help="File with matches.", show_default=False)]
Format = Annotated[str | None, typer.Option("--format", help="Format of the input; told from its content by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything drawn at random.")]
Unused = Annotated[int, typer.Option("--seed", min=0, help="Taken by every verb; this one draws nothing at random.")]
Method = Annotated[str, typer.Option("--method", help="See: stiefelsync methods.")]
Universe = Annotated[
    str, typer.Option("--universe", metavar="auto|N", help="Size of the universe, or auto to estimate it.")
]


def parse_universe(text: str) -> int | str:
    """Return "auto" or a whole number.

    Examples
    --------
    >>> parse_universe("25"), parse_universe("auto")
    (25, 'auto')
    """
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--universe must be a whole number or auto, got {text!r}") from None
