"""The rates of the model: what they solve, what they recover, and that the truth is likelier than what is wrong."""

from __future__ import annotations

from dataclasses import replace
from math import lgamma, log, pi

import numpy as np
import pytest
from scipy.special import beta as beta_function

from stiefelsync import datasets
from stiefelsync.sync.likelihood.model import beta_fit, fit_rates, fit_slope, stray_rates
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
        for object_, matched, theta in (
            (i, counts.rows[x], rates.log_theta[0]),
            (j, counts.columns[x], rates.log_theta[1]),
        ):
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


@pytest.mark.parametrize("kind", literal.KINDS)
def test_what_two_points_of_one_label_are_worth(kind):
    problem, truth = literal.problem(kind)
    state = State(observe(problem), truth, seed=0)
    before = replace(state.rates, log_theta=(0.4, 1.7))
    counts, seen = state.counts(), state.seen
    worth = fit_rates(seen, counts, before).worth
    right, both = counts.right, counts.both
    kappa = beta_fit(right, both)[1]
    p = (right.sum() + 2) / (both.sum() + 3)
    for x, (i, j) in enumerate(seen.pairs.tolist()):
        R, C, w = right[x], both[x], seen.matched[x] - right[x]
        reliability = (R + kappa * p) / (C + kappa) if np.isfinite(kappa) else p
        rates = []
        for object_, theta in ((i, 0.4), (j, 1.7)):
            n1, n0 = C - R + 0.25, seen.sizes[object_] - C + 0.25
            t1, t0 = stray_rates(np.array([n1]), np.array([n0]), np.array([min(w + 0.25, n1 + n0 - 0.25)]), theta)
            rates.append((np.clip(float(t1[0]), 1e-3, 1 - 1e-3), np.clip(float(t0[0]), 1e-3, 1 - 1e-3)))
        (t1, t0), (u1, u0) = rates
        expected = [
            log(reliability) + log(max(w, 0.5)) - log(t0) - log(u0),
            log(1 - reliability) + log((1 - t1) / (1 - t0)), log(1 - reliability) + log(t1 / t0),
            log((1 - u1) / (1 - u0)), log(u1 / u0),
        ]  # fmt: skip
        np.testing.assert_allclose(worth[x], expected, atol=2e-6)


def test_row_noise_leaves_columns_with_a_partner_matched_and_others_not():
    found = {}
    for noise in ("row", "edge"):
        problem, truth = datasets.synthetic(40, 12, 0.6, 0.4, noise=noise, rng=0)
        state = State(observe(problem), truth, seed=0)
        for _ in range(30):
            state.fit()
        found[noise] = state.rates.log_theta
    assert found["row"][1] > found["row"][0] + 2
    assert max(found["edge"]) < 1


@pytest.mark.parametrize("kind", literal.KINDS)
def test_shares_of_who_sees_what(kind):
    problem, truth = literal.problem(kind)
    state = State(observe(problem), truth, seed=0)
    counts, rates = state.counts(), state.rates
    for b in range(literal.BINS * literal.REACHES):
        usual = 0.05 + 0.9 * (b % literal.BINS + 0.5) / literal.BINS
        share = (counts.held[b] + usual) / (counts.held[b] + counts.absent[b] + 1)
        assert rates.held[b] == pytest.approx(log(share), abs=1e-6)
        assert rates.absent[b] == pytest.approx(log(1 - share), abs=1e-6)
    assert rates.back == pytest.approx(
        log((counts.returns + 0.5) / (counts.begun.sum() + 1) / len(set(truth.tolist()))), abs=1e-6
    )  # fmt: skip
    # As many labels begin as the rates expect, but for half a label per kind of object.
    assert np.exp(rates.birth).sum() == pytest.approx(counts.begun.sum(), abs=5)
