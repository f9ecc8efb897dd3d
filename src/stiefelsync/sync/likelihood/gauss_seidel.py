"""Gauss–Seidel refinement: re-label one object at a time against all the others until nothing changes."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln, xlogy

from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts, level, near, reaches
from stiefelsync.sync.likelihood.kernels import Kernels
from stiefelsync.sync.likelihood.matches import MatchTable, row_of
from stiefelsync.sync.likelihood.model import LogOdds, fresh, log_odds

__all__ = ["State", "ascend", "assign", "gauss_seidel", "leave_out", "refine", "settle", "withdraw"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SLACK = 1e-9  # relative differences in score that do not count
_ROGUE = 0.5  # share of the median share of agreeing matches below which an object may be a rogue
_CHASE = 10  # sweeps where a sweep need not raise the likelihood
_CHUNK = 1 << 17  # scores computed at once: they stay in the second-level cache
_GRID = 1.5 * 2.0**28  # added and taken away again it leaves multiples of 2^-24
_SMALL = 10_000  # entries up to which a whole array is changed more quickly than some of its columns
_BLAS = 30_000_000  # multiplications by what is seen, per sweep, from which BLAS is quicker than the kernels
_EXACT = 1.5 * 2.0**16  # likewise of 2^-36
_DENSE = 4_000_000  # cells of (points × objects) up to which what objects see of points is dense


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
    table = MatchTable.of(matchings, d)
    k = matchings.n_objects
    return ascend(table, labels, LogOdds(table, table.weights, None, sparse.csr_array((k, k))), max_sweeps=max_sweeps)


def refine(table: MatchTable, labels: Ints, *, blocks: BlockCounts | None = None, rounds: int = 3) -> tuple[Ints, int]:
    """Return labels refined by the likelihood, its rates re-estimated up to `rounds` times, and the sweeps made.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
    >>> refine(table, np.array([0, 1, 1, 0, 1, 0]))[0].tolist()
    [0, 1, 1, 0, 0, 1]
    """
    state, sweeps, _ = _refined(table, labels, blocks, rounds)
    return state.labels, sweeps


def settle(table: MatchTable, labels: Ints) -> tuple[Ints, int]:
    """Return what :func:`refine` and then :func:`withdraw` make of labels, and the sweeps made.

    The last round of refinement has found already what withdrawing needs to know, if it changed nothing.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 0, 1, 0, 2], [2, 2, 2]), 2)
    >>> settle(table, np.array([0, 1, 0, 1, 0, 1]))[0].tolist()
    [0, 1, 0, 1, 0, -1]
    """
    state, sweeps, settled = _refined(table, labels)
    return _withdrawn(state, _bare(table, state.labels)) if settled else withdraw(table, state.labels), sweeps


def _refined(
    table: MatchTable, labels: Ints, blocks: BlockCounts | None = None, rounds: int = 3
) -> tuple[State, int, bool]:
    """Return the state after refinement, the sweeps made, and whether the last round changed nothing."""
    total, settled = 0, False
    while not settled and rounds:
        state = State(table, labels.copy(), log_odds(table, block_counts(table, labels), blocks))
        # Where not all were compared the prior is no exact potential, and objects could chase each other for long.
        total += _climb(state, 50 if table.complete else _CHASE)
        settled, labels, rounds = np.array_equal(state.labels, labels), state.labels, rounds - 1
    return state, total, settled


def ascend(table: MatchTable, labels: Ints, rates: LogOdds, *, max_sweeps: int = 50) -> tuple[Ints, int]:
    """Return labels at which no object can raise its score ``Σ_a S[a, label(a)]``, and the sweeps made.

    Parameters
    ----------
    labels : (m,) int
    rates
        What matches, presence and cluster size are worth.

    Notes
    -----
    A sweep first scores all points at once, O(nnz + m·d), and then visits only objects with a point that would rather
    have another label.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
    >>> start = np.array([0, 1, 1, 0, 1, 0])
    >>> ascend(table, start, log_odds(table, block_counts(table, start)))[0].tolist()
    [0, 1, 1, 0, 0, 1]
    """
    state = State(table, labels.copy(), rates)
    return state.labels, _climb(state, max_sweeps)


def _climb(state: State, max_sweeps: int) -> int:
    """Re-label objects until none can raise its score; return the sweeps made."""
    kernels = state.sweeps()
    sweeps, changed = 0, True
    # Where few were compared, an object that kept its labels need not be asked again until a neighbour changes.
    calm = np.zeros(len(state.O), dtype=bool)
    while sweeps < max_sweeps and changed:
        sweeps += 1
        changed = _sweep(state, calm) if kernels is None else kernels.refine_sweep(calm)
    return sweeps


def _sweep(state: State, calm: NDArray[np.bool_]) -> bool:
    """Re-label every restless object in turn; return whether a label changed."""
    changed = False
    for i in state.restless():
        if calm[i]:
            continue
        if state.relabel(i):
            changed = True
            calm[state.table.neighbours[i]] = False
        else:
            calm[i] = not state.table.complete
    return changed


def withdraw(table: MatchTable, labels: Ints) -> Ints:
    """Return the labels with those points unmatched (-1) that no match supports and the likelihood speaks against.

    A refined labelling labels every point, because objects fill the universe; a point none of whose matches agrees
    with its label, and whose absent matches make the label unlikely, is better left alone.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 0, 1, 0, 2], [2, 2, 2]), 2)
    >>> withdraw(table, np.array([0, 1, 0, 1, 0, 1])).tolist()
    [0, 1, 0, 1, 0, -1]
    """
    bare = _bare(table, labels)
    if not len(bare):
        return labels.copy()
    return _withdrawn(State(table, labels.copy(), log_odds(table, block_counts(table, labels))), bare)


def _bare(table: MatchTable, labels: Ints) -> Ints:
    """Return the labelled points that no match supports."""
    return np.flatnonzero(~table.supported(labels) & (labels >= 0))


def _withdrawn(state: State, bare: Ints) -> Ints:
    """Do what :func:`withdraw` does, for a state whose rates are those of its labels; they are changed."""
    table, labels = state.table, state.labels
    S = state.shared[table.owner[bare], labels[bare]]
    if state.half is not None:
        n = np.diff(table.indptr)[bare]
        row = np.repeat(np.arange(len(bare)), n)
        entry = np.arange(n.sum()) + np.repeat(table.indptr[bare] - np.cumsum(n) + n, n)
        S = S + np.bincount(row, state.half[entry] * state.O[table.partners[entry], labels[bare][row]], len(bare))
    labels[bare[S <= 0]] = -1
    return labels


def leave_out(table: MatchTable, labels: Ints) -> Ints:
    """Return the labels without those of objects whose matches fit them hardly better than chance would.

    Choosing labels for an object's n points out of d fits its matches a little even if they are random. An object stays
    out if the share of its matches that agree is less than half the median share of all objects, and if the shares of
    its blocks, against a rate of one in the mean size of an object, are not worth the logarithm of the d!/(d − n)!
    choices. So an object that fits a few others well stays in.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 0, 1, 0, 1], [2, 2, 2]), 2)
    >>> leave_out(table, np.array([0, 1, 0, 1, 0, 1])).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    k, pairs = table.matchings.n_objects, table.matchings.pair_objects
    if not len(pairs):
        return labels
    n = np.diff(table.matchings.pair_start).astype(np.float64)
    right = table.right(labels)
    chance = min(float(np.exp(-table.spread)), 0.5)
    worth = xlogy(right, right / n / chance) + xlogy(n - right, (1 - right / n) / (1 - chance))
    worth = np.where(right > chance * n, worth, 0.0)
    all_, agreeing, gain = (np.bincount(pairs.ravel(), np.repeat(x, 2), minlength=k) for x in (n, right, worth))
    share = agreeing / np.maximum(all_, 1)
    held = np.bincount(table.owner[labels >= 0], minlength=k)
    choices = gammaln(table.d + 1) - gammaln(table.d - held + 1)
    out = (all_ > 0) & (share < _ROGUE * np.median(share[all_ > 0])) & (gain < choices)
    return np.where(out[table.owner], -1, labels)


class State:
    """Labels and the sums that scores are made of, kept up to date as objects are re-labelled.

    What matches, presence and cluster size are worth is rounded to multiples of 2⁻³⁶, so that their sums, as long as
    they stay below 2¹⁷, are exact in any order, by any library, on any processor.
    """

    def __init__(self, table: MatchTable, labels: Ints, rates: LogOdds) -> None:
        seen = None if rates.sighting is None else 2 * on_grid(0.5 * rates.sighting)
        rates = replace(rates, match=on_grid(rates.match), sighting=seen, size=on_grid(rates.size))
        self.table, self.labels, self.rates = table, labels, rates
        self.offsets, k, d = table.matchings.offsets.tolist(), table.matchings.n_objects, table.d
        self.half: Floats | None = None if rates.seen is None else 0.5 * rates.seen
        # By the number of other holders, where all were compared.
        self.popular: Floats | float = rates.prior(np.arange(k + 1.0), k)
        self.O, self.holders, self.shared = np.empty((k, d)), np.empty(d), np.empty((k, d))
        self.near: Floats | None = None if table.complete else np.empty((k, d))
        self.reach: Ints | None = None if table.complete or rates.extent is None else np.empty(d, dtype=np.int64)
        self.kernels = Kernels(self)
        self.kernels.begin()
        self.shared += rates.size @ self.O
        if self.near is not None:
            self.near[:] = near(table, self.O)
            if self.reach is not None:
                self.reach[:] = reaches(self.O, self.near)

    @cached_property
    def seen(self) -> Any:
        """Half of what being seen is worth, shape (m, k), or None."""
        if self.half is None:
            return None
        seen = self.table.by_object(self.half)
        # A slice of a dense array costs a hundredth of a slice of a sparse matrix.
        return seen.toarray() if len(self.labels) * len(self.O) <= _DENSE else seen

    def sweeps(self) -> Kernels | None:
        """Return the compiled sweeps over these labels, or None where BLAS is quicker."""
        return None if self.half is not None and len(self.table.indices) * self.table.d > _BLAS else self.kernels

    def prior(self, i: int, j: int) -> Floats | float:
        """Return what the prior adds to each label in objects i, …, j - 1, shape (j - i, d)."""
        others = self.holders - self.O[i:j]
        if self.near is None:
            return self.popular if isinstance(self.popular, float) else self.popular[others.astype(np.intp)]
        if self.rates.sight is None:
            return 0.0
        if (i, j) == (0, len(self.O)):
            new = fresh(self.table, self.O, self.near)
        else:
            new = np.empty((j - i, self.table.d))
            for n in range(i, j):
                at = self.table.neighbours[n]
                alone = (self.near[at] == self.O[n]) & (self.O[at] == 0)
                new[n - i] = np.count_nonzero(alone, axis=0)
        levels = level(self.table, self.near[i:j], slice(i, j))
        reach = None
        if self.reach is not None:
            # Of each label without the object itself.
            reach = self.reach - (self.O[i:j] * (new + (levels < 0))).astype(np.int64)
        return self.rates.prior_near(levels, new, others > 0, reach)

    def scores(self, i: int, j: int) -> Floats:
        """Return S for the points of objects i, …, j - 1, shape (n, d)."""
        a, b = self.offsets[i], self.offsets[j]
        shared = self.shared[i:j] + self.prior(i, j)
        S = self.table.product(self.labels, self.rates.right, a, b) + shared[self.table.owner[a:b] - i]
        if self.seen is not None:
            S += self.seen[a:b] @ self.O
        return S

    def restless(self) -> list[int]:
        """Return the objects with a point that would rather have another label."""
        table = self.table
        # Where not all were compared the prior is found more quickly for all objects at once.
        chunk = _CHUNK if table.complete else 32 * _CHUNK
        step = max(chunk // max(table.d * int(table.matchings.sizes.max(initial=1)), 1), 1)
        found: list[int] = []
        for i in range(0, len(self.O), step):
            j = min(i + step, len(self.O))
            S = self.scores(i, j)
            labels = self.labels[self.offsets[i] : self.offsets[j]]
            best = S.max(axis=1, initial=-np.inf)
            wants = (labels < 0) | (S[np.arange(len(S)), labels] < best - _SLACK * (1 + np.abs(best)))
            found += np.unique(table.owner[self.offsets[i] : self.offsets[j]][wants]).tolist()
        return found

    def relabel(self, i: int) -> bool:
        """Give object i its best labels; return whether they changed."""
        S = self.scores(i, i + 1)
        # Rounded to a grid, so that scores that are equal but for the order of additions are equal on every processor.
        S += _GRID
        S -= _GRID
        old = self.labels_of(i)
        kept = np.flatnonzero(old >= 0)
        S[kept, old[kept]] += _SLACK * (1 + np.abs(S).max(initial=0.0))  # on a tie nothing moves
        return self.give(i, assign(S))

    def labels_of(self, i: int) -> Ints:
        """Return a copy of the labels of object i."""
        return self.labels[self.offsets[i] : self.offsets[i + 1]].copy()

    def give(self, i: int, new: Ints) -> bool:
        """Give object i these labels; return whether they differ from those it had."""
        old = self.labels_of(i)
        if np.array_equal(new, old):
            return False
        self.labels[self.offsets[i] : self.offsets[i + 1]] = new
        self._update(i, old, new)
        return True

    def _update(self, i: int, old: Ints, new: Ints) -> None:
        d = self.table.d
        occupied = np.bincount(new % (d + 1), minlength=d + 1) - np.bincount(old % (d + 1), minlength=d + 1)
        columns = np.flatnonzero(occupied[:d])
        if len(columns):
            self.holders[columns] += occupied[columns]
            rows, size = row_of(self.rates.size, i)
            if self.shared.size <= _SMALL:
                self.shared[rows] += size[:, None] * occupied[:d]
            else:
                self.shared[rows[:, None], columns] += size[:, None] * occupied[columns]
            if self.near is not None:
                at = np.append(self.table.neighbours[i], i)[:, None]
                before = (self.near[at, columns] + self.O[at, columns]) > 0
                self.near[at[:-1], columns] += occupied[columns]
                self.O[i, columns] += occupied[columns]
                after = (self.near[at, columns] + self.O[at, columns]) > 0
                if self.reach is not None:
                    self.reach[columns] += np.count_nonzero(after, axis=0) - np.count_nonzero(before, axis=0)
            else:
                self.O[i, columns] += occupied[columns]
        if self.seen is not None:
            moved = np.flatnonzero(new != old)
            change = np.zeros((len(moved), d + 1))
            rows = np.arange(len(moved))
            change[rows, new[moved]] += 1
            change[rows, old[moved]] -= 1
            self.shared += self.seen[self.offsets[i] + moved].T @ change[:, :d]


def on_grid(values: Any) -> Any:
    """Return the values, an array or a CSR matrix, as multiples of 2⁻³⁶.

    Examples
    --------
    >>> float(on_grid(np.array([0.1]))[0] * 2**36)
    6871947674.0
    """
    if sparse.issparse(values):
        return sparse.csr_array((on_grid(values.data), values.indices, values.indptr), shape=values.shape)
    return (values + _EXACT) - _EXACT


def assign(S: Floats) -> Ints:
    """Return the columns, shape (n,), all different, that maximise the sum of S, shape (n, d), n ≤ d.

    Examples
    --------
    >>> assign(np.array([[3.0, 2.0], [3.0, 0.0]])).tolist()
    [1, 0]
    """
    best = np.asarray(S.argmax(axis=1), dtype=np.int64)
    if np.bincount(best, minlength=1).max() == 1:
        return best
    return np.asarray(linear_sum_assignment(S, maximize=True)[1], dtype=np.int64)
