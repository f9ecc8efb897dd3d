"""Outputs are checked before the work begins, so that no one waits for an answer that cannot be saved."""

from __future__ import annotations

import os
from pathlib import Path

from stiefelsync.errors import InputError
from stiefelsync.io.files import refuse_overwriting

__all__ = ["check_outputs"]


def check_outputs(source: Path | None, *outputs: Path | None) -> None:
    """Raise :class:`InputError` if an output is the input, another output, or cannot be written."""
    wanted = [path for path in outputs if path is not None]
    for n, path in enumerate(wanted):
        refuse_overwriting(path, source)
        if path.absolute() in (other.absolute() for other in wanted[:n]):
            raise InputError(f"{path} is named as output twice; choose different files")
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file to write")
        if not path.parent.is_dir():
            raise InputError(f"the folder {path.parent} does not exist; make it first")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"the folder {path.parent} is not writable; choose another output")
