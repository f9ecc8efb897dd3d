"""Rates of rows and of columns, and what they make pairs of points worth."""

from __future__ import annotations

from math import lgamma, log

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.sides import Sides, count_sides, profile

RIGHT, PRESENT = np.array([3.0, 2.0]), np.array([5.0, 4.0])
SIDES = Sides(found=np.array([7.0, 6.0]), rows=np.array([14.0, 13.0]), matches=np.array([6.0, 5.0]))


def test_rates_are_smoothed_shares():
    one, none = SIDES.rates(RIGHT, PRESENT)
    # Of nine shared labels five are matched rightly; of four others two rows and one column are matched elsewhere.
    np.testing.assert_allclose(one, [(2 + 0.5) / (4 + 1), (1 + 0.5) / (4 + 1)])
    # Of the 14 - 9 rows without a partner 11 - 7 are matched, of the columns 11 - 6 of 13 - 9, as soft counts may say.
    np.testing.assert_allclose(none, [(4 + 0.5) / (5 + 1), 0.999])
    full = Sides(np.array([9.0, 9.0]), np.array([9.0, 9.0]), np.array([5.0, 4.0]))
    one, none = full.rates(np.array([5.0, 4.0]), PRESENT)
    np.testing.assert_allclose([one, none], 0.5)  # nothing is left over: nothing is known


@pytest.mark.parametrize("p", [0.4, np.array([0.4, 0.7])])
def test_worth_adds_up_to_the_odds_of_what_is_seen(p):
    problem, _ = datasets.synthetic(4, 3, 0.8, 0.3, rng=0)
    table = MatchTable.of(problem, 4)
    (u1, v1), (u0, v0) = SIDES.rates(RIGHT, PRESENT)
    alpha, gamma, seen = SIDES.worth(table, RIGHT, PRESENT, p)
    wrong = (11 - 5) / 2 + 0.5  # per block
    row, column = seen[table.first > 0][0], seen[table.first == 0][0]
    assert set(seen.tolist()) == {row, column}
    together = np.log(p) + log(wrong) - log(u0) - log(v0)
    np.testing.assert_allclose(alpha + gamma + row / 2 + column / 2, together)
    np.testing.assert_allclose(gamma, np.log(1 - p) + log((1 - u1) / (1 - u0)) + log((1 - v1) / (1 - v0)))
    np.testing.assert_allclose(gamma + row / 2, np.log(1 - p) + log(u1 / u0) + log((1 - v1) / (1 - v0)))
    np.testing.assert_allclose(gamma + column / 2, np.log(1 - p) + log((1 - u1) / (1 - u0)) + log(v1 / v0))


def test_the_likelihood_of_all_but_which_labels_are_matched():
    def best(x, y):
        s = np.linspace(0, 1, 200_001)[1:-1]
        return float((x * np.log(s) + y * np.log(1 - s)).max()) if x + y else 0.0

    expected = -lgamma(6 - 3 + 1) - lgamma(5 - 2 + 1)
    expected += best(2, 2) + best(4, 1)  # rows with a partner, and without
    expected += best(1, 3) + best(5, 0)  # columns; of more matched than there are, none is left over
    assert SIDES.log_likelihood(RIGHT, PRESENT) == pytest.approx(expected, abs=1e-4)
    for x, y in ((0, 0), (0, 3), (2.5, 0), (1, 4), (7, 2.5)):
        assert profile(x, y) == pytest.approx(best(x, y), abs=1e-4)


def test_rows_are_those_of_the_first_object_of_a_pair():
    problem, _ = datasets.synthetic(6, 5, 0.7, 0.3, rng=1)
    found = count_sides(MatchTable.of(problem, 6), 11.0, 30.0)
    pairs = problem.pair_objects.tolist()
    assert found.found.tolist() == [11.0, 19.0]
    assert found.rows.tolist() == [sum(int(problem.sizes[pair[side]]) for pair in pairs) for side in (0, 1)]
    assert found.matches.tolist() == [len(problem.pair(i, j)) for i, j in pairs]
