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

from stiefelsync.stiefel.threads import workers

__all__ = ["Product", "available", "sparse_product"]

Product: TypeAlias = Callable[..., NDArray[Any]]
"""U ↦ W U; with keywords ``onto`` and ``scale``, scale·W U − onto in the memory of `onto`."""
Chunks: TypeAlias = list[tuple[int, int]]

# A product below this many multiply-adds costs less than handing it to threads …
_THREAD_WORK = 200_000
# … and beyond this many outweighs loading the compiler.
_WORTH = 100_000_000
# Row chunks are cut by work, not by the number of threads, so that results never depend on the machine. For the kernel
# they are larger, so that many rows of W use what it has in cache.
_CHUNK_WORK = 50_000
_CHUNK_ROWS = 512
_KERNEL_CHUNKS = 8
# Bytes of U that the kernel works on at a time: a share of the third-level cache. Smaller blocks, and tiles of columns
# that fit the first or second level, were slower: they leave fewer entries of a row to add up in registers.
_CACHE = 4 * 1024 * 1024


def available() -> bool:
    """Return whether the extra `kernels` is installed.

    Examples
    --------
    >>> available() in (True, False)
    True
    """
    return find_spec("numba") is not None


def sparse_product(W: Any, *, diagonal: NDArray[Any] | None = None, compiled: bool | None = None) -> Product:
    """Return the function U ↦ W U, U of shape (m, c) and of W's type, for a CSR array W of shape (m, m).

    Given ``onto``, an array like U, and ``scale``, the function returns scale·W U − onto in the memory of `onto`.

    Parameters
    ----------
    diagonal : (m,), optional
        To be added to W.
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
    pieces = max(1, min(m, csr.nnz // _CHUNK_WORK), m // _CHUNK_ROWS)
    cuts = np.searchsorted(csr.indptr, np.linspace(0, csr.nnz, pieces + 1))
    chunks = _chunks(np.append(cuts, [0, m]))
    wide = _chunks(np.linspace(0, m, _KERNEL_CHUNKS + 1).astype(int))
    views = [_rows(csr, a, b) for a, b in chunks]

    def product(U: NDArray[Any], *, onto: NDArray[Any] | None = None, scale: float = 1.0) -> NDArray[Any]:
        work = csr.nnz * U.shape[1]
        kernel = work >= _WORTH and available() if compiled is None else compiled
        U = np.ascontiguousarray(U, dtype=csr.dtype)
        out = np.empty_like(U) if onto is None else onto

        def finish(a: int, b: int, rows: NDArray[Any]) -> None:
            _finish(a, b, rows, U, diagonal, onto, csr.dtype.type(scale))
            out[a:b] = rows

        def fill(n: int) -> None:
            finish(*chunks[n], views[n] @ U)

        def fill_compiled(n: int) -> None:
            finish(*wide[n], _compiled_rows(csr, U, *wide[n]))

        todo, run = (len(wide), fill_compiled) if kernel else (len(chunks), fill)
        if todo == 1 or (work < _THREAD_WORK and not kernel) or workers() == 1:
            for n in range(todo):
                run(n)
        else:
            for _ in _pool().map(run, range(todo)):
                pass
        return out

    return product


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


def _chunks(cuts: NDArray[Any]) -> Chunks:
    cuts = np.unique(cuts)
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


def _compiled_rows(csr: Any, U: NDArray[Any], first: int, last: int) -> NDArray[Any]:
    """Return rows first, …, last − 1 of the product with U, (m, c)."""
    out = np.zeros((last - first, U.shape[1]), dtype=csr.dtype)
    # Blocks so narrow that few entries of a row are in them would cost more than they save.
    width = max(_CACHE // max(U.shape[1] * U.itemsize, 1), math.ceil(8 * len(U) ** 2 / max(csr.nnz, 1)), 1)
    _kernel()(csr.indptr[first : last + 1], csr.indices, csr.data, U, out, width)
    return out


@cache
def _kernel() -> Any:
    """Return the compiled product of the rows of `indptr`, by blocks of `width` columns, four entries at a time."""
    import numba

    @numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
    def blocked(indptr: Any, indices: Any, data: Any, U: Any, out: Any, width: int) -> None:
        m, d = U.shape
        at = indptr[:-1].copy()
        for start in range(0, m, width):
            end = start + width
            for r in range(len(at)):
                p, stop, row = at[r], indptr[r + 1], out[r]
                while p + 3 < stop and indices[p + 3] < end:
                    u0, u1, u2, u3 = U[indices[p]], U[indices[p + 1]], U[indices[p + 2]], U[indices[p + 3]]
                    w0, w1, w2, w3 = data[p], data[p + 1], data[p + 2], data[p + 3]
                    for t in range(d):
                        row[t] = (((row[t] + w0 * u0[t]) + w1 * u1[t]) + w2 * u2[t]) + w3 * u3[t]
                    p += 4
                while p < stop and indices[p] < end:
                    u0, w0 = U[indices[p]], data[p]
                    for t in range(d):
                        row[t] += w0 * u0[t]
                    p += 1
                at[r] = p

    return blocked
