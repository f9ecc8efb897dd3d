"""Gauss–Seidel for large objects: only labels that a match speaks for are scored, and the assignment is sparse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import LogOdds, log_likelihood, log_odds
from stiefelsync.sync.rounding import assign_sparse

__all__ = ["refine_large", "refinements"]

Ints = NDArray[np.int64]


def refine_large(matchings: Matchings, labels: Ints) -> tuple[Ints, float]:
    """Return labels, (m,), refined object by object with sparse scores, and their log-likelihood.

    These are the last of :func:`refinements`.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> labels = refine_large(problem, np.array([0, 1, -1, -1, 0, 1]))[0]
    >>> bool((labels == labels[[0, 1, 1, 0, 0, 1]]).all()), len(set(labels.tolist()))
    (True, 2)
    """
    *_, last = refinements(matchings, labels)
    return last


def refinements(
    matchings: Matchings, labels: Ints, *, rounds: int = 8, sweeps: int = 5
) -> Iterator[tuple[Ints, float]]:
    """Yield labels, (m,), and their log-likelihood: those given, and ever likelier ones after each round.

    Point a of object i may take the label of any point it is matched with, if its score S[a, c] (see
    :mod:`stiefelsync.sync.likelihood.model`; the prior is left out) is above zero, or stay alone under a label of its
    own. There are as many labels as points, so that nobody lacks one.

    Parameters
    ----------
    labels : (m,) int
        The start; -1 = alone.
    rounds, sweeps
        Most times that rates are estimated again, and sweeps over the objects for each.

    Notes
    -----
    O(nnz·k) per sweep besides the sparse assignments; no array of m·d entries.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> [round(value) for _, value in refinements(problem, np.array([0, 1, -1, -1, 0, 1]))]
    [-11, 0]
    """
    table = MatchTable.of(matchings, matchings.n_points)
    labels = _named(labels)
    value = log_likelihood(table, _alone(labels))
    yield _alone(labels), value
    for _ in range(rounds):
        rates = log_odds(table, block_counts(table, _alone(labels)))
        state = _Sparse(table, labels, rates)
        for _ in range(sweeps):
            changed = [state.relabel(i) for i in range(matchings.n_objects)]
            if not any(changed):
                break
        labels = state.labels
        reached = log_likelihood(table, _alone(labels))
        if reached <= value:
            return
        value = reached
        yield _alone(labels), value


def _named(labels: Ints) -> Ints:
    """Return the labels with a number of its own for every point that has none."""
    _, compact = np.unique(labels, return_inverse=True)
    named = np.asarray(compact, dtype=np.int64)
    alone = np.flatnonzero(labels < 0)
    free = np.setdiff1d(np.arange(len(labels)), named[labels >= 0])
    named[alone] = free[: len(alone)]
    return named


def _alone(labels: Ints) -> Ints:
    """Return the labels with -1 where nobody else has the same."""
    return np.where(np.bincount(labels, minlength=len(labels))[labels] > 1, labels, -1)


class _Sparse:
    """Labels, and where they are."""

    def __init__(self, table: MatchTable, labels: Ints, rates: LogOdds) -> None:
        self.table, self.labels, self.rates = table, labels.copy(), rates
        m, k = table.matchings.n_points, table.matchings.n_objects
        self.where = np.full((k, m), -1, dtype=np.int64)
        self.where[table.owner, labels] = np.arange(m)
        size = rates.size if isinstance(rates.size, np.ndarray) else rates.size.toarray()
        # X[a, j]: half of what it is worth that j holds a's label, a being matched in j or not.
        self.X = 0.5 * size[table.owner]
        if rates.seen is not None:
            self.X += table.by_object(0.5 * rates.seen).toarray()

    def relabel(self, i: int) -> bool:
        """Give object i its best labels; return whether they changed."""
        table, k = self.table, self.table.matchings.n_objects
        first, last = table.matchings.offsets[i : i + 2].tolist()
        here = slice(table.indptr[first], table.indptr[last])
        points = np.repeat(np.arange(first, last), np.diff(table.indptr[first : last + 1]))
        self.where[i, self.labels[first:last]] = -1
        labels = self.labels[table.indices[here]]
        S = sparse.csr_array((self.rates.right[here], (points - first, labels)), shape=(last - first, len(self.labels)))
        S.sum_duplicates()
        row = np.repeat(np.arange(first, last), np.diff(S.indptr))
        for j in range(k):
            b = self.where[j, S.indices]
            held = b >= 0
            S.data[held] += self.X[row[held], j] + self.X[b[held], i]
        new = assign_sparse(S, [last - first])
        free = new < 0
        own = self._own(first, last, new, free)
        new[free] = own
        changed = not np.array_equal(new, self.labels[first:last])
        self.labels[first:last] = new
        self.where[i, new] = np.arange(first, last)
        return changed

    def _own(self, first: int, last: int, new: Ints, free: NDArray[np.bool_]) -> Ints:
        """Return labels nobody has for points that stay alone: their old ones, if nobody else has them."""
        taken = np.zeros(len(self.labels), dtype=bool)
        taken[self.labels[:first]] = taken[self.labels[last:]] = True
        taken[new[~free]] = True
        old = self.labels[first:last][free]
        own = np.where(taken[old], -1, old)
        taken[own[own >= 0]] = True
        spare = np.flatnonzero(~taken)
        own[own < 0] = spare[: int((own < 0).sum())]
        return own
