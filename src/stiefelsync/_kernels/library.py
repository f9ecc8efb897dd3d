"""Find the compiled library. Without it everything works, with equal labels, by NumPy and SciPy."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["FILE", "address", "fingerprint", "library"]

_FOLDER = Path(__file__).parent
_ENDING = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
FILE = _FOLDER / f"kernels.{_ENDING}"


def library() -> Any:
    """Return the compiled library, a :class:`ctypes.CDLL`, or None where there is none or STIEFELSYNC_COMPILED=0.

    A library made from other sources than those beside it (an editable install after an update) counts as none.

    Examples
    --------
    >>> library() is None or library().assign is not None
    True
    """
    return None if os.environ.get("STIEFELSYNC_COMPILED") == "0" else _load()


@cache
def _load() -> Any:
    try:
        found = ctypes.CDLL(str(FILE))
        found.sources.restype = ctypes.c_char_p
        made_of = found.sources().decode()
    except (OSError, AttributeError):
        return None
    return found if made_of == fingerprint() else None


def fingerprint() -> str:
    """Return a digest of the C sources, the same whatever the system's ends of lines.

    Examples
    --------
    >>> len(fingerprint())
    16
    """
    digest = hashlib.sha256()
    for path in sorted(_FOLDER.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


def address(array: Any) -> int | None:
    """Return where a contiguous array begins, for a kernel; None stays None.

    Examples
    --------
    >>> address(None) is None
    True
    """
    if array is None:
        return None
    flags = array.flags
    assert flags.c_contiguous
    if flags.writeable and array.size:  # four times as quick
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    return int(array.ctypes.data)
