"""Hidden folders for unfinished files, which vanish with the process that made them or when the next one comes by."""

from __future__ import annotations

import atexit
import errno
import os
import platform
import re
import shutil
import stat
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stiefelsync.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: leftovers of killed processes stay
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone_in", "leftovers", "remove_all", "staging", "sweep"]

# Locks of some cluster file systems hold on one machine only, so a folder is swept by the machine that made it.
_MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
_ours: dict[Path, tuple[int, int | None]] = {}  # folders in use: process, and the handle that holds the lock
_NAME = re.compile(rf"\.stiefelsync-{_MACHINE}-[0-9a-f]{{32}}\.part")


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """Yield a fresh hidden folder inside `folder` that is removed at the end, with all it holds.

    A lock on it, which ends with the process however that ends, tells living ones from leftovers; those are removed
    first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with staging(Path(folder)) as hidden:
    ...         _ = Path(hidden, "unfinished").write_text("…")
    ...     len(list(Path(folder).iterdir()))
    0
    """
    sweep(folder)
    while True:
        made = folder / f".stiefelsync-{_MACHINE}-{uuid.uuid4().hex}.part"
        _ours[made] = os.getpid(), None
        made.mkdir(mode=0o700)
        # Waits for a process that sweeps at this very moment; if it has taken the folder for a leftover, try again.
        _ours[made] = os.getpid(), None if fcntl is None else _lock(made, fcntl.LOCK_EX)
        if made.exists():
            break
        _remove(made)
    try:
        yield made
    finally:
        _remove(made)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder, or raise :class:`InputError` if one is in it.

    Where there are no locks nobody is kept out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone_in(Path(folder)):
    ...     with alone_in(Path(folder)):
    ...         pass
    Traceback (most recent call last):
    stiefelsync.errors.InputError: ... is in use by another run; wait for its end, or name another folder
    """
    handle = None if fcntl is None else os.open(folder, os.O_RDONLY)
    try:
        if handle is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    raise InputError(
                        f"{folder} is in use by another run; wait for its end, or name another folder"
                    ) from None
        yield
    finally:
        if handle is not None:
            os.close(handle)


def leftovers(folder: Path) -> list[Path]:
    """Return the hidden folders of this machine and user in a folder, living ones included."""
    with os.scandir(folder) as entries:
        named = [entry for entry in entries if _NAME.fullmatch(entry.name)]
        return [Path(entry) for entry in named if entry.is_dir(follow_symlinks=False) and _is_ours(entry)]


def _is_ours(entry: os.DirEntry[str]) -> bool:
    return not hasattr(os, "geteuid") or entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def sweep(folder: Path) -> None:
    """Remove what killed processes left in a folder."""
    if fcntl is None:
        return
    try:
        found = leftovers(folder)
    except OSError:  # not ours to list
        return
    for left in found:
        handle = _lock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if handle is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)


def _remove(made: Path) -> None:
    shutil.rmtree(made, ignore_errors=True)
    _, handle = _ours.pop(made, (0, None))
    if handle is not None:
        os.close(handle)


@atexit.register
def remove_all() -> None:
    """Remove all hidden folders of this process, since a signal may interrupt even the removing of one."""
    for made, (owner, _) in list(_ours.items()):
        if owner == os.getpid():  # not those of a process that this one was forked from
            _remove(made)


def _lock(folder: Path, how: int) -> int | None:
    """Return a handle that locks a folder, or None: another process has it, it is gone, or there are no locks here."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, how)
        if stat.S_ISDIR(os.fstat(handle).st_mode) and os.path.samestat(os.fstat(handle), os.lstat(folder)):
            return handle
    except OSError:
        pass
    os.close(handle)
    return None
