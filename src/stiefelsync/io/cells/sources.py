"""Which files are sessions, and reading several of them under names that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stiefelsync._border import typed
from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.cells import caiman, cellreg, masks, suite2p
from stiefelsync.io.dispatch import as_path
from stiefelsync.io.files import Name
from stiefelsync.io.hdf5 import is_hdf5
from stiefelsync.io.limits import guarded
from stiefelsync.registration.session import Session

__all__ = ["is_session", "read_sessions"]

TAKEN = ("cell", "confidence", "plane")  # what other columns of the table are called
KINDS = "suite2p folders, CaImAn results (HDF5), footprints for CellReg (MAT), label images (NPY, NPZ, TIFF)"


def is_session(path: Name) -> bool:
    """Return whether a file or folder looks like the cells of one session.

    Examples
    --------
    >>> is_session("nowhere")
    False
    """
    path = Path(path)
    if not path.exists():
        return False
    if path.is_dir() or path.name == "stat.npy":
        try:
            return bool(suite2p.find_planes(path))
        except InputError:
            return True  # several sessions, which reading says
    return is_hdf5(path) or cellreg.is_mat(path) or masks.is_masks(path)


@typed
def read_sessions(
    paths: Sequence[Name], *, plane: int | None = None, iscell: bool | float = True
) -> list[list[Session]]:
    """Read sessions, plane by plane.

    Parameters
    ----------
    paths
        Files or folders: suite2p's (a session, its `suite2p`, one `plane0`, a `stat.npy`), CaImAn's HDF5 files, MAT
        files with footprints as CellReg takes them, label images or footprints (NPY, NPZ, TIFF).
    plane
        Number of the only imaging plane to read; all by default.
    iscell
        Which detections are read: those accepted (true), all (false), or, of suite2p, those with a probability above a
        number.

    Returns
    -------
    planes : list of list of Session
        For every plane the sessions in the order given. Their names are those of folders or files, as short as tells
        them apart.

    Raises
    ------
    FormatError
        If a file is damaged or of no known kind. Nothing that a file brings along is ever run.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = datasets.sessions(2, 30, shape=(128, 128), folder=folder, rng=0)
    ...     read_sessions([f"{folder}/day01", f"{folder}/day02/suite2p"])[0][1].name
    'day02'
    """
    given = [as_path(path) for path in paths]
    if not given:
        raise InputError("no session is given; name at least one file or folder")
    for path in given:
        if not path.exists():
            raise InputError(f"{path} does not exist")
    planes = [suite2p.find_planes(path) for path in given]
    names = _names([_parts(path, found) for path, found in zip(given, planes, strict=True)])
    numbers = {tuple(found) for found in planes if found}
    if len(numbers) > 1 and plane is None:
        listed = " and ".join(str(list(n)) for n in sorted(numbers))
        raise InputError(f"sessions have different planes, {listed}; choose one with plane=", setting="plane")
    wanted = [plane] if plane is not None else list(next(iter(numbers), (0,)))
    return [
        [
            _read(path, found, name, number, iscell)
            for path, found, name in zip(given, planes, names, strict=True)
        ]
        for number in wanted
    ]  # fmt: skip


def _read(path: Path, planes: dict[int, Path], name: str, number: int, iscell: bool | float) -> Session:
    if planes:
        if number not in planes:
            raise InputError(f"{path} has no plane {number}, only {', '.join(map(str, planes))}", setting="plane")
        with guarded(planes[number], "suite2p"):
            return suite2p.read_plane(planes[number], name, iscell=iscell)
    if path.is_dir():
        raise FormatError(f"{path} holds no cells of a session: no stat.npy of suite2p is in it")
    with guarded(path, "cells"):
        if cellreg.is_mat(path):
            return cellreg.read(path, name)
        if is_hdf5(path):
            return caiman.read(path, name, iscell=iscell is not False)
        if masks.is_masks(path):
            return masks.read(path, name)
    raise FormatError(f"{path} is none of these: {KINDS}")


def _parts(path: Path, planes: dict[int, Path]) -> list[str]:
    """Return the words that name a session, the nearest last."""
    if planes:
        return suite2p.name_of(next(iter(planes.values())))
    whole = path.resolve()
    return [part for part in whole.parent.parts if part not in ("/", "\\")] + [whole.stem]


def _names(parts: list[list[str]]) -> list[str]:
    """Return names as short as tells them apart.

    Examples
    --------
    >>> _names([["x", "plane"], ["x", "b"]])
    ['x/plane', 'x/b']
    >>> _names([["x", "mouse1", "a"], ["x", "mouse2", "a"]]), _names([["x", "a"], ["x", "b"]])
    (['mouse1/a', 'mouse2/a'], ['a', 'b'])
    """
    for depth in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(words[-depth:]) for words in parts]
        if len(set(names)) == len(names) and not {name.lower() for name in names} & set(TAKEN):
            return names
    twice = next((words for words in parts if parts.count(words) > 1), None)
    if twice is None:
        return names
    raise InputError(f"session {twice[-1]!r} is named twice; name every session once")
