"""``-`` as input: what comes in is kept in a file while the verb works, since formats are told from their content."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import typer

__all__ = ["keep", "keep_all", "named"]

_DASH, _NAME, _PREFIX = Path("-"), "standard input", "stiefelsync-stdin-"


def keep(ctx: typer.Context, path: Any) -> Any:
    """Return the path of an argument.

    For ``-`` that of a file with standard input, which lives as long as the verb.
    """
    if path != _DASH or ctx.resilient_parsing:
        return path
    folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
    ctx.call_on_close(folder.cleanup)
    # Where the rest of the line is misused, no verb runs and nothing is closed.
    atexit.register(folder.cleanup)
    kept = Path(folder.name, _NAME)
    with kept.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return kept


def keep_all(ctx: typer.Context, paths: Any) -> Any:
    """Return the paths of several arguments, as :func:`keep` does."""
    return [keep(ctx, path) for path in paths] if isinstance(paths, list | tuple) else paths


def named(text: str) -> str:
    """Return a text in which that file is called by its name alone.

    Examples
    --------
    >>> named(f"{Path(tempfile.gettempdir(), 'stiefelsync-stdin-x1', 'standard input')} is empty")
    'standard input is empty'
    """
    return re.sub(rf"{re.escape(tempfile.gettempdir())}[\\/]{_PREFIX}\w+[\\/]{_NAME}", _NAME, text)
