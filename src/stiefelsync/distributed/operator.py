"""Row blocks of W on Dask workers as one LinearOperator, for a W too large for a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from stiefelsync._border import typed
from stiefelsync.distributed.cluster import dask
from stiefelsync.errors import InputError
from stiefelsync.stiefel.checks import check_count

__all__ = ["operator", "row_blocks"]


@typed
def row_blocks(W: Any, n: int) -> Iterator[sparse.csr_array]:
    """Cut a sparse or dense symmetric W, (m, m), into n blocks of rows that follow each other.

    Examples
    --------
    >>> [block.shape for block in row_blocks(np.eye(5), 2)]
    [(2, 5), (3, 5)]
    """
    rows = sparse.csr_array(W)
    n = check_count("n", n)
    if n > rows.shape[0]:
        raise InputError(f"{rows.shape[0]} rows cannot be cut into {n} blocks")
    bounds = np.arange(n + 1) * rows.shape[0] // n
    return (rows[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


@typed
def operator(W_blocks: Sequence[Any] | Iterator[Any], client: Any) -> LinearOperator:
    """Return W, (m, m), given by blocks of rows, as an operator that workers compute with.

    Each product sends U, (m, d), to the workers and W_b U back from every block b, where the block
    stays on its worker; so ``sparse_stiefel`` and ``two_stage`` run on it unchanged.

    Parameters
    ----------
    W_blocks
        Blocks of rows from the first to the last, each (m_b, m), sparse or dense; or functions
        without arguments that return one, called on the worker, so that no other process ever holds
        it. An iterator is sent block by block.
    client
        A Dask client.

    Notes
    -----
    Blocks are placed on the workers in turn. O(nnz·d) flops shared among them and O(m·d) numbers
    sent to each of them per product. A block given as a function is made again if its worker dies;
    a block given as an array is lost then, and the next product says so.

    Examples
    --------
    >>> from stiefelsync.distributed.cluster import cluster  # doctest: +SKIP
    >>> with cluster(workers=2) as client:  # doctest: +SKIP
    ...     W = operator(row_blocks(np.diag([3.0, 2, 1, 0.5]), 2), client)
    ...     sparse_stiefel(W, 2, rng=0).objective
    5.0
    """
    module = dask()
    workers = sorted(client.nthreads())
    if not workers:
        raise InputError("the cluster has no workers; start some")
    placed, shapes = [], []
    for number, block in enumerate(W_blocks):
        where = [workers[number % len(workers)]]
        if callable(block):
            future = client.submit(_made, block, workers=where, allow_other_workers=True, pure=False)
        else:
            future = client.scatter(_rows(block), workers=where, hash=False)
        placed.append(future)
        shapes.append(client.submit(_shape, future, pure=False))
    about = client.gather(shapes)
    m = sum(rows for rows, _, _ in about)
    if not about or any(columns != m for _, columns, _ in about):
        raise InputError(f"blocks of {m} rows in all must have {m} columns each: W is square")
    dtype = np.result_type(*(np.dtype(kind) for _, _, kind in about))

    def product(U: NDArray[Any]) -> NDArray[Any]:
        sent = client.scatter(np.ascontiguousarray(U), broadcast=True, hash=False)
        try:
            parts = client.gather([client.submit(_product, block, sent, pure=False) for block in placed])
        except (module.client.FutureCancelledError, module.scheduler.KilledWorker) as error:
            raise InputError(
                "a block of W was lost with its worker; give blocks as functions, which can make them again"
            ) from error
        return np.concatenate(parts)

    return LinearOperator((m, m), matvec=product, matmat=product, rmatvec=product, rmatmat=product, dtype=dtype)


def _rows(block: Any) -> Any:
    return sparse.csr_array(block) if sparse.issparse(block) else np.asarray(block)


def _made(make: Callable[[], Any]) -> Any:
    return _rows(make())


def _shape(block: Any) -> tuple[int, int, str]:
    return (*block.shape, block.dtype.str)


def _product(block: Any, U: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(block @ U)
