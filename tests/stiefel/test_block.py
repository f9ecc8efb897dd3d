"""The block iteration against dense polynomials of the matrix, and its own account of products and of its end."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import chebyshev as polynomials

from stiefelsync.stiefel import block, sizes
from stiefelsync.stiefel.block import CHEBYSHEV, POWERS, block_iteration, chebyshev
from stiefelsync.stiefel.result import Status
from tests.stiefel.planted import distance, spectrum, top


@pytest.fixture
def rng():
    return np.random.default_rng(11)


class Counted:
    """N as a function that counts its calls."""

    def __init__(self, N):
        self.N, self.calls = N, 0

    def __call__(self, U, *, onto=None, scale=1.0):
        self.calls += 1
        return self.N @ U if onto is None else np.subtract(scale * (self.N @ U), onto, out=onto)


def polynomial(N, values_of):
    eigenvalues, Q = np.linalg.eigh(N)
    return (Q * values_of(eigenvalues)) @ Q.T


@pytest.mark.parametrize(
    ("ritz", "edge"),
    [
        ([2.0, 1.5, 0.8], 0.8),  # the smallest of the block
        ([2.0, 1.5, 0.1], 0.6),  # but at least .3 of the largest
        ([0.002, 0.001, 1e-4], 1e-3),
    ],
)
def test_the_chebyshev_filter_is_the_polynomial_of_degree_four(ritz, edge, rng):
    N, V = spectrum(np.linspace(-0.7, 2.0, 20), rng), rng.standard_normal((20, 3))
    multiply = Counted(N)
    found = CHEBYSHEV.apply(multiply, V.copy(), N @ V, np.array(ritz))
    expected = polynomial(N, lambda x: polynomials.chebval(x / edge, [0, 0, 0, 0, 1])) @ V
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * abs(expected).max())
    assert multiply.calls == CHEBYSHEV.products == 3


@pytest.mark.parametrize(("ritz", "edge"), [([1.0, 0.5, 0.35], 0.35), ([1.0, 0.25, 0.05], 0.2)])
def test_the_cut_may_be_given(ritz, edge, rng):
    N, V = spectrum(np.linspace(-0.7, 2.0, 20), rng), rng.standard_normal((20, 3))
    found = chebyshev(0.2).apply(Counted(N), V.copy(), N @ V, np.array(ritz))
    expected = polynomial(N, lambda x: polynomials.chebval(x / edge, [0, 0, 0, 0, 1])) @ V
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * abs(expected).max())


def test_columns_that_are_nearly_dependent_or_of_any_length_do_no_harm(rng):
    N = spectrum(np.r_[5.0, 4.0, 3.0, np.linspace(1.0, 0.0, 37)], rng)
    start = N @ rng.standard_normal((40, 6))
    start[:, 1] = start[:, 0] + 1e-6 * start[:, 1]
    for V in (start, start * np.array([1e-30, 1, 1e20, 1, 1, 1])):
        found = block_iteration(Counted(N), V.copy(), 3, filtered=POWERS, tol=1e-12, max_products=100)
        np.testing.assert_allclose(found.values, [5, 4, 3], rtol=1e-10)
        np.testing.assert_allclose(found.V.T @ found.V, np.eye(3), atol=1e-10)


def test_powers_are_the_third_power_scaled(rng):
    N, V = spectrum(np.linspace(0.0, 2.0, 20), rng), rng.standard_normal((20, 3))
    for ritz in ([2.0, 1.5, 0.8], [1.0, 0.5, -4.0]):
        multiply = Counted(N)
        found = POWERS.apply(multiply, V, N @ V, np.array(ritz))
        np.testing.assert_allclose(found, np.linalg.matrix_power(N, 3) @ V / max(map(abs, ritz)) ** 2, rtol=1e-10)
        assert multiply.calls == POWERS.products == 2


@pytest.mark.parametrize("filtered", [POWERS, CHEBYSHEV], ids=["powers", "chebyshev"])
def test_products_are_counted_and_the_end_is_told(filtered, rng):
    N = spectrum(np.r_[5.0, 4.0, 3.0, np.linspace(1.0, 0.0, 37)], rng)
    start = rng.standard_normal((40, 6))
    values, V = top(N, 3)
    multiply = Counted(N)
    found = block_iteration(multiply, multiply(start), 3, filtered=filtered, tol=1e-12, max_products=100)
    assert found.status is Status.CONVERGED
    assert found.n_iter == multiply.calls
    np.testing.assert_allclose(found.values, values, rtol=1e-10)
    assert distance(found.V, V) < 1e-5
    np.testing.assert_allclose(found.V.T @ N @ found.V, np.diag(found.values), atol=1e-6)
    for most in (2, 3 + filtered.products, 4 + 2 * filtered.products):
        multiply = Counted(N)
        short = block_iteration(multiply, multiply(start), 3, filtered=filtered, tol=1e-15, max_products=most)
        rounds = max((most - 2) // (filtered.products + 1), 0)
        assert multiply.calls == short.n_iter == 2 + rounds * (filtered.products + 1)
        assert short.status is Status.MAX_ITER


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_filtering_at_once_finds_what_it_finds_after_a_rayleigh_ritz_step(dtype, rng):
    N = spectrum(np.r_[0.9, 0.8, 0.7, np.linspace(0.3, -0.3, 37)], rng).astype(dtype)
    start, filtered = rng.standard_normal((40, 6)).astype(dtype), chebyshev(0.3)
    one, two = Counted(N), Counted(N)
    later = block_iteration(one, one(start), 3, filtered=filtered, tol=0.0, max_products=6)
    found = block_iteration(two, two(start), 3, filtered=filtered, tol=0.0, max_products=6, at_once=True)
    assert one.calls == two.calls == found.n_iter == 6
    rounding = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(found.values, later.values, rtol=rounding)
    assert distance(found.V, later.V) < 1e2 * rounding
    assert distance(found.V, top(N, 3)[1]) < 0.1
    # What is promised counts at once, too: a first block is filtered, and a second look is not needed.
    found = block_iteration(Counted(N), N @ start, 3, filtered=filtered, tol=0.1, max_products=60, at_once=True)
    assert (found.n_iter, found.status) == (6, Status.CONVERGED)


def test_it_ends_as_soon_as_the_residual_promises_little(rng):
    # Literally: after every Rayleigh–Ritz step, what the Ritz values grew and what their residuals promise.
    N = spectrum(np.r_[5.0, 4.0, 3.0, np.linspace(2.5, 0.0, 37)], rng)
    tol, V = 1e-4, np.linalg.qr(N @ (start := rng.standard_normal((40, 6))))[0]
    before, steps = None, 0
    while True:
        values, Y = np.linalg.eigh(V.T @ N @ V)
        values, Y = values[::-1], Y[:, ::-1]
        V = V @ Y
        total = values[:3].sum()
        promised = sum(
            np.linalg.norm(N @ V[:, c] - values[c] * V[:, c]) ** 2 / (values[c] - values[-1]) for c in range(3)
        )
        if before is not None and min(total - before, promised) <= tol * total:
            break
        before, steps = total, steps + 1
        V = np.linalg.qr(np.linalg.matrix_power(N, 3) @ V)[0]
    found = block_iteration(lambda U: N @ U, N @ start, 3, filtered=POWERS, tol=tol, max_products=1000)
    assert steps > 1
    assert found.n_iter == 2 + 3 * steps
    np.testing.assert_allclose(found.values, values[:3], rtol=1e-9)


def test_a_tolerance_of_zero_is_met_when_nothing_grows():
    found = block_iteration(lambda U: 2 * U, np.eye(6, 3), 2, filtered=POWERS, tol=0.0, max_products=100)
    assert found.status is Status.CONVERGED
    assert found.n_iter == 5  # begin, measure, filter twice, measure
    assert found.values.tolist() == [2.0, 2.0]


def test_what_residuals_promise_row_by_row(rng, monkeypatch):
    monkeypatch.setattr(sizes, "_AT_A_TIME", 7)
    N, V = spectrum(np.linspace(0.0, 2.0, 20), rng), np.linalg.qr(rng.standard_normal((20, 4)))[0]
    values = np.array([1.9, 1.5, 1.0, 0.4])
    R = [[sum(N[a, b] * V[b, c] for b in range(20)) - values[c] * V[a, c] for c in range(3)] for a in range(20)]
    expected = sum(sum(R[a][c] ** 2 for a in range(20)) / (values[c] - values[3]) for c in range(3))
    assert block._promised(V, N @ V, values, 3) == pytest.approx(expected)
