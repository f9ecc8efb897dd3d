"""What a labelling says about the matches: right, wrong and missing ones, block by block, and who holds what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from stiefelsync.matching.graph import connected
from stiefelsync.stiefel.sizes import some_rows
from stiefelsync.sync.likelihood.kernels import count_labels
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.reliability import Mixture, beta_fit, fit_mixture
from stiefelsync.sync.likelihood.sides import Sides, count_sides

__all__ = [
    "BlockCounts",
    "Sight",
    "Trust",
    "block_counts",
    "count_sight",
    "level",
    "near",
    "pieces_apart",
    "reaches",
    "soft_block_counts",
    "trust",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CHUNK = 1 << 22  # entries gathered at once
_PIECES = 1 << 20  # cells of (compared pairs × labels) up to which pieces of labels are told apart
_LOCAL = 0.5  # share of the objects beyond which the reach of most labels is everything, and says nothing
_FLOOR = 0.1  # share of labels whose reach may be anything

_WIDE = 1.4826  # standard deviations in a median absolute deviation
_NONE = 1e-6  # soft counts up to this are rounding
_STEEP = 4.0  # largest slope of the trust in weights per standard deviation: few matches can seem to part perfectly
_CAUTION = 1.0  # prior precision of that slope
_REMEMBERED = 3  # labellings whose counts are kept: one stage ends with those that the next begins with


@dataclass(frozen=True)
class Trust:
    """How much a match's weight says: P(right | w) = logistic(intercept + slope·z), z the normal score of w's rank.

    Attributes
    ----------
    odds : (M,)
        What the weight of each match adds to its log-odds, log P(right | w) / P(wrong | w) minus the same without w.
    gain
        By how much the weights' likelihood, given which matches are right, exceeds that of weights that say nothing.
    """

    odds: Floats
    gain: float


@dataclass(frozen=True)
class Sight:
    """Who holds a label, given how many of the objects it was compared with do; for problems not compared in full.

    Attributes
    ----------
    held, cells : (5,)
        Pairs of an object and a label that it holds, and all such pairs, by the share of the compared objects that
        hold the label: above 0 and up to a fifth, up to two fifths, and so on. Of labels nobody near holds, nothing
        is known.
    apart
        Pieces (holders that comparisons connect) of labels beyond the first of each.
    reached : (k + 1,)
        Labels by their *reach*: how many objects hold the label or were compared with one that does. None where most
        labels reach more than half of all objects, or where counts are soft.
    """

    held: Floats
    cells: Floats
    apart: int = 0
    reached: Floats | None = None

    @cached_property
    def extent(self) -> Floats:
        """Logarithm of the probability of every reach, shape (k + 1,): normal, with a floor; none if not known."""
        if self.reached is None:
            return np.zeros(1)
        at = np.arange(len(self.reached))
        middle = _weighted_median(at, self.reached)
        spread = max(_WIDE * _weighted_median(np.abs(at - middle), self.reached), 1.0)
        mass = np.exp(-0.5 * ((at - middle) / spread) ** 2)
        mass = (1 - _FLOOR) * mass / mass.sum() + _FLOOR / len(at)
        return np.asarray(np.log(mass / mass.sum()))

    @property
    def births(self) -> float:
        """Logarithm of the number of labels per object."""
        return 0.0 if self.reached is None else float(np.log(max(self.reached.sum(), 1) / (len(self.reached) - 1)))

    @property
    def rates(self) -> Floats:
        """Smoothed rate of each level, shape (5,)."""
        return np.asarray((self.held + 0.5) / (self.cells + 1))

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of who holds what at the best rates."""
        missed = self.cells - self.held
        value = float(np.sum(xlogy(self.held, self.held) + xlogy(missed, missed) - xlogy(self.cells, self.cells)))
        if self.reached is None:
            return value
        K = float(self.reached.sum())
        return value + float(self.reached @ self.extent) + float(xlogy(K, K / (len(self.reached) - 1))) - K


@dataclass(frozen=True)
class BlockCounts:
    """What a labelling says about the matches, block by block; counts may be soft.

    Attributes
    ----------
    right, present : (P,)
        Of every compared pair of objects the matches that join equal labels, and the labels both hold.
    holders : (d,)
        Objects that hold each label.
    sight
        Who holds what, where not all objects were compared.
    found, matched, rows
        Over all blocks and both readings: rows that are matched and have a partner; matched rows; rows.
    n_objects
        k.
    trust
        What weights say, where there are any.
    sides
        Rows and columns apart, where not all objects were compared and they differ.
    """

    right: Floats
    present: Floats
    holders: Floats
    sight: Sight | None
    found: float
    matched: float
    rows: float
    n_objects: int
    trust: Trust | None = None
    sides: Sides | None = None

    @cached_property
    def rates(self) -> tuple[float, float, float]:
        """Smoothed p, r₁, r₀ over all blocks."""
        right, present = 2 * float(self.right.sum()), 2 * float(self.present.sum())
        p = min((right + 1) / (present + 2), 0.999)
        r1 = min((max(self.found - right, 0.0) + 0.5) / (present + 2), 0.99 * (1 - p))
        r0 = min((max(self.matched - self.found, 0.0) + 0.5) / (max(self.rows - present, 0.0) + 2), 0.99)
        return p, r1, r0

    @cached_property
    def reliability(self) -> tuple[Floats, Floats]:
        """Right matches and shared labels of the blocks that share any."""
        some = self.present > _NONE
        return self.right[some], self.present[some]

    @cached_property
    def mixture(self) -> Mixture | None:
        """The mixture of the blocks' rates, if all are full permutations and a beta distribution does not fit."""
        full = self.sight is None and self.matched == self.rows
        return fit_mixture(*self.reliability) if full else None

    @cached_property
    def mixed_rates(self) -> Floats:
        """The rate of every block under the mixture, shape (P,)."""
        assert self.mixture is not None
        return self.mixture.rates(self.right, self.present)

    @cached_property
    def popularity(self) -> tuple[float, float]:
        """ρ and κ of the beta distribution of the labels' observation rates, if all k objects were compared."""
        held = self.holders[self.holders > _NONE]
        p, kappa = beta_fit(held, np.full(len(held), float(self.n_objects)), least=1.0)
        return min(max(p, 1e-3), 1 - 1e-3), kappa


def block_counts(table: MatchTable, labels: Ints) -> BlockCounts:
    """Count right and wrong matches under labels, shape (m,); O(nnz + P·d).

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> block_counts(table, np.array([0, 1, 1])).right.tolist()
    [1.0]
    """
    key = labels.tobytes()
    known: BlockCounts | None = table.counted.get(key)
    if known is not None:
        return known
    counts = _counted(table, labels)
    if len(table.counted) >= _REMEMBERED:
        table.counted.pop(next(iter(table.counted)))
    table.counted[key] = counts
    return counts


def _counted(table: MatchTable, labels: Ints) -> BlockCounts:
    """Do what :func:`block_counts` does, remembering nothing."""
    right, present, holders, sides_found = count_labels(table, labels)
    found = 2 * float(present.sum()) if sides_found is None else float(sides_found.sum())
    sight = None
    if not table.complete:
        O = table.occupancy(labels)
        sight = count_sight(table, O, np.bincount(table.owner[labels < 0], minlength=len(O)))
        reach = reaches(O, near(table, O))
        reach = np.append(reach[reach > 0], 1 + table.partner_counts[table.owner[labels < 0]])
        local = len(reach) and float(np.median(reach)) <= _LOCAL * len(O)
        reached = np.bincount(reach, minlength=len(O) + 1).astype(np.float64) if local else None
        sight = replace(sight, apart=pieces_apart(table, labels), reached=reached)
    sides = None if sides_found is None or not table.sided else count_sides(table, float(sides_found[0]), found)
    weighed = None if table.weight_scores is None else trust(table, table.agreeing(labels))
    return BlockCounts(right, present, holders, sight, found, *_rows(table), weighed, sides)


def soft_block_counts(table: MatchTable, U: Floats, WU: Floats) -> BlockCounts:
    """Count expected right and wrong matches under soft labels U, shape (m, d), given W U; rates of blocks are equal.

    O(m·d + P·d), and O(nnz·d) more where objects are partial. Weights count as equal.
    """
    O = table.membership @ U
    present = _shared(table, O)
    agreeing = sum(float(np.sum(U[rows] * WU[rows])) for rows in some_rows(len(U)))
    right = present * (agreeing / max(2 * float(present.sum()), 1.0))
    found = 2 * float(present.sum())
    if table.partial:
        found = float(np.sum((table.by_object(np.ones(len(table.indices))).T @ U) * O))
    sight = None if table.complete else count_sight(table, O)
    sides = None
    if table.sided:
        sides = count_sides(table, float(np.sum((table.by_object(table.first).T @ U) * O)), found)
    return BlockCounts(right, present, O.sum(axis=0), sight, found, *_rows(table), sides=sides)


def near(table: MatchTable, O: Floats) -> Floats:
    """Return how many of the objects that each was compared with hold each label; (k, d), like the occupancy O."""
    return np.asarray(table.compared @ O)


def level(table: MatchTable, n: Floats, objects: slice = slice(None)) -> Ints:
    """Return the level of :class:`Sight`, 0 to 4, for n of the compared objects holding a label; -1 for none.

    Parameters
    ----------
    n : (n_objects, d)
        For the `objects` of a slice.
    """
    share = n / np.maximum(table.partner_counts[objects, None], 1)
    return np.where(n < 0.5, -1, np.minimum(np.ceil(5 * share - 1e-9).astype(np.int64) - 1, 4))


def count_sight(table: MatchTable, O: Floats, alone: Ints | None = None) -> Sight:
    """Return who holds what under occupancy O, (k, d), soft or not; `alone`, (k,), counts unlabelled points.

    An unlabelled point holds a label of its own, which all objects compared with it miss.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> chain = MatchTable.of(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1]), 1)
    >>> count_sight(chain, np.array([[1.0], [1.0], [0.0]])).cells.tolist()
    [0.0, 0.0, 1.0, 0.0, 2.0]
    """
    at = level(table, near(table, O)) + 1
    cells: Any = np.bincount(at.ravel(), minlength=6)[1:] * 1.0
    held: Any = np.bincount(at.ravel(), O.ravel(), minlength=6)[1:]
    alone = np.zeros(len(O), dtype=np.int64) if alone is None else alone
    for i in np.flatnonzero(alone):
        others = np.ceil(5 / table.partner_counts[table.neighbours[i]] - 1e-9).astype(np.int64) - 1
        cells += alone[i] * np.bincount(others, minlength=5)
    return Sight(held, cells)


def reaches(O: Floats, n: Floats) -> Ints:
    """Return how many objects hold each label or were compared with a holder, (d,), for occupancy O and n = near(O).

    Examples
    --------
    >>> reaches(np.array([[1.0], [0.0], [0.0]]), np.array([[0.0], [1.0], [0.0]])).tolist()
    [2]
    """
    return np.asarray(np.count_nonzero((O + n) > 0, axis=0))


def pieces_apart(table: MatchTable, labels: Ints) -> int:
    """Return how many pieces the labels, (m,), have beyond one each: holders of one label that comparisons connect.

    O(P·d); 0 where that is too much work.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> chain = MatchTable.of(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1]), 2)
    >>> pieces_apart(chain, np.array([0, 1, 0]))
    1
    """
    m, k = table.matchings.n_points, table.matchings.n_objects
    i, j = table.matchings.pair_objects.T.astype(np.int64)
    if len(i) * table.d > _PIECES:
        return 0
    where = np.full((k, table.d), -1, dtype=np.int64)
    known = np.flatnonzero(labels >= 0)
    where[table.owner[known], labels[known]] = known
    a, b = where[i].ravel(), where[j].ravel()
    both = (a >= 0) & (b >= 0)
    pieces = np.unique(connected(m, np.stack([a[both], b[both]], axis=1))[known])
    return len(pieces) - len(np.unique(labels[known]))


def trust(table: MatchTable, agree: NDArray[np.bool_]) -> Trust | None:
    """Fit how the chance of being right grows with a match's weight; None where all weights are equal.

    Logistic regression of `agree`, (M,), on the normal scores of the weights' ranks, by Newton's method, its slope not
    below zero and shrunk towards it by a normal prior.
    """
    z = table.weight_scores
    if z is None:
        return None
    y = agree.astype(np.float64)
    share = (y.sum() + 1) / (len(y) + 2)
    base = float(np.log(share / (1 - share)))
    intercept, slope = base, 0.0
    for _ in range(8):
        q = expit(intercept + slope * z)
        v = q * (1 - q)
        gradient = np.array([np.sum(y - q), np.sum((y - q) * z) - _CAUTION * slope])
        H = np.array([[v.sum() + 1e-3, v @ z], [v @ z, v @ (z * z) + _CAUTION]])
        step = np.linalg.solve(H, gradient)
        intercept, slope = intercept + float(step[0]), min(max(slope + float(step[1]), 0.0), _STEEP)
        if np.abs(step).max() < 1e-6:
            break
    odds = intercept + slope * z - base
    right, wrong = y.sum(), len(y) - y.sum()
    gain = float(np.sum(np.where(agree, -np.logaddexp(0, -(odds + base)), -np.logaddexp(0, odds + base))))
    gain -= float(xlogy(right, right / len(y)) + xlogy(wrong, wrong / len(y)))
    return Trust(odds, gain)


def _weighted_median(values: Any, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(total, 0.5 * total[-1])]])


def _shared(table: MatchTable, O: Floats) -> Floats:
    """Return how many labels both objects of every compared pair hold, shape (P,)."""
    i, j = table.matchings.pair_objects.T.astype(np.int64)
    if table.complete:
        return np.asarray((O @ O.T)[i, j])
    step = max(_CHUNK // max(table.d, 1), 1)
    parts = [np.einsum("pc,pc->p", O[i[s : s + step]], O[j[s : s + step]]) for s in range(0, len(i), step)]
    return np.concatenate(parts) if parts else np.empty(0)


def _rows(table: MatchTable) -> tuple[float, float, int]:
    """Return the matched rows and all rows of all blocks, in both readings, and the number of objects."""
    return float(len(table.indices)), float(table.rows), table.matchings.n_objects
