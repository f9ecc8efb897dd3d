"""Kernels for the entries of sparse matrices, against loops that say what they do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stiefelsync import Matchings, datasets
from stiefelsync._core.binding import call


def problem(name: str) -> Matchings:
    """Problems of any kind: full, partial, one object, no match, objects without points or with many."""
    made = {
        "full": lambda: datasets.synthetic(9, 8, 1.0, 0.5, rng=1)[0],
        "partial": lambda: datasets.synthetic(7, 6, 0.5, 0.4, rng=2)[0],
        "one object": lambda: Matchings.from_labels([0, 1, 2], [3]),
        "no match": lambda: Matchings.from_labels([0, 1, 2, 3], [2, 2]),
        "empty objects": lambda: Matchings.from_labels([0, 1, 1, 0, 0], [0, 2, 0, 2, 1, 0]),
        "nothing": lambda: Matchings.from_labels([], []),
        "large objects": lambda: datasets.synthetic(300, 3, 1.0, 0.3, rng=3)[0],
    }
    return made[name]()


PROBLEMS = ("full", "partial", "one object", "no match", "empty objects", "nothing", "large objects")


class Table:
    """Which points are matched, as the rows of a sparse matrix."""

    def __init__(self, matchings: Matchings) -> None:
        self.m = matchings.n_points
        self.partners: list[list[int]] = [[] for _ in range(self.m)]
        for a, b in matchings.endpoints.tolist():
            self.partners[a].append(b)
            self.partners[b].append(a)
        self.partners = [sorted(one) for one in self.partners]
        self.indptr = np.cumsum([0, *map(len, self.partners)]).astype(np.int32)
        self.indices = np.array([b for row in self.partners for b in row], dtype=np.int32)


@pytest.fixture(params=PROBLEMS, scope="module")
def table(request: pytest.FixtureRequest) -> Table:
    return Table(problem(request.param))


def test_sums_of_rows_and_entries_that_are_scaled(table):
    rng, entries = np.random.default_rng(2), [(a, b) for a, row in enumerate(table.partners) for b in row]
    values, s, sums = rng.random(len(entries)), rng.random(table.m), np.empty(table.m)
    call("sum_rows", table.m, table.indptr, values, sums)
    expected = [math.fsum(v for v, (a, _) in zip(values, entries, strict=True) if a == row) for row in range(table.m)]
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    scaled, single = np.empty(len(entries)), np.empty(len(entries), dtype=np.float32)
    call("scale_entries", table.m, table.indptr, table.indices, values, s, scaled, None)
    np.testing.assert_allclose(scaled, [v * s[a] * s[b] for v, (a, b) in zip(values, entries, strict=True)], rtol=1e-15)
    call("scale_entries", table.m, table.indptr, table.indices, values, s, None, single)
    assert np.array_equal(single, scaled.astype(np.float32))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_sketches(table, kind):
    rng, dtype, width = np.random.default_rng(3), np.dtype(kind.replace("f", "float")), 5
    data, shift = rng.random(len(table.indices)).astype(dtype), rng.random(table.m).astype(dtype)
    column, sign = rng.integers(width, size=table.m), rng.choice([-1, 1], table.m).astype(dtype)
    out = np.empty((table.m, width), dtype=dtype)
    call(f"sketch_{kind}", table.m, width, table.indptr, table.indices, data, shift, column, sign, out)
    expected = np.zeros((table.m, width))
    for a in range(table.m):
        expected[a, column[a]] += shift[a] * sign[a]
        for e in range(table.indptr[a], table.indptr[a + 1]):
            b = table.indices[e]
            expected[a, column[b]] += float(data[e]) * float(sign[b])
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)
