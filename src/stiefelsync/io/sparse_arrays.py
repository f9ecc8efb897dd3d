"""Sparse matrices from files: their structure is checked before SciPy sees it, which trusts it and would crash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.errors import InputError
from stiefelsync.io.limits import as_integers

__all__ = ["check_compressed", "from_parts"]

Arrays = Mapping[str, NDArray[Any]]
LARGEST = 2**31 - 1  # rows: no more points can be indexed


def from_parts(kind: str, shape: NDArray[Any], arrays: Arrays) -> sparse.sparray:
    """Return the matrix that `scipy.sparse.save_npz` took apart, or raise :class:`InputError`.

    Parameters
    ----------
    kind : {"csr", "csc", "bsr", "coo", "dia"}
    shape : (2,) int
    arrays
        `data` and, by kind, `indices` and `indptr`, or `row` and `col` (`coords`), or `offsets`.

    Examples
    --------
    >>> parts = {"data": np.ones(1), "indices": np.array([1]), "indptr": np.array([0, 1, 1])}
    >>> from_parts("csr", np.array([2, 2]), parts).toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    sides = as_integers(np.atleast_1d(shape), "the shape")
    if sides.shape != (2,) or not ((sides >= 0) & (sides <= LARGEST)).all():
        raise InputError(f"a matrix of shape {sides.tolist()} cannot be one of matches")
    m, n = sides.tolist()
    data = _part(arrays, "data")
    if data.dtype.kind not in "biuf":
        raise InputError(f"its entries must be real numbers, got {data.dtype}")
    if kind in ("csr", "csc", "bsr"):
        return _compressed(kind, (m, n), data, arrays)
    if kind == "coo":
        return _coordinates((m, n), data, arrays)
    if kind == "dia":
        return _diagonals((m, n), data, arrays)
    raise InputError(f"it is a sparse matrix of unknown kind {kind!r}; save it as CSR")


def _part(arrays: Arrays, name: str) -> NDArray[Any]:
    if name not in arrays:
        raise InputError(f"its array {name!r} is missing")
    return arrays[name]


def _compressed(kind: str, shape: tuple[int, int], data: NDArray[Any], arrays: Arrays) -> sparse.sparray:
    indices, indptr = (as_integers(_part(arrays, name), name) for name in ("indices", "indptr"))
    block = (1, 1)
    if kind == "bsr":
        if data.ndim != 3 or 0 in data.shape[1:]:
            raise InputError(f"the blocks of a BSR matrix must have the shape (n, r, c), got {data.shape}")
        block = data.shape[1], data.shape[2]
        if shape[0] % block[0] or shape[1] % block[1]:
            raise InputError(f"blocks of {block[0]} × {block[1]} do not fill a matrix of shape {shape}")
    elif data.ndim != 1:
        raise InputError(f"the entries must be one array, got shape {data.shape}")
    sides = shape[0] // block[0], shape[1] // block[1]
    major, minor = sides if kind != "csc" else sides[::-1]
    check_compressed(indptr, indices, len(data), major, minor)
    maker = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}[kind]
    return maker((data, indices, indptr), shape=shape)


def check_compressed(indptr: NDArray[Any], indices: NDArray[Any], entries: int, major: int, minor: int) -> None:
    """Raise :class:`InputError` unless pointers and indices of a compressed matrix are sound.

    Parameters
    ----------
    indptr : (major + 1,) int
        Starts at 0, never falls, ends at the number of entries.
    indices : (entries,) int
        From 0 to below `minor`.
    """
    if indptr.shape != (major + 1,) or indices.shape != (entries,):
        raise InputError(
            f"{indptr.size} pointers and {indices.size} indices do not fit {entries} entries in {major} rows or columns"
        )
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] != entries:
        raise InputError(f"the pointers must rise from 0 to the number of entries, {entries}")
    if entries and (indices.min() < 0 or indices.max() >= minor):
        raise InputError(f"an index is out of range: they run from 0 to {minor - 1}")


def _coordinates(shape: tuple[int, int], data: NDArray[Any], arrays: Arrays) -> sparse.sparray:
    rows, cols = arrays["coords"] if "coords" in arrays else (_part(arrays, name) for name in ("row", "col"))
    for side, given in zip(shape, (rows, cols), strict=True):
        index = as_integers(given, "indices")
        if data.ndim != 1 or index.shape != data.shape or (index.size and not (0 <= index.min() <= index.max() < side)):
            raise InputError("rows, columns and entries do not fit together or are out of range")
    return sparse.coo_array((data, (rows.astype(np.int64), cols.astype(np.int64))), shape=shape)


def _diagonals(shape: tuple[int, int], data: NDArray[Any], arrays: Arrays) -> sparse.sparray:
    offsets = as_integers(_part(arrays, "offsets"), "offsets")
    if data.ndim != 2 or offsets.shape != (len(data),) or len(np.unique(offsets)) != len(offsets):
        raise InputError("diagonals and offsets do not fit together")
    if offsets.size and not (-shape[0] < offsets.min() and offsets.max() < shape[1]):
        raise InputError("a diagonal is out of range")
    return sparse.dia_array((data, offsets), shape=shape)
