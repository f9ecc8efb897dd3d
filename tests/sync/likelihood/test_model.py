"""The rates of the model: what they solve, what they recover, and that the truth is likelier than what is wrong."""

from __future__ import annotations

from math import comb, lgamma, log, pi

import numpy as np
import pytest
from scipy.special import beta as beta_function

from stiefelsync import datasets
from stiefelsync.sync.likelihood.model import beta_fit, fit_slope, stray_rates
from stiefelsync.sync.likelihood.observations import observe
from stiefelsync.sync.likelihood.state import State
from tests.sync.likelihood import literal


@pytest.mark.parametrize("theta", [0.0, 0.5, 2.0, 6.0])
def test_strays_are_as_many_as_expected(theta):
    rng = np.random.default_rng(0)
    n1, n0 = rng.uniform(0.25, 40, (2, 200))
    w = rng.uniform(0.01, 0.99, 200) * (n1 + n0)
    t1, t0 = stray_rates(n1, n0, w, theta)
    np.testing.assert_allclose(n1 * t1 + n0 * t0, w, rtol=1e-6)
    np.testing.assert_allclose(np.log(t1 / (1 - t1)) - np.log(t0 / (1 - t0)), theta, atol=1e-5)


@pytest.mark.parametrize("concentration", [2.0, 8.0])
def test_means_and_concentrations_are_recovered(concentration):
    rng = np.random.default_rng(1)
    trials = rng.integers(20, 60, 4000).astype(float)
    hits = rng.binomial(trials.astype(int), rng.beta(0.7 * concentration, 0.3 * concentration, 4000)).astype(float)
    p, kappa = beta_fit(hits, trials)
    assert p == pytest.approx(0.7, abs=0.02)
    assert kappa == pytest.approx(concentration, rel=0.15)
    assert beta_fit(np.zeros(0), np.zeros(0))[1] == np.inf


def test_slopes_of_weights_that_know_something_and_of_those_that_do_not():
    rng = np.random.default_rng(2)
    agree = rng.random(20_000) < 0.6
    ranks = rng.normal(np.where(agree, 0.3, -0.3), 0.8)
    assert fit_slope(ranks, agree) == pytest.approx(0.6 / 0.64, rel=0.05)
    assert fit_slope(ranks, ~agree) == 0.0  # never that worse weights are better
    assert fit_slope(rng.normal(size=300), rng.random(300) < 0.5) < 0.1
    assert fit_slope(ranks[:5], np.ones(5, dtype=bool)) == 0.0


def literal_log_posterior(state):
    """The same, written pair by pair; rates that are not fitted here are the state's."""
    seen, counts, rates = state.seen, state.counts(), state.rates
    p, kappa = beta_fit(counts.right, counts.both)
    value = 0.0
    for x, (i, j) in enumerate(seen.pairs.tolist()):
        R, C, M = counts.right[x], counts.both[x], seen.matched[x]
        if np.isfinite(kappa) and 0 < p < 1:
            a, b = kappa * p, kappa * (1 - p)
            value += log(beta_function(R + a, C - R + b) / beta_function(a, b))
        else:
            value += (R * log(p) if R else 0.0) + ((C - R) * log(1 - p) if C > R else 0.0)
        for object_, matched, theta in ((i, counts.rows[x], rates.theta[0]), (j, counts.columns[x], rates.theta[1])):
            n1, n0, w = C - R, seen.sizes[object_] - C, M - R
            t1, t0 = (
                float(t[0]) for t in stray_rates(*(np.array([one + 0.25]) for one in (n1, n0, w)), theta)
            )  # fmt: skip
            hit1, hit0 = matched - R, w - (matched - R)
            value += hit1 * log(t1) + (n1 - hit1) * log(1 - t1) + hit0 * log(t0) + (n0 - hit0) * log(1 - t0)
            value += 0.5 * log(max(2 * pi * (n1 * t1 * (1 - t1) + n0 * t0 * (1 - t0)), 1))
        value -= lgamma(M - R + 1)
    held = literal.holders(seen, state.labels)
    begins = dict.fromkeys(held, 0)
    for (i, c), (near, far) in literal.cells(seen, state.labels).items():
        if near:
            value += (rates.held if i in held[c] else rates.absent)[literal.bin_of(seen, i, near, far)]
        elif i in held[c]:
            value += rates.birth[i]
            begins[c] += 1
    return value - np.exp(rates.birth).sum() + rates.back * sum(n - 1 for n in begins.values())


@pytest.mark.parametrize("kind", literal.KINDS)
def test_the_log_posterior_pair_by_pair(kind):
    problem, truth = literal.problem(kind)
    rng = np.random.default_rng(0)
    for labels in (truth, np.where(rng.random(len(truth)) < 0.3, -1, truth)):
        state = State(observe(problem), labels, seed=0)
        assert state.log_posterior() == pytest.approx(literal_log_posterior(state), abs=1e-5)


@pytest.mark.parametrize("reach", [12, 4])
@pytest.mark.parametrize("observed", [1.0, 0.7])
def test_the_truth_is_likelier_than_labels_that_are_wrong(reach, observed):
    problem, truth = datasets.synthetic(7, 12, observed, 0.2, rng=0)
    i, j = problem.pair_objects[problem.match_pairs].T
    problem = problem.keep(j - i <= reach)
    seen, owner = observe(problem), problem.point_objects
    alone = np.full(len(truth), -1)
    swapped = np.where(owner < 3, (truth + 1) % 7, truth)
    joined = truth.copy()
    joined[(owner % 2 == 0) & (truth == 1)] = -1
    values = [State(seen, labels, seed=0).log_posterior() for labels in (truth, alone, swapped, joined)]
    assert values[0] > max(values[1:]) + 3


def test_values_do_not_depend_on_the_names_of_labels():
    problem, truth = literal.problem("compared")
    seen, names = observe(problem), np.random.default_rng(0).permutation(100)
    one, two = (State(seen, labels, seed=0) for labels in (truth, names[truth]))
    assert one.log_posterior() == two.log_posterior()
    np.testing.assert_array_equal(one.rates.worth, two.rates.worth)


@pytest.mark.parametrize("error", [0.2, 0.5])
def test_the_reliability_of_pairs_is_found(error):
    problem, truth = datasets.synthetic(40, 12, 0.8, error, rng=3)
    state = State(observe(problem), truth, seed=0)
    counts = state.counts()
    right = counts.right.sum() / counts.both.sum()
    missed = np.exp(np.median(state.rates.worth[:, 1:3].max(axis=1)))
    assert right == pytest.approx(1 - error, abs=0.1)
    assert missed > 0
    # A match of two points of one label speaks for it, the lack of one against it.
    assert (state.rates.worth[:, 0] > 1).all()
    assert (state.rates.worth[:, 1] + state.rates.worth[:, 3] < 0).all()


def test_ways_to_choose_are_counted():
    """Of rows without partner, strays are drawn by rate: among 6 of which 2 are matched there are 15 ways."""
    t1, t0 = stray_rates(np.array([0.0]), np.array([6.0]), np.array([2.0]), 0.0)
    share = float(t0[0])
    assert share == pytest.approx(1 / 3)
    assert comb(6, 2) * share**2 * (1 - share) ** 4 < 1
    assert float(t1[0]) == pytest.approx(share)
