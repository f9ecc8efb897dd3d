"""Products of a sparse matrix with a block of vectors, on threads; compiled and blocked with the extra `kernels`.

SciPy multiplies chunks of rows on a thread pool. With numba large products run in a compiled kernel that goes block by
block, so that the rows of U a block of columns needs stay in cache while many rows of W use them. Both add up each row
in the same order: results are identical, with any number of threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Product", "available", "sparse_product"]

Product: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
Chunks: TypeAlias = list[tuple[int, int]]

# A product below this many multiply-adds costs less than handing it to threads …
_THREAD_WORK = 200_000
# … and beyond this many outweighs loading the compiler.
_WORTH = 100_000_000
# Row chunks are cut by work, not by the number of threads, so that results never depend on the machine.
_CHUNK_WORK = 50_000
# Bytes of U that the kernel works on at a time: what a core's second-level cache holds with room to spare.
_CACHE = 768 * 1024


def available() -> bool:
    """Return whether the extra `kernels` is installed.

    Examples
    --------
    >>> available() in (True, False)
    True
    """
    return find_spec("numba") is not None


def sparse_product(W: Any, *, compiled: bool | None = None) -> Product:
    """Return the function U ↦ W U, U of shape (m, c) and of W's type, for a CSR array W of shape (m, m).

    Parameters
    ----------
    compiled
        Whether to use the compiled kernel; None means when it is installed and the product large enough.

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
    m = csr.shape[0]
    pieces = max(1, min(m, csr.nnz // _CHUNK_WORK))
    cuts = np.searchsorted(csr.indptr, np.linspace(0, csr.nnz, pieces + 1))
    cuts = np.unique(np.append(cuts, [0, m]))
    chunks: Chunks = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    views = [_rows(csr, a, b) for a, b in chunks]

    def product(U: NDArray[Any]) -> NDArray[Any]:
        work = csr.nnz * U.shape[1]
        if work >= _WORTH and available() if compiled is None else compiled:
            return _compiled_product(csr, U, chunks)
        if len(chunks) == 1 or work < _THREAD_WORK:
            return np.asarray(csr @ U)
        out = np.empty((m, U.shape[1]), dtype=csr.dtype)

        def fill(chunk: tuple[int, int], rows: Any) -> None:
            out[slice(*chunk)] = rows @ U

        for _ in _pool().map(fill, chunks, views):
            pass
        return out

    return product


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="stiefelsync")


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


def _compiled_product(csr: Any, U: NDArray[Any], chunks: Chunks) -> NDArray[Any]:
    kernel, m = _kernel(), csr.shape[0]
    U = np.ascontiguousarray(U, dtype=csr.dtype)
    out = np.zeros((m, U.shape[1]), dtype=csr.dtype)
    # Blocks so narrow that most rows have no entry in them would cost more than they save.
    width = max(_CACHE // max(U.shape[1] * U.itemsize, 1), math.ceil(m * m / max(csr.nnz, 1)), 1)

    def fill(chunk: tuple[int, int]) -> None:
        kernel(csr.indptr, csr.indices, csr.data, U, out, width, *chunk)

    for _ in _pool().map(fill, chunks):
        pass
    return out


@cache
def _kernel() -> Any:
    """Return the compiled product of rows first, …, last − 1, by blocks of `width` columns."""
    import numba

    @numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
    def blocked(indptr: Any, indices: Any, data: Any, U: Any, out: Any, width: int, first: int, last: int) -> None:
        m, d = U.shape
        at = indptr[first:last].copy()
        for start in range(0, m, width):
            end = start + width
            for r in range(first, last):
                p = at[r - first]
                while p < indptr[r + 1] and indices[p] < end:
                    w, c = data[p], indices[p]
                    for t in range(d):
                        out[r, t] += w * U[c, t]
                    p += 1
                at[r - first] = p

    return blocked
