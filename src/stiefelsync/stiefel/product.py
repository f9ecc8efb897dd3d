"""Products of a sparse matrix with a block of vectors, on threads, by a compiled kernel where there is one.

Without the kernel SciPy multiplies chunks of rows. Both add up each row in the same order: results are identical, with
any number of threads (on ARM, where SciPy may be built to fuse multiplication and addition, up to rounding).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync._kernels.library import address, library
from stiefelsync.stiefel.threads import workers

__all__ = ["Product", "sparse_product"]

Product: TypeAlias = Callable[..., NDArray[Any]]
"""U ↦ W U; with keywords ``onto`` and ``scale``, scale·W U − onto in the memory of `onto`."""
Chunks: TypeAlias = list[tuple[int, int]]

# A product below this many multiply-adds costs less than handing it to threads.
_THREAD_WORK = 200_000
_KERNEL_WORK = 4_000_000  # the same for the kernel
# SciPy's chunks of rows are cut by work: their rows are copied once more, and should stay in cache.
_CHUNK_WORK = 50_000
_CHUNK_ROWS = 512
_KERNELS = {"float64": "product_f64", "float32": "product_f32"}


def sparse_product(W: Any, *, diagonal: NDArray[Any] | None = None) -> Product:
    """Return the function U ↦ W U, U of shape (m, c) and of W's type, for a CSR array W of shape (m, m).

    Given ``onto``, an array like U, and ``scale``, the function returns scale·W U − onto in the memory of `onto`.

    Parameters
    ----------
    diagonal : (m,), optional
        To be added to W.

    Notes
    -----
    O(nnz·c) per product.

    Examples
    --------
    >>> W = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> sparse_product(W)(np.array([[1.0], [1.0]])).tolist()
    [[3.0], [1.0]]
    """
    csr = W if W.has_sorted_indices else W.sorted_indices()
    found = library()
    if found is None or csr.dtype.name not in _KERNELS or csr.nnz > np.iinfo(np.int32).max:
        return _by_scipy(csr, diagonal)
    return _by_kernel(csr, diagonal, getattr(found, _KERNELS[csr.dtype.name]))


def _by_kernel(csr: Any, diagonal: NDArray[Any] | None, kernel: Any) -> Product:
    """Return the product by the compiled kernel, one chunk of rows per thread."""
    m = csr.shape[0]
    # The product holds on to these arrays, whose addresses it goes by.
    kept: list[Any] = [np.ascontiguousarray(x, np.int32) for x in (csr.indptr, csr.indices)]
    kept += [x if x is None else np.ascontiguousarray(x, csr.dtype) for x in (csr.data, diagonal)]
    indptr, indices, data, shift = (ctypes.c_void_p(address(x)) for x in kept)
    size = ctypes.c_int64(m)

    def product(U: NDArray[Any], *, onto: NDArray[Any] | None = None, scale: float = 1.0) -> NDArray[Any]:
        U = np.ascontiguousarray(U, dtype=csr.dtype)
        out = np.empty_like(U) if onto is None else onto
        width, scaled = ctypes.c_int64(U.shape[1]), ctypes.c_double(scale)
        given, made, added = (ctypes.c_void_p(address(x)) for x in (U, out, onto))

        def fill(rows: tuple[int, int]) -> None:
            first, last = map(ctypes.c_int64, rows)
            if kernel(indptr, indices, data, size, given, width, made, first, last, shift, added, scaled):
                raise MemoryError("no memory for a product")

        if len(kept[1]) * U.shape[1] < _KERNEL_WORK or (pieces := workers()) == 1:
            fill((0, m))
        else:
            _run(fill, _chunks(np.searchsorted(csr.indptr, np.linspace(0, csr.nnz, pieces + 1)), m))
        return out

    return product


def _by_scipy(csr: Any, diagonal: NDArray[Any] | None) -> Product:
    """Return the product by SciPy."""
    m = csr.shape[0]
    pieces = max(1, min(m, csr.nnz // _CHUNK_WORK), m // _CHUNK_ROWS)
    chunks = _chunks(np.searchsorted(csr.indptr, np.linspace(0, csr.nnz, pieces + 1)), m)
    views = {rows: _rows(csr, *rows) for rows in chunks}

    def product(U: NDArray[Any], *, onto: NDArray[Any] | None = None, scale: float = 1.0) -> NDArray[Any]:
        U = np.ascontiguousarray(U, dtype=csr.dtype)
        out = np.empty_like(U) if onto is None else onto

        def fill(rows: tuple[int, int]) -> None:
            part = views[rows] @ U
            _finish(*rows, part, U, diagonal, onto, csr.dtype.type(scale))
            out[rows[0] : rows[1]] = part

        _run(fill, chunks, threads=csr.nnz * U.shape[1] >= _THREAD_WORK)
        return out

    return product


def _run(fill: Callable[[tuple[int, int]], None], chunks: Chunks, *, threads: bool = True) -> None:
    """Fill all chunks of rows, on the pool if that is wanted and of use."""
    if not threads or len(chunks) == 1 or workers() == 1:
        for rows in chunks:
            fill(rows)
    else:
        for _ in _pool().map(fill, chunks):
            pass


def _finish(
    a: int,
    b: int,
    rows: NDArray[Any],
    U: NDArray[Any],
    diagonal: NDArray[Any] | None,
    onto: NDArray[Any] | None,
    scale: Any,
) -> None:
    """Turn rows a, …, b - 1 of W U into those of scale·(W + diagonal) U − onto, a few at a time, in cache."""
    for start in range(a, b, 128):
        at = slice(start, min(start + 128, b))
        part = rows[at.start - a : at.stop - a]
        if diagonal is not None:
            part += diagonal[at, None] * U[at]
        if onto is not None:
            part *= scale
            part -= onto[at]


def _chunks(cuts: NDArray[Any], m: int) -> Chunks:
    """Return the chunks of m rows between the cuts, those at the ends included."""
    cuts = np.unique(np.append(cuts, [0, m]))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=workers(), thread_name_prefix="stiefelsync")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool object but none of its threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _rows(csr: Any, a: int, b: int) -> Any:
    """Return rows a:b as a view: index and data arrays are shared, not copied."""
    start, stop = csr.indptr[a], csr.indptr[b]
    block = sparse.csr_array((b - a, csr.shape[1]), dtype=csr.dtype)
    block.data, block.indices = csr.data[start:stop], csr.indices[start:stop]
    block.indptr = csr.indptr[a : b + 1] - start
    return block
