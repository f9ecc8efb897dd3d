"""Exchanges of two labels within a group of objects: the couplings and cuts literally, and what they repair."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from stiefelsync import datasets, score
from stiefelsync.sync.likelihood import exchange as module
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.exchange import _Entries, _moves, exchange, lightest_cut
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood, log_odds
from stiefelsync.sync.likelihood.sampling import pair_scores

D = 6


@pytest.fixture(params=["partial", "full", "weighted", "few pairs"])
def case(request):
    """A problem, labels with some points unmatched, and the rates at them."""
    problem, truth = datasets.synthetic(5, 7, 1.0 if request.param == "full" else 0.6, 0.4, rng=2)
    rng = np.random.default_rng(0)
    if request.param == "weighted":
        problem = problem.with_weights(rng.random(problem.n_matches) + 0.5)
    if request.param == "few pairs":
        i, j = problem.pair_objects[problem.match_pairs].T
        problem = problem.keep(j - i <= 3)
    labels = np.where(rng.random(len(truth)) < (0 if request.param == "full" else 0.1), -1, truth).astype(np.int64)
    table = MatchTable.of(problem, D)
    return problem, labels, table, log_odds(table, block_counts(table, labels))


def literal_coupling(problem, labels, T, one, two):
    """J_ij = Σ_{a ∈ i, b ∈ j} T_ab σ_a σ_b over the points of the two labels."""
    sign = np.select([labels == one, labels == two], [1.0, -1.0], 0.0)
    owner, k = problem.point_objects, problem.n_objects
    J = np.zeros((k, k))
    for a, b in np.ndindex(T.shape):
        if owner[a] != owner[b]:
            J[owner[a], owner[b]] += T[a, b] * sign[a] * sign[b]
    return J


def test_couplings_are_sums_of_pair_scores(case):
    problem, labels, table, rates = case
    entries, T = _Entries(table, labels, rates), pair_scores(table, rates)
    for one, two in combinations(range(D), 2):
        objects, J = entries.coupling(one, two)
        held = sorted(set(problem.point_objects[(labels == one) | (labels == two)].tolist()))
        assert objects.tolist() == held
        assert entries.holders(np.array([[one, two]])).tolist() == [len(held)]
        expected = literal_coupling(problem, labels, T, one, two)[np.ix_(held, held)]
        off = ~np.eye(len(held), dtype=bool)
        np.testing.assert_allclose(J[off], expected[off], atol=1e-9)


def test_labels_with_the_largest_share_of_matches_come_first(case):
    _, labels, table, rates = case
    W = table.matrix(rates.right).toarray()
    between = np.array([[W[np.ix_(labels == c, labels == e)].sum() for e in range(D)] for c in range(D)])
    share = {
        (c, e): between[c, e] / np.sqrt((between[c, c] + 1) * (between[e, e] + 1))
        for c, e in combinations(range(D), 2) if between[c, e] > 0
    }  # fmt: skip
    found = [tuple(pair) for pair in _Entries(table, labels, rates).joined().tolist()]
    assert set(found) == set(share)
    shares = [share[pair] for pair in found]
    assert shares == pytest.approx(sorted(shares, reverse=True))


@pytest.mark.parametrize("seed", range(5))
def test_shares_count_the_matches_inside_both_labels_and_one_more(seed):
    # Labels at random: some have no match inside, and the one more decides on the order.
    rng = np.random.default_rng(seed)
    problem, truth = datasets.synthetic(8, 6, 0.8, 0.2, rng=seed)
    problem = problem.with_weights(rng.random(problem.n_matches) + 0.1)
    table = MatchTable.of(problem, 12)
    rates = log_odds(table, block_counts(table, truth))
    labels = np.concatenate([rng.permutation(12)[:n] for n in problem.sizes])
    W = table.matrix(rates.right).toarray()
    between = np.array([[W[np.ix_(labels == c, labels == e)].sum() for e in range(12)] for c in range(12)])
    share = {
        (c, e): between[c, e] / np.sqrt((between[c, c] + 1) * (between[e, e] + 1))
        for c, e in combinations(range(12), 2) if between[c, e] > 0
    }  # fmt: skip
    found = [tuple(pair) for pair in _Entries(table, labels, rates).joined().tolist()]
    assert found == sorted(share, key=lambda pair: -share[pair])
    assert (between.diagonal() == 0).any()


@pytest.mark.parametrize("seed", range(12))
def test_the_gain_is_that_of_the_cut_and_planted_cuts_are_the_lightest(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    side = rng.random(n) < 0.5
    if seed % 3:  # two halves that hold together and repel each other, with noise
        J = np.where(side[:, None] == side, 1.0, -0.8) + 0.2 * rng.standard_normal((n, n))
    else:
        J = rng.standard_normal((n, n))
    J = np.triu(J, 1) + np.triu(J, 1).T

    def cut(group):
        return J[np.ix_(group, ~group)].sum()

    gain, group = lightest_cut(J)
    assert gain == pytest.approx(-cut(group), abs=1e-9)
    assert gain >= 0
    best = max(-cut(np.array([bool(code >> t & 1) for t in range(n)])) for code in range(2**n))
    assert gain <= best + 1e-9
    if seed % 3 and side.any() and not side.all():
        assert gain == pytest.approx(best)


def test_couplings_that_only_attract_need_no_cut():
    assert lightest_cut(np.array([[0.0, 1.0], [1.0, 0.0]]))[0] == 0
    assert lightest_cut(np.zeros((1, 1)))[0] == 0
    gain, group = lightest_cut(np.array([[0.0, -1.0], [-1.0, 0.0]]))
    assert (gain, group.sum()) == (1.0, 1)


def confused(error):
    """Two labels exchanged in five of twelve objects: no object gains by changing alone."""
    problem, truth = datasets.synthetic(5, 12, 1.0, error, rng=1)
    labels = truth.copy()
    group = problem.point_objects < 5
    labels[group & (truth == 0)], labels[group & (truth == 1)] = 1, 0
    return problem, truth, labels, group


@pytest.mark.parametrize("error", [0.0, 0.3])
def test_a_group_that_is_exchanged_is_found_and_put_right(error):
    problem, truth, labels, _ = confused(error)
    table = MatchTable.of(problem, 5)
    moves = _moves(table, labels, log_odds(table, block_counts(table, labels)), np.ones(5, dtype=bool))
    best = max(moves, key=lambda move: move.gain)
    assert {best.one, best.two} == {0, 1}
    assert np.flatnonzero(best.group).tolist() in (list(range(5)), list(range(5, 12)))
    better, value = exchange(table, labels)
    assert score(better, truth).fscore == 1.0
    assert value == pytest.approx(log_likelihood(table, better))
    assert value > log_likelihood(table, labels)
    assert exchange(table, better)[0].tolist() == better.tolist()


def test_the_exchange_alone_puts_it_right(monkeypatch):
    # Without the refinement after it, which would mend a bungled exchange, too.
    problem, truth, labels, group = confused(0.0)
    monkeypatch.setattr(module, "refine", lambda table, labels, blocks=None: (labels, 0))
    better, _ = exchange(MatchTable.of(problem, 5), labels)
    assert score(better, truth).fscore == 1.0
    moved = better != labels
    assert any(np.array_equal(moved, side & (truth < 2)) for side in (group, ~group))


def test_labels_that_did_not_change_are_not_looked_at_again(monkeypatch):
    problem, _, labels, _ = confused(0.3)
    table = MatchTable.of(problem, 5)
    rates = log_odds(table, block_counts(table, labels))
    only = np.array([False, False, True, False, False])
    assert all(2 in (move.one, move.two) for move in _moves(table, labels, rates, only))
    assert _moves(table, labels, rates, np.zeros(5, dtype=bool)) == []
    monkeypatch.setattr(module, "_WORK", 0)
    assert _moves(table, labels, rates, np.ones(5, dtype=bool)) == []


@pytest.mark.parametrize(("n", "tries"), [(1, 1), (2, 3), (3, 4)])
def test_moves_that_fail_together_are_tried_one_by_one_and_then_no_more(n, tries, monkeypatch):
    problem, truth = datasets.synthetic(8, 6, 1.0, 0.0, rng=0)
    table, tried = MatchTable.of(problem, 8), []
    moves = [module._Move(9.0 - t, 2 * t, 2 * t + 1, np.arange(6) < 3) for t in range(n)]
    found = iter([moves])
    monkeypatch.setattr(module, "_moves", lambda *_: next(found, []))
    monkeypatch.setattr(module, "refine", lambda table, labels, blocks: (tried.append(labels) or labels, 0))
    labels, value = exchange(table, truth)
    np.testing.assert_array_equal(labels, truth)
    assert value == pytest.approx(log_likelihood(table, truth))
    assert len(tried) == tries
    changed = [sorted(set(truth[some != truth].tolist())) for some in tried]
    alone = [[2 * t, 2 * t + 1] for t in range(n)]
    assert changed == ([list(range(2 * n)), *alone] if n > 1 else alone)


def test_labels_that_moved_are_looked_at_again_and_no_others(monkeypatch):
    problem, truth, labels, _ = confused(0.0)
    table, asked = MatchTable.of(problem, 5), []
    in_group = np.arange(12) < 5
    found = iter([[module._Move(9.0, 0, 1, in_group)]])
    monkeypatch.setattr(
        module, "_moves", lambda table, labels, rates, changed: asked.append(changed.copy()) or next(found, [])
    )
    monkeypatch.setattr(module, "refine", lambda table, labels, blocks=None: (labels, 0))
    better, _ = exchange(table, labels)
    np.testing.assert_array_equal(better, truth)
    assert [changed.tolist() for changed in asked] == [[True] * 5, [True, True, False, False, False]]
