"""Medians of many weights, of which few are sorted."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.sync.tracks.scale import _ranked


@pytest.mark.parametrize("n", [1, 2, 3, 9_999, 10_001, 123_456])
@pytest.mark.parametrize("shape", ["even", "sorted", "falling", "few values", "equal", "periodic"])
def test_the_ranked_value_is_that_of_sorting(n: int, shape: str) -> None:
    rng = np.random.default_rng(n)
    values = {
        "even": rng.random(n),
        "sorted": np.sort(rng.random(n)),
        "falling": np.sort(rng.random(n))[::-1],
        "few values": rng.integers(1, 4, n).astype(float),
        "equal": np.ones(n),
        "periodic": 1.0 + np.arange(n) % (n // 10_000 + 1),  # a sample sees one value of many
    }[shape]
    for rank in {0, (n - 1) // 2, n - 1}:
        assert _ranked(values, rank) == np.sort(values)[rank]
