"""The parts of `fast` and `accurate`: start, likelihood, Gauss–Seidel, mean field, merging, posterior."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import betaln

from stiefelsync import datasets, score
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import objective
from stiefelsync.stiefel import sizes
from stiefelsync.stiefel.block import CHEBYSHEV, block_iteration
from stiefelsync.stiefel.product import sparse_product
from stiefelsync.stiefel.result import Subspace
from stiefelsync.stiefel.rotation import rotate
from stiefelsync.sync.likelihood.counts import block_counts, level, near, soft_block_counts
from stiefelsync.sync.likelihood.gauss_seidel import State, ascend, assign, gauss_seidel, withdraw
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.mean_field import mean_field, sinkhorn
from stiefelsync.sync.likelihood.merge_labels import merge
from stiefelsync.sync.likelihood.model import fresh, log_likelihood, log_odds
from stiefelsync.sync.likelihood.reliability import beta_fit
from stiefelsync.sync.likelihood.sampling import decide, expected_fscore, pair_scores
from stiefelsync.sync.methods import _spectral_start as start
from stiefelsync.sync.methods._spectral_start import spectral_start


def random_labels(matchings, d, rng):
    return np.concatenate([rng.permutation(d)[:n] for n in matchings.sizes])


@pytest.fixture(params=["partial", "full", "sparse graph"])
def problem(request):
    """A problem with its truth: partial objects, full permutations, or few compared pairs."""
    observed = 1.0 if request.param == "full" else 0.6
    matchings, truth = datasets.synthetic(12, 9, observed, 0.4, rng=3)
    if request.param == "sparse graph":
        i, j = matchings.pair_objects[matchings.match_pairs].T
        matchings = matchings.keep((j - i) <= 3)
    return matchings, truth


def pair_score(table, rates, a, b):
    """T_ab by the formula of the module, from scratch."""
    i, j = table.owner[a], table.owner[b]
    W = table.matrix(rates.right).toarray()
    matched = table.by_object(np.ones(len(table.indices))).toarray() > 0
    seen = np.zeros(matched.shape) if rates.seen is None else table.by_object(rates.seen).toarray()
    X_aj, X_bi = rates.size[i, j] + seen[a, j] * matched[a, j], rates.size[j, i] + seen[b, i] * matched[b, i]
    return 0.0 if i == j else W[a, b] + 0.5 * X_aj + 0.5 * X_bi


@pytest.mark.parametrize("with_blocks", [False, True])
def test_all_forms_of_the_score_agree(problem, with_blocks):
    matchings, _ = problem
    table = MatchTable.of(matchings, 14)
    labels = random_labels(matchings, 14, np.random.default_rng(0))
    counts = block_counts(table, labels)
    rates = log_odds(table, counts, counts if with_blocks else None)
    U = table.one_hot(labels)
    soft = rates.scores(U, table.matrix(rates.right) @ U)
    hard = State(table, labels, rates).scores(0, matchings.n_objects)
    np.testing.assert_allclose(hard, soft, atol=1e-9)
    T = pair_scores(table, rates)
    k = matchings.n_objects
    O = table.occupancy(labels)
    others, n = O.sum(axis=0) - O, near(table, O)
    prior = rates.prior(others, k) + np.zeros((k, 14))
    if not table.complete:
        prior = rates.prior_near(level(table, n), fresh(table, O, n), others > 0)
    np.testing.assert_allclose(T @ U + prior[table.owner], soft, atol=1e-9)
    for a, b in np.random.default_rng(1).integers(matchings.n_points, size=(20, 2)):
        assert T[a, b] == pytest.approx(pair_score(table, rates, a, b), abs=1e-9)


def test_soft_and_hard_counts_agree_on_hard_labels(problem):
    matchings, truth = problem
    table = MatchTable.of(matchings, 12)
    U = table.one_hot(truth)
    hard, soft = block_counts(table, truth), soft_block_counts(table, U, table.matrix(table.weights) @ U)
    np.testing.assert_allclose(soft.rates, hard.rates)
    np.testing.assert_allclose(soft.holders, hard.holders)


def test_hard_labels_are_multiplied_as_a_matrix_is(problem):
    matchings, _ = problem
    matchings = matchings.with_weights(np.random.default_rng(1).random(matchings.n_matches) + 0.1)
    table = MatchTable.of(matchings, 14)
    labels = random_labels(matchings, 14, np.random.default_rng(0))
    labels[::5] = -1
    W = table.matrix(table.weights)
    np.testing.assert_allclose(W.toarray() + np.eye(len(labels)), _mean_one(matchings), rtol=1e-12)
    assert all((np.diff(table.indices[a:b]) > 0).all() for a, b in pairwise(table.indptr))
    expected = W @ table.one_hot(labels)
    np.testing.assert_allclose(table.product(labels, table.weights), expected, rtol=1e-12)
    a, b = matchings.offsets[[2, 5]].tolist()
    np.testing.assert_allclose(table.product(labels, table.weights, a, b), expected[a:b], rtol=1e-12)


def _mean_one(matchings):
    return matchings.with_weights(matchings.weights / matchings.weights.mean()).to_matrix().toarray()


def test_counts_follow_the_labels():
    matchings, truth = datasets.synthetic(10, 6, 0.7, 0.3, rng=0)
    table = MatchTable.of(matchings, 10)
    labels = truth.copy()
    first = block_counts(table, labels).right.sum()
    labels[: matchings.sizes[0]] = -1
    assert block_counts(table, labels).right.sum() < first
    assert block_counts(table, truth).right.sum() == first


def test_counts_by_hand():
    # Objects {0: a b}, {1: a b}, {2: a}; the match b-b of (0, 1) is missing, that of 0's b with 2's a is wrong.
    matchings = Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[1, 0]], (1, 2): [[0, 0]]}, [2, 2, 1])
    counts = block_counts(MatchTable.of(matchings, 2), np.array([0, 1, 0, 1, 0]))
    assert counts.right.tolist() == [1, 0, 1]
    assert counts.present.tolist() == [2, 1, 1]
    # Matched rows with a partner: (0,1) both readings 2; (0,2): 0's a is unmatched, 2's a is matched; (1,2): 2.
    assert (counts.found, counts.matched, counts.rows) == (5, 6, 10)


def test_gauss_seidel_never_lowers_the_objective_and_ends_where_no_object_gains(problem):
    matchings, _ = problem
    d = 12
    labels = random_labels(matchings, d, np.random.default_rng(1))
    values = [objective(labels, matchings)]
    for _ in range(6):
        labels, _ = gauss_seidel(matchings, labels, d, max_sweeps=1)
        values.append(objective(labels, matchings))
    assert all(b >= a for a, b in pairwise(values))
    assert values[-1] > values[0]
    labels, _ = gauss_seidel(matchings, labels, d)
    WP = matchings.to_matrix() @ MatchTable.of(matchings, d).one_hot(labels)
    for a, b in zip(matchings.offsets[:-1], matchings.offsets[1:], strict=True):
        own = WP[a:b] - np.eye(d)[labels[a:b]]
        assert own[np.arange(b - a), assign(own)].sum() <= own[np.arange(b - a), labels[a:b]].sum() + 1e-6


@pytest.mark.parametrize(("observed", "seed"), [(0.6, 1), (1.0, 3)])
def test_ascent_raises_the_log_posterior_at_fixed_rates(observed, seed):
    # So few points that some pair may have no match: seeds where all were compared.
    matchings, _ = datasets.synthetic(12, 9, observed, 0.4, rng=seed)
    assert MatchTable.of(matchings, 14).complete
    table = MatchTable.of(matchings, 14)
    labels = random_labels(matchings, 14, np.random.default_rng(2))
    rates = log_odds(table, block_counts(table, labels))
    T = pair_scores(table, rates)
    p, kappa = rates.popularity

    def value(labels):
        U = table.one_hot(labels)
        s, k = U.sum(axis=0), matchings.n_objects
        prior = betaln(s + kappa * p, k - s + kappa * (1 - p)).sum() if np.isfinite(kappa) else 0.0
        return 0.5 * np.sum(U * (T @ U)) + prior

    values = [value(labels)]
    for _ in range(5):
        labels, _ = ascend(table, labels, rates, max_sweeps=1)
        values.append(value(labels))
    assert all(b >= a - 1e-6 for a, b in pairwise(values))
    assert values[-1] > values[0] + 1


def test_only_points_without_support_and_with_evidence_against_them_are_withdrawn():
    matchings = Matchings.from_labels([0, 1, 0, 1, 0, 2, 0, 1], [2, 2, 2, 2])
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    assert withdraw(MatchTable.of(matchings, 2), labels).tolist() == [0, 1, 0, 1, 0, -1, 0, 1]


def test_likelihood_prefers_the_truth_to_a_label_swap(problem):
    matchings, truth = problem
    table = MatchTable.of(matchings, 12)
    swapped = truth.copy()
    swapped[:2] = truth[1::-1]
    assert log_likelihood(table, truth) > log_likelihood(table, swapped)


def test_beta_fit_recovers_a_spread():
    rng = np.random.default_rng(0)
    rates = rng.beta(6, 4, 20_000)
    p, kappa = beta_fit(rng.binomial(30, rates).astype(float), np.full(20_000, 30.0), least=0.5)
    assert p == pytest.approx(0.6, abs=0.01)
    assert kappa == pytest.approx(10, rel=0.1)


def test_sinkhorn_rows_are_distributions_and_columns_at_most_one(problem):
    matchings, _ = problem
    table = MatchTable.of(matchings, 12)
    S = 3 * np.random.default_rng(0).standard_normal((matchings.n_points, 12))
    U = sinkhorn(S, table, max_iter=500, tol=1e-6)
    np.testing.assert_allclose(U.sum(axis=1), 1)
    assert (table.membership @ U).max() <= 1 + 1e-5
    assert U.min() >= 0


def test_mean_field_repairs_and_agrees_on_certain_data():
    matchings, truth = datasets.synthetic(10, 12, 0.7, 0.2, rng=0)
    table = MatchTable.of(matchings, 10)
    labels = truth.copy()
    labels[: matchings.sizes[0]] = np.random.default_rng(0).permutation(10)[: matchings.sizes[0]]
    U, rounds = mean_field(table, labels)
    assert np.array_equal(U.argmax(axis=1), truth)
    assert rounds < 30


def test_merge_joins_the_halves_of_every_point():
    matchings, truth = datasets.synthetic(10, 16, 0.8, 0.3, rng=1)
    owner = matchings.point_objects
    halves = truth + 10 * (owner >= 8)
    labels, value = merge(MatchTable.of(matchings, 20), halves)
    assert score(labels, truth).fscore == 1.0
    assert value > log_likelihood(MatchTable.of(matchings, 20), halves)


def test_rotation_finds_the_sparse_basis_and_never_loses_g():
    rng = np.random.default_rng(0)
    P = np.eye(6)[rng.integers(6, size=60)]
    V = np.linalg.qr(P @ np.linalg.qr(rng.standard_normal((6, 6)))[0])[0]
    U = rotate(V)
    assert np.sum(U**3) > np.sum(V**3)
    assert ((np.abs(U) > 1e-3 * np.abs(U).max()).sum(axis=1) == 1).all()


def test_filtered_block_iteration_agrees_with_eigh():
    matchings, _ = datasets.synthetic(20, 30, 0.7, 0.5, rng=0)
    N = matchings.to_matrix() / 30
    values, vectors = np.linalg.eigh(N.toarray())
    V = np.random.default_rng(0).standard_normal((N.shape[0], 26))
    multiply = sparse_product(N.tocsr())
    V = block_iteration(multiply, multiply(V), 20, filtered=CHEBYSHEV, tol=1e-10, max_products=200).V
    assert np.trace(V.T @ (N @ V)) == pytest.approx(values[-20:].sum(), rel=1e-6)
    np.testing.assert_allclose(np.linalg.svd(V.T @ vectors[:, -20:])[1], 1, atol=1e-3)


@pytest.mark.parametrize("c", [6, 10, 20])
def test_a_start_may_begin_near_another_of_any_width_and_saves_products_at_the_same(monkeypatch, c):
    matchings, truth = datasets.synthetic(10, 80, 1.0, 0.7, rng=0)
    table = MatchTable.of(matchings, 10)
    products = []

    def counted(W, **how):
        multiply = sparse_product(W, **how)
        return lambda U, **where: (products.append(1), multiply(U, **where))[1]

    monkeypatch.setattr(start, "sparse_product", counted)
    A, rng = table.matrix(table.weights), np.random.default_rng(0)
    near = spectral_start(A, c, rng=rng)
    products.clear()
    assert score(spectral_start(A, 10, rng=rng).argmax(axis=1), truth).fscore == 1.0
    cold = len(products)
    assert score(spectral_start(A, 10, rng=rng, near=near).argmax(axis=1), truth).fscore == 1.0
    assert c != 10 or len(products) - cold < cold


def test_the_first_product_of_a_large_problem_is_that_with_one_random_sign_in_every_row(monkeypatch):
    monkeypatch.setattr(sizes, "_AT_A_TIME", 7)  # of a sketch at a time
    matchings, _ = datasets.synthetic(5, 4, 1.0, 0.3, rng=0)
    N, shift = matchings.to_matrix().tocsr().astype(np.float32), np.arange(20, dtype=np.float32)
    rng = np.random.default_rng(1)
    column, sign = rng.integers(6, size=20), rng.choice([-1, 1], 20)
    S = np.zeros((20, 6))
    S[np.arange(20), column] = sign
    found = start._sketch(N, shift, 6, np.random.default_rng(1))
    np.testing.assert_array_equal(found, (N.toarray() + np.diag(shift)) @ S)
    widths = [start._width(m, d, small) for m, d, small in ((999, 150, 0), (999, 157, 0), (999, 150, 1), (20, 18, 0))]
    assert widths == [160, 176, 168, 20]


@pytest.mark.parametrize("failure", ["raises", "nan"])
def test_a_breakdown_in_single_precision_takes_the_exact_route(monkeypatch, failure):
    matchings, truth = datasets.synthetic(10, 80, 1.0, 0.3, rng=0)
    table = MatchTable.of(matchings, 10)

    def broken(multiply, V, d, **options):
        if failure == "raises":
            raise np.linalg.LinAlgError("no")
        return Subspace(np.full((len(V), d), np.nan), np.full(d, np.nan))

    monkeypatch.setattr(start, "block_iteration", broken)
    U = spectral_start(table.matrix(table.weights), 10, rng=np.random.default_rng(0))
    assert score(U.argmax(axis=1), truth).fscore == 1.0


def test_decision_maximises_the_expected_fscore():
    rng = np.random.default_rng(0)
    matchings = Matchings.from_labels([0, 1, 0, 1, 0, 1], [2, 2, 2])
    table = MatchTable.of(matchings, 3)
    P = rng.random((6, 6))
    P = (P + P.T) / 2
    other = table.owner[:, None] != table.owner
    start = np.array([0, 1, 0, 1, 0, 1])
    labels = decide(P, table, start)
    promised = expected_fscore(P, table, labels)
    U = table.one_hot(labels)
    kept = ((U @ U.T) > 0) & other
    assert promised == pytest.approx(2 * P[kept].sum() / (kept.sum() + P[other].sum()))
    assert promised >= expected_fscore(P, table, start)
