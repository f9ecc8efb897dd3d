"""Kernels of sparse matrices, against dense ones. Whole numbers, so that sums are exact."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from stiefelsync._core.binding import call


@pytest.fixture(params=[0, 1, 2, 3, 4, 7, 40])
def matrix(request):
    rng, m = np.random.default_rng(request.param), request.param
    dense = np.where(rng.random((m, m)) < 0.4, rng.integers(1, 9, (m, m)), 0).astype(float)
    return sparse.csr_array(dense), 2.0 ** rng.integers(-2, 3, m), rng


def test_rows_are_summed(matrix):
    A, _, _ = matrix
    out = np.empty(A.shape[0])
    call("sum_rows", A.shape[0], A.indptr, A.data, out)
    np.testing.assert_array_equal(out, A.toarray().sum(axis=1))


def test_entries_are_scaled_by_row_and_column(matrix):
    A, s, _ = matrix
    expected = sparse.csr_array((A.data, A.indices, A.indptr), shape=A.shape).multiply(np.outer(s, s)).tocsr().data
    for double in (True, False):
        out = np.empty(len(A.data), dtype=np.float64 if double else np.float32)
        where = (out, None) if double else (None, out)
        call("scale_entries", A.shape[0], A.indptr, A.indices, A.data, s, *where)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_sketches(matrix, kind):
    A, shift, rng = matrix
    m, width, dtype = A.shape[0], 5, np.dtype(kind.replace("f", "float"))
    column, sign = rng.integers(width, size=m), rng.choice([-1, 1], m)
    out = np.empty((m, width), dtype=dtype)
    call(
        f"sketch_{kind}", m, width, A.indptr, A.indices, A.data.astype(dtype), shift.astype(dtype), column,
        sign.astype(dtype), out,
    )  # fmt: skip
    S = np.zeros((m, width))
    S[np.arange(m), column] = sign
    np.testing.assert_array_equal(out, (A.toarray() + np.diag(shift)) @ S)
