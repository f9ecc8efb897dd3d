"""Read an SQLite file without leaving a trace: neither the file nor its write-ahead log is ever touched."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from stiefelsync.errors import FormatError
from stiefelsync.io.base import head
from stiefelsync.io.staging import staging

__all__ = ["bytes_of", "distrust", "is_sqlite", "limit_steps", "quoted", "snapshot", "state_of", "weigh"]

MAGIC = b"SQLite format 3\0"
PAGE_SIZES = {2**n for n in range(9, 17)}
TIMEOUT = 2.0  # seconds to wait for another process's lock
# Steps of SQLite's machine: what is asked of a database here takes fewer than this for each of its bytes, but for one
# whose pages are each other's children, of which there is no end.
STEPS, STEPS_PER_BYTE, BETWEEN = 10_000_000, 32, 100_000
LEAST_LENGTH = 2**20  # bytes of a value that a database may have, however small it is
LEAST_ROW = 6  # bytes: its lengths, its number and where it lies


def is_sqlite(path: Path) -> bool:
    """Return whether a file begins like an SQLite database."""
    return head(path, 16) == MAGIC


def state_of(path: Path) -> tuple[tuple[int, int], ...]:
    """Return size and time of change of a database and its log, to notice a writer."""
    parts = [file.stat() for file in (path, Path(f"{path}-wal")) if file.exists()]
    return tuple((part.st_size, part.st_mtime_ns) for part in parts)


@contextmanager
def snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading only, as it is now.

    Raises :class:`FormatError` if the file is not a database, is damaged or cut short, or another process holds it.

    Notes
    -----
    Even a read-only connection makes ``-wal`` and ``-shm`` files beside a database in WAL mode. So such a database is
    opened as immutable when its log is absent or empty, and otherwise copied with its log to a temporary folder, where
    SQLite may do as it likes. Any other database is opened with ``mode=ro``, which honours the locks of writers.
    """
    if not is_sqlite(path):
        raise FormatError(f"{path} is not an SQLite database")
    real = path.resolve()  # SQLite keeps its logs beside what a link points to
    before = state_of(real)
    try:
        with _opened(real) as connection:
            connection.execute("PRAGMA schema_version")  # locks out writers, so that the length is not about to change
            _check_length(path, real)
            yield connection
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise FormatError(
                f"{path} is damaged: its pages lead to each other, so that its tables never end"
            ) from None
        if "locked" in str(error) or "busy" in str(error):
            raise FormatError(f"{path} is locked by another process; close that program and try again") from None
        if Path(f"{real}-journal").exists():
            raise FormatError(
                f"{path} was left in the middle of a change, which {real.name}-journal would undo; "
                "open it once with the program that wrote it"
            ) from None
        raise FormatError(f"{path} cannot be read: {error}") from None
    except MemoryError:
        # What is asked of a sound database fits the memory: this one announces what no file holds.
        raise FormatError(f"{path} is damaged: it asks for more memory than there is") from None
    except sqlite3.DatabaseError as error:
        _check_length(path, real)
        raise FormatError(f"{path} is damaged: {error}") from None
    if state_of(real) != before:
        raise FormatError(f"{path} changed while it was read; close the program that writes it and try again")


def _has_log(path: Path) -> bool:
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that shows the database as it is now and changes nothing beside it."""
    with ExitStack() as stack:
        how = "mode=ro"
        if head(path, 20)[18:20] == b"\2\2":  # WAL mode
            how = "mode=ro&immutable=1"
            if _has_log(path):
                copy = stack.enter_context(staging(Path(tempfile.gettempdir()))) / "copy.db"
                shutil.copyfile(f"{path}-wal", f"{copy}-wal")
                shutil.copyfile(path, copy)
                path, how = copy, "mode=rw"
        uri = f"{path.as_uri()}?{how}"
        connection = stack.enter_context(closing(sqlite3.connect(uri, uri=True, timeout=TIMEOUT, isolation_level=None)))
        distrust(connection)
        limit_steps(connection, bytes_of(path))
        # No value is longer than the file: without this SQLite makes room for what the beginning of a row promises.
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(bytes_of(path), LEAST_LENGTH))
        connection.execute("BEGIN")  # one view of the database for all that is read
        yield connection


def distrust(connection: sqlite3.Connection) -> None:
    """Turn on SQLite's own switches against databases that are made to do harm."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)


def bytes_of(path: Path) -> int:
    """Return the bytes of a database and of its log, which is all its rows can fill."""
    return sum(size for size, _ in state_of(path.resolve()))


def limit_steps(connection: sqlite3.Connection, size: int) -> None:
    """Let SQLite give up when it takes more steps than a database of `size` bytes can need."""
    left = (STEPS + STEPS_PER_BYTE * size) // BETWEEN

    def count() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(count, BETWEEN)


def quoted(name: str) -> str:
    """Return a name as a statement of SQL may hold it.

    Examples
    --------
    >>> print(quoted('odd" name; --'))
    "odd"" name; --"
    """
    return '"' + name.replace('"', '""') + '"'


def weigh(connection: sqlite3.Connection, table: str, path: Path) -> None:
    """Raise :class:`FormatError` if the rows of a table hold more than the file has bytes, because they share pages.

    The lengths of blobs stand at the beginning of a row, so that nothing of their content is read. Texts are counted
    where they are read.
    """
    names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    lengths = "+".join(f"CASE typeof({n}) WHEN 'blob' THEN length({n}) ELSE 0 END" for n in map(quoted, names))
    rows, held = connection.execute(f"SELECT count(*), total({lengths}) FROM {table}").fetchone()
    size = bytes_of(path)
    if held + LEAST_ROW * rows > size:
        raise FormatError(
            f"{path} is damaged: the {rows:,} rows of {table!r} hold {int(held):,} bytes in a file of {size:,}"
        )


def _check_length(path: Path, real: Path) -> None:
    """Raise :class:`FormatError` if the end of a database is missing, which SQLite would make up from zeros.

    The header holds the page size and, written by SQLite 3.7 or newer, the number of pages. Whole pages may be absent
    where there is a log to hold them.
    """
    header, size = head(real, 100), real.stat().st_size
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    if page not in PAGE_SIZES:
        return  # damage of another kind
    pages = int.from_bytes(header[28:32], "big") if header[24:28] == header[92:96] else 0
    needed = page * (pages or -(-size // page))
    if size < needed and (size % page or not _has_log(real)):
        raise FormatError(f"{path} is cut short: it has {size:,} bytes where {needed:,} are needed; copy it again")
