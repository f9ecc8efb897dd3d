"""Objects that join a solved problem: what they are given, what stays, and when nothing is said."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import datasets, score
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.newcomers import label_newcomers


def solved(seed=100, error=0.2):
    """Return a problem, its truth, and the truth without the last two of twelve objects."""
    problem, truth = datasets.synthetic(8, 12, 0.8, error, rng=seed)
    new = np.array([10, 11])
    return problem, truth, np.where(np.isin(problem.point_objects, new), -1, truth).astype(np.int64), new


@pytest.mark.parametrize("seed", range(100, 104))
def test_newcomers_are_labelled_and_others_stay(seed):
    problem, truth, labels, new = solved(seed)
    found = label_newcomers(problem, labels, new, 8)
    old = ~np.isin(problem.point_objects, new)
    np.testing.assert_array_equal(found[old], labels[old])
    assert score(found, truth).fscore > 0.97
    for i in new:
        own = found[problem.point_objects == i]
        assert len(set(own[own >= 0])) == (own >= 0).sum()


def test_nothing_is_said_where_not_all_were_compared():
    problem, _, labels, new = solved()
    i, j = problem.pair_objects[problem.match_pairs].T
    assert label_newcomers(problem.keep(j - i <= 5), labels, new, 8) is None


@pytest.mark.parametrize(("wrong", "said"), [(0.2, True), (0.9, False)])
def test_nothing_is_said_of_who_fits_less_than_half_as_well(wrong, said):
    problem, _, labels, new = solved(error=0.05)
    rng = np.random.default_rng(0)
    blocks = {}
    for (i, j), rows in problem.pairs().items():
        rows = rows.copy()
        if j in new:
            moved = np.flatnonzero(rng.random(len(rows)) < wrong)
            rows[moved, 1] = rng.permutation(rows[moved, 1])
        blocks[i, j] = rows
    answer = label_newcomers(Matchings.from_pairs(blocks, problem.sizes), labels, new, 8)
    assert (answer is not None) == said


def test_a_label_of_one_point_says_nothing():
    # Point 2 of the newcomer is matched with nobody, and label 2 is free.
    truth = [0, 1] * 5 + [0, 1, 5]
    problem = Matchings.from_labels(truth, [2] * 5 + [3])
    found = label_newcomers(problem, np.array([0, 1] * 5 + [-1] * 3), np.array([5]), 3)
    assert found.tolist() == [0, 1] * 6 + [-1]
