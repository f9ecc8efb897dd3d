"""Footprints as CellReg takes them: the first variable of a MAT file, an array or a cell of matrices.

Footprints are nearly all zeros, so that a file of two megabytes may unpack to half a gigabyte: it is unpacked piece by
piece, and only what is not zero is kept.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io import matlab
from stiefelsync.io.base import head
from stiefelsync.io.hdf5 import Datasets, opened
from stiefelsync.io.limits import check_bytes, regular
from stiefelsync.io.sparse_arrays import from_parts
from stiefelsync.registration.session import Session, single

__all__ = ["is_mat", "is_newer", "read"]

PIECE = 2**22  # bytes
MOST = 2**40  # bytes of all footprints, zeros included
MOST_CHUNK = 2**28
KEPT = 24  # bytes that a pixel takes


def is_newer(path: Path) -> bool:
    """Return whether a file is a MAT file of version 7.3."""
    return head(path, 19) == b"MATLAB 7.3 MAT-file"


def is_mat(path: Path) -> bool:
    """Return whether a file is a MAT file of version 5 or 7.3."""
    return head(path, 19) == b"MATLAB 5.0 MAT-file" or is_newer(path)


def read(path: Path, name: str) -> Session:
    """Read the footprints of a session; cells are numbered from 1, as CellReg does."""
    try:
        found = _newer(path) if is_newer(path) else _older(path)
    except (zlib.error, struct.error, StopIteration) as error:
        raise FormatError(f"{path} is not a complete MAT file ({error}); was it cut short?") from None
    (n, height, width), (cell, y, x, value) = found
    if not np.isfinite(value).all():
        raise FormatError(f"{path} holds footprints with pixels that are no numbers")
    inside = value > 0
    return Session.from_pixels(
        name, (height, width), cell[inside], (y * width + x)[inside], value[inside],
        numbers=np.arange(1, n + 1), base=1, source="cellreg",
    )  # fmt: skip


Found = tuple[tuple[int, int, int], tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]]


def _shape(dims: list[int], path: Path) -> tuple[int, int, int]:
    if len(dims) == 2:
        dims = [1, *dims]  # MATLAB drops what a single cell would have
    if len(dims) != 3 or min(dims) < 0 or math.prod(dims) > MOST // 8:
        raise FormatError(
            f"{path}: its first variable has the dimensions {dims}; footprints are cells × rows × columns"
        )
    return dims[0], dims[1], dims[2]


def _older(path: Path) -> Found:
    with regular(path).open("rb") as file:
        order = matlab._order(file.read(matlab.HEADER), path)
        kind, length = struct.unpack(f"{order}II", file.read(8))
        stream = _Stream(_bytes(file, length, packed=kind == matlab.COMPRESSED))
        if kind == matlab.COMPRESSED:
            kind, length = struct.unpack(f"{order}II", stream.take(8))
        if kind != matlab.MATRIX:
            raise FormatError(f"{path} does not begin with a variable")
        flags = matlab._flags(_element(stream, order), order)
        dims = [int(side) for side in matlab._values(_element(stream, order), order)]
        called = matlab._name(_element(stream, order))
        if flags & 0xFF == matlab.CELL:
            return _cells(matlab.load(path, [called])[called], path)
        if flags & 0xFF not in matlab.CLASSES or (flags >> 8) & matlab.COMPLEX:
            raise FormatError(f"{path}: its first variable {called[:40]!r} holds no footprints")
        shape = _shape(dims, path)
        stored, count = struct.unpack(f"{order}II", stream.take(8))
        if stored >> 16:
            raise FormatError(f"{path}: its first variable {called[:40]!r} holds no footprints")
        if stored not in matlab.NUMBERS:
            raise FormatError(f"{path}: footprints of the unknown type {stored}")
        dtype = np.dtype(order + matlab.NUMBERS[stored])
        if count != math.prod(shape) * dtype.itemsize:
            raise FormatError(f"{path}: footprints of {count:,} bytes do not fill {shape}")
        at, value = _nonzero(stream, count, dtype, path)
    # MATLAB counts the first axis fastest.
    n, height, _ = shape
    return shape, (at % n, at // n % height, at // (n * height), value)


def _bytes(file: Any, length: int, *, packed: bool) -> Iterator[bytes]:
    """Yield the bytes of a variable in pieces, unpacked."""
    unpacker = zlib.decompressobj()
    while length > 0 and (read := file.read(min(PIECE, length))):
        length -= len(read)
        if not packed:
            yield read
            continue
        while read:
            yield unpacker.decompress(read, PIECE)
            read = unpacker.unconsumed_tail
    if packed:
        yield unpacker.flush()


class _Stream:
    """Bytes that come in pieces, taken in any number."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, b""

    def take(self, n: int) -> bytes:
        parts, have = [self._left], len(self._left)
        while have < n:
            piece = next(self._pieces)
            parts.append(piece)
            have += len(piece)
        whole = b"".join(parts)
        self._left = whole[n:]
        return whole[:n]


def _element(stream: _Stream, order: str) -> tuple[int, memoryview]:
    """Return the type and the data of a small element."""
    tag = stream.take(8)
    kind, length = struct.unpack(f"{order}II", tag)
    if kind >> 16:
        return kind & 0xFFFF, memoryview(tag[4:])[: min(kind >> 16, 4)]
    if length > PIECE:
        raise InputError("a variable has no sound head")
    return kind, memoryview(stream.take(length + -length % 8))[:length]


def _nonzero(
    stream: _Stream, count: int, dtype: np.dtype[Any], path: Path
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    places, values, kept, begin = [], [], 0, 0
    step = PIECE // dtype.itemsize * dtype.itemsize
    for at in range(0, count, step):
        piece = np.frombuffer(stream.take(min(step, count - at)), dtype=dtype)
        here = np.flatnonzero(piece)
        kept += len(here)
        check_bytes(kept * KEPT, path, "its footprints")
        places.append(here + begin)
        values.append(single(piece[here]))
        begin += len(piece)
    none = np.empty(0, dtype=np.int64)
    return np.concatenate([*places, none]), np.concatenate([*values, none.astype(np.float32)])


def _cells(cells: Any, path: Path) -> Found:
    """Return footprints given as a matrix each."""
    if (
        not isinstance(cells, list)
        or not cells
        or not all((sparse.issparse(c) or isinstance(c, np.ndarray)) and c.ndim == 2 for c in cells)
    ):
        raise FormatError(f"{path}: its first variable is no cell of matrices, one for each footprint")
    shape = cells[0].shape
    if any(c.shape != shape for c in cells):
        raise FormatError(f"{path}: its footprints are of different sizes")
    parts = [sparse.coo_array(c) for c in cells]
    cell = np.repeat(np.arange(len(parts)), [p.nnz for p in parts])
    y, x, value = (np.concatenate([getattr(p, of) for p in parts]) for of in ("row", "col", "data"))
    _shape([len(parts), *shape], path)
    return (len(parts), *shape), (cell, y.astype(np.int64), x.astype(np.int64), single(value))


def _newer(path: Path) -> Found:
    with opened(path) as data:
        groups = data.groups.get("", {})
        called = next((key for key in groups if not key.startswith("#")), None)
        if called is None:
            raise FormatError(
                f"{path} holds no footprints that can be read; save them in MATLAB with: save(..., '-v7')"
            )
        item = groups[called]
        if item.dtype.kind == "O":
            check_bytes(math.prod(item.shape or ()) * 8, path, "its cells")
            return _cells([_referred(data, path, item, ref) for ref in np.asarray(item[()]).ravel()], path)
        if item.dtype.kind not in "fiu" or item.shape is None:
            raise FormatError(f"{path}: its first variable {called[:40]!r} holds no numbers")
        shape = _shape(list(item.shape[::-1]), path)  # MATLAB's axes are reversed in HDF5
        if math.prod(item.chunks or (1,)) * item.dtype.itemsize > MOST_CHUNK:
            raise FormatError(f"{path}: the pieces of its first variable are larger than footprints need")
        return shape, _slabs(item, shape, path)


def _slabs(item: Any, shape: tuple[int, int, int], path: Path) -> Any:
    """Return what is not zero of an array that is read piece by piece along its first axis."""
    whole = item.shape if len(item.shape) == 3 else (*item.shape, 1)
    step = max(PIECE // max(math.prod(whole[1:]) * item.dtype.itemsize, 1), 1)
    step = max(step, (item.chunks or (1,))[0])
    found: tuple[list[NDArray[Any]], ...] = [], [], [], []
    kept = 0
    for begin in range(0, whole[0], step):
        block = np.asarray(item[begin : begin + step]).reshape(-1, *whole[1:])
        x, y, cell = np.nonzero(block)
        kept += len(x)
        check_bytes(kept * KEPT, path, "its footprints")
        new: tuple[NDArray[Any], ...] = cell, y, x + begin, single(block[x, y, cell])
        for part, values in zip(found, new, strict=True):
            part.append(values)
    return tuple(np.concatenate([*part, np.empty(0, dtype=np.int64)]) for part in found)


def _referred(data: Datasets, path: Path, item: Any, reference: Any) -> Any:
    """Return the matrix that a reference inside the file leads to."""
    import h5py

    where = h5py.h5r.get_name(reference, item.id)
    name = where.decode().lstrip("/") if where else ""
    folder, _, last = name.rpartition("/")
    if name in data.groups and {"ir", "jc", "data"} <= set(data.groups[name]):
        parts = {key: data.read(name, at, "iuf") for key, at in (("data", "data"), ("indices", "ir"), ("indptr", "jc"))}
        rows = int(item.file[name].attrs["MATLAB_sparse"])
        columns = len(parts["indptr"]) - 1  # type: ignore[arg-type]
        return from_parts("csc", np.array([rows, columns]), parts)  # type: ignore[arg-type]
    values = data.read(folder, last, "iuf") if last in data.groups.get(folder, {}) else None
    if values is None or "MATLAB_empty" in data.groups[folder][last].attrs:
        raise FormatError(f"{path}: a footprint is not a matrix")
    return values.T
