"""Products with a sparse matrix: compiled or by SciPy, in any chunks, entry by entry."""

from __future__ import annotations

import platform

import numpy as np
import pytest

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
