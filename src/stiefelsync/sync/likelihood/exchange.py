"""Moves of whole groups of objects: exchange two labels in some of the objects at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts
from stiefelsync.sync.likelihood.gauss_seidel import refine
from stiefelsync.sync.likelihood.kernels import hopeful_pairs, sorted_entries, sum_pairs
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import LogOdds, log_likelihood, log_odds

__all__ = ["exchange"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WORK = 1_000_000_000  # sum of the cubed sizes of the matrices J looked at in one round
_LEAST = 1e-6  # gains up to this are rounding
_HOPE = 0.5  # share of the least degree that entries against the present state must have for a look at cuts
_BATCH = 300  # objects up to which many pairs of labels are looked at together …
_CELLS = 1 << 20  # … so many entries of their matrices at a time
_VECTORS = 3  # eigenvectors whose sweeps are tried


def exchange(
    table: MatchTable, labels: Ints, *, blocks: BlockCounts | None = None, max_rounds: int = 20
) -> tuple[Ints, float]:
    """Return labels that no exchange of two labels within a group of objects found makes likelier, and their value.

    Let x_i = ±1 say whether object i exchanges labels c and c′. With T_ab what two points earn by carrying the same
    label and σ_a = 1 for points of c, −1 for points of c′, the pairwise score is ½ Σ_{i<j} J_ij x_i x_j + const,
    ``J_ij = Σ_{a ∈ i, b ∈ j} T_ab σ_a σ_b``. Exchanging in the group F alone changes the score by minus the weight of
    the cut, ``−Σ_{i ∈ F, j ∉ F} J_ij``, so a group worth moving is a cut of negative weight. There is none if the
    Laplacian ``diag(J 1) − J`` is positive semidefinite; otherwise its lowest eigenvectors order the objects, and the
    best prefix of any of these orders is the group. Joining two labels, and splitting one, are special cases.

    Notes
    -----
    O(k³) for each pair of labels that any match joins; pairs with most matches between them first, up to a
    bounded amount of work.
    """
    counts = block_counts(table, labels)
    value = log_likelihood(table, labels, counts)
    found: list[_Move] = []
    changed, single = np.ones(table.d, dtype=bool), False
    for _ in range(max_rounds):
        found = [move for move in found if not (changed[move.one] or changed[move.two])]
        found += _moves(table, labels, log_odds(table, counts, blocks), changed)
        found.sort(key=lambda move: -move.gain)
        chosen = _disjoint(found, table.d)[: 1 if single else None]
        if not chosen:
            break
        tried = labels.copy()
        for move in chosen:
            inside = move.group[table.owner]
            tried[inside & (labels == move.one)] = move.two
            tried[inside & (labels == move.two)] = move.one
        tried = refine(table, tried, blocks=blocks)[0]
        after = block_counts(table, tried)
        likelier = log_likelihood(table, tried, after)
        changed = np.zeros(table.d, dtype=bool)
        if likelier > value:
            moved = tried != labels
            changed[labels[moved]] = changed[tried[moved]] = True
            labels, value, counts, single = tried, likelier, after, False
        elif single or len(chosen) == 1:
            found.remove(chosen[0])
        else:
            single = True
    return labels, value


@dataclass(frozen=True, eq=False)
class _Move:
    """Exchange labels one and two in the objects of a group, (k,) bool, to gain so much."""

    gain: float
    one: int
    two: int
    group: NDArray[np.bool_]


def _disjoint(moves: list[_Move], d: int) -> list[_Move]:
    """Return the moves, in order, that touch no label of an earlier one."""
    used = np.zeros(d, dtype=bool)
    kept = []
    for move in moves:
        if not (used[move.one] or used[move.two]):
            used[[move.one, move.two]] = True
            kept.append(move)
    return kept


def _moves(table: MatchTable, labels: Ints, rates: LogOdds, changed: NDArray[np.bool_]) -> list[_Move]:
    """Return the exchanges that raise the score, of all pairs with a label that changed."""
    if not changed.any():
        return []
    entries = (_Numbered if _Numbered.can_do(table, labels, rates) else _Entries)(table, labels, rates)
    pairs = entries.joined()
    pairs = pairs[changed[pairs].any(axis=1)]
    pairs = pairs[np.cumsum(entries.holders(pairs) ** 3) <= _WORK]
    found = []
    for one, two in pairs[entries.hopeful(pairs)].tolist():
        objects, J = entries.coupling(one, two)
        gain, inside = lightest_cut(J)
        if gain > _LEAST:
            group = np.zeros(entries.k, dtype=bool)
            group[objects[inside]] = True
            found.append(_Move(gain, one, two, group))
    return found


class _Entries:
    """What matches and presence say about pairs of labels, sorted so that a pair's share is found at once."""

    first: Any = None
    i: Any = None
    j: Any = None
    right: Any = None
    worth: Any = None

    def __init__(self, table: MatchTable, labels: Ints, rates: LogOdds) -> None:
        self.table, self.rates, self.d, self.k = table, rates, table.d, table.matchings.n_objects
        self.where = _places(table, labels)
        self.sum(labels)
        # The last row of X is for labels an object does not hold.
        self.X: Floats | None = None
        if rates.seen is not None:
            X: Any = table.by_object(rates.seen).toarray() + rates.size[table.owner]
            self.X = np.vstack([X, np.zeros(self.k)])

    def sum(self, labels: Ints) -> None:
        """Sort the matches, and sum up what they are worth."""
        found = sorted_entries(self.table, labels, self.rates.right)
        self.first, self.i, self.j, self.right, self.across, self.inside = found
        self.some = np.diff(self.first).reshape(self.d, self.d) > 0

    def joined(self) -> Ints:
        """Return the pairs of different labels that matches join, those with the largest share of matches first."""
        one, two = np.nonzero(np.triu(self.some, 1))
        inner = np.diag(self.across) + 1
        share = self.across[one, two] / np.sqrt(inner[one] * inner[two])
        return np.stack([one, two], axis=1)[np.argsort(-share, kind="stable")]

    def holders(self, pairs: Ints) -> Ints:
        """Return how many objects hold one of two labels, shape (P,), for pairs of them, (P, 2)."""
        held = (self.where < self.table.matchings.n_points).astype(np.float64)
        n, both = held.sum(axis=1), held @ held.T
        one, two = pairs.T
        return np.asarray(n[one] + n[two] - both[one, two], dtype=np.int64)

    def hopeful(self, pairs: Ints) -> NDArray[np.bool_]:
        """Return for which pairs of labels, (P, 2), :func:`lightest_cut` may find a cut; shape (P,), many at a time."""
        hope = np.ones(len(pairs), dtype=bool)
        if self.X is None and (self.where < self.table.matchings.n_points).all():
            hope = self._contested(pairs)
        if self.k <= _BATCH:
            at = np.flatnonzero(hope)
            hope[at] = hopeful_pairs(self, pairs[at], _HOPE, _LEAST)
        return hope

    def _contested(self, pairs: Ints) -> NDArray[np.bool_]:
        """Return the first test of :func:`lightest_cut` where all hold all labels, so that matches alone count."""
        one, two = pairs.T
        least = (self.inside[one] + self.inside[two]).min(axis=1, initial=np.inf)
        return np.asarray(2 * self.across[one, two] >= _HOPE * least)

    def coupling(self, one: int, two: int) -> tuple[Ints, Floats]:
        """Return the objects that hold one of two labels, shape (n,), and J between them, shape (n, n)."""
        none = self.table.matchings.n_points
        held = self.where[[one, two]] < none
        objects = np.flatnonzero(held.any(axis=0))
        place = np.empty(self.k, dtype=np.int64)
        place[objects] = np.arange(len(objects))
        J = np.zeros((len(objects), len(objects)))
        for sign, c, e in ((1.0, one, one), (1.0, two, two), (-1.0, one, two)):
            a, b = self.first[c * self.d + e], self.first[c * self.d + e + 1]
            i, j = place[self.i[a:b]], place[self.j[a:b]]
            J[i, j] += sign * self.right[a:b]
            if c != e:
                J[j, i] += sign * self.right[a:b]
        side = (held[0].astype(np.float64) - held[1])[objects]
        if self.X is not None:
            D = self.X[self.where[one, objects]] - self.X[self.where[two, objects]]
            half = 0.5 * D[:, objects] * side
            J += half + half.T
        elif side.any():
            J += self.rates.size[np.ix_(objects, objects)] * np.outer(side, side)
        return objects, J


class _Numbered(_Entries):
    """The same where all objects hold all labels and matches are numbered: nothing needs to be sorted."""

    @staticmethod
    def can_do(table: MatchTable, labels: Ints, rates: LogOdds) -> bool:
        """Return whether that is so."""
        if not (table.full and rates.by_blocks) or labels.min(initial=0) < 0:
            return False
        cells = table.d * table.matchings.n_objects
        return bool((np.bincount(table.owner * table.d + labels, minlength=cells) == 1).all())

    def sum(self, labels: Ints) -> None:
        """Sum up what matches are worth."""
        self.worth = self.table.by_partner(self.rates.match)
        self.some, self.across, self.inside = sum_pairs(self.table, labels, self.worth)

    def coupling(self, one: int, two: int) -> tuple[Ints, Floats]:
        """Return all objects, shape (k,), and J between them, shape (k, k)."""
        a, b = self.where[[one, two]] - self.table.matchings.offsets[:-1] + 1
        x, y = (self.table.partner_numbers[self.where[c], : self.k] for c in (one, two))
        times = (x == a).astype(np.float64) + (y == b) - (x == b) - (y == a)
        return np.arange(self.k), self.worth[:, : self.k] * times


def _places(table: MatchTable, labels: Ints) -> Ints:
    """Return the point of every label in every object, shape (d, k), m for none."""
    where = np.full((table.d, table.matchings.n_objects), table.matchings.n_points)
    known = np.flatnonzero(labels >= 0)
    where[labels[known], table.owner[known]] = known
    return where


def lightest_cut(J: Floats) -> tuple[float, NDArray[np.bool_]]:
    """Return minus the weight of the lightest cut found of a symmetric J, (n, n), and one side of it, (n,) bool.

    Examples
    --------
    >>> gain, group = lightest_cut(np.array([[0, 2, -1.0, 0], [2, 0, 0, -1], [-1, 0, 0, 2], [0, -1, 2, 0]]))
    >>> gain, sorted([group.tolist(), (~group).tolist()])
    (2.0, [[False, False, True, True], [True, True, False, False]])
    """
    n = len(J)
    group = np.zeros(n, dtype=bool)
    if n < 2 or J.min() >= 0:
        return 0.0, group
    degree = J.sum(axis=1)
    against = np.maximum(-J, 0)
    # No cut can win more than all that speaks for one, nor lose less, as a rule, than it costs to free one object.
    if against.sum() < _HOPE * (degree + against.sum(axis=1)).min():
        return 0.0, group
    laplacian = _laplacian(J, degree)
    if not _indefinite(laplacian[None])[0]:
        return 0.0, group
    few = [0, min(_VECTORS, n) - 1]
    values, vectors = linalg.eigh(laplacian, subset_by_index=few, driver="evx", check_finite=False)
    gain = 0.0
    for v in np.flatnonzero(values < 0):
        order = np.argsort(vectors[:, v], kind="stable")
        # Weight between the first t objects and the others: what they have in all, minus twice what they have inside.
        inner = 2 * np.cumsum(np.tril(J[np.ix_(order, order)], -1).sum(axis=1))
        cut = (np.cumsum(degree[order]) - inner)[:-1]
        t = int(cut.argmin())
        if -cut[t] > gain:
            gain = -float(cut[t])
            group = np.zeros(n, dtype=bool)
            group[order[: t + 1]] = True
    # Eigenvectors have either sign: of a group and the others, which do the same, those without the first object.
    return gain, group ^ group[0]


def _laplacian(J: Floats, degree: Floats) -> Floats:
    """Return diag(degree) − J for matrices J, (P, n, n), lifted so that eigenvalues near zero count as positive."""
    L = -J
    diagonal = np.arange(J.shape[-1])
    L[..., diagonal, diagonal] += degree + _LEAST
    return L


def _indefinite(L: Floats) -> NDArray[np.bool_]:
    """Return which of symmetric matrices, (P, n, n), have a negative eigenvalue: one Cholesky call if none has."""
    try:
        np.linalg.cholesky(L)
    except np.linalg.LinAlgError:
        if len(L) == 1:
            return np.ones(1, dtype=bool)
        half = len(L) // 2
        return np.append(_indefinite(L[:half]), _indefinite(L[half:]))
    return np.zeros(len(L), dtype=bool)
