"""Products with a sparse matrix: in any chunks, entry by entry."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from stiefelsync import datasets
from stiefelsync.errors import InputError
from stiefelsync.stiefel import product
from stiefelsync.stiefel.product import sparse_product


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 8, 33])
def test_products_do_not_depend_on_chunks(dtype, columns, monkeypatch):
    matchings, _ = datasets.synthetic(20, 15, 0.7, 0.5, rng=0)
    matchings = matchings.with_weights(np.random.default_rng(1).random(matchings.n_matches) + 0.1)
    W = matchings.to_matrix().astype(dtype)
    rng = np.random.default_rng(2)
    U, before = rng.standard_normal((2, matchings.n_points, columns)).astype(dtype)
    diagonal = rng.random(matchings.n_points).astype(dtype)
    whole, shifted = sparse_product(W)(U), sparse_product(W, diagonal=diagonal)(U, onto=before.copy(), scale=1.3)
    np.testing.assert_allclose(whole, W @ U, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(product, "_MIN_WORK_OF_THREADS", 0)
    monkeypatch.setattr(product, "workers", lambda: 3)
    assert np.array_equal(sparse_product(W)(U), whole)
    assert np.array_equal(sparse_product(W, diagonal=diagonal)(U, onto=before.copy(), scale=1.3), shifted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_entry_by_entry(dtype):
    rng = np.random.default_rng(3)
    W = rng.integers(-3, 4, (30, 30)) * (rng.random((30, 30)) < 0.2)
    U, onto = rng.integers(-5, 6, (2, 30, 3))
    diagonal = rng.integers(1, 5, 30)
    multiply = sparse_product(sparse.csr_array(W.astype(dtype)), diagonal=diagonal.astype(dtype))
    expected = [
        [sum((W[a, b] + diagonal[a] * (a == b)) * U[b, c] for b in range(30)) for c in range(3)] for a in range(30)
    ]
    assert multiply(U.astype(dtype)).tolist() == expected
    into = onto.astype(dtype)
    assert multiply(U.astype(dtype), onto=into, scale=2.0) is into
    assert into.tolist() == (2 * np.array(expected) - onto).tolist()


@pytest.mark.parametrize(
    ("work", "threads", "pooled"),
    [(1, 2, True), (1, 1, False), (10**9, 2, False)],
    ids=["threads", "only one thread", "too little work"],
)
def test_a_pool_is_used_where_there_are_threads_and_work(work, threads, pooled, monkeypatch):
    used = []
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(product, "_pool", lambda: used.append(1) or pool)
        monkeypatch.setattr(product, "workers", lambda: threads)
        monkeypatch.setattr(product, "_MIN_WORK_OF_THREADS", work)
        W = sparse.csr_array(np.arange(100.0).reshape(10, 10))
        np.testing.assert_array_equal(sparse_product(W)(np.ones((10, 2))), W @ np.ones((10, 2)))
    assert len(used) == pooled


def test_chunks_cover_all_rows_once():
    assert product._chunks(np.array([0, 3, 3, 7]), 9) == [(0, 3), (3, 7), (7, 9)]
    assert product._chunks(np.array([4]), 4) == [(0, 4)]


def test_more_entries_than_can_be_counted_are_refused(monkeypatch):
    monkeypatch.setattr(product, "_MAX_ENTRIES", 3)
    sparse_product(sparse.csr_array(np.diag([1.0, 2, 3])))
    with pytest.raises(InputError, match=r"W has 4 entries, more than 3; pass it as a LinearOperator"):
        sparse_product(sparse.csr_array(np.diag([1.0, 2, 3, 4])))
