"""Products of a sparse matrix with a block of vectors, by a kernel, on threads.

Each row is added up in the order of its entries, so that results do not depend on the number of
threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call
from stiefelsync.errors import InputError
from stiefelsync.stiefel.threads import workers

__all__ = ["Product", "sparse_product"]

Product: TypeAlias = Callable[..., NDArray[Any]]
"""U ↦ W U; with keywords ``onto`` and ``scale``, scale·W U − onto in the memory of `onto`."""

_MIN_WORK_OF_THREADS = 4_000_000  # a product of fewer multiply-adds costs less than handing it to threads
_MAX_ENTRIES = np.iinfo(np.int32).max


def sparse_product(W: Any, *, diagonal: NDArray[Any] | None = None) -> Product:
    """Return the function U ↦ W U, U of shape (m, c), for a CSR array W of shape (m, m), float32 or float64.

    Given ``onto``, an array like U, and ``scale``, the function returns scale·W U − onto in the
    memory of `onto`.

    Parameters
    ----------
    diagonal : (m,), optional
        To be added to W.

    Notes
    -----
    O(nnz·c) per product.

    Examples
    --------
    >>> from scipy import sparse
    >>> W = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> sparse_product(W)(np.array([[1.0], [1.0]])).tolist()
    [[3.0], [1.0]]
    """
    csr = W if W.has_sorted_indices else W.sorted_indices()
    if csr.nnz > _MAX_ENTRIES:
        raise InputError(f"W has {csr.nnz:,} entries, more than {_MAX_ENTRIES:,}; pass it as a LinearOperator")
    m, name = csr.shape[0], "product_f32" if csr.dtype == np.float32 else "product_f64"
    indptr, indices = (np.ascontiguousarray(x, np.int32) for x in (csr.indptr, csr.indices))
    data, shift = (x if x is None else np.ascontiguousarray(x, csr.dtype) for x in (csr.data, diagonal))

    def product(U: NDArray[Any], *, onto: NDArray[Any] | None = None, scale: float = 1.0) -> NDArray[Any]:
        U = np.ascontiguousarray(U, dtype=csr.dtype)
        out = np.empty_like(U) if onto is None else onto

        def fill(rows: tuple[int, int]) -> None:
            call(name, indptr, indices, data, m, U, U.shape[1], out, *rows, shift, onto, scale)

        if len(indices) * U.shape[1] < _MIN_WORK_OF_THREADS or (threads := workers()) == 1:
            fill((0, m))
        else:
            # Chunks of rows with about as many entries each, one per thread.
            chunks = _chunks(np.searchsorted(indptr, np.linspace(0, len(indices), threads + 1)), m)
            for _ in _pool().map(fill, chunks):
                pass
        return out

    return product


def _chunks(cuts: NDArray[Any], m: int) -> list[tuple[int, int]]:
    """Return the chunks of m rows between the cuts, those at the ends included."""
    cuts = np.unique(np.append(cuts, [0, m]))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=workers(), thread_name_prefix="stiefelsync")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool object but none of its threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)
