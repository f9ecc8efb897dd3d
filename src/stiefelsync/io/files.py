"""Outputs that appear all together and complete, or not at all, and never in the place of anything precious."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from stiefelsync.errors import InputError
from stiefelsync.io.staging import staging

__all__ = ["check_outputs", "outputs", "replacing"]

Name = str | os.PathLike[str]
LOGS = ("-wal", "-journal")  # what SQLite reads together with a database
SIDES = (*LOGS, "-shm")  # all it keeps beside one


def check_outputs(outputs: Iterable[Name | None], *, reads: Iterable[Name | None] = (), force: bool = False) -> None:
    """Raise :class:`InputError` if an output is an input, another output, there already, or cannot be written.

    Parameters
    ----------
    outputs
        Files to be written; None is ignored, here and in `reads`.
    reads
        Every file that is read, whatever for, and folders of such files; no output may be one of them or one of the
        files SQLite keeps beside it.
    force
        Whether other files that are there may be replaced.

    Examples
    --------
    >>> check_outputs(["clean.db"], reads=["clean.db"])
    Traceback (most recent call last):
    stiefelsync.errors.InputError: the output clean.db is the input itself, which is never modified; ...
    """
    seen: list[Path] = []
    inputs = [Path(path) for path in reads if path is not None]
    for path in (Path(path) for path in outputs if path is not None):
        for source in inputs:
            _refuse_input(path, source)
        if any(_same(path, other) for other in seen):
            raise InputError(f"{path} is named as output twice; choose different files")
        seen.append(path)
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file to write")
        if not path.parent.is_dir():
            raise InputError(f"the folder {path.parent} does not exist; make it first")
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is a device, not a file that could be replaced; name a file to write")
        if os.path.lexists(path) and not force:
            raise _there(path)
        for log in (path.with_name(path.name + ending) for ending in LOGS):
            if log.is_file() and log.stat().st_size:
                raise InputError(
                    f"{log} is the log of an earlier database and would spoil a new {path}; remove it first"
                )
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"the folder {path.parent} is not writable; choose another output")


def _there(path: Path) -> InputError:
    message = f"{path} is there already; choose another output, or replace it with force=True"
    return InputError(message, setting="force")


def _refuse_input(path: Path, source: Path) -> None:
    """Raise :class:`InputError` if `path` is the file `source`, lies beside it as its log, or is read with it."""
    for real in dict.fromkeys((source, source.resolve())):
        for side in SIDES if real.name else ():  # a folder may be named "."
            if _same(path, real.with_name(real.name + side)):
                raise InputError(f"the output {path} is where SQLite keeps a log of {source}; choose another output")
        if _same(path, real):
            raise InputError(f"the output {path} is the input itself, which is never modified; choose another output")
    if path.exists() and source.is_dir():
        own = os.stat(path)
        for folder, _, names in os.walk(source):
            if any(_is_file(Path(folder, name), own) for name in names):
                raise InputError(f"the output {path} is one of the files of {source}, which are never modified")


def _is_file(path: Path, other: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), other)
    except OSError:  # a broken link
        return False


def _same(a: Path, b: Path) -> bool:
    """Return whether two names are of one file, or would be if it were there."""
    if a.exists() and b.exists():
        return a.samefile(b)
    return a.name == b.name and a.parent.resolve() == b.parent.resolve()


@contextmanager
def outputs(*paths: Name | None, reads: Iterable[Name | None] = (), force: bool = False) -> Iterator[dict[Path, Path]]:
    """Yield where to write each output; they take their places together when the body ends well, none when it does not.

    Parameters
    ----------
    paths
        Files to write; None is ignored.
    reads, force
        As in :func:`check_outputs`, which is asked first.

    Yields
    ------
    staged : dict of Path to Path
        For every output a name, with the same ending, under which to write it; it is in a hidden folder beside it.

    Raises
    ------
    InputError
        If an output must not or cannot be written, also because the disk is full. Then nothing was written.

    Notes
    -----
    Who may not read an input (its mode says so to group or others) may not read what was made of it either.

    Only the kill of the process (or loss of power) between the moves of two finished files can part them: a move takes
    microseconds. Hidden folders of killed processes are removed by the next one that writes there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     answer, page = Path(folder, "answer.txt"), Path(folder, "page.html")
    ...     with outputs(answer, page) as staged:
    ...         _ = staged[answer].write_text("42")
    ...         _ = staged[page].write_text("<!doctype html>")
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['answer.txt', 'page.html']
    """
    wanted = [Path(path) for path in paths if path is not None]
    check_outputs(wanted, reads=reads, force=force)
    try:
        with ExitStack() as stack:
            folders = {folder: stack.enter_context(staging(folder)) for folder in {path.parent for path in wanted}}
            staged = {path: folders[path.parent] / path.name for path in wanted}
            yield staged
            for temporary in staged.values():
                for whole in temporary.rglob("*.*") if temporary.is_dir() else [temporary]:
                    with whole.open("rb+") as file:
                        os.fsync(file.fileno())
            _narrow(staged.values(), readers_of(reads))
            _publish(staged, force)
    except OSError as error:
        named = " and ".join(map(str, wanted))
        raise InputError(f"{named} cannot be written: {error.strerror or error}; nothing was written") from error


def readers_of(reads: Iterable[Name | None]) -> int:
    """Return which of "group" and "others" may read all of these files, as bits of a mode.

    Examples
    --------
    >>> oct(readers_of([None]))
    '0o44'
    """
    mode = stat.S_IRGRP | stat.S_IROTH
    for path in reads:
        if path is not None and os.path.exists(path):
            mode &= os.stat(path).st_mode
    return mode


def _narrow(made: Iterable[Path], readers: int) -> None:
    """Take from finished files, and all in folders, what those who may not read the inputs could do with them."""
    # Who may read may also write, or enter a folder, where a new file of this user gives that away.
    kept = stat.S_IRWXU | readers | readers >> 1 | readers >> 2
    for top in made:
        for path in (top, *top.rglob("*")) if top.is_dir() else (top,):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & ~kept:
                path.chmod(mode & kept)


def _publish(staged: dict[Path, Path], force: bool) -> None:
    """Move finished files to their places, or leave all as it was."""
    moved: list[tuple[Path, os.stat_result, Path | None]] = []
    try:
        for path, temporary in staged.items():
            before = _copy_of(path, temporary.parent) if len(staged) > 1 and os.path.lexists(path) else None
            moved.append((path, os.stat(temporary), before))
            _move(temporary, path, force)
    except BaseException:
        for path, own, before in reversed(moved):
            if os.path.lexists(path) and os.path.samestat(os.lstat(path), own):
                if path.is_dir():
                    shutil.rmtree(path)
                elif before is None:
                    path.unlink()
                else:
                    before.replace(path)
        raise


def _copy_of(path: Path, folder: Path) -> Path:
    """Return a second name, in a folder, of the file that is about to be replaced."""
    copy = folder / uuid.uuid4().hex
    try:
        os.link(path, copy, follow_symlinks=False)
    except OSError:  # a file system without hard links
        shutil.copy2(path, copy, follow_symlinks=False)
    return copy


def _move(temporary: Path, path: Path, force: bool) -> None:
    """Give a finished file its name; without `force` never one that another process has taken meanwhile.

    A folder, of a format that is one, never replaces anything.
    """
    if temporary.is_dir():
        if os.path.lexists(path):
            raise _there(path)
        temporary.rename(path)
        return
    if force:
        temporary.replace(path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise _there(path) from None
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise _there(path) from None
        temporary.rename(path)


@contextmanager
def replacing(path: Name, *, reads: Iterable[Name | None] = (), force: bool = False) -> Iterator[Path]:
    """Yield where to write a single output, as :func:`outputs` does for several.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "out.txt")) as temporary:
    ...         _ = temporary.write_text("complete")
    ...     [file.name for file in Path(folder).iterdir()]
    ['out.txt']
    """
    with outputs(path, reads=reads, force=force) as staged:
        yield staged[Path(path)]
