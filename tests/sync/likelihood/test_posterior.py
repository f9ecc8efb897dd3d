"""Few objects: what the sampled probabilities promise, and the answer made from them."""

from __future__ import annotations

from math import lgamma

import numpy as np
import pytest

from stiefelsync import datasets, score, synchronise
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood import posterior
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.posterior import (
    _count,
    _resize,
    _size_prior,
    _trust,
    _worth,
    evidence,
    sample_posterior,
)
from stiefelsync.sync.likelihood.sampling import _improve, break_ties, decide, expected_fscore, optimism


def test_kinds_tell_rows_from_columns():
    # Point 0 of object 0 is matched to point 0 of object 1, its point 1 to nobody.
    seen = evidence(MatchTable.of(Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 2]), 2))
    expected = [[0, 0, 5, 2], [0, 0, 3, 4], [5, 3, 0, 0], [2, 4, 0, 0]]
    assert seen.kinds[:4, :4].tolist() == expected
    assert (seen.rows, seen.columns, seen.blocks) == (2, 2, 1)


def test_rows_and_columns_have_rates_of_their_own():
    # Row noise: columns are matched if and only if they have a partner; left-over rows are matched as chance has it.
    problem, truth = datasets.synthetic(400, 3, 0.8, 0.3, rng=1)
    table = MatchTable.of(problem, 400)
    seen = evidence(table)
    member = np.full((200, 400, 3), problem.n_points)
    member[:, truth, table.owner] = np.arange(problem.n_points)
    worth = np.mean(_worth(seen, _count(seen, member), np.random.default_rng(0)), axis=0)
    assert worth[3] - worth[4] > 4  # the column is matched: it has a partner
    assert worth[1] - worth[2] > 4
    assert worth[1] - worth[2] > 2 * (worth[1] - worth[3]) > 0  # rows say less than columns


def test_weights_add_what_they_know():
    z = np.array([-1.0, 0.0, 1.0])
    right, totals = np.tile([10.0, 50.0, 90.0], (500, 1)), np.array([100.0, 100.0, 100.0])
    added = _trust(z, right, totals, np.random.default_rng(0)).mean(axis=0)
    assert np.all(np.diff(added) > 1)
    same = _trust(z, np.tile([50.0, 50.0, 50.0], (500, 1)), totals, np.random.default_rng(0))
    assert np.abs(same.mean(axis=0)).max() < 0.2


def test_hot_chains_come_back_to_large_full_permutations():
    # Chains that learn their rates while hot find p near zero, and then no match is worth anything.
    rng = np.random.default_rng(0)
    truth = np.tile(np.arange(64), 3)
    problem = Matchings.from_labels(truth, [64] * 3)
    ends = {(i, j): problem.pair(i, j).copy() for i, j in ((0, 1), (0, 2), (1, 2))}
    for block in ends.values():
        some = rng.choice(64, 10, replace=False)
        block[some, 1] = np.roll(block[some, 1], 1)
    table = MatchTable.of(Matchings.from_pairs(ends, [64] * 3), 64)
    P = sample_posterior(table, truth, rng=rng, chains=8, sweeps=500, burn=300).mean(axis=0)
    right = P[np.arange(64), 64 + np.arange(64)]
    assert right.mean() > 0.6  # 54 of 64 matches are right; in a chain that has forgotten all, one label in 64
    assert np.array_equal(P, P.T)
    assert P[:64, 64:128].sum(axis=1) == pytest.approx(1)  # full: everybody has one partner


def test_universe_size_follows_from_who_is_seen_twice():
    # Two objects of 60 points share 45 of 75: 60 · 60 / 45 = 80 universe points (Lincoln and Petersen).
    prior = _size_prior(np.array([60, 60]), 150)
    member = np.full((4000, 150, 2), 120)
    member[:, :60, 0] = np.arange(60)
    member[:, 15:75, 1] = np.arange(60, 120)
    moved, size = _resize(member, member < 120, prior, np.random.default_rng(0))
    assert size.min() >= 75
    assert 78 < size.mean() < 83
    assert (moved[:, :75] < 120).any(axis=2).all()


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_universe_too_large_does_no_harm(factor):
    # Room for points without partners used to cost .1 here (seeds not used in the choice of anything).
    scores = []
    for seed in (500, 501):
        problem, truth = datasets.synthetic(30, 5, 0.9, 0.3, rng=seed)
        scores.append(score(synchronise(problem, int(factor * 30), rng=seed).labels, truth).fscore)
    assert np.mean(scores) > 0.9


@pytest.mark.parametrize("seed", [0, 1])
def test_equal_answers_are_told_apart_alike(seed):
    # Of a swap in one of three blocks three labellings make equally much sense; whichever is found, one is returned.
    rng = np.random.default_rng(seed)
    truth = np.tile(np.arange(8), 3)
    problem = Matchings.from_labels(truth, [8] * 3)
    blocks = {(i, j): problem.pair(i, j).copy() for i, j in ((0, 1), (0, 2), (1, 2))}
    for x, block in enumerate(blocks.values()):
        block[[2 * x, 2 * x + 1], 1] = block[[2 * x + 1, 2 * x], 1]
    table = MatchTable.of(Matchings.from_pairs(blocks, [8] * 3), 8)
    found = []
    for which in np.ndindex(3, 3, 3):
        labels = truth.reshape(3, 8).copy()
        for x, i in enumerate(which):
            if i != 2 - x:  # one of the two objects of the wrong block follows it; otherwise nobody does
                labels[i, [2 * x, 2 * x + 1]] = labels[i, [2 * x + 1, 2 * x]]
        found.append(break_ties(table, rng.permutation(8)[labels.ravel()]).tolist())
        assert table.agreeing(np.array(found[-1])).sum() == 18
    assert all(labels == found[0] for labels in found)


def test_decision_leaves_points_alone_rather_than_with_strangers():
    # Three points of one object, two labels in all, and no partner worth having but one.
    table = MatchTable.of(Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 2]), 2)
    P = np.zeros((4, 4))
    P[0, 2] = P[2, 0] = 0.9
    P[1, 3] = P[3, 1] = 0.05
    start = np.array([0, 1, 0, 1])
    labels = decide(P, table, start)
    assert labels.tolist() == [0, -1, 0, -1]
    assert expected_fscore(P, table, labels) == pytest.approx(2 * 0.9 / (1 + 0.95))
    assert expected_fscore(P, table, start) == pytest.approx(2 * 0.95 / (2 + 0.95))


def test_decision_promises_more_than_its_start():
    rng = np.random.default_rng(0)
    problem, truth = datasets.synthetic(8, 4, 0.8, 0.5, rng=0)
    table = MatchTable.of(problem, 8)
    P = rng.random((len(truth),) * 2) ** 4
    P = np.where(table.owner[:, None] != table.owner, (P + P.T) / 2, 0)
    labels = decide(P, table, truth)
    assert expected_fscore(P, table, labels) > expected_fscore(P, table, truth)
    for i in range(4):
        own = labels[table.owner == i]
        assert len(set(own[own >= 0])) == (own >= 0).sum()


def test_labels_look_better_to_the_samples_that_chose_them():
    # Two samples in each half: what they choose promises more than the probabilities that they were drawn by keep.
    rng = np.random.default_rng(0)
    problem, truth = datasets.synthetic(10, 3, 0.8, 0.3, rng=0)
    table = MatchTable.of(problem, 10)
    P = 0.4 * (truth[:, None] == truth) + 0.05
    found, real = [], []
    for _ in range(60):
        halves = np.triu(rng.binomial(2, P, size=(2, *P.shape)) / 2, 1)
        halves += halves.transpose(0, 2, 1)
        labels = decide(halves.mean(axis=0), table, truth)
        found.append(optimism(halves, table, truth))
        real.append(expected_fscore(halves.mean(axis=0), table, labels) - expected_fscore(P, table, labels))
    assert np.mean(real) > 0.05
    assert np.mean(found) == pytest.approx(np.mean(real), rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objects", "instances", "most"), [(3, 60, 0.05), (4, 40, 0.03), (5, 24, 0.03), (10, 12, 0.03)]
)
def test_promised_fscore_is_calibrated(objects, instances, most):
    gaps = []
    for seed in range(1000, 1000 + instances):
        problem, truth = datasets.synthetic(25, objects, 0.7, 0.4, rng=seed)
        result = synchronise(problem, 25, rng=seed)
        gaps.append(result.outcome.details.expected_fscore - score(result.labels, truth).fscore)
    # Of one problem the real fscore differs by .1 from what is expected (three objects), .09 (four) or .06 (five): of
    # all of them by .011 to .014 for chance alone. Three objects are promised a little too much: .03 here.
    assert abs(np.mean(gaps)) < most


def test_full_permutations_without_weights_leave_nobody_out():
    problem, _ = datasets.shapes.networks(points=16, weights=False, rng=0)
    assert (synchronise(problem, 16, rng=0).labels >= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_what_kinds_are_worth_written_out(seed):
    """P(what was seen | same universe point) over P(… | not), with rates drawn in the order in which they are named."""
    problem, truth = datasets.synthetic(12, 4, 0.7, 0.3, rng=seed)
    table = MatchTable.of(problem, 12)
    seen = evidence(table)
    member = np.full((2, 12, 4), problem.n_points)
    member[:, truth, table.owner] = np.arange(problem.n_points)
    counts = _count(seen, member)
    found, again = _worth(seen, counts, np.random.default_rng(seed)), np.random.default_rng(seed)

    def rate(yes, no, prior=0.5):
        return again.beta(np.maximum(yes, 0) + prior, np.maximum(no, 0) + prior).clip(1e-3, 0.999)

    _, both, row, column, neither, right = counts.T
    present, M = both + row + column + neither + right, problem.n_matches
    loose_rows, loose_columns = M - right - both - row, M - right - both - column
    p = rate(right, present - right, 1.0)
    u1, v1 = rate(both + row, column + neither), rate(both + column, row + neither)
    u0, v0 = (
        rate(loose, every - present - loose)
        for loose, every in ((loose_rows, seen.rows), (loose_columns, seen.columns))
    )
    for kind, (row_matched, column_matched) in enumerate([(1, 1), (1, 0), (0, 1), (0, 0)], 1):
        same = (u1 if row_matched else 1 - u1) * (v1 if column_matched else 1 - v1) * (1 - p)
        other = (u0 if row_matched else 1 - u0) * (v0 if column_matched else 1 - v0)
        np.testing.assert_allclose(found[:, kind], np.log(same / other))
    wrong = (M - right) / seen.blocks + 0.5
    np.testing.assert_allclose(found[:, 5], np.log(p * wrong / (u0 * v0)))


def test_what_weights_add_written_out():
    """Means of the normal scores of right and wrong matches, each drawn about its estimate, and one variance."""
    rng = np.random.default_rng(3)
    z, totals = np.array([-1.2, -0.4, 0.3, 1.4]), np.array([20.0, 30.0, 25.0, 15.0])
    right = np.array([[4.0, 10.0, 15.0, 14.0], [20.0, 30.0, 25.0, 15.0], [1.0, 0.0, 1.0, 15.0]])
    noise = np.random.default_rng(3)
    drawn = noise.standard_normal(3), noise.standard_normal(3)
    found = _trust(z, right, totals, rng)
    for c in range(3):
        wrong = totals - right[c]
        n, w = right[c].sum(), wrong.sum()
        one, two = (right[c] @ z) / (n + 1), (wrong @ z) / (w + 1)
        variance = max((totals @ z**2 - n * one**2 - w * two**2) / totals.sum(), 0.05)
        one, two = one + drawn[0][c] * np.sqrt(variance / (n + 1)), two + drawn[1][c] * np.sqrt(variance / (w + 1))
        slope = min(max((one - two) / variance, 0.0), 4.0)
        np.testing.assert_allclose(found[c], [slope * (x - (one + two) / 2) for x in z])


def test_universe_sizes_a_priori_written_out():
    """(d − 1)! Π B(n_i + 1, d − n_i + 1), and d! / (d − t)! ways to name t tracks by d labels, 1/d a priori."""
    sizes = np.array([3, 5, 4])
    prior = _size_prior(sizes, 9)
    assert np.isneginf(prior[:5]).all()
    for d in range(5, 10):
        expected = lgamma(d) + sum(lgamma(n + 1) + lgamma(d - n + 1) - lgamma(d + 2) for n in sizes)
        assert prior[d] == pytest.approx(expected)
    # Six labels used of nine: sizes below six are impossible, others have the chances of the formula.
    member = np.full((30_000, 9, 3), 12)
    member[:, [0, 2, 3, 5, 6, 8], 0] = np.arange(6)
    moved, drawn = _resize(member, member < 12, prior, np.random.default_rng(0))
    assert moved[0, :, 0].tolist() == [0, 1, 2, 3, 4, 5, 12, 12, 12]
    chance = np.array([np.exp(prior[d] - lgamma(d - 6 + 1)) if d >= 6 else 0.0 for d in range(10)])
    np.testing.assert_allclose(np.bincount(drawn, minlength=10) / 30_000, chance / chance.sum(), atol=0.01)


def test_pairs_of_equal_labels_are_counted_by_kind():
    problem, _ = datasets.synthetic(6, 4, 0.8, 0.4, rng=5)
    seen = evidence(MatchTable.of(problem.with_weights(np.arange(1.0, problem.n_matches + 1)), 6))
    rng, m = np.random.default_rng(0), problem.n_points
    member = np.full((3, 6, 4), m)
    for chain in range(3):
        for i in range(4):
            own = np.flatnonzero(problem.point_objects == i)
            member[chain, rng.permutation(6)[: len(own)], i] = own
    counts = _count(seen, member)
    for chain in range(3):
        kinds = [seen.kinds[a, b] for row in member[chain] for t, a in enumerate(row) for b in row[t + 1 :]]
        assert counts[chain].tolist() == np.bincount(kinds, minlength=counts.shape[1]).tolist()
    # Classes of weights: as many matches in each, by rank, and the mean normal score of each.
    z = MatchTable.of(problem.with_weights(np.arange(1.0, problem.n_matches + 1)), 6).weight_scores
    M = problem.n_matches
    classes = [rank * min(24, M) // M for rank in range(M)]
    assert seen.totals.tolist() == np.bincount(classes).tolist()
    mean = [np.mean([z[t] for t in range(M) if classes[t] == c]) for c in sorted(set(classes))]
    np.testing.assert_allclose(seen.scores, mean)


@pytest.mark.parametrize(("k", "d", "chains"), [(3, 4, 24), (5, 150, 16), (10, 100, 8)])
def test_chains_are_fewer_where_each_costs_more(k, d, chains, monkeypatch):
    # 60,000 / (k²·d), even, between 8 and 24.
    truth, made = np.tile(np.arange(d), k), []
    monkeypatch.setattr(posterior, "_sweep", lambda seen, member, *_: made.append(len(member)))
    table = MatchTable.of(Matchings.from_labels(truth, [d] * k), d)
    sample_posterior(table, truth, rng=np.random.default_rng(0), sweeps=1, burn=0)
    sample_posterior(table, truth, rng=np.random.default_rng(0), sweeps=1, burn=0, chains=4)
    assert made == [chains, 4]


def test_what_differs_by_less_than_a_step_of_the_grid_decides_nothing():
    # One point may join either of two others; below 2⁻³¹ it does not matter which is better.
    table = MatchTable.of(Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2]), 2)
    found = []
    for better in (0, 1):
        P = np.zeros((4, 4))
        P[0, 2] = P[1, 2] = 0.75
        P[better, 2] += 0.4 * 2.0**-30
        found.append(_improve(P + P.T, table, np.array([0, 1, -1, -1]), 0.5)[2])
    assert found[0] == found[1]
    P[better, 2] += 2.0**-30
    assert _improve(P + P.T, table, np.array([0, 1, -1, -1]), 0.5)[2] == better


@pytest.mark.parametrize("names", [(0, 1), (1, 0), (3, 2)])
def test_a_pass_begins_with_the_labels_given_whatever_their_numbers(names):
    # The point of object 0 prefers object 1 to object 2, and these two exclude each other.
    table = MatchTable.of(Matchings.from_labels([0, 0, 0], [1, 1, 1]), 4)
    P = np.array([[0, 0.75, 0.65], [0.75, 0, 0], [0.65, 0, 0]])
    labels = _improve(P, table, np.array([-1, *names]), 1.0, max_iter=1)
    assert labels[0] == labels[1] == names[0]
    assert labels[2] != labels[0]
