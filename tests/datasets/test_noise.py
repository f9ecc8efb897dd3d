"""The parts of random problems: what each noise model promises."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.datasets.noise import assemble, best_assignment, both_sides, mutual_best, near_pairs, seen_by
from stiefelsync.errors import InputError


def test_matches_of_both_sides_are_hit_and_wrong_at_the_promised_rates():
    rng = np.random.default_rng(0)
    first, second = np.arange(60), np.arange(20, 100)  # 40 in common, 20 and 40 of their own
    hits = strays = room = 0
    columns = np.zeros(80)
    for _ in range(400):
        a, b = both_sides(first, second, rng, hit=0.6, wrong=0.3).T
        assert len(set(a.tolist())) == len(a)
        assert len(set(b.tolist())) == len(b)
        right = first[a] == second[b]
        hits += right.sum()
        strays += (~right).sum()
        room += 60 - right.sum()  # the smaller rest
        columns[b[~right]] += 1
    # A few strays are right by chance: up to 60 - 24 of them, one in some sixty, in each draw.
    assert hits / (400 * 40) == pytest.approx(0.6, abs=0.015)
    assert strays / room == pytest.approx(0.3, abs=0.015)
    # Strays fall on points that the other object sees, too, when their right match was missed: both sides err.
    assert columns[:40].sum() / columns.sum() == pytest.approx(0.4 * 40 / (0.4 * 40 + 40), abs=0.02)


@pytest.mark.parametrize(("hit", "wrong", "expected"), [(1, 0, [[0, 1], [2, 0]]), (0, 0, [])])
def test_the_extremes_of_both_sides(hit, wrong, expected):
    found = both_sides([3, 4, 5], [5, 3], np.random.default_rng(0), hit=hit, wrong=wrong)
    assert found.tolist() == expected
    assert found.shape[1] == 2


def test_everything_left_is_paired_when_all_is_wrong():
    found = both_sides(np.arange(5), np.arange(7) + 10, np.random.default_rng(0), hit=0.5, wrong=1)
    assert sorted(found[:, 0].tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("rates", [{"hit": 1.5, "wrong": 0}, {"hit": 0, "wrong": -0.1}])
def test_rates_are_checked(rates):
    with pytest.raises(InputError, match=r"must be between 0 and 1, got"):
        both_sides([0], [0], np.random.default_rng(0), **rates)


def test_mutual_best_and_best_assignment_disagree_where_they_should():
    scores = np.array([[0.9, 0.8, 0.0], [0.85, 0.1, 0.0], [0.0, 0.0, 0.2]])
    rows, values = mutual_best(scores)
    assert rows.tolist() == [[0, 0], [2, 2]]
    assert values.tolist() == [0.9, 0.2]
    rows, values = best_assignment(scores, 0.5)
    assert rows.tolist() == [[0, 1], [1, 0]]
    assert values.tolist() == [0.8, 0.85]
    assert mutual_best(scores, 0.5)[0].tolist() == [[0, 0]]


def test_near_pairs_of_a_ring_meet_at_its_ends():
    assert len(near_pairs(12, 3, closed=True)) == 36
    assert len(near_pairs(12, 3)) == 36 - 6
    assert (0, 11) in near_pairs(12, 1, closed=True)


def test_objects_see_at_the_promised_rate_and_at_least_so_many():
    seen = seen_by(500, 20, 0.3, np.random.default_rng(0), least=3)
    sizes = np.array([len(labels) for labels in seen])
    assert sizes.min() >= 3
    assert np.mean(sizes) == pytest.approx(6.2, abs=0.3)  # 6, and a little more for those that were drawn again
    with pytest.raises(InputError, match=r"the universe at least 2; got 0\.5 and 1"):
        seen_by(3, 1, 0.5, np.random.default_rng(0))


def test_pairs_without_a_match_are_left_out():
    labels = [np.array([8, 3]), np.array([3]), np.array([9])]
    none = np.empty((0, 2), dtype=np.int64)
    matchings, truth = assemble(labels, {(0, 1): np.array([[1, 0]]), (1, 2): none}, {(0, 1): [0.5], (1, 2): []})
    assert truth.tolist() == [1, 0, 0, 2]
    assert matchings.pair_objects.tolist() == [[0, 1]]
    assert matchings.weights.tolist() == [0.5]
