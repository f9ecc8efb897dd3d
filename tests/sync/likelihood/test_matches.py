"""The table of matches: what it says of a problem, object by object and point by point."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from stiefelsync import datasets
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood import matches as module
from stiefelsync.sync.likelihood.matches import MatchTable


def problem_of(seed, reach=3):
    problem, _ = datasets.synthetic(7, 9, 0.7, 0.4, rng=seed)
    i, j = problem.pair_objects[problem.match_pairs].T
    return problem.keep(j - i <= reach)


def literal_sides(problem, step):
    """Of third objects before both ends of a match, and after both: how many, and how many in agreement."""
    owner, compared = problem.point_objects.tolist(), {frozenset(pair) for pair in problem.pair_objects.tolist()}
    seen = {(a, owner[b]) for x, y in problem.endpoints.tolist() for a, b in ((x, y), (y, x))}
    n, same = [0, 0], [0, 0]
    for a, b in problem.endpoints[::step].tolist():
        i, j = owner[a], owner[b]
        for third in range(problem.n_objects):
            if third in (i, j) or not {frozenset((i, third)), frozenset((j, third))} <= compared or i < third < j:
                continue
            side = int(third > j)
            n[side] += 1
            same[side] += ((a, third) in seen) == ((b, third) in seen)
    return n, [x / y for x, y in zip(same, n, strict=True)]


@pytest.mark.parametrize("step", [1, 3])  # of many matches some are looked at
@pytest.mark.parametrize("seed", range(4))
def test_sides_differ_if_their_shares_do_by_enough_and_surely(seed, step, monkeypatch):
    problem = problem_of(seed)
    monkeypatch.setattr(module, "_LOOKED_AT", problem.n_matches * 9 // step)
    n, share = literal_sides(problem, step)
    apart = abs(share[0] - share[1])
    sure = apart / (0.25 / n[0] + 0.25 / n[1]) ** 0.5  # standard deviations of two shares about one half
    for different, by, expected in (
        (0.999 * apart, 0.999 * sure, True),
        (1.001 * apart, 0.999 * sure, False),
        (0.999 * apart, 1.001 * sure, False),
        (apart, 0.0, False),  # more, not as much
    ):
        monkeypatch.setattr(module, "_DIFFERENT", different)
        monkeypatch.setattr(module, "_SURE", by)
        assert MatchTable.of(problem, 7).sided is expected
    monkeypatch.setattr(module, "_MOST", 0.0)  # all count as compared
    assert not MatchTable.of(problem, 7).sided


@pytest.mark.parametrize("reach", [2, 8])
def test_what_is_compared_and_who_sees_whom(reach):
    problem = problem_of(5, reach)
    table = MatchTable.of(problem, 7)
    compared = np.zeros((9, 9))
    for i, j in problem.pair_objects.tolist():
        compared[i, j] = compared[j, i] = 1
    np.testing.assert_array_equal(table.compared, compared)
    assert table.partner_counts.tolist() == compared.sum(axis=1).tolist()
    assert [sorted(near.tolist()) for near in table.neighbours] == [np.flatnonzero(row).tolist() for row in compared]
    rows = sum(int(compared[i].sum()) * int(problem.sizes[i]) for i in range(9))
    assert table.rows == rows
    assert table.partial == (2 * problem.n_matches < rows)
    assert table.complete == (compared.sum() >= 0.75 * 9 * 8)
    assert table.spread == pytest.approx(np.log(problem.n_points / 9))


def test_a_quarter_of_the_pairs_may_be_missing_but_no_more_and_empty_objects_do_not_count():
    every = {(i, j): [[0, 0]] for i in range(5) for j in range(i + 1, 5)}  # ten pairs; 7.5 are enough
    for left, complete in ((10, True), (8, True), (7, False)):
        some = dict(list(every.items())[:left])
        assert MatchTable.of(Matchings.from_pairs(some, [1] * 5 + [0] * 3), 1).complete is complete


def test_weights_have_mean_one_and_normal_scores_of_their_ranks():
    problem = problem_of(6)
    assert (MatchTable.of(problem, 7).weights == 1).all()
    assert MatchTable.of(problem, 7).weight_scores is None
    assert MatchTable.of(problem.with_weights(np.full(problem.n_matches, 3.0)), 7).weight_scores is None
    w = np.random.default_rng(0).integers(1, 6, problem.n_matches).astype(float)  # with ties
    table = MatchTable.of(problem.with_weights(w), 7)
    np.testing.assert_allclose(table.weights, (w / w.mean())[table.numbers])
    np.testing.assert_allclose(table.weight_scores, norm.ppf((rankdata(w) - 0.5) / len(w)))


def test_the_largest_labels_are_numbered_by_size():
    table = MatchTable.of(problem_of(7), 2)
    labels = np.array([5, 5, -1, 2, 2, 2, 9, 0, 0])
    assert table.largest(labels).tolist() == [-1, -1, -1, 0, 0, 0, -1, 1, 1]


def test_more_entries_than_32_bits_count_are_refused():
    with pytest.raises(InputError, match=r"1,073,741,824 matches are more than the 1,073,741,823 .* method='tracks'"):
        MatchTable.of(SimpleNamespace(n_matches=2**30), 2)
