"""What the model counts and fits beside the blocks: pieces of labels, and trust in weights, against slow ways."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from scipy.optimize import minimize

from stiefelsync import datasets
from stiefelsync.datasets import shapes
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood import counts
from stiefelsync.sync.likelihood.counts import pieces_apart, trust
from stiefelsync.sync.likelihood.matches import MatchTable


def sparse_problem(seed):
    """A problem in which few objects were compared, and labels, some points unmatched."""
    rng = np.random.default_rng(seed)
    problem, truth = datasets.synthetic(5, 8, 0.7, 0.3, rng=seed)
    i, j = problem.pair_objects[problem.match_pairs].T
    problem = problem.keep(j - i <= 2)
    return problem, np.where(rng.random(len(truth)) < 0.15, -1, truth)


@pytest.mark.parametrize("seed", range(6))
def test_pieces_of_a_label_are_its_holders_that_comparisons_connect(seed):
    problem, labels = sparse_problem(seed)
    compared = {frozenset(pair) for pair in problem.pair_objects.tolist()}
    apart = 0
    for label in set(labels.tolist()) - {-1}:
        left = set(problem.point_objects[labels == label].tolist())
        pieces = 0
        while left:
            reached = {left.pop()}
            while more := {o for o in left if any(frozenset((o, r)) in compared for r in reached)}:
                reached |= more
                left -= more
            pieces += 1
        apart += pieces - 1
    assert pieces_apart(MatchTable.of(problem, 5), labels) == apart


def test_pieces_are_not_counted_where_that_is_too_much_work(monkeypatch):
    problem, labels = next((p, l) for p, l in map(sparse_problem, range(6)) if pieces_apart(MatchTable.of(p, 5), l))
    cells = len(problem.pair_objects) * 5
    monkeypatch.setattr(counts, "_PIECES", cells)
    assert pieces_apart(MatchTable.of(problem, 5), labels) > 0
    monkeypatch.setattr(counts, "_PIECES", cells - 1)
    assert pieces_apart(MatchTable.of(problem, 5), labels) == 0


@pytest.mark.parametrize("seed", range(4))
def test_trust_is_a_logistic_regression_on_the_ranks_of_weights(seed):
    problem, truth = shapes.weighted(rng=seed)
    table = MatchTable.of(problem, int(truth.max()) + 1)
    agree = problem.agreeing(truth)
    z = table.weight_scores

    def loss(parameters):
        """Minus the log-likelihood, with the prior precisions of intercept (about its start) and slope."""
        at = parameters[0] + parameters[1] * z
        return np.sum(np.logaddexp(0, at) - agree * at) + counts._CAUTION / 2 * parameters[1] ** 2

    best = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    assert best[1] > 0.1
    found = trust(table, agree)
    share = (agree.sum() + 1) / (len(agree) + 2)
    base = log(share / (1 - share))
    np.testing.assert_allclose(found.odds, best[0] + best[1] * z - base, atol=2e-3)
    gain = 0.0
    for right, odds in zip(agree, found.odds, strict=True):
        p = 1 / (1 + exp(-(odds + base)))
        gain += log(p if right else 1 - p) - log(agree.mean() if right else 1 - agree.mean())
    assert found.gain == pytest.approx(gain, rel=1e-9)


def test_weights_that_know_nothing_or_mislead_are_not_trusted():
    problem, truth = datasets.synthetic(10, 8, 0.8, 0.4, rng=0)
    agree = problem.agreeing(truth)
    assert trust(MatchTable.of(problem, 10), agree) is None
    misled = problem.with_weights(np.where(agree, 0.5, 2.0))
    odds = trust(MatchTable.of(misled, 10), agree).odds
    assert np.ptp(odds) == 0  # a slope is never below zero
    perfect = problem.with_weights(np.where(agree, 2.0, 0.5))
    table = MatchTable.of(perfect, 10)
    slope = np.ptp(trust(table, agree).odds) / np.ptp(table.weight_scores)
    assert 1 < slope <= counts._STEEP


def test_row_noise_moves_matches_between_rows_and_leaves_columns_matched():
    problem, truth = shapes.ring(40, 12, error=0.4, rng=0)
    found = counts.block_counts(MatchTable.of(problem, 12), truth)
    assert found.sides is not None
    (u1, v1), (u0, v0) = found.sides.rates(found.right, found.present)
    assert v1 > 0.98
    assert v0 < 0.02
    assert 0.1 < u0 < u1 < 0.9


def test_rows_and_columns_are_read_alike_where_all_were_compared():
    problem, truth = datasets.synthetic(8, 6, 0.6, 0.3, rng=0)
    assert counts.block_counts(MatchTable.of(problem, 8), truth).sides is None


def test_rows_and_columns_are_read_alike_where_noise_makes_no_difference_between_them():
    problem, _ = datasets.synthetic(12, 30, 0.6, 0.4, noise="edge", rng=0)
    i, j = problem.pair_objects[problem.match_pairs].T
    assert not MatchTable.of(problem.keep(j - i <= 5), 12).sided
    row, _ = datasets.synthetic(12, 30, 0.6, 0.4, rng=0)
    i, j = row.pair_objects[row.match_pairs].T
    assert MatchTable.of(row.keep(j - i <= 5), 12).sided


def test_no_rate_is_certain():
    # 30 objects that see the same 20 points: 8,700 of 8,700 are right, and (8,700·2 + 1) / (8,700·2 + 2) is too sure.
    truth = np.tile(np.arange(20), 30)
    found = counts.block_counts(MatchTable.of(Matchings.from_labels(truth, [20] * 30), 20), truth)
    assert found.rates[0] == 0.999


def test_counts_of_few_labellings_are_remembered():
    problem, truth = datasets.synthetic(6, 5, 0.8, 0.3, rng=0)
    table = MatchTable.of(problem, 6)
    first = counts.block_counts(table, truth)
    assert counts.block_counts(table, truth.copy()) is first
    for seed in range(2 * counts._REMEMBERED):
        rng = np.random.default_rng(seed)
        counts.block_counts(table, np.concatenate([rng.permutation(6)[:n] for n in problem.sizes]))
        assert len(table.counted) <= counts._REMEMBERED
    again = counts.block_counts(table, truth)
    assert again is not first  # the oldest went
    np.testing.assert_array_equal(again.right, first.right)
