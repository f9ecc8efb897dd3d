"""Kernels of rounding, products and samples, against SciPy and loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from stiefelsync._core.binding import call


@pytest.mark.parametrize("shape", [(0, 1), (1, 1), (3, 3), (7, 7), (7, 12), (30, 31)])
@pytest.mark.parametrize("steps", [0, 1, 3, 1000])
def test_assignment_is_that_of_scipy_even_for_ties(shape, steps):
    rng = np.random.default_rng(11)
    for _ in range(40):
        S, columns = rng.integers(-steps, steps + 1, shape) / 8.0, np.empty(shape[0], dtype=np.int64)
        call("assign", S, *shape, columns)
        best = S.argmax(axis=1)
        expected = linear_sum_assignment(S, maximize=True)[1] if len(set(best.tolist())) < len(best) else best
        assert columns.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ties", [False, True])
def test_projections_of_objects(dtype, ties):
    rng, d = np.random.default_rng(6), 9
    sizes = np.append(rng.integers(0, 10, 60), [0, 9])
    offsets = np.append(0, np.cumsum(sizes))
    U = rng.standard_normal((offsets[-1], d)).astype(dtype)
    U = U.round() if ties else U
    U[-9:] = np.eye(d)[::-1]  # this object is clear
    name, k = np.dtype(dtype).name.replace("float", "f"), len(sizes)
    labels, contested = np.empty(len(U), dtype=np.int64), np.zeros(k, dtype=bool)
    call(f"nearest_{name}", U, d, offsets, k, labels, contested)
    assert labels.tolist() == U.argmax(axis=1).tolist()
    for i in range(k):
        rows = U[offsets[i] : offsets[i + 1]]
        best = rows.argmax(axis=1).tolist()
        assert contested[i] == (len(set(best)) < len(best) or any((row == max(row)).sum() > 1 for row in rows))
    objects = np.flatnonzero(contested)
    orders = np.array([rng.permutation(d) for _ in objects])
    call(f"assign_objects_{name}", U, d, offsets, len(objects), objects, orders, labels)
    for i, order in zip(objects.tolist(), orders, strict=True):
        rows = slice(offsets[i], offsets[i + 1])
        assert labels[rows].tolist() == order[linear_sum_assignment(U[rows][:, order], maximize=True)[1]].tolist()
    assert labels[-9:].tolist() == list(range(d))[::-1]


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 23, 33, 70])
def test_products_entry_by_entry(kind, columns):
    """Whole numbers, so that sums are exact; rows that are empty, at the end too, and chunks of rows."""
    rng, m, dtype = np.random.default_rng(columns), 60, np.dtype(kind.replace("f", "float"))
    dense = rng.integers(-3, 4, (m, m)) * (rng.random((m, m)) < 0.2)
    dense[[4, 5, m - 1]] = 0
    rows = [np.flatnonzero(row) for row in dense]
    indptr = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int32)
    indices = np.concatenate(rows).astype(np.int32)
    data = np.concatenate([dense[r][row] for r, row in enumerate(rows)]).astype(dtype)
    U, onto = rng.integers(-5, 6, (2, m, columns)).astype(dtype)
    diagonal = rng.integers(1, 5, m).astype(dtype)
    exact = [[sum(int(dense[a, b]) * int(U[b, c]) for b in rows[a]) for c in range(columns)] for a in range(m)]
    out = np.full((m, columns), 99, dtype=dtype)
    given = indptr, indices, data, m, U, columns
    call(f"product_{kind}", *given, out, 10, 50, None, None, 1.0)
    assert out[10:50].tolist() == exact[10:50]
    assert (np.delete(out, slice(10, 50), axis=0) == 99).all()
    into = onto.copy()
    call(f"product_{kind}", *given, into, 0, m, diagonal, into, 2.0)
    expected = 2 * (np.array(exact) + diagonal[:, None] * U) - onto
    assert into.tolist() == expected.tolist()


def test_products_of_more_rows_than_stay_in_cache():
    """Rows are asked for ahead there, but for those at the end."""
    rng, m, n = np.random.default_rng(5), 9000, 20_000
    row = np.sort(rng.integers(m - 500, size=n))
    indptr = np.searchsorted(row, np.arange(m + 1)).astype(np.int32)
    indices, data = rng.integers(m, size=n).astype(np.int32), rng.integers(-9, 10, n).astype(np.float64)
    U, out = rng.integers(-9, 10, (m, 37)).astype(np.float64), np.empty((m, 37))
    call("product_f64", indptr, indices, data, m, U, 37, out, 0, m, None, None, 1.0)
    expected = np.zeros((m, 37))
    np.add.at(expected, row, data[:, None] * U[indices])
    assert np.array_equal(out, expected)
