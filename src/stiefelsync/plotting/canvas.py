"""Paper and ink: figures without global state, one palette, files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stiefelsync._border import typed
from stiefelsync.errors import InputError, MissingExtraError
from stiefelsync.io.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "ADDED",
    "INK",
    "KEPT",
    "PAPER",
    "QUIET",
    "REMOVED",
    "RIGHT",
    "WRONG",
    "blank",
    "check_path",
    "save",
    "save_to",
    "tidy",
]

# Okabe and Ito's palette, told apart with any colour vision; wrong lines are dashed as well as red.
RIGHT, WRONG = "#009E73", "#CE2B24"
KEPT, REMOVED, ADDED = "#0072B2", "#D55E00", "#009E73"
INK, QUIET, PAPER = "#222222", "#8A8A8A", "#FFFFFF"

_SUFFIXES = (".png", ".pdf", ".svg")


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of that many inches, laid out so that nothing overlaps.

    Examples
    --------
    >>> blank(4, 3).get_size_inches().tolist()
    [4.0, 3.0]
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing", "matplotlib", "plot") from None
    return Figure(figsize=(width, height), dpi=100, facecolor=PAPER, layout="constrained")


def tidy(ax: Any, title: str = "", *, xlabel: str = "", ylabel: str = "") -> None:
    """Give axes a title and labels, and take away what carries no data."""
    ax.set_title(title, fontsize=11, color=INK, loc="left")
    ax.set_xlabel(xlabel, fontsize=9, color=INK)
    ax.set_ylabel(ylabel, fontsize=9, color=INK)
    ax.tick_params(labelsize=8, colors=QUIET, labelcolor=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)


def check_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a picture that can be drawn, or say what is wrong: its ending, or no matplotlib.

    Examples
    --------
    >>> check_path("picture.bmp")
    Traceback (most recent call last):
    stiefelsync.errors.InputError: a picture must end in .png, .pdf or .svg, got 'picture.bmp'
    """
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        raise InputError(f"a picture must end in .png, .pdf or .svg, got {str(target)!r}")
    blank(1, 1)
    return target


@typed
def save(figure: Figure, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a figure as PNG, PDF or SVG by the file's ending.

    The file appears complete or not at all.

    With `force` a file of that name that is there already is replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(blank(1, 1), Path(folder) / "empty.png").name
    'empty.png'
    """
    target = check_path(path)
    with replacing(target, force=force) as temporary:
        save_to(temporary, figure)
    return target


def save_to(temporary: Path, figure: Figure) -> None:
    """Write a figure to a fresh file of :func:`~stiefelsync.io.files.outputs`."""
    figure.savefig(temporary, format=temporary.suffix[1:].lower())
