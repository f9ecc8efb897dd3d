"""One rotation: it spans what was given, climbs g to a stationary point, and starts where it is told."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import rotate
from stiefelsync.stiefel import rotation, sizes
from stiefelsync.stiefel.orthonormal import orthonormalise
from stiefelsync.stiefel.result import Status
from stiefelsync.stiefel.rotation import turn
from stiefelsync.stiefel.secondary import gradient_matrix, power, secondary
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


@pytest.mark.parametrize("pace", [None, 1.0, 1e-2])
@pytest.mark.parametrize(("p", "tol", "most"), [(3, 1e-1, 50), (3, 1e-6, 50), (4, 1e-3, 50), (3, 1e-9, 2)])
def test_a_rotation_ends_when_g_grows_no_more(pace, p, tol, most, rng, monkeypatch):
    monkeypatch.setattr(sizes, "_AT_A_TIME", 7)
    V = planted(rng)
    literal = start = orthonormalise(rng.standard_normal((8, 8)))[0]
    values, looks, promises = [((V @ literal) ** p).sum()], 1, []
    for n in range(1, most + 1):
        gradient = p * V.T @ (V @ literal) ** (p - 1)
        X, _, Yt = np.linalg.svd(gradient)
        literal, before = X @ Yt, literal
        values.append(((V @ literal) ** p).sum())
        promises.append(max(np.vdot(gradient, literal - before), p * np.finfo(float).eps * values[-2]))
        # Growth over a start that is nowhere near says nothing, so the first one counts only after a settled start.
        if (pace or n > 1) and 2 * promises[-1] * (pace or 1) <= tol * values[-2]:
            break
        looks += n < most
        if (pace or n > 1) and values[-1] - values[-2] <= tol * abs(values[-1]):
            break
    seen = []
    monkeypatch.setattr(rotation, "power", lambda x, q: seen.append(len(x)) or power(x, q))
    found, shrank = rotation._fixed_point(V, start, p, tol, most, pace=pace)
    np.testing.assert_allclose(found, literal, atol=1e-8)
    assert sum(seen) == looks * len(V)
    if len(promises) > 1 and promises[-1] > 1e-9:
        assert shrank == pytest.approx(promises[-1] / promises[-2], rel=1e-3)


def test_of_many_rows_evenly_spaced_ones_settle_the_rotation_first(rng, monkeypatch):
    V = planted(rng, d=2, copies=200)
    seen = []
    monkeypatch.setattr(rotation, "_fixed_point", lambda V, Q, *how, **more: seen.append((V, how, more)) or (Q, 0.1))
    rotation.sparsest(V, np.eye(2))
    (few, how, more), (every, again, then) = seen
    at = np.linspace(0, len(V) - 1, rotation._ROWS_PER_COLUMN * 2).astype(int)
    np.testing.assert_array_equal(few, V[at])
    assert (at[0], at[-1]) == (0, len(V) - 1)
    assert every is V
    assert how == again == (3, 1e-4, 50)
    assert (more, then) == ({}, {"pace": 0.1})


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
