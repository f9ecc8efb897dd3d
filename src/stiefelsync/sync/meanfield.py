"""Mean field: the likelihood of :mod:`stiefelsync.sync.likelihood` with soft labels and rates fitted along the way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.stiefel.product import sparse_product
from stiefelsync.sync.likelihood import Evidence, Tally, odds, soft_tally

__all__ = ["mean_field", "sinkhorn"]

Floats = NDArray[np.float64]


def sinkhorn(S: Floats, evidence: Evidence, *, max_iter: int = 20, tol: float = 1e-3) -> Floats:
    """Return soft labels from scores: every row of ``exp S`` scaled to sum 1, every object's columns to at most 1.

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
    >>> evidence = Evidence.of(Matchings.from_labels([0, 1], [2]), 2)
    >>> sinkhorn(np.array([[1.0, 0.0], [3.0, 0.0]]), evidence).round(2).tolist()
    [[0.27, 0.73], [0.73, 0.27]]
    """
    K = np.exp(S - S.max(axis=1, keepdims=True))
    v = np.ones((evidence.matchings.n_objects, S.shape[1]))
    u = 1 / K.sum(axis=1)
    for _ in range(max_iter):
        columns = evidence.membership @ (K * u[:, None])
        if (columns * v).max(initial=0.0) <= 1 + tol:
            break
        v = 1 / np.maximum(columns, 1)
        u = 1 / np.maximum(np.einsum("ac,ac->a", K, v[evidence.owner]), np.finfo(float).tiny)
    return np.asarray(K * u[:, None] * v[evidence.owner])


def mean_field(
    evidence: Evidence, U: Floats, *, blocks: Tally | None = None, max_iter: int = 30, tol: float = 1e-3
) -> tuple[Floats, int]:
    """Return soft labels at a fixed point of ``U ← sinkhorn(S(U))`` and the number of rounds, from soft or hard labels.

    Each round re-estimates the rates p, r₁, r₀ from the current U (expectation–maximisation) and moves half way to the
    new labels, which keeps neighbours from swapping for ever.

    Parameters
    ----------
    U : (m, d)
    blocks
        Fix the rates, block by block, to those of a tally.
    tol
        Stop when not more than this share of the points wants to move.

    Notes
    -----
    O(nnz·d) per round.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> evidence = Evidence.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
    >>> U, _ = mean_field(evidence, evidence.one_hot(np.array([0, 1, 1, 0, 1, 0])))
    >>> U.argmax(axis=1).tolist()
    [0, 1, 1, 0, 0, 1]
    """
    weights = evidence.weights
    fixed = None
    if blocks is not None:
        fixed = odds(evidence, blocks, blocks)
        weights = fixed.right
    multiply = sparse_product(evidence.matrix(weights))
    n_iter, moved = 0, np.inf
    while n_iter < max_iter and moved > tol:
        n_iter += 1
        WU = multiply(U)
        rates = fixed
        if rates is None:
            rates = odds(evidence, soft_tally(evidence, U, WU))
            WU *= rates.scale
        target = sinkhorn(rates.scores(evidence, U, WU), evidence)
        target -= U
        moved = float(np.abs(target).sum()) / (2 * max(len(U), 1))
        U = U + 0.5 * target
    return U, n_iter
