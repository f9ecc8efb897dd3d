"""Moves of whole labels: join two labels that are one universe point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts
from stiefelsync.sync.likelihood.gauss_seidel import refine
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood, log_odds

__all__ = ["merge"]

Ints = NDArray[np.int64]

_OVERLAP = 1 / 3  # labels that share more of the smaller one's objects are different points


def merge(
    table: MatchTable, labels: Ints, *, blocks: BlockCounts | None = None, max_rounds: int = 30
) -> tuple[Ints, float]:
    """Return labels no pair of which is likelier as one, and their log-likelihood.

    Joining labels c and c′ earns the sum of what their points earn by pairs. All pairs of labels that are each other's
    best are joined at once (in objects that hold both, the smaller label stays), the labels refined, and the result
    kept if it is likelier; if it is not, the best pair alone is tried.

    Parameters
    ----------
    labels : (m,) int
    blocks
        As for :func:`refine`.

    Notes
    -----
    O(nnz + k·d²) and one refinement per round.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 4)
    >>> merge(table, np.array([0, 1, 1, 0, 2, 3]))[0].tolist()
    [0, 1, 1, 0, 0, 1]
    """
    counts = block_counts(table, labels)
    value = log_likelihood(table, labels, counts)
    single = False
    for _ in range(max_rounds):
        pairs = _pairs(table, labels, counts, blocks)[: 1 if single else None]
        if not len(pairs):
            break
        tried = refine(table, _joined(table, labels, pairs), blocks=blocks)[0]
        after = block_counts(table, tried)
        likelier = log_likelihood(table, tried, after)
        if likelier > value:
            labels, value, counts, single = tried, likelier, after, False
        elif single or len(pairs) == 1:
            break
        else:
            single = True
    return labels, value


def _pairs(table: MatchTable, labels: Ints, counts: BlockCounts, blocks: BlockCounts | None) -> Ints:
    """Return the pairs (larger, smaller) that gain by joining and are each other's best, best first."""
    d = table.d
    O = table.occupancy(labels)
    n = O.sum(axis=0)
    apart = (_OVERLAP * np.minimum.outer(n, n) >= O.T @ O) & (n > 0) & (n > 0)[:, None]
    if not apart.any():
        return np.empty((0, 2), dtype=np.int64)
    rates = log_odds(table, counts, blocks)
    at = np.repeat(labels + 1, np.diff(table.indptr)) * (d + 1) + (labels + 1).take(table.indices)
    earned: Any = np.bincount(at, rates.right, minlength=(d + 1) ** 2)
    gain: Any = earned.reshape(d + 1, d + 1)[1:, 1:] + O.T @ (rates.size @ O)
    if rates.seen is not None:
        gain += table.seen_by(labels, rates.seen).T @ O
    gain = np.round(gain + gain.T, 6)  # which of equal pairs comes first is not left to rounding
    gain[~apart] = -np.inf
    best = gain.argmax(axis=1)
    c = np.arange(len(n))
    c = c[(best[best] == c) & (gain[c, best] > 0) & (c < best)]
    c = c[np.argsort(-gain[c, best[c]], kind="stable")]
    pairs = np.stack([c, best[c]], axis=1)
    swap = n[pairs[:, 0]] < n[pairs[:, 1]]
    pairs[swap] = pairs[swap, ::-1]
    return pairs


def _joined(table: MatchTable, labels: Ints, pairs: Ints) -> Ints:
    into = np.arange(table.d + 1)
    into[pairs[:, 1]] = pairs[:, 0]
    target = into[labels]
    held = table.occupancy(labels) > 0
    free = (labels >= 0) & ~held[table.owner, np.minimum(target, table.d - 1)]
    return np.where(free, target, labels)
