"""Find and load the compiled kernels, or say what to do."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
from functools import cache
from pathlib import Path

__all__ = ["FILE", "about", "fingerprint", "library"]

_FOLDER = Path(__file__).resolve().parent
_ENDING = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
FILE = _FOLDER / f"kernels.{_ENDING}"
_REBUILD = f"run 'python hatch_build.py' in {_FOLDER.parents[2]}"
_REINSTALL = "install them with 'pip install --force-reinstall --no-deps stiefelsync'"


@cache
def library() -> ctypes.CDLL:
    """Return the compiled library, which every inner loop needs.

    Raises
    ------
    ImportError
        If it is missing, made for another system, or (in a checkout) of other sources than those
        beside it.

    Examples
    --------
    >>> library() is library()
    True
    """
    sources = _sources()
    remedy = _REBUILD if sources else _REINSTALL
    if not FILE.exists():
        raise ImportError(f"the compiled kernels of stiefelsync are missing: {remedy}")
    try:
        found = ctypes.CDLL(str(FILE))
        made_of = _text(found, "fingerprint")
    except (OSError, AttributeError) as error:
        raise ImportError(f"the compiled kernels of stiefelsync cannot be used here ({error}): {remedy}") from error
    # Reading all sources takes milliseconds, and is left out where none of them is newer than the
    # library.
    made = FILE.stat().st_mtime_ns
    if any(path.stat().st_mtime_ns > made for path in sources) and made_of != fingerprint():
        raise ImportError(f"the compiled kernels of stiefelsync are older than their sources: {remedy}")
    return found


def _sources() -> list[Path]:
    """Return what the library depends on.

    Nothing where only the package is installed, without C sources.
    """
    code = sorted(path for path in _FOLDER.iterdir() if path.suffix in {".c", ".h"})
    return [*code, _FOLDER / "signatures.py"] if code else []


def fingerprint() -> str:
    """Return a digest of the C sources and the table of signatures, the same whatever the system's ends of lines.

    Examples
    --------
    >>> len(fingerprint())
    16
    """
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


def about() -> dict[str, str]:
    """Return which kernels these are: fingerprint and compiler of the library, and the processor it runs on.

    Examples
    --------
    >>> sorted(about())
    ['compiler', 'fingerprint', 'processor']
    """
    found = library()
    cores = f"{os.cpu_count() or 1} logical cores"
    return {
        "fingerprint": _text(found, "fingerprint"),
        "compiler": _text(found, "compiler"),
        "processor": f"{platform.machine()}, {cores}, {_text(found, 'registers')}",
    }


def _text(found: ctypes.CDLL, name: str) -> str:
    """Return what a function without arguments says."""
    function = getattr(found, name)
    function.restype, function.argtypes = ctypes.c_char_p, []
    said: bytes = function()
    return said.decode().strip()
