"""Gauss–Seidel refinement: re-label one object at a time against all the others until nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stiefelsync.sync.likelihood import Evidence, Odds, Tally, odds, tally

__all__ = ["ascend", "gauss_seidel", "refine"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def gauss_seidel(matchings: Any, labels: Ints, d: int, *, max_sweeps: int = 50) -> tuple[Ints, int]:
    """Return labels that no re-labelling of a single object improves in the objective tr(PᵀWP), and the sweeps made.

    Object i's labels are replaced by the assignment that maximises ``Σ_a (W P)[a, label(a)]``, which never lowers the
    objective, in turn over all objects.

    Parameters
    ----------
    matchings
        The problem.
    labels : (m,) int
        The start; -1 = unmatched.
    d
        Number of labels, at least as many as the largest object has points.

    Notes
    -----
    O(nnz + m·d) per sweep besides the assignments, which only objects with contested labels need.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> gauss_seidel(problem, np.array([0, 1, 1, 0, 1, 0]), 2)[0].tolist()
    [0, 1, 1, 0, 0, 1]
    """
    evidence = Evidence.of(matchings, d)
    k = matchings.n_objects
    return ascend(evidence, labels, Odds(evidence.weights, None, np.zeros((k, k))), max_sweeps=max_sweeps)


def refine(
    evidence: Evidence, labels: Ints, *, blocks: Tally | None = None, rounds: int = 3, alone: bool = False
) -> tuple[Ints, int]:
    """Return labels refined by the likelihood, its rates re-estimated up to `rounds` times, and the sweeps made.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> evidence = Evidence.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
    >>> refine(evidence, np.array([0, 1, 1, 0, 1, 0]))[0].tolist()
    [0, 1, 1, 0, 0, 1]
    """
    total = 0
    for _ in range(rounds):
        rates = odds(evidence, tally(evidence, labels), blocks)
        better, sweeps = ascend(evidence, labels, rates, alone=alone)
        total += sweeps
        if np.array_equal(better, labels):
            break
        labels = better
    return labels, total


def ascend(
    evidence: Evidence, labels: Ints, rates: Odds, *, max_sweeps: int = 50, alone: bool = False
) -> tuple[Ints, int]:
    """Return labels at which no object can raise its score ``Σ_a S[a, label(a)]``, and the sweeps made.

    Parameters
    ----------
    labels : (m,) int
    rates
        What matches, presence and cluster size are worth.
    alone
        Whether a point whose every score is negative stays unmatched.

    Notes
    -----
    Objects none of whose neighbours changed since their last turn are skipped.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> evidence = Evidence.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
    >>> start = np.array([0, 1, 1, 0, 1, 0])
    >>> ascend(evidence, start, odds(evidence, tally(evidence, start)))[0].tolist()
    [0, 1, 1, 0, 0, 1]
    """
    labels = labels.copy()
    state = _State(evidence, labels, rates)
    k = evidence.matchings.n_objects
    waiting = evidence.matchings.sizes > 0
    sweeps = 0
    while sweeps < max_sweeps and waiting.any():
        sweeps += 1
        for i in range(k):
            if waiting[i]:
                waiting[i] = False
                if state.relabel(i, alone):
                    waiting |= state.neighbours[i]
    return labels, sweeps


class _State:
    """Labels and the sums that scores are made of, kept up to date as objects are re-labelled."""

    def __init__(self, evidence: Evidence, labels: Ints, rates: Odds) -> None:
        self.evidence, self.labels, self.rates = evidence, labels, rates
        self.offsets = evidence.matchings.offsets.tolist()
        self.neighbours = evidence.compared > 0
        rows = np.repeat(np.arange(len(labels)), np.diff(evidence.indptr))
        self.local = rows - evidence.matchings.offsets[evidence.owner[rows]]
        U = evidence.one_hot(labels)
        self.O: Floats = evidence.membership @ U
        self.holders: Floats = self.O.sum(axis=0)
        self.shared: Floats = rates.size @ self.O
        self.seen: list[Any] | None = None
        if rates.seen is not None:
            M = evidence.by_object(0.5 * rates.seen)
            self.seen = [M[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]
            self.shared += M.T @ U

    def scores(self, i: int) -> Floats:
        """Return S for the points of object i, shape (n, d)."""
        evidence, d = self.evidence, self.evidence.d
        a, b = self.offsets[i], self.offsets[i + 1]
        here = slice(evidence.indptr[a], evidence.indptr[b])
        # Unmatched neighbours (label -1) fall into column d, which is cut off.
        at = self.local[here] * (d + 1) + self.labels[evidence.indices[here]] % (d + 1)
        matched: Any = np.bincount(at, self.rates.right[here], minlength=(b - a) * (d + 1))
        S: Floats = matched.reshape(b - a, d + 1)[:, :d] + self.shared[i]
        if self.seen is not None:
            S += self.seen[i] @ self.O
        S += self.rates.prior(self.holders - self.O[i], len(self.O))
        return S

    def relabel(self, i: int, alone: bool) -> bool:
        """Give object i its best labels; return whether they changed."""
        a, b = self.offsets[i], self.offsets[i + 1]
        S = self.scores(i)
        if alone:
            np.maximum(S, 0, out=S)
        old = self.labels[a:b].copy()
        kept = np.flatnonzero(old >= 0)
        S[kept, old[kept]] += 1e-9 * (1 + np.abs(S).max(initial=0.0))  # on a tie nothing moves
        new = assign(S)
        if alone:
            new[S[np.arange(b - a), new] <= 0] = -1
        if np.array_equal(new, old):
            return False
        self.labels[a:b] = new
        self._update(i, old, new)
        return True

    def _update(self, i: int, old: Ints, new: Ints) -> None:
        d = self.evidence.d
        change = np.zeros((len(new), d + 1))
        rows = np.arange(len(new))
        change[rows, new] += 1
        change[rows, old] -= 1
        change = change[:, :d]
        occupied = change.sum(axis=0)
        columns = np.flatnonzero(occupied)
        self.O[i, columns] += occupied[columns]
        self.holders[columns] += occupied[columns]
        self.shared[:, columns] += np.outer(self.rates.size[:, i], occupied[columns])
        if self.seen is not None:
            self.shared += self.seen[i].T @ change


def assign(S: Floats) -> Ints:
    """Return the columns, shape (n,), all different, that maximise the sum of S, shape (n, d), n ≤ d.

    Examples
    --------
    >>> assign(np.array([[3.0, 2.0], [3.0, 0.0]])).tolist()
    [1, 0]
    """
    best = np.asarray(S.argmax(axis=1), dtype=np.int64)
    if len(np.unique(best)) == len(best):
        return best
    return np.asarray(linear_sum_assignment(S, maximize=True)[1], dtype=np.int64)
