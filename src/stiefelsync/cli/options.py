"""The options that verbs share, each declared once, and what their texts mean."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from stiefelsync import io
from stiefelsync.cli.standard_input import keep, keep_all
from stiefelsync.errors import InputError
from stiefelsync.sync.method import BY_POSITIONS, DEFAULT, METHODS

__all__ = [
    "Add", "Certificate", "Checkpoint", "Columns", "Duplicates", "Features", "Force", "Format", "Images", "Input",
    "Inputs", "Json", "Like", "Memory", "Method", "Options", "Quiet", "Seed", "Threshold", "To", "Universe", "Unused",
    "Verbose", "parse_memory", "parse_options", "parse_universe",
]  # fmt: skip

Input = Annotated[
    Path,
    typer.Argument(metavar="INPUT", help="File with matches (- is standard input).", callback=keep, show_default=False),
]
Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...",
        help="File with matches (- is standard input); or several sessions whose cells to follow: "
        "suite2p folders, CaImAn results, footprints; or one folder of UnitMatch.",
        callback=keep_all,
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"Format of the input, recognised by its content unless given: one of {', '.join(io.FORMATS)}.",
        autocompletion=lambda: list(io.FORMATS),
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="NAME",
        help="Format of the output, by default that of its ending; the same names. "
        f"For sessions: {', '.join(io.cells.TABLES)}.",
        autocompletion=lambda: [*io.FORMATS, *io.cells.TABLES],
    ),
]
Like = Annotated[
    Path | None,
    typer.Option("--like", help="File of which to write a changed copy, by default the input (COLMAP, hloc, OpenSfM)."),
]
Add = Annotated[
    bool | None,
    typer.Option(
        "--add/--no-add",
        help="Whether to write matches that the original does not have; by default as usual for the format.",
    ),
]
Certificate = Annotated[
    bool,
    typer.Option(
        "--certificate", help="Also print how far at most the answer is from the best one; this may take long."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors, warnings and what --json asks for.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print everything, line by line.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing outputs.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of all random numbers.")]
Unused = Annotated[
    int,
    typer.Option("--seed", metavar="N", min=0, help="Accepted by every verb; this one draws nothing at random."),
]
Method = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"A method that stiefelsync methods lists; by default {DEFAULT}, or {BY_POSITIONS} for photographs.",
        autocompletion=lambda: list(METHODS),
    ),
]
Universe = Annotated[
    str,
    typer.Option(
        "--universe",
        metavar="N",
        help="Number of distinct points, or auto to estimate it.",
    ),
]
Features = Annotated[
    Path | None, typer.Option("--features", help="hloc: the file of features that the matches belong to.")
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="NAMES", help="Scored pairs: their columns, id,id,score or source,id,source,id,score."
    ),
]
Duplicates = Annotated[
    str | None,
    typer.Option(
        "--duplicates",
        metavar="yes|no|NAMES",
        help="Scored pairs: yes, no, or which sources may hold a thing twice; by default those with pairs inside.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", metavar="P", help="Scored pairs: ignore less probable ones."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Find tracks in parts, within this much memory: 400MB, 2GB.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Find tracks in parts and keep these in this folder: after a kill the same command goes on.",
    ),
]
Images = Annotated[Path | None, typer.Option("--images", help="Folder of the photographs, for the report.")]
Options = Annotated[
    list[str],
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Further option of a format (see Formats in the documentation) or of the method "
        "(stiefelsync methods NAME lists them); may be repeated.",
    ),
]


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_memory(text: str | None) -> float | None:
    """Return a number of bytes.

    Examples
    --------
    >>> parse_memory("2GB"), parse_memory("400 MB"), parse_memory(None)
    (2000000000.0, 400000000.0, None)
    """
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", text, re.IGNORECASE | re.ASCII)
    if found is None or not float(found[1]):
        raise InputError(f"--memory must be a size such as 400MB or 2GB, got {text!r}")
    return float(found[1]) * _UNITS[found[2].upper()]


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


def parse_options(settings: Sequence[str], features: Path | None = None, **flags: Any) -> dict[str, Any]:
    """Return every ``name=value`` as the name of an option and its value, and what was given by flags of its own.

    Examples
    --------
    >>> parse_options(["p=4", "merge-px=2.5"])
    {'p': 4, 'merge_px': 2.5}
    """
    given = {name: value for name, value in (("features", features), *flags.items()) if value is not None}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise InputError(f"--option {setting!r} has no value; write --option {name}=VALUE")
        given[name] = _value(text.strip())
    return given


def _value(text: str) -> Any:
    """Return the Python literal that a text spells, else the text itself.

    Examples
    --------
    >>> _value("2.5"), _value("false"), _value("two_view_geometries")
    (2.5, False, 'two_view_geometries')
    """
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text
