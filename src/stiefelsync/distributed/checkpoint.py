"""Results of parts kept in files, so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync.distributed import steps
from stiefelsync.distributed.solve_in_groups import Run
from stiefelsync.errors import InputError

__all__ = ["fingerprint", "forget", "keeping"]

_ABOUT = "run.json"
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


def keeping(run: Run, folder: str | Path, digest: str) -> Run:
    """Return a run that keeps every result in a folder and takes those that are there from it.

    Parameters
    ----------
    run
        Who does what is not there yet.
    folder
        Made if need be; empty, or of a run with the same `digest`.

    Notes
    -----
    A result is written under another name and renamed, so it is there whole or not at all; one that cannot be read
    (power was lost) is made again.
    """
    folder = Path(folder)
    _claim(folder, digest)

    def kept(stage: str, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n: int) -> Iterator[Any]:
        place = folder / stage.replace(" ", "-")
        place.mkdir(exist_ok=True)
        names = [place / f"{number:06d}.npz" for number in range(n)]
        there = [is_whole(name) for name in names]
        found = run(stage, function, (task for task, done in zip(tasks, there, strict=True) if not done), n)
        for name, done in zip(names, there, strict=True):
            result = _load(name) if done else next(found)
            if not done:
                _save(result, name)
            yield result

    return kept


def _claim(folder: Path, digest: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
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
    elif any(folder.iterdir()):
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


def _save(result: Any, path: Path) -> None:
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(
            file, kind=type(result).__name__, **{field.name: getattr(result, field.name) for field in fields(result)}
        )
    os.replace(part, path)


def _write(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(content)
    os.replace(part, path)


def _load(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        kind = getattr(steps, str(archive["kind"]))
        values = {name: archive[name] for name in archive.files if name != "kind"}
    return kind(**{name: value.item() if value.ndim == 0 else value for name, value in values.items()})


def is_whole(path: Path) -> bool:
    """Return whether a file of results can be read to its end."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False
