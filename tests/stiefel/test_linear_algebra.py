"""The building blocks: QR, polar factor, operators, dominant subspaces."""

from __future__ import annotations

import inspect
import multiprocessing

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import eigsh

from stiefelsync.stiefel.lanczos import extreme_pair
from stiefelsync.stiefel.operators import as_operator
from stiefelsync.stiefel.orthonormal import orthonormalise, polar
from stiefelsync.stiefel.secondary import sparsity
from stiefelsync.stiefel.subspace import _rayleigh_ritz, dominant_subspace, leading_vectors, next_eigenvalue
from tests.stiefel.planted import clusters, distance, scattered, spectrum, top
from tests.tolerances import rounding


@pytest.fixture
def rng():
    return np.random.default_rng(3)


CONDITIONS = [1.0, 1e3, 1e7, 1e12]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr_is_orthonormal_whatever_the_condition(condition, dtype, pivoting, rng):
    A = (np.linalg.qr(rng.standard_normal((200, 10)))[0] * np.geomspace(1, 1 / condition, 10)) @ np.linalg.qr(
        rng.standard_normal((10, 10))
    )[0]
    A = np.ascontiguousarray(A, dtype=dtype)
    Q, R = orthonormalise(A, pivoting=pivoting)
    atol = rounding(200, dtype=dtype)
    assert Q.dtype == R.dtype == dtype
    np.testing.assert_allclose(Q.T @ Q, np.eye(10), atol=atol)
    np.testing.assert_allclose(Q @ R, A, atol=atol)
    if not pivoting:
        assert (np.diag(R) >= 0).all()
        np.testing.assert_array_equal(R, np.triu(R))


def test_qr_equals_the_unique_householder_factorisation(rng):
    A = rng.standard_normal((100, 8))
    Q, R = np.linalg.qr(A)
    sign = np.sign(np.diag(R))
    ours, _ = orthonormalise(A)
    np.testing.assert_allclose(ours, Q * sign, atol=rounding(100) * np.linalg.cond(A))


def test_qr_of_a_rank_deficient_matrix_is_still_orthonormal(rng):
    A = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 5))
    Q, R = orthonormalise(A)
    np.testing.assert_allclose(Q.T @ Q, np.eye(5), atol=rounding(50))
    np.testing.assert_allclose(Q @ R, A, atol=rounding(50) * np.linalg.norm(A))


def test_qr_leaves_its_input_alone(rng):
    A = rng.standard_normal((50, 5))
    before = A.copy()
    orthonormalise(A)
    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [15, 16, 25, 64, 65])
@pytest.mark.parametrize("condition", [1.0, 3.0, 20.0, 1e3, np.inf])
def test_polar_is_the_product_of_singular_vectors(rng, d, condition, dtype):
    X, Y = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    A = ((X * np.linspace(1, 1 / condition, d)) @ Y).astype(dtype)
    Q, eps = polar(A), np.finfo(dtype).eps
    assert Q.dtype == dtype
    assert np.allclose(Q.T @ Q, np.eye(d), atol=100 * eps)
    if np.isfinite(condition):
        assert np.allclose(Q, X @ Y, atol=100 * eps * condition)


def test_polar_maximises_the_inner_product(rng):
    A = rng.standard_normal((6, 6))
    Q = polar(A)
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=rounding(6))
    others = [np.linalg.qr(rng.standard_normal((6, 6)))[0] for _ in range(200)]
    assert np.vdot(Q, A) >= max(np.vdot(other, A) for other in others)


@pytest.mark.parametrize("kind", ["random", "clusters", "identity", "zero", "blocks"])
@pytest.mark.parametrize("d", [1, 5, 20, 40])
def test_leading_vectors_are_those_of_all(rng, kind, d):
    m = 60
    X = rng.standard_normal((m, m))
    N = {
        "random": X + X.T,
        "clusters": clusters(6, 10, rng),
        "identity": np.eye(m),
        "zero": np.zeros((m, m)),
        "blocks": np.kron(np.eye(12), np.ones((5, 5))),
    }[kind]
    V, values = leading_vectors(N, d), np.linalg.eigvalsh(N)[::-1][:d]
    assert V.shape == (m, d)
    assert V.flags.c_contiguous
    np.testing.assert_allclose(V.T @ V, np.eye(d), atol=rounding(m))
    np.testing.assert_allclose(V.T @ N @ V, np.diag(values), atol=rounding(m) * max(1.0, abs(values).max()))
    np.testing.assert_allclose(N @ V, V * values, atol=rounding(m) * max(1.0, abs(values).max()))


def test_smallest_eigenvalue_is_not_fooled_by_an_invariant_start(rng):
    # Trap 3 of the method's notes: rank d, many equal eigenvalues, the vector of ones invariant.
    W = sparse.csr_array(clusters(30, 12, rng))
    lowest, _, _ = extreme_pair(lambda x: W @ x, rng.standard_normal((360, 1)), largest=False)
    assert lowest == pytest.approx(0.0, abs=1e-5)
    assert as_operator(W).positive_shift(rng) < 1e-5


def test_two_distinct_eigenvalues_are_both_found(rng):
    # ARPACK reports the wrong end here: the Krylov space has only two dimensions.
    W = spectrum(np.r_[np.full(20, 5.0), np.full(180, -7.0)], rng)
    for largest, value in ((True, 5.0), (False, -7.0)):
        found, x, residual = extreme_pair(lambda x: W @ x, rng.standard_normal((200, 1)), largest=largest)
        assert found == pytest.approx(value)
        np.testing.assert_allclose(W @ x, value * x, atol=1e-6)
        assert residual < 1e-6


def test_shift_makes_an_indefinite_matrix_semidefinite(rng):
    W = spectrum(np.linspace(-7.0, 5.0, 200), rng)
    shift = as_operator(sparse.csr_array(W)).positive_shift(rng)
    assert shift == pytest.approx(7.0, rel=1e-4)
    assert np.linalg.eigvalsh(W)[0] + shift > -1e-6


def test_shift_never_moves_upwards(rng):
    W = spectrum(np.linspace(1.0, 5.0, 100), rng)
    assert as_operator(W).positive_shift(rng) == 0.0


def test_negation_and_shift_compose(rng):
    W = rng.standard_normal((10, 10))
    U = rng.standard_normal((10, 3))
    A = (W + W.T) / 2
    np.testing.assert_allclose(
        (-as_operator(W).shifted(2.0)) @ U, -(A @ U + 2 * U), atol=rounding(10) * np.linalg.norm(A)
    )


METHODS = ["auto", "eigh", "eigsh", "block-power", "orthogonal-iteration"]


@pytest.mark.parametrize("method", METHODS)
def test_subspaces_agree_with_eigh(method, rng):
    W = spectrum(np.r_[np.linspace(10.0, 8.0, 6), np.linspace(3.0, -1.0, 114)], rng)
    values, V = top(W, 6)
    found = dominant_subspace(sparse.csr_array(W), 6, method=method, tol=1e-13, rng=0)
    np.testing.assert_allclose(found.values, values, rtol=1e-6)
    assert distance(found.V, V) < 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["eigsh", "block-power"])
def test_multiple_eigenvalues_are_all_found(method, dtype, rng):
    # Trap 4: thirty equal eigenvalues; Lanczos with few vectors drops copies silently.
    W = sparse.csr_array(clusters(30, 12, rng), dtype=dtype)
    found = dominant_subspace(W, 30, method=method, rng=0)
    assert found.V.dtype == dtype
    np.testing.assert_allclose(found.values, 12.0, rtol=rounding(360, "eigenvalue", dtype))


@pytest.mark.skipif("rng" not in inspect.signature(eigsh).parameters, reason="SciPy before 1.17 draws for itself")
def test_equal_seeds_give_equal_bases_of_an_eigenspace(rng):
    # Two eigenvalues exhaust the Krylov space at once, and ARPACK goes on from random vectors.
    W = sparse.csr_array(clusters(10, 12, rng))
    first, *others = (dominant_subspace(W, 10, method="eigsh", rng=0).V for _ in range(5))
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_rayleigh_ritz_takes_the_best_of_a_block(rng):
    W = spectrum(np.r_[9.0, 8.0, 7.0, np.linspace(4.0, 0.0, 20)], rng)
    block = np.linalg.qr(np.hstack([top(W, 3)[1], rng.standard_normal((23, 2))]))[0]
    V, values = _rayleigh_ritz(as_operator(W), block, 3)
    np.testing.assert_allclose(values, [9.0, 8.0, 7.0])
    np.testing.assert_allclose(V.T @ W @ V, np.diag(values), atol=1e-9)


def test_next_eigenvalue(rng):
    W = spectrum(np.r_[9.0, 8.0, 7.0, np.linspace(4.0, 0.0, 60)], rng)
    value, x = next_eigenvalue(as_operator(W), top(W, 3)[1], rng)
    assert value == pytest.approx(4.0, rel=1e-5)
    np.testing.assert_allclose(W @ x, 4.0 * x, atol=1e-3)


def _product_in_child(queue):
    W = scattered(4000, 0.02, np.random.default_rng(0))
    queue.put(float((as_operator(W) @ np.ones((4000, 3))).sum()))


def test_threads_survive_a_fork(rng):
    W = scattered(4000, 0.02, np.random.default_rng(0))
    here = float((as_operator(W) @ np.ones((4000, 3))).sum())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_product_in_child, args=(queue,))
    child.start()
    there = queue.get(timeout=60)
    child.join(timeout=60)
    assert there == here


@pytest.mark.parametrize("method", METHODS)
def test_a_subspace_may_be_the_whole_space(method: str) -> None:
    found = dominant_subspace(np.diag([3.0, 2.0, 1.0]), 3, method=method, rng=0)
    np.testing.assert_allclose(found.values, [3.0, 2.0, 1.0], atol=1e-9)


def test_sparsity_is_relative_to_the_largest_entry() -> None:
    U = np.array([[10.0, -0.05], [0.2, -9.0]])
    assert [sparsity(scale * U) for scale in (1.0, 1e-6, 1e6)] == [0.25] * 3
    assert sparsity(U, 0.03) == 0.5
    assert sparsity(np.array([[1.0, 0.5, 0.25]]), 0.5) == pytest.approx(1 / 3)  # at the threshold is not below it
