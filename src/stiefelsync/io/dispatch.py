"""Read any known format, write any known format."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stiefelsync._border import typed
from stiefelsync.errors import FormatError, InputError, StiefelSyncError, unknown_name
from stiefelsync.io.base import FORMATS, Content, Format, Written
from stiefelsync.io.files import check_outputs, replacing
from stiefelsync.io.limits import guarded, regular
from stiefelsync.io.provenance import made_by
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.result import Synchronisation

__all__ = ["detect", "find", "load", "output_format", "read", "reader_of", "write", "write_content", "write_to"]


def find(name: str) -> Format:
    """Return the format of that name, or say which there are."""
    if not isinstance(name, str) or name not in FORMATS:
        raise unknown_name("format", name, FORMATS)
    return FORMATS[name]


@typed
def detect(path: str | Path) -> Format:
    r"""Return the format of a file, told from its content.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("object_a,point_a,object_b,point_b\n0,0,1,0\n")
    ...     detect(Path(folder, "a.txt")).name
    'csv'
    """
    path = as_path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not (path.is_file() or path.is_dir()):
        raise InputError(f"{path} is neither a file nor a folder; copy what it gives to a file first")
    for known in FORMATS.values():
        with guarded(path, known.name):
            if known.sniff(path):
                return known
    raise _unknown(path)


def reader_of(path: str | Path, format: str | None, options: Iterable[str]) -> Format:
    """Return the format asked for, else that of the content; else that which alone knows one of the options given."""
    if format is not None:
        return find(format)
    try:
        return detect(path)
    except FormatError:
        knowing = [[known for known in FORMATS.values() if name in known.read_options] for name in options]
        alone = next((formats[0] for formats in knowing if len(formats) == 1), None)
        if alone is None or not as_path(path).is_file():
            raise
        return alone


def as_path(path: Any) -> Path:
    """Return a path, or raise :class:`InputError` for what cannot be one."""
    try:
        if isinstance(os.fspath(path), str):
            os.lstat(path)
            return Path(path)
    except FileNotFoundError:
        return Path(path)
    except (TypeError, ValueError):  # a NUL, or letters that no file name has
        pass
    except OSError:  # too long, or not to be looked at: whoever opens it will say so
        return Path(path)
    raise InputError(f"the name of a file is expected, got {path!r}")


def _unknown(path: Path) -> FormatError:
    """Return the error that says what is wrong with a file of no known format."""
    if path.is_dir():
        return FormatError(f"{path} is a folder, and not one of OpenSfM's matches; name a file")
    if path.is_file() and not path.stat().st_size:
        return FormatError(f"{path} is empty")
    if path.suffix.lower() in FORMATS["csv"].suffixes:
        headers = "object_a,point_a,object_b,point_b[,weight] or track,object,point[,x,y]"
        return FormatError(
            f"{path} is in none of the known formats; a table needs the header {headers}, as UTF-8 text, or of scored "
            "pairs id_left,id_right,score, Splink's, or any with columns=id,id,score",
            setting="columns",
        )
    names = ", ".join(FORMATS)
    return FormatError(f"{path} is in none of the known formats ({names}); name one with format=", setting="format")


@typed
def read(path: str | Path, format: str | None = None, **options: Any) -> Matchings:
    r"""Read matchings from a file.

    Parameters
    ----------
    path
        The file (for some formats a folder).
    format
        Name of the format; told from the content when None.
    options
        Options of the format, such as ``one_to_many="repair"``; see ``docs/reference/formats.md``.

    Raises
    ------
    FormatError
        If the file is not what the format says.
    InputError
        If it does not exist, or holds something other than matchings.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("object_a,point_a,object_b,point_b\nx,0,y,3\n")
    ...     read(Path(folder, "a.csv"))
    Matchings(2 objects, 5 points, 1 match in 1 of 1 pair)
    """
    path = as_path(path)
    return load(path, reader_of(path, format, options), **options)[0]


def load(path: Path, known: Format, **options: Any) -> tuple[Matchings, object]:
    """Return the matches of a file, and what its reader keeps for writing a changed copy of it, if anything."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not path.is_dir():
        regular(path)
    known.check("read", options)
    with guarded(path, known.name):
        return (known.read(path, **options), None) if known.load is None else known.load(path, **options)


@typed
def write(
    result: Matchings | Synchronisation,
    path: str | Path,
    format: str | None = None,
    *,
    like: str | Path | None = None,
    add: bool | None = None,
    force: bool = False,
    **options: Any,
) -> Written | None:
    """Write matchings, or the answer of a synchronisation; the file appears complete or not at all.

    Parameters
    ----------
    result
        What to write.
    path
        The file; its ending chooses the format when `format` is None and does not follow from `like`.
    like
        The file the input came from. It is never modified, and refused as output; some formats (COLMAP) write a changed
        copy of it.
    add
        Whether the matches of a synchronisation that the input did not have are written too. None: as usual for the
        format (COLMAP and hloc: no, others: yes).
    force
        Whether a file of that name that is there already is replaced; an input never is.
    options
        Options of the format; see ``docs/reference/formats.md``.

    Returns
    -------
    written : Written or None
        Where a changed copy of `like` was written (COLMAP, hloc): how many of its matches were kept, how many added.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Matchings.from_labels([0, 0], [1, 1]), Path(folder, "a.csv"))
    ...     print(Path(folder, "a.csv").read_text().strip())
    object_a,point_a,object_b,point_b
    0,0,1,0
    """
    path, source = as_path(path), None if like is None else as_path(like)
    if source is not None and not source.exists():
        raise InputError(f"{source} does not exist")
    check_outputs([path], reads=[source], force=force)
    known = output_format(path, format, source, answer=isinstance(result, Synchronisation) and result.consistent)
    files = known.check("write", options)
    with replacing(path, reads=[source, *files], force=force) as temporary:
        return write_to(temporary, result, known, like=source, add=add, **options)


def write_to(
    temporary: Path,
    result: Matchings | Synchronisation,
    known: Format,
    *,
    like: Path | None = None,
    add: bool | None = None,
    **options: Any,
) -> Written | None:
    """Write to a fresh file of :func:`~stiefelsync.io.files.outputs`; what :func:`write` does for a single output."""
    return write_content(_content(result, known.adds if add is None else add), temporary, known, like=like, **options)


def write_content(
    content: Content, temporary: Path, known: Format, *, like: Path | None, **options: Any
) -> Written | None:
    """Write to a fresh file; whatever goes wrong becomes an error with a type."""
    try:
        return known.write(content, temporary, like=like, **options)
    except (StiefelSyncError, OSError):
        raise
    except UnicodeEncodeError as error:
        raise InputError(f"{error.object!r} is not text that format {known.name!r} can hold; rename it") from None
    except MemoryError as error:
        raise InputError(f"writing format {known.name!r} needs more memory than there is") from error
    except Exception as error:
        raise InputError(f"format {known.name!r} cannot hold this ({type(error).__name__}: {error})") from error


def output_format(path: Path, format: str | None, source: Path | None, *, answer: bool = False) -> Format:
    """Return the format asked for, else that of the input if the ending allows it, else that of the ending.

    An `answer` to a file may be of another kind than the file.
    """
    if format is not None:
        return find(format)
    by_ending = [known for known in FORMATS.values() if path.suffix.lower() in known.suffixes]
    if answer and path.suffix.lower() == ".parquet":  # the table of an answer comes first: its tracks
        by_ending.sort(key=lambda known: known.name != "tracks")
    if source is not None:
        own = next((known for known in FORMATS.values() if known.sniff(source)), None)
        if own is not None and answer and own.answers:
            own = FORMATS[own.answers]
        if own is not None and (own in by_ending or path.suffix.lower() == source.suffix.lower()):
            return own
    if not by_ending:
        raise InputError(f"the ending of {path} tells no format; name one of {', '.join(FORMATS)}", setting="to")
    return by_ending[0]


def _content(result: Matchings | Synchronisation, add: bool) -> Content:
    if isinstance(result, Matchings):
        return Content(result, add=add)
    if not isinstance(result, Synchronisation):
        raise InputError(f"only Matchings or a Synchronisation can be written, got {type(result).__name__}")
    matchings, told = result.matchings() if add else result.input.keep(result.kept), made_by(result.method)
    if not result.consistent:
        return Content(matchings, None, add, provenance=told)
    return Content(matchings, result.labels, add, provenance=told, confidence=lambda: result.point_confidence)
