"""What a file may ask for: claims are weighed against its size before memory is taken, and every error has a type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, StiefelSyncError
from stiefelsync.stiefel.checks import as_integers

__all__ = [
    "as_integers", "check_bytes", "check_points", "guarded", "lines", "plain_numbers", "real", "regular", "shown",
    "whole",
]  # fmt: skip

# Compressed matches shrink to a fifth or a tenth, constant columns of theirs to a thousandth: a whole file that grows
# by more than this is not a file of matches, unless it is small anyway.
EXPANSION, SMALL_BYTES = 200, 2**26
# Ids that do not count from 0, or made-up sizes, would give points that no one has, until memory ends: more points than
# this, and more than this many for each one mentioned, are refused.
SMALL_POINTS, SPARSE = 10_000_000, 100
# The longest line is that of the names of all objects: a million of them are shorter.
LONGEST_LINE = 2**26
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)


def regular(path: Path) -> Path:
    """Return a path; raise :class:`FormatError` if what is there is neither a file nor absent.

    A pipe keeps its reader waiting for good, a device like ``/dev/zero`` gives bytes without end; what is empty says
    nothing either. Every reader asks
    here before it opens a file; streams are read by the command line alone, which keeps what comes in in a file.

    Examples
    --------
    >>> regular(Path("nowhere.csv")).name
    'nowhere.csv'
    >>> regular(Path("/"))
    Traceback (most recent call last):
    stiefelsync.errors.FormatError: / is a folder where a file is expected
    """
    if path.is_dir():
        raise FormatError(f"{path} is a folder where a file is expected")
    if path.exists() and not path.is_file():
        raise FormatError(f"{path} is a pipe or a device, not a file; copy what it gives to a file first")
    # Files of the kernel's (/proc/kmsg) say that they are empty, too, and some keep their reader waiting.
    if path.is_file() and not path.stat().st_size:
        raise FormatError(f"{path} is empty")
    return path


def check_bytes(needed: int, path: Path, what: str) -> None:
    """Raise :class:`FormatError` if what a file declares to hold, in bytes, cannot come from a file of its size."""
    size = path.stat().st_size
    if needed > max(SMALL_BYTES, EXPANSION * size):
        raise FormatError(f"{path}: {what} would take {needed:,} bytes, which a file of {size:,} bytes does not hold")


def check_points(sizes: NDArray[Any], mentions: int, path: Path) -> None:
    """Raise :class:`FormatError` if objects are declared far larger than the points mentioned, in number, tell."""
    total = sum(sizes.ravel().tolist())
    if total > max(SMALL_POINTS, SPARSE * mentions):
        raise FormatError(
            f"{path} mentions at most {mentions:,} points of {total:,}; number the points of each object from 0, "
            "without large gaps"
        )


def whole(text: str) -> int:
    """Return the whole number that a text is, in plain digits.

    Examples
    --------
    >>> whole(" 12 ")
    12
    >>> whole("1_0")
    Traceback (most recent call last):
    ValueError: '1_0' is not a whole number
    """
    if not _WHOLE.fullmatch(text) or len(text) > 1000:
        raise ValueError(f"{shown(text)!r} is not a whole number")
    return int(text)


def real(text: str) -> float:
    """Return the number that a text is, in plain digits.

    Examples
    --------
    >>> real("-1.5e3")
    -1500.0
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{shown(text)!r} is not a number")
    return float(text)


def plain_numbers(cells: Iterable[str]) -> bool:
    """Return whether texts are free of what Python's `int` and `float` take and no table means: 1_0, or ١."""
    joined = "".join(cells)
    return joined.isascii() and "_" not in joined


def shown(text: str) -> str:
    """Return a text, shortened where it is long."""
    return text if len(text) < 40 else text[:37] + "..."


def lines(file: IO[str], path: Path) -> Iterator[str]:
    """Yield the lines of a text file, or say that one is too long to be one."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise FormatError(f"{path} has a line of more than {LONGEST_LINE:,} characters; it is not such a text file")
        yield line


@contextmanager
def guarded(path: Path, format: str) -> Iterator[None]:
    """Turn whatever reading a file meets into a :class:`FormatError` that names the file.

    Errors that are about the file already pass; the others keep their cause.

    Examples
    --------
    >>> with guarded(Path("a.csv"), "csv"):
    ...     [][0]
    Traceback (most recent call last):
    stiefelsync.errors.FormatError: a.csv cannot be read as 'csv' (IndexError: list index out of range); is it damaged?
    """
    try:
        yield
    except FormatError:
        raise
    except InputError as error:
        raise FormatError(f"{path}: {error}", setting=error.setting) from None
    except StiefelSyncError:
        raise
    except UnicodeDecodeError:
        raise FormatError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
    except MemoryError as error:
        raise FormatError(f"{path} needs more memory than there is") from error
    except Exception as error:
        kind = type(error).__name__
        raise FormatError(f"{path} cannot be read as {format!r} ({kind}: {error}); is it damaged?") from error
