"""Mixtures of block rates: where near blocks have no mistakes and far ones many."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.datasets import shapes
from stiefelsync.sync.likelihood import reliability
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood, log_odds
from stiefelsync.sync.likelihood.reliability import _RATES, beta_binomial, fit_mixture


def two_kinds(seed=0):
    """Blocks of 30 of which half are right and half are right at rate .6."""
    rng = np.random.default_rng(seed)
    return np.append(np.full(300, 30.0), rng.binomial(30, 0.6, 300)), np.full(600, 30.0)


def test_a_mixture_is_likelier_than_a_beta_distribution_where_blocks_are_of_two_kinds():
    hits, trials = two_kinds()
    mixture = fit_mixture(hits, trials)
    assert mixture is not None
    assert mixture.log_likelihood > beta_binomial(hits, trials, least=0.5) + 50
    assert mixture.shares.sum() == pytest.approx(1)
    rates = mixture.rates(hits, trials)
    assert rates[:300].min() > 0.99
    assert rates[300:].mean() == pytest.approx(0.6, abs=0.02)


def test_blocks_whose_rates_are_beta_distributed_or_equal_need_no_mixture():
    rng = np.random.default_rng(1)
    trials = np.full(200, 30.0)
    assert fit_mixture(rng.binomial(30, rng.beta(6, 3, 200)).astype(float), trials) is None
    assert fit_mixture(rng.binomial(30, 0.7, 200).astype(float), trials) is None


def test_a_mistake_in_a_right_block_costs_more_than_one_in_a_poor_block():
    problem, truth = shapes.video(40, 12, look_alikes=2, rng=0)
    table = MatchTable.of(problem, 12)
    counts = block_counts(table, truth)
    assert counts.mixture is not None
    right = log_odds(table, counts, counts).right
    i, j = problem.pair_objects[table.pairs].T
    assert right[j - i <= 10].min() > 1.5 * right[j - i > 30].mean()
    # Two points swapped in the first object.
    swapped = truth.copy()
    swapped[:2] = truth[1::-1]
    assert log_likelihood(table, swapped) < log_likelihood(table, truth) - 20


@pytest.mark.parametrize("trials", [30, 300])
def test_the_mixture_block_by_block(trials):
    """Expectation and maximisation over every block for itself; rates as the module's constant lists them."""
    rng = np.random.default_rng(2)
    n = np.append(np.full(40, trials), rng.integers(trials // 2, trials, 40)).astype(float)
    hits = np.append(n[:40], rng.binomial(n[40:].astype(int), 0.55)).astype(float)
    assert len(_RATES) == 24
    likelihood = np.array(
        [[h * np.log(r) + (t - h) * np.log(1 - r) for r in _RATES] for h, t in zip(hits, n, strict=True)]
    )
    shares = np.full(24, 1 / 24)
    for _ in range(100):
        joint = np.exp(likelihood - likelihood.max(axis=1, keepdims=True)) * shares
        shares = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    joint = np.exp(likelihood - likelihood.max(axis=1, keepdims=True)) * shares
    value = float((np.log(joint.sum(axis=1)) + likelihood.max(axis=1)).sum()) - 0.5 * 23 * np.log(80)
    found = fit_mixture(hits, n)
    np.testing.assert_allclose(found.shares, shares, rtol=1e-6, atol=1e-12)
    assert found.log_likelihood == pytest.approx(value)
    assert value > beta_binomial(hits, n, least=0.5)
    posterior = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.rates(hits, n), posterior @ _RATES, rtol=1e-6)


def test_blocks_that_differ_little_need_no_look_at_mixtures(monkeypatch):
    hits, trials = two_kinds()
    for kappa, looked in ((99.0, True), (100.0, False), (np.inf, False)):
        monkeypatch.setattr(reliability, "beta_fit", lambda *_, kappa=kappa, **__: (0.8, kappa))
        assert (fit_mixture(hits, trials) is not None) == looked
