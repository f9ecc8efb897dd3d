"""The spectral start: sketches, starts near another, and what happens where single precision breaks down."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import datasets, score
from stiefelsync.stiefel import sizes
from stiefelsync.stiefel.block import CHEBYSHEV, block_iteration
from stiefelsync.stiefel.product import sparse_product
from stiefelsync.stiefel.result import Subspace
from stiefelsync.stiefel.rotation import rotate
from stiefelsync.sync.methods import _spectral_start as start
from stiefelsync.sync.methods._spectral_start import spectral_labels, spectral_start, start_matrix


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
    products = []

    def counted(W, **how):
        multiply = sparse_product(W, **how)
        return lambda U, **where: (products.append(1), multiply(U, **where))[1]

    monkeypatch.setattr(start, "sparse_product", counted)
    A, rng = start_matrix(matchings), np.random.default_rng(0)
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

    def broken(multiply, V, d, **options):
        if failure == "raises":
            raise np.linalg.LinAlgError("no")
        return Subspace(np.full((len(V), d), np.nan), np.full(d, np.nan))

    monkeypatch.setattr(start, "block_iteration", broken)
    U = spectral_start(start_matrix(matchings), 10, rng=np.random.default_rng(0))
    assert score(U.argmax(axis=1), truth).fscore == 1.0


def test_labels_of_the_start_are_those_of_the_truth_and_none_where_they_cost_too_much(monkeypatch):
    problem, truth = datasets.synthetic(8, 9, 0.8, 0.0, rng=0)
    found = spectral_labels(problem, 8, rng=np.random.default_rng(0))
    assert score(found, truth).fscore == 1.0
    monkeypatch.setattr(start, "MAX_WORK", problem.n_points)
    assert spectral_labels(problem, 8, rng=np.random.default_rng(0)) is None
