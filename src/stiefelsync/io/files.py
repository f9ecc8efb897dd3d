"""Output that appears complete or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stiefelsync.errors import InputError

__all__ = ["refuse_overwriting", "replacing"]


def refuse_overwriting(path: Path, source: Path | None) -> None:
    """Raise :class:`InputError` if `path` is the file `source`, under whatever name."""
    if source is None:
        return
    same = path.samefile(source) if path.exists() and source.exists() else path.absolute() == source.absolute()
    if same:
        raise InputError(f"the output {path} is the input itself, which is never modified; choose another output")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a fresh file beside `path` that takes its place when the body ends well and vanishes when it does not.

    Raises :class:`InputError` if the folder is absent or not writable, or the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "out.txt")) as temporary:
    ...         _ = temporary.write_text("complete")
    ...     [file.name for file in Path(folder).iterdir()]
    ['out.txt']
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file to write")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a device, not a file that could be replaced; name a file to write")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; make it first")
    temporary = path.with_name(f".{uuid.uuid4().hex}.part{path.suffix}")
    try:
        # O_EXCL with the usual mode: never another's file, and the permissions any new file would get.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}; nothing was written") from error
    finally:
        for rest in ("", "-journal", "-wal", "-shm"):
            temporary.with_name(temporary.name + rest).unlink(missing_ok=True)
