"""Moves of runs of objects: all labels of a group of neighbours change at once, joined to the others by assignment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts
from stiefelsync.sync.likelihood.gauss_seidel import refine
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import LogOdds, log_likelihood, log_odds

__all__ = ["neighbourhoods", "splice"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LONGEST = 30  # objects of a run
_EVERY = 2  # objects in the middle of a run: the ends of its beginnings are anywhere
_LEAST = 0.5  # gain in score that is worth a move
_KEEP = 1.0  # what a label must gain by another name if every move is to be likelier by itself
_TIE = 1e-7
_GRID = 1.5 * 2.0**28  # added and taken away again it leaves multiples of 2^-24


def neighbourhoods(table: MatchTable, longest: int, every: int = 1) -> list[Ints]:
    """Return runs of at most `longest` objects, each most compared with those before it.

    Runs begin at every object, or at every second, third, … of them.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> chain = Matchings.from_pairs({(i, i + 1): [[0, 0]] for i in range(4)}, [1] * 5)
    >>> neighbourhoods(MatchTable.of(chain, 1), 3)[0].tolist()
    [0, 1, 2]
    """
    found, compared = [], _dense(table.compared)
    degree = np.maximum(table.partner_counts, 1)
    for root in np.flatnonzero(table.partner_counts)[::every].tolist():
        run, link, left = [root], compared[root].copy(), np.ones(len(compared), dtype=bool)
        left[root] = False
        while len(run) < longest:
            share = np.where(left, link / degree, 0.0)
            best = int(share.argmax())
            if share[best] <= 0:
                break
            run.append(best)
            left[best] = False
            link += compared[best]
        found.append(np.array(run))
    return found


def splice(
    table: MatchTable,
    labels: Ints,
    other: Ints | None = None,
    *,
    blocks: BlockCounts | None = None,
    max_rounds: int = 10,
) -> tuple[Ints, float]:
    """Return likelier labels, and their log-likelihood, by relabelling runs of neighbouring objects as a whole.

    Within a run the labels are those of `other` (or the present ones), renamed so that they fit what surrounds the run
    best: with C_ce what all pairs of a point of label c inside and one of label e outside earn by being the same, the
    new names are the assignment that maximises ``Σ_c C_{c,π(c)}``. Where this and what is earned inside exceed what the
    present labels earn, they are replaced. After all runs the labels are refined, and kept if likelier. If they are
    not, every move, and every cycle of π, has to make the labels likelier by itself.

    Parameters
    ----------
    labels, other : (m,) int
        The labels to improve, and others of which runs may be better.

    Notes
    -----
    O(k·r·(deg·n·d + d³)) per round at worst, r = 30 the length of the runs; only labels that meet at a run's ends take
    part in its assignments. Dense arrays of shape (m, k).

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> pairs = {(i, j): [[0, 0], [1, 1]] for i in range(8) for j in range(i + 1, min(i + 3, 8))}
    >>> table = MatchTable.of(Matchings.from_pairs(pairs, [2] * 8), 2)
    >>> splice(table, np.array([0, 1] * 4 + [1, 0] * 4))[0].reshape(8, 2)[:, 0].tolist() in ([0] * 8, [1] * 8)
    True
    """
    value, careful = log_likelihood(table, labels), False
    runs = neighbourhoods(table, min(table.matchings.n_objects // 2, _LONGEST), _EVERY)
    for _ in range(max_rounds):
        rates = log_odds(table, block_counts(table, labels), blocks)
        tried = _Splicer(table, rates).sweep(labels, other, runs, careful=careful)
        if np.array_equal(tried, labels):
            break
        tried = refine(table, tried, blocks=blocks)[0]
        after = log_likelihood(table, tried)
        if after > value:
            labels, value = tried, after
        elif careful:
            break
        else:
            careful = True
    return labels, value


class _Splicer:
    """What points earn by carrying equal labels, arranged by object."""

    def __init__(self, table: MatchTable, rates: LogOdds) -> None:
        self.table, self.rates, self.d = table, rates, table.d
        self.m, self.k = table.matchings.n_points, table.matchings.n_objects
        self.offsets = table.matchings.offsets.tolist()
        X = _dense(rates.size)[table.owner]
        if rates.seen is not None:
            X = X + table.by_object(rates.seen).toarray()
        self.X = 0.5 * np.vstack([X, np.zeros(self.k)])  # point m is nobody

    def sweep(self, labels: Ints, other: Ints | None, runs: list[Ints], *, careful: bool) -> Ints:
        """Go through all runs and relabel wherever that gains."""
        value = log_likelihood(self.table, labels)
        mine = _Labelling(self, labels)
        theirs = mine if other is None else _Labelling(self, other)
        for run in runs:
            length, names, C = self.best(run, mine, theirs, _KEEP if careful else _TIE)
            points = np.flatnonzero(np.isin(self.table.owner, run[:length]))
            parts = _cycles(names, C) if careful and other is None else [names]
            for part in parts if length else []:
                inside = theirs.labels[points]
                tried = mine.labels.copy()
                tried[points] = np.where(inside >= 0, part[inside], -1)
                after = log_likelihood(self.table, tried) if careful else np.inf
                if after > value:
                    value = after if careful else value
                    mine = _Labelling(self, tried)
                    theirs = mine if other is None else theirs
        return mine.labels

    def best(self, run: Ints, mine: _Labelling, theirs: _Labelling, keep: float) -> tuple[int, Ints, Floats]:
        """Return the length of the beginning of a run that gains most, the new names of its labels, (d,), and C."""
        C = np.zeros((self.d, self.d))
        inside = np.zeros(self.k, dtype=bool)
        most, found = _LEAST, (0, np.arange(self.d), C)
        gained = 0.0  # inside, and less what the present labels earn across
        for t, i in enumerate(run.tolist()):
            here, there = mine.of(i), theirs.of(i)
            a, b = np.flatnonzero(here >= 0), np.flatnonzero(there >= 0)
            out, into = mine.earned(i, ~inside), theirs.earned(i, inside)
            C[there[b]] += out[b]
            C[:, here[a]] -= into[a].T
            gained += into[b, there[b]].sum() - out[a, here[a]].sum()
            inside[i] = True
            total, names = self.assign(C, keep)
            if total + gained > most:
                most, found = total + gained, (t + 1, names, C.copy())
        return found

    def assign(self, C: Floats, keep: float) -> tuple[float, Ints]:
        """Return the largest Σ C_{c,π(c)} and π, (d,), each label kept unless another name earns `keep` more.

        Labels that nobody else wants, and that want no other name, keep theirs.
        """
        own = C.diagonal() + keep
        some = np.flatnonzero((C.max(axis=1) > own) | (C.max(axis=0) > own) | (own < keep - _TIE))
        names = np.arange(self.d)
        small = C[np.ix_(some, some)]
        small[np.diag_indices(len(some))] += keep
        # Rounded to a grid, so that what is equal but for the order of additions is equal on every processor.
        small += _GRID
        small -= _GRID
        _, column = linear_sum_assignment(small, maximize=True)
        names[some] = some[column]
        return float(C[np.arange(self.d), names].sum()), names


class _Labelling:
    """Labels, and what each object's points earn with them."""

    def __init__(self, splicer: _Splicer, labels: Ints) -> None:
        self.splicer, self.labels = splicer, labels
        self.O = splicer.table.occupancy(labels)
        self.where = np.full((splicer.k, splicer.d), splicer.m)
        known = np.flatnonzero(labels >= 0)
        self.where[splicer.table.owner[known], labels[known]] = known

    def of(self, i: int) -> Ints:
        """Return the labels of one object."""
        return self.labels[self.splicer.offsets[i] : self.splicer.offsets[i + 1]]

    def earned(self, i: int, among: Bools) -> Floats:
        """Return what each point of object i earns by each label from the objects in `among`, (k,); shape (n, d)."""
        one, table = self.splicer, self.splicer.table
        a, b = one.offsets[i], one.offsets[i + 1]
        here = slice(table.indptr[a], table.indptr[b])
        at = self.labels.take(table.indices[here]) + (table.cells[here] - a * (one.d + 1))
        values = one.rates.right[here] * among[table.partners[here]]
        sums: Any = np.bincount(at, values, minlength=(b - a) * (one.d + 1))
        near = table.neighbours[i]
        near = near[among[near]]
        S = sums.reshape(b - a, one.d + 1)[:, 1:] + one.X[a:b, near] @ self.O[near]
        return np.asarray(S + one.X[self.where[near], i].sum(axis=0))


def _cycles(names: Ints, C: Floats) -> list[Ints]:
    """Return the cycles of a permutation that gain by themselves, each as a permutation, most gain first."""
    found: list[tuple[float, Ints]] = []
    done = names == np.arange(len(names))
    for c in np.flatnonzero(~done).tolist():
        part, gain = np.arange(len(names)), 0.0
        while not done[c]:
            done[c], part[c] = True, names[c]
            gain += C[c, names[c]] - C[c, c]
            c = int(names[c])
        if gain > _LEAST:
            found.append((gain, part))
    return [part for _, part in sorted(found, key=lambda move: -move[0])]


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())
