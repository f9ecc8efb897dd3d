"""HDF5 files of strangers: walked without following references, read within bounds, written in memory first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, MissingExtraError
from stiefelsync.io.base import head
from stiefelsync.io.hdf5_chunks import from_chunks
from stiefelsync.io.limits import check_bytes, shown

__all__ = ["Datasets", "edited", "is_hdf5", "opened"]

MAGIC = b"\x89HDF\r\n\x1a\n"
MATLAB = b"MATLAB 7.3 MAT-file"  # an HDF5 file behind a head of its own
DEEPEST = 100  # groups inside each other; names of images make a few
A_CHUNK = 4096  # bytes of memory that the library takes for each chunk of what is read, stored or not


def is_hdf5(path: Path) -> bool:
    """Return whether a file begins like an HDF5 file."""
    return head(path, 8) == MAGIC


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingExtraError("reading and writing HDF5 files", "h5py", "hloc") from None
    return h5py


class Datasets:
    """All datasets of an open file, by the path of their group and their name; read once each, within bounds.

    Links to elsewhere, and datasets whose values lie in other files, are refused as soon as they are met: following
    them would read, and writing to them change, files that nobody named.
    """

    def __init__(self, file: Any, path: Path) -> None:
        self.path, self._taken = path, 0
        self.groups: dict[str, dict[str, Any]] = {}
        h5py, seen = _h5py(), set[Any]()
        # Through the library's own functions: h5py's dictionaries of groups take five times as long.
        waiting = [("", h5py.h5o.open(file.id, b"/"))]
        while waiting:
            name, group = waiting.pop()
            identity = h5py.h5o.get_info(group).addr
            if identity in seen or name.count("/") > DEEPEST:
                raise FormatError(f"{path}: the groups of {shown(name)!r} lie too deep, or within themselves")
            seen.add(identity)
            below = []
            for raw in group:
                key = self._text(raw)
                called = f"{name}/{key}".lstrip("/")
                item = self._item(h5py, group, raw, called)
                if isinstance(item, h5py.h5g.GroupID):
                    below.append((called, item))
                elif isinstance(item, h5py.h5d.DatasetID):
                    self.groups.setdefault(name, {})[key] = h5py.Dataset(item)
            waiting += reversed(below)

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise FormatError(f"{self.path} has the name {raw!r}, which is not UTF-8 text") from None

    def _item(self, h5py: Any, group: Any, raw: bytes, name: str) -> Any:
        """Return what a name stands for, or refuse a reference."""
        if group.links.get_info(raw).type != h5py.h5l.TYPE_HARD:
            raise FormatError(f"{self.path}: {shown(name)!r} is a link to elsewhere, which is not followed")
        item = h5py.h5o.open(group, raw)
        if isinstance(item, h5py.h5d.DatasetID):
            about = item.get_create_plist()
            if about.get_layout() == h5py.h5d.VIRTUAL or about.get_external_count():
                raise FormatError(
                    f"{self.path}: the values of {shown(name)!r} lie in other files, which are not opened"
                )
        return item

    def having(self, dataset: str) -> list[str]:
        """Return the paths of all groups that hold a dataset of that name."""
        return [group for group, datasets in self.groups.items() if group and dataset in datasets]

    def weigh(self, *names: str) -> None:
        """Refuse a file of which all datasets of these names together are more than it can hold.

        Each alone may be small enough; without this, most of them would be unpacked before the sum is too large.
        """
        there = [item for group in self.groups.values() for name, item in group.items() if name in names]
        check_bytes(sum(_bytes(item) for item in there), self.path, "its datasets")

    def read(self, group: str, dataset: str, kinds: str) -> NDArray[Any] | None:
        """Return an array, None if there is none; `kinds` are those of NumPy that its type may be of."""
        item = self.groups[group].get(dataset)
        if item is None:
            return None
        if item.shape is None or item.dtype.kind not in kinds or item.dtype.hasobject:
            raise FormatError(f"{self.path}: {dataset} of {shown(group)!r} does not hold numbers of the kind expected")
        self._taken += _bytes(item)
        check_bytes(self._taken, self.path, "its datasets")
        if item.chunks is None:
            return np.asarray(item[()])
        return from_chunks(item, self.path, f"{dataset} of {shown(group)!r}")


def _bytes(item: Any) -> int:
    """Return what reading a dataset takes: a chunk is unpacked whole, however few of its values the dataset has."""
    if item.shape is None:
        return 0
    chunk = math.prod(item.chunks or ())
    parts = zip(item.shape, item.chunks or item.shape, strict=True)
    many = math.prod(-(-length // max(part, 1)) for length, part in parts)
    return int(max(math.prod(item.shape) * item.dtype.itemsize, chunk * item.dtype.itemsize, many * A_CHUNK))


@contextmanager
def opened(path: Path) -> Iterator[Datasets]:
    """Yield the datasets of a file that is read.

    Raises :class:`FormatError` if it is damaged or refers to other files.
    """
    h5py = _h5py()
    if not (is_hdf5(path) or head(path, 19) == MATLAB):
        raise FormatError(f"{path} is not an HDF5 file")
    try:
        with h5py.File(path, "r") as file:
            yield Datasets(file, path)
    except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:  # what h5py raises on a damaged file
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} is not a complete HDF5 file ({error})") from None


@contextmanager
def edited(path: Path, like: Path | None = None) -> Iterator[Any]:
    """Yield an HDF5 file in memory, a copy of `like` or empty, and write it to `path` at the end.

    The HDF5 library crashes the process when the disk is full; what Python writes is an error like any other.
    """
    h5py = _h5py()
    buffer = BytesIO(b"" if like is None else like.read_bytes())
    with h5py.File(buffer, "w" if like is None else "r+") as file:
        if like is not None:
            Datasets(file, like)  # refuses references
        yield file
    path.write_bytes(buffer.getbuffer())
