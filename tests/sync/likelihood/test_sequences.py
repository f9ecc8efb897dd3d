"""Sequences: runs of objects relabelled as a whole, annealing, the extent of labels, and the tree of good blocks."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import datasets, score, synchronise
from stiefelsync.sync.likelihood.annealing import anneal
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.gauss_seidel import State, refine
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood, log_odds
from stiefelsync.sync.likelihood.sampling import pair_scores
from stiefelsync.sync.likelihood.splice import _cycles, _Labelling, _Splicer, neighbourhoods, splice
from stiefelsync.sync.likelihood.tree import agreement, tree_start


@pytest.fixture(scope="module")
def ring():
    problem, truth = datasets.shapes.ring(30, 12, error=0.2, rng=100)
    return problem, truth, MatchTable.of(problem, 13)


@pytest.fixture(scope="module")
def window():
    problem, truth = datasets.shapes.window(40, 80, width=20, error=0.3, rng=100)
    return problem, truth, MatchTable.of(problem, 90)


def test_a_run_under_permuted_labels_is_repaired(ring):
    problem, truth, table = ring
    turned = truth.copy()
    run = np.isin(problem.point_objects, np.arange(8, 19))
    turned[run] = np.roll(np.arange(12), 5)[truth[run]]
    alone = refine(table, turned)[0]
    assert score(alone, truth).fscore < 0.8  # no single object gains by going back
    mended, value = splice(table, turned)
    assert score(mended, truth).fscore > 0.97
    assert value == log_likelihood(table, mended) > log_likelihood(table, alone)


def test_runs_are_taken_from_another_labelling(ring):
    problem, truth, table = ring
    rng = np.random.default_rng(0)
    first = problem.point_objects < 15
    one, two = truth.copy(), rng.permutation(13)[truth]
    for labels, spoilt in ((one, first), (two, ~first)):
        for i in np.unique(problem.point_objects[spoilt]):
            here = problem.point_objects == i
            labels[here] = rng.permutation(13)[: here.sum()]
    together, value = splice(table, one, two, max_rounds=3)
    assert score(together, truth).fscore > score(one, truth).fscore + 0.2
    assert value > log_likelihood(table, one)


def test_what_a_run_earns_is_the_sum_over_pairs_of_points(ring):
    problem, truth, table = ring
    labels = np.where(np.random.default_rng(1).random(len(truth)) < 0.1, -1, truth)
    rates = log_odds(table, block_counts(table, labels))
    T, splicer, run = pair_scores(table, rates), _Splicer(table, rates), np.arange(6, 13)
    mine = _Labelling(splicer, labels)
    inside, C = np.zeros(30, dtype=bool), np.zeros((13, 13))
    for i in run.tolist():
        C[mine.of(i)[mine.of(i) >= 0]] += mine.earned(i, ~inside)[mine.of(i) >= 0]
        C[:, mine.of(i)[mine.of(i) >= 0]] -= mine.earned(i, inside)[mine.of(i) >= 0].T
        inside[i] = True
    U = table.one_hot(labels)
    within = inside[problem.point_objects]
    apart = problem.point_objects[:, None] != problem.point_objects
    T = np.where(apart & (table.compared[problem.point_objects][:, problem.point_objects] > 0), T, 0)
    np.testing.assert_allclose(C, U[within].T @ T[within][:, ~within] @ U[~within], atol=1e-9)


def test_runs_stay_together(ring):
    for run in neighbourhoods(ring[2], 9):
        around = np.sort((run - run[0] + 15) % 30)
        assert around[-1] - around[0] <= 10  # but for a gap of one or two, nine neighbours on the ring


def test_cycles_of_names_are_separate_moves():
    C = np.zeros((5, 5))
    C[0, 1] = C[1, 0] = 2.0
    C[2, 3], C[3, 2] = 1.0, -1.0
    (part,) = _cycles(np.array([1, 0, 3, 2, 4]), C)
    assert part.tolist() == [1, 0, 2, 3, 4]


def test_annealing_is_repeatable_and_leaves_unmatched_points_alone(ring):
    _, truth, table = ring
    start = np.where(np.arange(len(truth)) % 7 == 0, -1, truth)
    one, two = (anneal(table, start, rng=np.random.default_rng(5), hot=3.0, sweeps=3) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one < 0, start < 0)
    assert (one != start).any()
    assert table.occupancy(one).sum() == (one >= 0).sum()  # no object has a label twice


def test_labels_that_follow_each_other_are_not_one(window):
    """Two labels whose holders were never compared do not become likelier by being one."""
    problem, truth, table = window
    value = log_likelihood(table, truth)
    merged = np.where(truth == 40, 10, truth)  # seen by objects 10 apart, most of which were not compared
    assert value - log_likelihood(table, merged) > 5
    sight = block_counts(table, truth).sight
    assert sight is not None
    assert sight.reached is not None
    assert sight.reached.sum() == len(np.unique(truth))
    assert sight.extent.shape == (41,)
    assert np.isclose(np.exp(sight.extent).sum(), 1)
    assert sight.extent.argmax() == np.median(np.repeat(np.arange(41), sight.reached.astype(int)))
    assert block_counts(MatchTable.of(problem, 90), np.where(truth % 2, truth, -1)).sight.reached.sum() == 40 + np.sum(
        truth % 2 == 0
    )


def test_labels_that_are_everywhere_have_no_extent(ring):
    _, truth, table = ring
    counts = block_counts(table, truth)
    assert counts.sight.reached is None
    assert counts.sight.births == 0
    assert log_odds(table, counts).extent is None


def test_reach_is_kept_up_to_date(window):
    _, truth, table = window
    rates = log_odds(table, block_counts(table, truth))
    state = State(table, truth.copy(), rates)
    rng = np.random.default_rng(3)
    for i in range(0, 40, 3):
        state.give(i, rng.permutation(90)[: len(state.labels_of(i))])
    again = State(table, state.labels, rates)
    np.testing.assert_array_equal(state.reach, again.reach)
    np.testing.assert_allclose(state.scores(0, 40), again.scores(0, 40), atol=1e-9)


def test_the_prior_of_extent_is_the_change_in_log_likelihood(window):
    """Moving one point to a label of its own: scores and likelihood, with all rates held, agree about the extent."""
    _, truth, table = window
    rates = log_odds(table, block_counts(table, truth))
    state = State(table, truth.copy(), rates)
    point = int(np.flatnonzero(truth == 30)[0])
    i = int(table.owner[point])
    without = truth.copy()
    without[point] = 85  # nobody's
    before, after = (block_counts(table, labels).sight.reached for labels in (truth, without))
    expected = (after - before) @ rates.extent + rates.births
    flat = State(table, truth.copy(), type(rates)(**{**vars(rates), "extent": None, "births": 0.0}))
    row = point - state.offsets[i]
    extra = state.scores(i, i + 1)[row] - flat.scores(i, i + 1)[row]
    assert extra[85] - extra[30] == pytest.approx(expected)


def test_agreement_is_the_share_of_closed_triangles():
    problem, _ = datasets.synthetic(6, 5, 0.7, 0.4, rng=3)
    W = problem.to_matrix().toarray() > 0
    owner = problem.point_objects
    expected = []
    for i, j in problem.pair_objects.tolist():
        closed = paths = 0
        for a, b in np.argwhere(W & np.outer(owner == i, owner == j)):
            for third in set(range(5)) - {i, j}:
                one, two = (set(np.flatnonzero(W[x] & (owner == third)).tolist()) for x in (a, b))
                paths += bool(one and two)
                closed += bool(one & two)
        expected.append(closed / max(paths, 1))
    np.testing.assert_allclose(agreement(MatchTable.of(problem, 6)), expected)


def test_a_tree_of_good_blocks_starts_a_video():
    problem, truth = datasets.shapes.video(60, 20, rng=100)
    assert score(tree_start(MatchTable.of(problem, 20)), truth).fscore > 0.98
    result = synchronise(problem, 20, rng=0)
    starts = {start.name: start.log_likelihood for start in result.outcome.details.starts}
    assert starts["tree"] >= starts["spectral"]
    assert score(result.labels, truth).fscore > 0.99
