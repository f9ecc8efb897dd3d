"""Photographs of strangers: found within their folder, opened by readers of photographs alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stiefelsync.errors import FormatError, InputError, MissingExtraError

__all__ = ["PHOTOGRAPHS", "inside", "opened", "with_folders"]

# What cameras and phones write, and what such files are converted to. Pillow would try every format it knows, whatever
# a file is called, and for EPS start a program that runs what stands in it. "JPEG" reads what phones write as MPO, too:
# Pillow has no reader of that name.
PHOTOGRAPHS = ("JPEG", "PNG", "TIFF", "WEBP", "BMP", "PPM", "JPEG2000")


def inside(root: Path, name: str) -> Path | None:
    """Return the file of that name if it exists and lies in the folder, wherever links lead.

    Examples
    --------
    >>> inside(Path("photographs"), "../secret.jpg") is None
    True
    """
    try:
        folder = root.resolve()
        path = (folder / name).resolve()
        return path if path.is_relative_to(folder) and path.is_file() else None
    except (OSError, ValueError):  # a name too long or with a null character
        return None


def with_folders(names: Iterable[str], root: Path) -> dict[str, str]:
    """Return for names in which slashes became ``-`` those of their photographs, as far as these are there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "db").mkdir()
    ...     _ = Path(folder, "db", "0-1.jpg").write_bytes(b"")
    ...     with_folders(["db-0-1.jpg", "other.jpg"], Path(folder))
    {'db-0-1.jpg': 'db/0-1.jpg', 'other.jpg': 'other.jpg'}
    """
    if not root.is_dir():
        raise InputError(f"there is no folder {root} of photographs", setting="photos")
    known: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if not path.is_file():
            continue
        plain = name.replace("/", "-")
        if known.setdefault(plain, name) != name and plain in names:
            raise InputError(f"{plain!r} may be {known[plain]!r} or {name!r} in {root}; rename one", setting="photos")
    return {name: name if inside(root, name) is not None else known.get(name, name) for name in names}


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Yield a photograph as :class:`PIL.Image.Image`, not decoded yet, or raise :class:`FormatError`."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("photographs", "pillow", "report") from None
    try:
        with warnings.catch_warnings():
            # One of a hundred million pixels is unusual, not an attack; twice as many are refused.
            warnings.simplefilter("ignore")
            with Image.open(path, formats=PHOTOGRAPHS) as photograph:
                yield photograph
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can fail in any way
        raise FormatError(f"{path} cannot be read as a photograph ({type(error).__name__}: {error})") from None
