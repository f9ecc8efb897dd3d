"""Products of a sparse matrix with a block of vectors, threaded; compiled and blocked by objects with the extra.

Without the extra `kernels` (numba) SciPy multiplies chunks of rows on a thread pool. With it, large products run in a
compiled kernel that goes object by object, so that the rows of one object's block of U stay in cache while all rows of
another use them. Both add up each row in the same order: results are identical, with any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.stiefel import operators

__all__ = ["available", "sparse_product"]

_WORTH = 100_000_000  # multiplications in a product that outweigh loading the compiler
_CHUNKS = 32  # pieces of about equal work, whatever the number of threads


def available() -> bool:
    """Return whether the extra `kernels` is installed.

    Examples
    --------
    >>> available() in (True, False)
    True
    """
    return find_spec("numba") is not None


def sparse_product(
    W: Any, offsets: NDArray[np.int64], *, width: int, compiled: bool | None = None
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function U ↦ W U for a CSR matrix W, shape (m, m), whose rows are grouped into objects.

    Parameters
    ----------
    W : (m, m) CSR
        Sorted indices.
    offsets : (k + 1,)
        Where each object's rows begin.
    width
        Columns U will have.
    compiled
        Whether to use the compiled kernel; None means when it is installed and the product large enough.

    Notes
    -----
    O(nnz·width) per product.

    Examples
    --------
    >>> from scipy import sparse
    >>> W = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> sparse_product(W, np.array([0, 1, 2]), width=1)(np.array([[1.0], [1.0]])).tolist()
    [[3.0], [1.0]]
    """
    if compiled is None:
        compiled = W.nnz * width >= _WORTH and available()
    if not compiled:
        return operators._threaded_product(W)
    kernel, data = _kernel(), W.data
    indptr, indices = W.indptr.astype(np.int64), W.indices.astype(np.int64)
    work = indptr[offsets]
    cuts = np.unique(np.append(np.searchsorted(work, np.linspace(0, W.nnz, _CHUNKS + 1)), [0, len(offsets) - 1]))
    chunks = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

    def product(U: NDArray[Any]) -> NDArray[Any]:
        U = np.ascontiguousarray(U, dtype=W.dtype)
        out = np.zeros((W.shape[0], U.shape[1]), dtype=W.dtype)
        for _ in operators._pool().map(lambda c: kernel(indptr, indices, data, offsets, U, out, *c), chunks):
            pass
        return out

    return product


@cache
def _kernel() -> Any:
    """Return the compiled product of the rows of objects first, …, last - 1."""
    import numba

    @numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
    def blocked(indptr: Any, indices: Any, data: Any, offsets: Any, U: Any, out: Any, first: int, last: int) -> None:
        k, d = len(offsets) - 1, U.shape[1]
        for i in range(first, last):
            a, b = offsets[i], offsets[i + 1]
            at = indptr[a:b].copy()
            for j in range(k):
                end = offsets[j + 1]
                for r in range(a, b):
                    p = at[r - a]
                    while p < indptr[r + 1] and indices[p] < end:
                        w, c = data[p], indices[p]
                        for t in range(d):
                            out[r, t] += w * U[c, t]
                        p += 1
                    at[r - a] = p

    return blocked
