"""Sorting and counting of whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.sync.tracks.integer_arrays import ordered


@pytest.mark.parametrize("n", [0, 1, 100, 5_000])
@pytest.mark.parametrize("largest", [0, 3, 4_000, 10**12])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_order_is_that_of_lexsort(n: int, largest: int, dtype: type) -> None:
    rng, largest = np.random.default_rng(n), min(largest, np.iinfo(dtype).max - 1)
    first, second = (rng.integers(0, largest + 1, n).astype(dtype) for _ in range(2))
    np.testing.assert_array_equal(ordered(first), np.argsort(first, kind="stable"))
    np.testing.assert_array_equal(ordered(first, second), np.lexsort((second, first)))
    np.testing.assert_array_equal(ordered(first % 5, second, first), np.lexsort((first, second, first % 5)))


def test_a_key_given_twice_is_no_trap() -> None:
    key = np.random.default_rng(0).integers(0, 50, 3_000)
    np.testing.assert_array_equal(ordered(key, key[::-1], key), np.lexsort((key, key[::-1], key)))
