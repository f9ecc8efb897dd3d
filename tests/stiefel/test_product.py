"""Products with a sparse matrix: compiled or by SciPy, in any chunks, entry by entry."""

from __future__ import annotations

import platform
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from stiefelsync import datasets
from stiefelsync.stiefel import product
from stiefelsync.stiefel.product import sparse_product


@pytest.mark.skipif(platform.machine() in ("arm64", "aarch64"), reason="SciPy may be built to fuse operations there")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 23, 33, 70])
@pytest.mark.parametrize("work", [100, 50_000])
def test_the_compiled_product_is_identical(dtype, columns, work, monkeypatch):
    monkeypatch.setattr(product, "_CHUNK_WORK", work)  # many chunks of rows, or one
    monkeypatch.setattr(product, "_KERNEL_WORK", work)
    monkeypatch.setattr(product, "workers", lambda: 3)
    matchings, _ = datasets.synthetic(20, 15, 0.7, 0.5, rng=0)
    matchings = matchings.with_weights(np.random.default_rng(1).random(matchings.n_matches) + 0.1)
    W = matchings.to_matrix().astype(dtype)
    rng = np.random.default_rng(2)
    U, before = rng.standard_normal((2, matchings.n_points, columns)).astype(dtype)
    diagonal = rng.random(matchings.n_points).astype(dtype)
    compiled, whole = sparse_product(W), sparse_product(W, diagonal=diagonal)
    monkeypatch.setenv("STIEFELSYNC_COMPILED", "0")
    plain, whole_plain = sparse_product(W), sparse_product(W, diagonal=diagonal)
    assert np.array_equal(plain(U), W @ U)
    assert np.array_equal(compiled(U), plain(U))
    assert np.array_equal(whole(U, onto=before.copy(), scale=1.3), whole_plain(U, onto=before.copy(), scale=1.3))


@pytest.mark.skipif(platform.machine() in ("arm64", "aarch64"), reason="SciPy may be built to fuse operations there")
@pytest.mark.parametrize("last", [0, 1, 300])
def test_products_of_more_rows_than_stay_in_cache_are_identical(last, monkeypatch):
    # Rows are asked for ahead there, but for those at the end, of which some are empty.
    rng, m, n = np.random.default_rng(5), 9000, 20_000
    rows = np.append(rng.integers(m - 500, size=n), np.full(last, m - 100))
    W = sparse.csr_array((rng.random(n + last), (rows, rng.integers(m, size=n + last))), shape=(m, m))
    W.sum_duplicates()
    U, before = rng.standard_normal((2, m, 37))
    diagonal = rng.random(m)
    found = sparse_product(W, diagonal=diagonal)(U, onto=before.copy(), scale=0.7)
    monkeypatch.setenv("STIEFELSYNC_COMPILED", "0")
    assert np.array_equal(found, sparse_product(W, diagonal=diagonal)(U, onto=before.copy(), scale=0.7))


@pytest.mark.parametrize("dtype", [np.float64, np.longdouble], ids=["compiled", "SciPy"])
def test_products_entry_by_entry(dtype, monkeypatch):
    monkeypatch.setattr(product, "_CHUNK_ROWS", 4)
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
        for limit in ("_KERNEL_WORK", "_THREAD_WORK"):
            monkeypatch.setattr(product, limit, work)
        monkeypatch.setattr(product, "_CHUNK_ROWS", 4)
        for dtype in (np.float64, np.longdouble):
            W = sparse.csr_array(np.arange(100).reshape(10, 10).astype(dtype))
            np.testing.assert_array_equal(sparse_product(W)(np.ones((10, 2), dtype)), W @ np.ones((10, 2)))
    assert len(used) == 2 * pooled


def test_chunks_cover_all_rows_once():
    assert product._chunks(np.array([0, 3, 3, 7]), 9) == [(0, 3), (3, 7), (7, 9)]
    assert product._chunks(np.array([4]), 4) == [(0, 4)]
    W = sparse.csr_array(np.arange(12.0).reshape(4, 3))
    np.testing.assert_array_equal(product._rows(W, 1, 3).toarray(), W.toarray()[1:3])
