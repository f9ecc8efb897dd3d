"""Runs of objects and their new names, written out literally on small cases."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood, log_odds
from stiefelsync.sync.likelihood.sampling import pair_scores
from stiefelsync.sync.likelihood.splice import _cycles, _Labelling, _Splicer, neighbourhoods, splice

D = 5


def scattered(seed=0):
    """Return objects some of which were compared, the last two only with each other and one with nobody."""
    rng = np.random.default_rng(seed)
    pairs = {(i, j): [[0, 0]] for i in range(9) for j in range(i + 1, 9) if rng.random() < 0.4}
    return Matchings.from_pairs(pairs | {(10, 11): [[0, 0]]}, [1] * 12)


@pytest.mark.parametrize(("longest", "every"), [(4, 1), (20, 1), (4, 3)])
def test_a_run_takes_in_who_was_compared_most_with_it(longest, every):
    problem = scattered()
    met = {i: set() for i in range(12)}
    for i, j in problem.pair_objects.tolist():
        met[i].add(j)
        met[j].add(i)
    expected = []
    for root in [i for i in range(12) if met[i]][::every]:
        run = [root]
        while len(run) < longest:
            share = {i: len(met[i] & set(run)) / len(met[i]) for i in range(12) if i not in run and met[i] & set(run)}
            if not share:
                break
            run.append(max(share, key=lambda i: (share[i], -i)))
        expected.append(run)
    assert [run.tolist() for run in neighbourhoods(MatchTable.of(problem, 1), longest, every)] == expected


def splicer(seed=3):
    problem, truth = datasets.synthetic(D, 6, 0.7, 0.3, rng=seed)
    i, j = problem.pair_objects[problem.match_pairs].T
    problem = problem.keep(j - i <= 3)
    labels = np.where(np.random.default_rng(seed).random(len(truth)) < 0.1, -1, truth).astype(np.int64)
    table = MatchTable.of(problem, D)
    rates = log_odds(table, block_counts(table, labels))
    return problem, labels, _Splicer(table, rates), pair_scores(table, rates)


@pytest.mark.parametrize("keep", [1e-7, 1.0])
def test_names_are_the_best_assignment(keep):
    one = splicer()[2]
    rng = np.random.default_rng(0)
    for _ in range(30):
        C = rng.normal(size=(D, D)).round(3) + 2 * np.eye(D) * (rng.random(D) < 0.7)
        own = C.diagonal() + keep
        settled = [c for c in range(D) if own[c] >= keep and own[c] >= max(C[c].max(), C[:, c].max())]

        def worth(names, C=C):
            return sum(C[c, e] + keep * (c == e) for c, e in enumerate(names))

        best = max((p for p in permutations(range(D)) if all(p[c] == c for c in settled)), key=worth)
        total, names = one.assign(C, keep)
        assert names.tolist() == list(best)
        assert total == pytest.approx(sum(C[c, e] for c, e in enumerate(best)))


def literal_gain(problem, T, mine, theirs, inside, names):
    """What pairs of points of which at least one is inside earn with the names, less what they earn now."""
    new = np.where(inside, np.where(theirs >= 0, names[theirs], -1), mine)
    owner = problem.point_objects
    total = 0.0
    for a in range(len(mine)):
        for b in range(a + 1, len(mine)):
            if owner[a] != owner[b] and (inside[a] or inside[b]):
                total += T[a, b] * (float(new[a] == new[b] >= 0) - float(mine[a] == mine[b] >= 0))
    return total


@pytest.mark.parametrize("seed", range(4))
def test_the_beginning_of_a_run_that_gains_most(seed):
    problem, mine, one, T = splicer(seed)
    rng = np.random.default_rng(seed)
    theirs = mine.copy()
    spoilt = np.isin(problem.point_objects, [1, 2])
    mine = np.where(spoilt & (mine >= 0), (mine + 1) % D, mine)  # the run [1, 2, …] has other names than its neighbours
    theirs = np.where(np.isin(problem.point_objects, [3, 4]) & (theirs >= 0), (theirs + 2) % D, theirs)
    theirs = np.where(theirs >= 0, rng.permutation(D)[theirs], -1)  # right about the run, and names of its own
    run = np.array([1, 2, 3, 4])
    length, names, C = one.best(run, _Labelling(one, mine), _Labelling(one, theirs), 1e-7)
    gains = {}
    for t in range(1, 5):
        inside = np.isin(problem.point_objects, run[:t])
        gains[t] = max(literal_gain(problem, T, mine, theirs, inside, np.array(p)) for p in permutations(range(D)))
    assert gains[2] > gains[1] > 1
    assert length == max(gains, key=lambda t: gains[t])
    inside = np.isin(problem.point_objects, run[:length])
    assert literal_gain(problem, T, mine, theirs, inside, names) == pytest.approx(gains[length])
    assert C.shape == (D, D)


def test_nothing_moves_where_nothing_gains_half():
    problem, truth = datasets.synthetic(D, 6, 1.0, 0.0, rng=0)
    table = MatchTable.of(problem, D)
    one = _Splicer(table, log_odds(table, block_counts(table, truth)))
    mine = _Labelling(one, truth)
    length, names, _ = one.best(np.arange(3), mine, mine, 1e-7)
    assert (length, names.tolist()) == (0, list(range(D)))


def test_cycles_that_gain_more_than_half_come_by_their_gain():
    names, C = np.array([1, 0, 3, 2, 5, 4, 6]), np.diag([0.0, 0.0, 1.0, 1.0, 0.25, 0.0, 9.0])
    C[0, 1], C[1, 0] = 0.2, 0.4  # gains .6
    C[2, 3], C[3, 2] = 2.0, 3.0  # gains 3
    C[4, 5], C[5, 4] = 0.25, 0.5  # gains .5, which is not more
    assert [part.tolist() for part in _cycles(names, C)] == [[0, 1, 3, 2, 4, 5, 6], [1, 0, 2, 3, 4, 5, 6]]


def test_a_sweep_moves_every_run_that_gains():
    problem, truth = datasets.shapes.ring(30, 12, error=0.1, rng=100)
    table = MatchTable.of(problem, 12)
    turned = truth.copy()
    for run, by in ((np.arange(5, 10), 3), (np.arange(18, 24), 5)):
        inside = np.isin(problem.point_objects, run)
        turned[inside] = (truth[inside] + by) % 12
    one = _Splicer(table, log_odds(table, block_counts(table, truth)))
    runs = [np.arange(5, 10), np.arange(18, 24)]
    np.testing.assert_array_equal(one.sweep(turned, None, runs, careful=False), truth)
    np.testing.assert_array_equal(
        one.sweep(turned, None, runs[:1], careful=False)[table.owner < 15], truth[table.owner < 15]
    )
    np.testing.assert_array_equal(one.sweep(turned, truth, runs, careful=True), truth)


def test_a_careful_sweep_keeps_only_what_is_likelier_than_all_before(monkeypatch):
    one = splicer()[2]
    start = np.arange(one.m) % D
    names = np.roll(np.arange(D), 1)
    values = iter([0.0, 5.0, 3.0, 5.0, 7.0])  # of the start and of four moves, two of which are not likelier
    monkeypatch.setattr("stiefelsync.sync.likelihood.splice.log_likelihood", lambda table, labels: next(values))
    monkeypatch.setattr(_Splicer, "best", lambda self, run, mine, theirs, keep: (1, names, np.ones((D, D)) - np.eye(D)))
    runs = [np.array([i]) for i in range(4)]
    found = one.sweep(start, None, runs, careful=True)
    moved = np.isin(one.table.owner, [0, 3])
    np.testing.assert_array_equal(found, np.where(moved, names[start], start))


@pytest.mark.parametrize(("k", "longest"), [(9, 4), (20, 10), (70, 30)])
def test_runs_are_at_most_half_of_all_and_begin_at_every_second_object(k, longest, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "stiefelsync.sync.likelihood.splice.neighbourhoods", lambda table, *how: asked.append(how) or []
    )  # fmt: skip
    table = MatchTable.of(Matchings.from_labels(np.zeros(k, dtype=int), [1] * k), 1)
    labels, value = splice(table, np.zeros(k, dtype=np.int64))
    assert asked == [(longest, 2)]
    assert not labels.any()
    assert value == log_likelihood(table, labels)
