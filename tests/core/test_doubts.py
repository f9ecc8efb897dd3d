"""Kernels of doubts and grids, match by match and position by position."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from stiefelsync._core.binding import call

STRANGE = [0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, 1e-300, 1e300, 5e-324]


@pytest.mark.parametrize("M", [0, 1, 63, 64, 65, 300])
@pytest.mark.parametrize("borders", [[], [0.1], [0.1, 0.25, 0.25, 0.5]])
def test_levels_of_support(M, borders):
    rng, n = np.random.default_rng(M), len(borders)
    support = np.where(rng.random(M) < 0.3, rng.choice(STRANGE, M), rng.choice([0.05, 0.1, 0.25, 0.3, 0.9], M))
    speak, kept = rng.random((2, M)) < 0.5
    level, counts = np.empty(M, dtype=np.uint8), np.zeros((n + 3, 2, 2), dtype=np.int64)
    call("grade_matches", M, support, n, np.array(borders), speak, kept, level, counts)
    expected = [
        n + 2 if not math.isfinite(s) else n + 1 if not s > 0 else sum(s >= b for b in borders)
        for s in support.tolist()
    ]
    assert level.tolist() == expected
    told = Counter(zip(expected, speak.tolist(), (~kept).tolist(), strict=True))
    for key in np.ndindex(n + 3, 2, 2):
        assert counts[key] == told[key[0], bool(key[1]), bool(key[2])]


@pytest.mark.parametrize("sizes", [[], [0], [5], [3, 0, 70, 1]])
def test_sums_and_odds_of_pairs(sizes):
    rng, P = np.random.default_rng(1), len(sizes)
    start = np.append(0, np.cumsum(sizes)).astype(np.int64)
    M = int(start[-1])
    level, value = rng.integers(4, size=M).astype(np.uint8), np.array([0.25, 2.0, 0.0, np.inf])
    kept, which = rng.random((2, M)) < 0.6
    factor, sums, odds = rng.integers(1, 5, P) / 2, np.empty(P), np.empty(M)
    call("sum_levels", P, start, level, value, sums)
    call("spread_odds", P, start, level, value, factor, kept, odds)
    for g in range(P):
        own = range(start[g], start[g + 1])
        assert sums[g] == sum(value[level[e]] for e in own)
        assert [odds[e] for e in own] == [value[level[e]] * factor[g] if kept[e] else math.inf for e in own]
    agree, lower = rng.integers(6, size=M).astype(np.int32), 0.5 ** np.arange(4)
    lowered = odds.copy()
    call("lower_odds", M, agree, 3, lower, lowered)
    assert lowered.tolist() == [o * lower[min(a, 3)] for o, a in zip(odds.tolist(), agree.tolist(), strict=True)]
    counts = np.empty(P, dtype=np.int64)
    call("sum_probabilities", P, start, odds, which, sums, counts)
    for g in range(P):
        own = [e for e in range(start[g], start[g + 1]) if which[e]]
        assert counts[g] == len(own)
        assert sums[g] == pytest.approx(math.fsum(1 - 1 / (1 + odds[e]) for e in own), rel=1e-12)


def literal_cell(values: list[float], near: float, share: float) -> float:
    """The commonest gap, of equally common ones the smallest, if most values are whole multiples of it away."""
    gaps = Counter(round((b - a) * 1e6) for a, b in itertools.pairwise(values) if b > a)
    if not gaps:
        return 0.0
    cell = min(gaps, key=lambda gap: (-gaps[gap], gap)) / 1e6
    if cell == 0:
        return 0.0
    on = sum(abs((x - values[0]) / cell - round((x - values[0]) / cell)) < near for x in values)
    return cell if on / len(values) >= share else 0.0


@pytest.mark.parametrize("kind", ["none", "cells", "most of them", "hundredths", "one place", "tiny", "three", "huge"])
def test_cells(kind):
    rng = np.random.default_rng(0)
    for case in range(20):
        sizes = rng.integers(1, 60, 4) if case % 2 else rng.integers(15, 200, 4)
        at = rng.uniform(0, 100, int(sizes.sum()))
        at = {
            "none": at,
            "cells": np.round(at / 8) * 8 + 4,
            "most of them": np.where(rng.random(len(at)) < 0.96, np.round(at / 0.3) * 0.3, at),
            "hundredths": np.round(at, 2),
            "one place": np.zeros_like(at),
            "tiny": np.round(at * 1e-7, 9),  # gaps that are rounded to nothing
            "three": np.round(at) * rng.choice([1, 2, 4], len(at)),
            "huge": np.round(at / 5) * 5e8,
        }[kind]
        start = np.append(0, np.cumsum(sizes)).astype(np.int64)
        values = np.concatenate([np.sort(at[a:b]) for a, b in itertools.pairwise(start)])
        found = np.empty(4)
        call("find_cells", 4, start, values, 0.01, 0.95, found)
        assert found.tolist() == [literal_cell(values[a:b].tolist(), 0.01, 0.95) for a, b in itertools.pairwise(start)]
