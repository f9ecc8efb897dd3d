"""What to type next with a file that was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stiefelsync._border import typed
from stiefelsync.io import colmap, hloc

__all__ = ["next_command"]


@typed
def next_command(path: str | Path, **known: Any) -> str:
    """Return what to type next to reconstruct from a file: by hloc if it ends like hloc's files, else by COLMAP.

    Parameters
    ----------
    known
        As for :func:`~stiefelsync.io.colmap.next_command` (`target`, `images`, `program`) and
        :func:`~stiefelsync.io.hloc.next_command` (`features`, `pairs`, `images`).

    Examples
    --------
    >>> print(next_command("clean.db", program="colmap"))
    mkdir -p sparse && colmap mapper --database_path clean.db --image_path images --output_path sparse
    """
    if Path(path).suffix.lower() in hloc.HLOC.suffixes:
        return hloc.next_command(path, **known)
    return colmap.next_command(path, **known)
