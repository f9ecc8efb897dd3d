"""The formulas of the solver written out entry by entry, on small random matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from stiefelsync import ConvergenceWarning, sparse_stiefel
from stiefelsync.stiefel import operators, steps
from stiefelsync.stiefel.iterate import iterate, settled
from stiefelsync.stiefel.lanczos import extreme_pair
from stiefelsync.stiefel.operators import as_operator
from stiefelsync.stiefel.result import State, Status, StiefelResult
from stiefelsync.stiefel.secondary import gradient_matrix, secondary


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def unique_qr(A):
    """Gram–Schmidt, column by column: Q and R with a positive diagonal."""
    Q, R = np.zeros_like(A), np.zeros((A.shape[1],) * 2)
    for c in range(A.shape[1]):
        rest = A[:, c].copy()
        for b in range(c):
            R[b, c] = Q[:, b] @ A[:, c]
            rest -= R[b, c] * Q[:, b]
        R[c, c] = np.sqrt(rest @ rest)
        Q[:, c] = rest / R[c, c]
    return Q, R


def literal_h(U, p):
    """h(U) = Uᵀ(U.^(p−1)), sums over rows."""
    m, d = U.shape
    return np.array([[sum(U[a, b] * U[a, c] ** (p - 1) for a in range(m)) for c in range(d)] for b in range(d)])


@pytest.mark.parametrize("p", [3, 4, 5, 6])
def test_the_secondary_objective_and_its_gradient(p, rng):
    U = rng.standard_normal((7, 3))
    np.testing.assert_allclose(gradient_matrix(U, p), literal_h(U, p), rtol=1e-12)
    assert secondary(U, p) == pytest.approx(sum(x**p for x in U.ravel()), rel=1e-12)


@pytest.mark.parametrize("p", [3, 4])
def test_algorithm_1_update_by_update(p, rng):
    m, d = 12, 3
    A = rng.standard_normal((m, m))
    W = (A + A.T) / 2
    U = rng.standard_normal((m, d))
    kept: list[State] = []
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        sparse_stiefel(A, d, p=p, U0=U, tol=1e-15, max_iter=5, callback=lambda s: kept.append(s))
    shift = -min(np.linalg.eigvalsh(W)[0], 0)
    for state in kept:
        h = literal_h(U, p)
        Z = np.eye(d) + (h - h.T) / abs(h - h.T).max()
        U, _ = unique_qr((W + shift * np.eye(m)) @ U @ Z)
        np.testing.assert_allclose(state.U, U, atol=1e-5)  # λ_min is known to about six digits
        assert state.objective == pytest.approx(np.trace(U.T @ W @ U), rel=1e-5)
        assert state.secondary == pytest.approx((U**p).sum(), rel=1e-4, abs=1e-5)
        U = state.U


@pytest.mark.parametrize("p", [3, 4, 5])
def test_the_slope_of_the_line_search_is_the_derivative_of_g(p, rng, monkeypatch):
    for _ in range(5):
        U = unique_qr(rng.standard_normal((9, 4)))[0]
        h = literal_h(U, p)
        S = h - h.T
        step = 1e-6
        ahead, behind = ((U @ unique_qr(np.eye(4) + t * S)[0]) for t in (step, -step))
        derivative = ((ahead**p).sum() - (behind**p).sum()) / (2 * step)
        assert derivative == pytest.approx(p / 2 * (S**2).sum(), rel=1e-5)


@pytest.mark.parametrize("enough", [1e-4, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("p", [3, 4])
def test_the_line_search_takes_the_first_step_that_gains_enough(enough, p, rng, monkeypatch):
    monkeypatch.setattr(steps, "_SUFFICIENT", enough)
    halvings = []
    for _ in range(12):
        U = unique_qr(rng.standard_normal((9, 4)))[0]
        h = literal_h(U, p)
        S = h - h.T
        largest = abs(S).max()
        for n in range(26):
            alpha = 2.0 / 2**n / largest
            Z = np.eye(4) + alpha * S
            gained = ((U @ unique_qr(Z)[0]) ** p).sum() - (U**p).sum()
            if gained >= enough * alpha * p / 2 * (S**2).sum():
                break
        np.testing.assert_allclose(steps.line_search(U, h, p), Z, rtol=1e-12)
        halvings.append(n)
    assert enough < 0.1 or len(set(halvings)) > 1  # not always the first


def test_the_line_search_stays_where_nothing_helps(monkeypatch, rng):
    U = unique_qr(rng.standard_normal((9, 4)))[0]
    tried = []
    monkeypatch.setattr(steps, "secondary", lambda X, p: tried.append(1) or -np.inf)
    assert steps.line_search(U, literal_h(U, 3), 3) is None
    assert len(tried) == 26  # scales 2, 1, …, 2⁻²⁴
    symmetric = np.eye(4)
    assert steps.line_search(U, symmetric, 3) is None
    assert steps.gradient(U, symmetric, 3) is None


def test_a_ten_thousandth_of_what_the_slope_promises_is_enough(monkeypatch, rng):
    U = unique_qr(rng.standard_normal((9, 4)))[0]
    h = literal_h(U, 3)
    S = h - h.T
    promised = 2 / abs(S).max() * 3 / 2 * (S**2).sum()  # by the first step
    for share, taken in ((0.9e-4, False), (1.1e-4, True)):
        trials = iter([np.trace(h) + share * promised, np.inf])
        monkeypatch.setattr(steps, "secondary", lambda X, p, trials=trials: next(trials))
        scale = 2 if taken else 1
        np.testing.assert_allclose(steps.line_search(U, h, 3), np.eye(4) + scale / abs(S).max() * S, rtol=1e-12)


def test_the_shift_is_widened_by_the_residual_of_the_eigenvalue(monkeypatch, rng):
    A = as_operator(np.diag([1.0, -3.0, 2.0]))
    for lowest, residual, shift in ((-3.0, 0.25, 3.25), (0.5, 0.75, 0.25), (0.5, 0.25, 0.0)):
        monkeypatch.setattr(operators, "extreme_pair", lambda *_, pair=(lowest, None, residual), **__: pair)
        assert A.positive_shift(rng) == shift


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("steps", [10, 20])
def test_the_residual_of_an_eigenpair_is_measured(largest, steps, rng):
    A = rng.standard_normal((60, 60))
    A = A + A.T
    value, x, residual = extreme_pair(lambda y: A @ y, rng.standard_normal((60, 1)), largest=largest, max_steps=steps)
    assert residual == pytest.approx(np.linalg.norm(A @ x - value * x), rel=1e-6)
    assert residual > 1e-4  # so few steps do not find it
    assert value == pytest.approx(float((x.T @ A @ x)[0, 0]))
    assert np.linalg.norm(x) == pytest.approx(1)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("form", ["dense", "sparse", "operator"])
def test_every_form_of_W_is_symmetrised(form, symmetric, rng):
    W = rng.standard_normal((8, 8)) * (rng.random((8, 8)) < 0.5)
    W = W + W.T if symmetric else W
    forms = {"dense": lambda: W, "sparse": lambda: sparse.coo_array(W), "operator": lambda: aslinearoperator(W)}
    A, U = as_operator(forms[form]()), rng.standard_normal((8, 3))
    np.testing.assert_allclose(A @ U, (W + W.T) / 2 @ U, atol=1e-12)
    np.testing.assert_allclose((-A).shifted(2.0) @ U, 2 * U - (W + W.T) / 2 @ U, atol=1e-12)
    np.testing.assert_allclose(A.as_linear_operator() @ U, (W + W.T) / 2 @ U, atol=1e-12)
    assert A.shape == (8, 8)


def test_settled_means_that_nothing_grew_by_more_than_the_tolerance():
    def state(f, g):
        return State(1, 9, np.empty((0, 0)), f, g, 0.0)

    primary, both = settled("objective", tol=0.25), settled("objective", "secondary", tol=0.25)
    for old, new, expected in (
        (3.0, 4.0, True),
        (2.9, 4.0, False),
        (-5.0, -4.0, True),
        (-5.1, -4.0, False),
        (4, 3, True),
    ):
        assert primary(state(old, 0.0), state(new, 9.0)) is expected
        assert both(state(old, 1.0), state(new, 1.0)) is expected
        assert both(state(1.0, old), state(1.0, new)) is expected
    assert not both(state(1.0, 0.0), state(1.0, 9.0))


def test_a_result_is_verified_by_the_definitions(rng):
    U, W = rng.standard_normal((6, 2)), rng.standard_normal((6, 6))
    result = StiefelResult(U, 0.0, 0.0, None, 0, None)
    gram = [[sum(U[a, b] * U[a, c] for a in range(6)) - (b == c) for c in range(2)] for b in range(2)]
    assert result.orthogonality_error() == pytest.approx(np.abs(gram).max())
    S = (W + W.T) / 2
    expected = np.linalg.norm(S @ U - U @ U.T @ S @ U) / np.linalg.norm(S @ U)
    assert result.residual(W) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("first", [True, False])
def test_one_number_that_is_none_is_a_breakdown(first, rng):
    class Update:
        """Turns a little, and fails in one entry, at once or the second time."""

        objective = 1.0
        calls = 0

        def __call__(self, U, Z, /):
            self.calls += 1
            U = unique_qr(U + 0.1)[0]
            if first or self.calls > 1:
                U[2, 1] = np.nan
            return U

    found = iterate(
        rng.standard_normal((6, 2)), Update(), step=steps.gradient, p=3, criterion=settled("objective", tol=-1.0),
        max_iter=5,
    )  # fmt: skip
    assert (found.status, found.n_iter) == (Status.BREAKDOWN, 0 if first else 1)
    np.testing.assert_allclose(found.U.T @ found.U, np.eye(2), atol=1e-12)
