"""Algorithm 1: its guarantees, lemma by lemma."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from stiefelsync import ConvergenceWarning, sparse_stiefel, two_stage
from stiefelsync.stiefel.operators import as_operator
from stiefelsync.stiefel.orthonormal import orthonormalise
from stiefelsync.stiefel.result import Status
from stiefelsync.stiefel.secondary import gradient_matrix, secondary
from stiefelsync.stiefel.steps import STEPS
from tests.stiefel.planted import clusters, distance, scattered, spectrum, top
from tests.tolerances import rounding

EVERY_STEP = pytest.mark.parametrize("step", list(STEPS))


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@EVERY_STEP
def test_reaches_the_dominant_subspace_and_the_optimal_objective(step, rng):
    W = spectrum(np.r_[10.0, 9.0, 8.5, 8.0, np.linspace(3.0, -2.0, 46)], rng)
    values, V = top(W, 4)
    result = sparse_stiefel(W, 4, step=step, tol=1e-15, max_iter=400, rng=0)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(values.sum(), rel=1e-8)
    assert distance(result.U, V) < 1e-5
    assert result.orthogonality_error() < rounding(50)
    assert result.residual(W) < 1e-6


@EVERY_STEP
def test_minimises(step, rng):
    W = spectrum(np.r_[np.linspace(5.0, 2.0, 30), -4.0, -5.0, -6.0], rng)
    result = sparse_stiefel(W, 3, sense="min", step=step, tol=1e-14, rng=0)
    assert result.objective == pytest.approx(-15.0, rel=1e-8)
    assert result.history.objective[-1] == result.objective


@EVERY_STEP
def test_lemma_3_iterates_span_what_orthogonal_iteration_spans(step, rng):
    W = spectrum(np.r_[np.full(5, 6.0) + rng.random(5), rng.random(55) * 3], rng)
    U0 = rng.standard_normal((60, 5))
    condition = np.linalg.cond(top(W, 5)[1].T @ U0)  # how much the start has of every leading eigenvector

    def iterates(kind):
        kept = []
        sparse_stiefel(W, 5, step=kind, U0=U0, tol=1e-13, max_iter=30, callback=lambda s: kept.append(s.U.copy()))
        return kept

    ours, plain = iterates(step), iterates("none")
    for U, V in zip(ours, plain, strict=False):
        assert distance(U, V) < rounding(60, "iteration") * condition


def test_lemma_4_within_the_dominant_subspace_the_update_is_a_rotation(rng):
    W = clusters(6, 8, rng) / 8  # six eigenvalues equal to one, the rest zero
    U = orthonormalise(top(W, 6)[1] @ np.linalg.qr(rng.standard_normal((6, 6)))[0])[0]
    Z = STEPS["gradient"](U, gradient_matrix(U), 3)
    Q, R = orthonormalise(Z)
    U_next, R_next = orthonormalise(W @ U @ Z)
    np.testing.assert_allclose(U_next, U @ Q, atol=rounding(48) * np.linalg.cond(Z))
    np.testing.assert_allclose(R_next, R, atol=rounding(48) * np.linalg.norm(Z))


@EVERY_STEP
@pytest.mark.parametrize("p", [3, 4, 5])
def test_Z_has_full_rank(step, p, rng):
    for _ in range(20):
        U = orthonormalise(rng.standard_normal((30, 6)))[0]
        Z = STEPS[step](U, gradient_matrix(U, p), p)
        assert Z is None or np.linalg.svd(Z, compute_uv=False)[-1] > 1e-3


def test_gradient_step_has_largest_entry_one(rng):
    U = orthonormalise(rng.standard_normal((30, 6)))[0]
    Z = STEPS["gradient"](U, gradient_matrix(U), 3)
    assert abs(Z - np.eye(6)).max() == pytest.approx(1.0)
    np.testing.assert_allclose(Z + Z.T, 2 * np.eye(6), atol=rounding(6, "product"))


@pytest.mark.parametrize("step", ["gradient", "line-search", "polar"])
@pytest.mark.parametrize("p", [3, 4])
def test_secondary_objective_exceeds_orthogonal_iteration(step, p, rng):
    W = clusters(8, 12, rng, noise=0.1)
    plain = sparse_stiefel(W, 8, step="none", p=p, rng=1)
    ours = sparse_stiefel(W, 8, step=step, p=p, extra_iter=20, rng=1)
    assert ours.secondary > 1.2 * plain.secondary
    assert ours.objective == pytest.approx(plain.objective, rel=1e-3)


def test_toy_example_needs_both_criteria():
    W = np.diag([1.0, 1.0, 1.0, 0.5, 0.5, 0.5])
    # The sparsest solution is three unit vectors: g = 3.
    early = [sparse_stiefel(W, 3, rng=seed).secondary for seed in range(10)]
    both = [sparse_stiefel(W, 3, criterion="both", rng=seed).secondary for seed in range(10)]
    assert np.mean(early) < 2.9
    assert min(both) > 2.999


def test_extra_iterations_follow_convergence(rng):
    W = clusters(5, 6, rng)
    short, longer = (sparse_stiefel(W, 5, extra_iter=n, rng=3) for n in (0, 10))
    assert longer.n_iter == short.n_iter + 10
    assert longer.secondary > short.secondary


def test_history_has_one_entry_per_update_and_ends_at_the_result(rng):
    W = clusters(5, 6, rng, noise=0.05)
    result = sparse_stiefel(W, 5, rng=0)
    h = result.history
    assert len(h.objective) == len(h.secondary) == len(h.seconds) == result.n_iter
    assert h.objective[-1] == pytest.approx(result.objective)
    assert h.secondary[-1] == pytest.approx(result.secondary)
    assert (np.diff(h.seconds) >= 0).all()


def test_primary_objective_is_monotone_for_psd_matrices(rng):
    W = spectrum(np.linspace(10.0, 0.0, 40), rng)
    h = sparse_stiefel(W, 4, tol=1e-6, rng=0).history.objective
    assert len(h) > 20
    assert (np.diff(h) > -rounding(40, "product") * h[-1]).all()


FORMS = {
    "csr_array": sparse.csr_array,
    "coo_matrix": sparse.coo_matrix,
    "dok_array": sparse.dok_array,
    "LinearOperator": lambda W: LinearOperator(
        W.shape, matvec=lambda x: W @ x, rmatvec=lambda x: W.T @ x, dtype=W.dtype
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_dense_sparse_and_operator_agree(form, symmetric, rng):
    W = clusters(5, 8, rng, noise=0.2)
    if not symmetric:
        W = W + np.triu(rng.standard_normal(W.shape), 1) * 0.05
    U0 = rng.standard_normal((len(W), 5))
    dense, other = (sparse_stiefel(A, 5, U0=U0, rng=0) for A in (W, FORMS[form](W)))
    np.testing.assert_allclose(other.U, dense.U, atol=1e-8)  # the same iterates; a false step would be of order one
    assert other.n_iter == dense.n_iter


def test_float32_stays_float32_and_agrees(rng):
    W = clusters(5, 8, rng, noise=0.1)
    U0 = rng.standard_normal((len(W), 5))
    single = sparse_stiefel(W.astype(np.float32), 5, U0=U0, rng=0)
    double = sparse_stiefel(W, 5, U0=U0, rng=0)
    assert single.U.dtype == np.float32
    assert double.U.dtype == np.float64
    assert single.objective == pytest.approx(double.objective, rel=1e-4)


def test_same_seed_same_answer(rng):
    W = clusters(5, 8, rng, noise=0.1)
    a, b = (sparse_stiefel(W, 5, rng=11) for _ in range(2))
    np.testing.assert_array_equal(a.U, b.U)


def test_callback_sees_every_update_and_can_stop(rng):
    W = clusters(5, 8, rng, noise=0.3)
    seen = []
    result = sparse_stiefel(W, 5, rng=0, callback=lambda s: seen.append(s.iteration) or s.iteration == 3)
    assert seen == [1, 2, 3]
    assert result.n_iter == 3
    assert result.status is Status.STOPPED


def test_iteration_limit_warns_and_still_returns(rng):
    W = clusters(5, 8, rng, noise=0.3)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        result = sparse_stiefel(W, 5, max_iter=2, tol=1e-12, rng=0)
    assert result.status is Status.MAX_ITER
    assert result.orthogonality_error() < rounding(40)


def test_equal_eigenvalues_at_the_cut_warn_with_both_values():
    with pytest.warns(ConvergenceWarning, match=r"eigenvalue 2 is 3 and eigenvalue 3 is 3; .* choose another d"):
        sparse_stiefel(np.diag([3.0, 3.0, 3.0, 1.0, 0.0]), 2, tol=1e-12, rng=0)


def test_fewer_nonzero_eigenvalues_than_columns_is_survived(rng):
    x = rng.standard_normal((40, 2))
    with pytest.warns(ConvergenceWarning, match="no separated eigenspace"):
        result = sparse_stiefel(x @ x.T, 5, rng=0)
    assert result.orthogonality_error() < rounding(40)
    assert np.isfinite(result.U).all()


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_scales_give_the_same_answer(scale, rng):
    W = clusters(5, 8, rng, noise=0.1)
    U0 = rng.standard_normal((len(W), 5))
    plain, scaled = (sparse_stiefel(A, 5, U0=U0, rng=0) for A in (W, W * scale))
    np.testing.assert_allclose(scaled.U, plain.U, atol=1e-6)


def test_overflow_ends_in_a_status_not_in_nan(rng):
    W = clusters(5, 8, rng, noise=0.1) * 1e308
    with np.errstate(all="ignore"), pytest.warns(ConvergenceWarning):
        result = sparse_stiefel(W, 5, U0=rng.standard_normal((40, 5)), rng=0)
    assert result.status is Status.BREAKDOWN
    assert np.isfinite(result.U).all()
    assert result.objective == -np.inf  # what cannot be measured is not claimed


# ---------------------------------------------------------------- two stages


@pytest.mark.parametrize("subspace", ["eigh", "eigsh", "orthogonal-iteration", "block-power"])
@pytest.mark.parametrize("rotation", ["polar", "gradient", "line-search"])
def test_two_stage_finds_planted_sparse_basis(subspace, rotation, rng):
    W = clusters(8, 10, rng, noise=0.05)
    result = two_stage(W, 8, subspace=subspace, rotation=rotation, rotation_iter=60, rng=0)
    # A perfect basis has entries 1/sqrt(10): g = 80 / 10^1.5.
    # The fixed step turns by up to 45° and so oscillates short of it.
    share = 0.5 if rotation == "gradient" else 0.9
    assert result.secondary > share * 80 / 10**1.5
    assert result.objective == pytest.approx(top(W, 8)[0].sum(), rel=1e-3)
    assert result.orthogonality_error() < rounding(80, "iteration")


def test_two_stage_can_rotate_as_often_as_stage_one_iterated(rng):
    W = clusters(8, 10, rng, noise=0.1)
    run = two_stage(W, 8, subspace="orthogonal-iteration", rotation="gradient", rotation_iter="same", rng=4)
    plain = sparse_stiefel(W, 8, step="none", rng=4)
    assert abs(run.n_iter - plain.n_iter) <= 2


def test_line_search_never_decreases_g(rng):
    W = clusters(8, 10, rng, noise=0.3)
    run = two_stage(W, 8, subspace="eigh", rotation="line-search", tol=1e-9, rng=0)
    assert (np.diff(run.history.secondary) >= -rounding(80, "product") * run.secondary).all()


def test_polar_reaches_at_least_the_gradients_g(rng):
    W = clusters(12, 15, rng, noise=0.3)
    polar = two_stage(W, 12, subspace="eigh", rotation="polar", tol=1e-9, rng=0)
    gradient = two_stage(W, 12, subspace="eigh", rotation="gradient", rotation_iter=200, rng=0)
    assert polar.secondary >= gradient.secondary * (1 - 1e-9)
    assert polar.n_iter < 100


# ---------------------------------------------------------------- size


def test_large_sparse_problem_stays_within_memory(rng):
    m, d, nnz = 200_000, 20, 2_000_000
    row, col = rng.integers(0, m, size=(2, nnz // 2))
    half = sparse.coo_array((rng.random(nnz // 2), (row, col)), shape=(m, m)).tocsr()
    W = (half + half.T).tocsr()
    size = W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            result = sparse_stiefel(W, d, max_iter=3, tol=1e-14, rng=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.U.shape == (m, d)
    assert peak < 12 * m * d * 8 + 4 * size


def test_one_product_with_W_per_iteration(rng):
    W = clusters(5, 40, rng, noise=0.2)
    widths = []

    def matmat(X):
        widths.append(X.shape[1])
        return W @ X

    result = sparse_stiefel(LinearOperator(W.shape, matvec=lambda x: W @ x, matmat=matmat, dtype=float), 5, rng=0)
    # one per update, one for the start, one for the final check of the spectrum
    assert widths.count(5) == result.n_iter + 2


def test_operator_products_do_not_depend_on_the_chunks(rng):
    W = scattered(3000, 0.1, rng)
    W = (W + W.T).tocsr()
    U = rng.standard_normal((3000, 4))
    np.testing.assert_array_equal(as_operator(W) @ U, W @ U)


def test_secondary_is_the_trace_of_its_gradient_matrix(rng):
    U = rng.standard_normal((20, 4))
    for p in (3, 4, 5, 6):
        assert secondary(U, p) == pytest.approx(np.trace(gradient_matrix(U, p)))
        assert secondary(U, p) == pytest.approx((U**p).sum())


def test_results_are_equal_only_with_equal_columns():
    found = sparse_stiefel(np.diag([3.0, 2.0, 1.0, 0.5]), 2)
    assert found == replace(found, U=found.U.copy())
    assert found != replace(found, U=-found.U)
    assert found != replace(found, n_iter=found.n_iter + 1)
