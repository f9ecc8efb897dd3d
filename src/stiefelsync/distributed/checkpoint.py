"""Results of parts kept in files, so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync.distributed import steps
from stiefelsync.distributed.solve_in_groups import Run
from stiefelsync.errors import InputError
from stiefelsync.io.limits import guarded
from stiefelsync.io.npz_arrays import load
from stiefelsync.io.staging import alone_in

__all__ = ["fingerprint", "forget", "keeping"]

_ABOUT = "run.json"
_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (steps.Bundles, steps.Clusters, steps.Edges, steps.Joined, steps.Kept)
}
_DIGEST = 64  # digits of one
# How an archive says how long its comment is.
_NO_COMMENT, _COMMENT = b"\0\0", _DIGEST.to_bytes(2, "little")
_DONE = "checkpoints of a run of stiefelsync; they can be deleted, then the run starts anew"


def fingerprint(*arrays: Any) -> str:
    """Return a digest of arrays and numbers, by which a run knows its own checkpoints.

    Examples
    --------
    >>> fingerprint(np.arange(3), 1.5) == fingerprint(np.arange(3), 1.5) != fingerprint(np.arange(4), 1.5)
    True
    """
    digest = hashlib.sha256()
    for array in arrays:
        values = np.asarray(array)
        digest.update(f"{values.dtype}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


@contextmanager
def keeping(run: Run, folder: str | Path, digest: str) -> Iterator[Run]:
    """Yield a run that keeps every result in a folder and takes those that are there from it.

    No other run may be in the folder meanwhile.

    Parameters
    ----------
    run
        Who does what is not there yet.
    folder
        Made if need be; empty, or of a run with the same `digest`.

    Notes
    -----
    A result is written under another name and renamed, so it is there whole or not at all; one that
    is cut short (power was lost) is made again. Each has a digest of itself, its place and its run,
    without which it is not believed. Nothing in them is pickled.
    """
    folder = Path(folder)
    # For the eyes of this user alone, as far as who made it has not said otherwise.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def kept(stage: str, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n: int) -> Iterator[Any]:
        place = folder / stage.replace(" ", "-")
        place.mkdir(exist_ok=True)
        names = [place / f"{number:06d}.npz" for number in range(n)]
        there = [_is_whole(name) for name in names]
        found = run(stage, function, (task for task, done in zip(tasks, there, strict=True) if not done), n)
        for number, (name, done) in enumerate(zip(names, there, strict=True)):
            about = f"{digest} {stage} {number}".encode()
            result = _load(name, about) if done else next(found)
            if not done:
                _save(result, name, about)
            yield result

    with alone_in(folder):
        _claim(folder, digest)
        yield kept


def _claim(folder: Path, digest: str) -> None:
    about = folder / _ABOUT
    if about.exists():
        try:
            known = json.loads(about.read_text()).get("digest")
        except (ValueError, AttributeError):
            known = None
        if known != digest:
            raise InputError(
                f"{folder} holds checkpoints of another run (another input, other groups or options); name another"
                " folder, or delete it"
            )
    elif any(path != about.with_suffix(".part") for path in folder.iterdir()):  # which a run killed just now has left
        raise InputError(f"{folder} is not empty and holds no checkpoints; name another folder for them")
    else:
        _write(about, json.dumps({"what": _DONE, "digest": digest}).encode())


def forget(folder: str | Path) -> None:
    """Remove the checkpoints of a finished run; the folder stays if it holds anything else."""
    folder = Path(folder)
    if not (folder / _ABOUT).exists():
        return
    for stage in folder.iterdir():
        if stage.is_dir() and all(name.suffix in (".npz", ".part") for name in stage.iterdir()):
            shutil.rmtree(stage)
    (folder / _ABOUT).unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def _save(result: Any, path: Path, about: bytes) -> None:
    """Keep a result with a digest of it and of what it is, as the comment of the archive."""
    buffer = BytesIO()
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    np.savez(buffer, kind=type(result).__name__, **values)
    plain = buffer.getvalue()
    assert plain.endswith(_NO_COMMENT)
    _write(path, plain[: -len(_NO_COMMENT)] + _COMMENT + _digest(plain, about))


def _digest(plain: bytes, about: bytes) -> bytes:
    return hashlib.sha256(about + b"\0" + plain).hexdigest().encode()


def _write(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(content)
    os.replace(part, path)


def _load(path: Path, about: bytes) -> Any:
    """Return a result, or raise :class:`InputError` if no run like this one left it there."""
    data = path.read_bytes()
    plain = data[: -_DIGEST - len(_COMMENT)] + _NO_COMMENT
    if not hmac.compare_digest(_digest(plain, about), data[-_DIGEST:]):
        raise _changed(path)
    with guarded(path, "npz"):
        values = load(path, None)
    kind = _KINDS.get(str(values.pop("kind", "")))
    # A digest tells of accidents and of parts that were swapped; who can compute one can still not
    # name other types.
    if kind is None or set(values) != {field.name for field in fields(kind)}:
        raise _changed(path)
    return kind(**{name: value.item() if value.ndim == 0 else value for name, value in values.items()})


def _changed(path: Path) -> InputError:
    return InputError(f"{path} is not what this run left there; delete {path.parent.parent} to start anew")


def _is_whole(path: Path) -> bool:
    """Return whether a file of results was written to its end.

    If not, power was lost and it is made again.
    """
    try:
        with path.open("rb") as file:
            file.seek(-_DIGEST - len(_COMMENT), os.SEEK_END)
            end = file.read()
    except OSError:
        return False
    return end.startswith(_COMMENT) and re.fullmatch(b"[0-9a-f]{64}", end[len(_COMMENT) :]) is not None
