"""One rotation: it spans what was given, climbs g to a stationary point, and starts where it is told."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import Status, rotate
from stiefelsync.stiefel.orthonormal import orthonormalise
from stiefelsync.stiefel.rotation import turn
from stiefelsync.stiefel.secondary import gradient_matrix, secondary
from stiefelsync.stiefel.steps import STEPS
from tests.stiefel.planted import clusters, distance, top
from tests.tolerances import rounding


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def planted(rng, d=8, copies=10, noise=0.2):
    V = top(clusters(d, copies, rng, noise=noise), d)[1]
    return V @ orthonormalise(rng.standard_normal((d, d)))[0]


@pytest.mark.parametrize("copies", [10, 40])  # with 40 rows per column, some rows settle the rotation before all do
@pytest.mark.parametrize("p", [3, 4, 5])
def test_the_span_stays_and_g_is_stationary(p, copies, rng):
    V = planted(rng, copies=copies)
    U = rotate(V, p=p, tol=1e-13, max_iter=500)
    assert distance(U, V) < rounding(8 * copies, "iteration")
    h = gradient_matrix(U, p)
    assert abs(h - h.T).max() < 1e-5 * abs(h).max()
    assert secondary(U, p) > secondary(V, p)


def test_a_planted_sparse_basis_is_found(rng):
    U = rotate(planted(rng, noise=0.0))
    np.testing.assert_allclose(np.sort(abs(U), axis=1)[:, -1], 10**-0.5, rtol=1e-3)
    assert (U > -1e-3).all()


def test_literal_fixed_point(rng):
    V = planted(rng)
    Q = orthonormalise(rng.standard_normal((8, 8)))[0]
    literal = Q
    for _ in range(3):
        X, _, Yt = np.linalg.svd(V.T @ (V @ literal) ** 2)
        literal = X @ Yt
    np.testing.assert_allclose(rotate(V, Q=Q, max_iter=3, tol=1e-15), V @ literal, atol=rounding(80, "iteration"))


def test_precision_is_kept(rng):
    V = planted(rng)
    single = rotate(V.astype(np.float32))
    assert single.dtype == np.float32
    assert secondary(single) == pytest.approx(secondary(rotate(V)), rel=1e-3)


def test_a_given_number_of_steps_is_no_failure(rng):
    V = planted(rng)
    for count in (1, 2, 7):
        run = turn(V, step=STEPS["gradient"], p=3, tol=1e-5, max_iter=200, count=count)
        assert (run.n_iter, run.status, run.converged) == (count, Status.DONE, True)
    assert turn(V, step=STEPS["gradient"], p=3, tol=1e-15, max_iter=2).status is Status.MAX_ITER
