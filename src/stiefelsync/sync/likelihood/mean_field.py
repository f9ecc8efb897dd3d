"""Mean field: the likelihood with soft labels, its rates fitted along the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.stiefel.product import sparse_product
from stiefelsync.stiefel.sizes import some_rows
from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts, soft_block_counts
from stiefelsync.sync.likelihood.kernels import scale_soft, soft_rows
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_odds

__all__ = ["mean_field", "sinkhorn"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def sinkhorn(S: Floats, table: MatchTable, *, max_iter: int = 20, tol: float = 1e-3) -> Floats:
    """Return soft labels from scores: every row of ``exp S`` scaled to sum 1, every object's columns to at most 1.

    In the memory of S.

    Parameters
    ----------
    S : (m, d)
        Log-odds.

    Returns
    -------
    U : (m, d)

    Notes
    -----
    O(m·d) per iteration for all objects at once, whatever their sizes. Rows sum to one exactly; columns stay below
    one up to `tol` unless `max_iter` comes first.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1], [2]), 2)
    >>> sinkhorn(np.array([[1.0, 0.0], [3.0, 0.0]]), table).round(2).tolist()
    [[0.27, 0.73], [0.73, 0.27]]
    """
    U, columns = soft_rows(S, table)
    contested = np.asarray((columns > 1 + tol).any(axis=1))
    points = np.flatnonzero(contested[table.owner])
    if not len(points):
        return U
    K, columns, owner = U[points], columns[contested], (np.cumsum(contested) - 1)[table.owner[points]]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    U[points] = scale_soft(K, columns, first, max_iter, tol)
    return U


def mean_field(
    table: MatchTable, labels: Ints, *, blocks: BlockCounts | None = None, max_iter: int = 30, tol: float = 1e-3
) -> tuple[Floats, int]:
    """Return soft labels at a fixed point of ``U ← sinkhorn(S(U))`` and the number of rounds, from hard labels.

    Each round re-estimates the rates p, r₁, r₀ from the current U (expectation–maximisation) and moves half way to the
    new labels, which keeps neighbours from swapping for ever.

    Parameters
    ----------
    labels : (m,) int
        The start.
    blocks
        Fix the rates, block by block, to those counted. Matches with weights fix them too, to those of the start.
    tol
        Stop when not more than this share of the points wants to move.

    Notes
    -----
    O(nnz·d) per round, O(nnz + m·d) for the first.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
    >>> U, _ = mean_field(table, np.array([0, 1, 1, 0, 1, 0]))
    >>> U.argmax(axis=1).tolist()
    [0, 1, 1, 0, 0, 1]
    """
    match: Any = 1.0
    fixed = None
    if blocks is not None or table.weight_scores is not None:
        fixed = log_odds(table, block_counts(table, labels) if blocks is None else blocks, blocks)
        match = fixed.match
    U, n_iter, moved = table.one_hot(labels), 0, np.inf
    while n_iter < max_iter and moved > tol:
        if n_iter == 1:
            multiply = sparse_product(table.matrix(table.each(match)))
        WU: Any = multiply(U) if n_iter else table.earned(labels, match)
        n_iter += 1
        rates = fixed
        if rates is None:
            rates = log_odds(table, soft_block_counts(table, U, WU))
            WU *= rates.match
        target = sinkhorn(rates.scores(U, WU), table)
        target -= U
        moved = sum(float(np.abs(target[rows]).sum()) for rows in some_rows(len(U))) / (2 * max(len(U), 1))
        target *= 0.5
        target += U
        U = target
    return U, n_iter
