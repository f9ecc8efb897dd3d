"""Moves of whole labels: join two labels that are one universe point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.evidence import Evidence
from stiefelsync.sync.likelihood import Tally, log_likelihood, odds, tally
from stiefelsync.sync.refine import refine

__all__ = ["merge"]

Ints = NDArray[np.int64]

_OVERLAP = 1 / 3  # labels that share more of the smaller one's objects are different points


def merge(evidence: Evidence, labels: Ints, *, blocks: Tally | None = None, max_rounds: int = 30) -> tuple[Ints, float]:
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
    >>> evidence = Evidence.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 4)
    >>> merge(evidence, np.array([0, 1, 1, 0, 2, 3]))[0].tolist()
    [0, 1, 1, 0, 0, 1]
    """
    value = log_likelihood(evidence, labels)
    single = False
    for _ in range(max_rounds):
        pairs = _pairs(evidence, labels, blocks)[: 1 if single else None]
        if not len(pairs):
            break
        tried = refine(evidence, _joined(evidence, labels, pairs), blocks=blocks)[0]
        likelier = log_likelihood(evidence, tried)
        if likelier > value:
            labels, value, single = tried, likelier, False
        elif single or len(pairs) == 1:
            break
        else:
            single = True
    return labels, value


def _pairs(evidence: Evidence, labels: Ints, blocks: Tally | None) -> Ints:
    """Return the pairs (larger, smaller) that gain by joining and are each other's best, best first."""
    d = evidence.d
    O = evidence.occupancy(labels)
    n = O.sum(axis=0)
    apart = (_OVERLAP * np.minimum.outer(n, n) >= O.T @ O) & (n > 0) & (n > 0)[:, None]
    if not apart.any():
        return np.empty((0, 2), dtype=np.int64)
    rates = odds(evidence, tally(evidence, labels), blocks)
    at = np.repeat(labels + 1, np.diff(evidence.indptr)) * (d + 1) + (labels + 1).take(evidence.indices)
    earned: Any = np.bincount(at, rates.right, minlength=(d + 1) ** 2)
    gain: Any = earned.reshape(d + 1, d + 1)[1:, 1:] + O.T @ (rates.size @ O)
    if rates.seen is not None:
        gain += evidence.seen_by(labels, rates.seen).T @ O
    gain = gain + gain.T
    gain[~apart] = -np.inf
    best = gain.argmax(axis=1)
    c = np.arange(len(n))
    c = c[(best[best] == c) & (gain[c, best] > 0) & (c < best)]
    c = c[np.argsort(-gain[c, best[c]], kind="stable")]
    pairs = np.stack([c, best[c]], axis=1)
    swap = n[pairs[:, 0]] < n[pairs[:, 1]]
    pairs[swap] = pairs[swap, ::-1]
    return pairs


def _joined(evidence: Evidence, labels: Ints, pairs: Ints) -> Ints:
    into = np.arange(evidence.d + 1)
    into[pairs[:, 1]] = pairs[:, 0]
    target = into[labels]
    held = evidence.occupancy(labels) > 0
    free = (labels >= 0) & ~held[evidence.owner, np.minimum(target, evidence.d - 1)]
    return np.where(free, target, labels)
