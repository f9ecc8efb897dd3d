"""Neighbours of positions of any shape: the kernel's tree against a plain search."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from stiefelsync import Matchings
from stiefelsync.positions.neighbours import neighbour_support
from tests.positions.test_neighbours import literal_support

Floats = NDArray[np.float64]


def shaped(shape: str, n: int, rng: np.random.Generator) -> Floats:
    """Return n positions, shape (n, 2)."""
    at = rng.uniform(0, 1000, (n, 2))
    lattice = np.stack(np.divmod(np.arange(n), 17), axis=1)
    return {
        "even": at,
        "huge": at * 1e33,
        "tiny": at * 1e-42,  # subnormal in single precision
        "outlier": np.where(np.arange(n)[:, None] == n // 2, 1e6, at),
        "line": at * [1, 0],
        "slanting line": at[:, :1] * [1, 3],
        "clusters": at[rng.integers(0, 3, n)] + rng.normal(0, 0.01, (n, 2)),
        "every scale": at * 10.0 ** rng.uniform(-9, 3, (n, 1)),
        "lattice": 8.0 * lattice + 4,
        "fine lattice": lattice * 0.1,  # no multiples of a power of two, so that equal distances differ by rounding
        "rounded": np.round(at / 50) * 50,
        "far from the origin": np.round(at) + 1e6,
        "two places": np.where(np.arange(n)[:, None] % 3 == 0, 0.0, 5.0) * np.ones((n, 2)),
        "one elsewhere": np.where(np.arange(n)[:, None] == 0, 0.0, 5.0) * np.ones((n, 2)),
    }[shape]


SHAPES = (
    "even", "huge", "tiny", "outlier", "line", "slanting line", "clusters", "every scale", "lattice",
    "fine lattice", "rounded", "far from the origin", "two places", "one elsewhere",
)  # fmt: skip


def pair_of(at: Floats, rng: np.random.Generator) -> Matchings:
    """Return matches of positions with the same ones, of which a tenth is permuted."""
    partner, some = np.arange(len(at)), rng.choice(len(at), len(at) // 10, replace=False)
    partner[some] = np.roll(some, 1)
    matches = np.stack([np.arange(len(at)), partner], axis=1)
    return Matchings.from_pairs({(0, 1): matches}, [len(at)] * 2, coordinates=np.vstack([at, at @ [[0, 1], [-1, 0]]]))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_tree_finds_what_the_plain_search_finds(shape: str) -> None:
    rng = np.random.default_rng(0)
    for n, neighbours in ((9, 8), (10, 9), (16, 1), (17, 8), (40, 39), (65, 12), (257, 8)):
        problem = pair_of(shaped(shape, n, rng), rng)
        found = neighbour_support(problem, neighbours, cell=np.zeros(2))
        x, y = (problem.coordinates.astype(np.float32).astype(float) @ [1, 1j])[problem.endpoints].T
        np.testing.assert_allclose(found, literal_support(x, y, neighbours, 0.5), rtol=0, atol=1e-4)


def test_pairs_with_unknown_places_and_pairs_in_one_place() -> None:
    rng = np.random.default_rng(1)
    labels = np.tile(np.arange(60), 5)
    at = np.tile(rng.uniform(0, 100, (60, 2)), (5, 1)) + rng.normal(size=(300, 2))
    at[rng.random(300) < 0.2] = np.nan
    at[120:180] = 7.0
    problem = Matchings.from_labels(labels, [60] * 5, coordinates=at)
    problem = problem.keep(rng.random(problem.n_matches) < rng.uniform(0.1, 1, 10)[problem.match_pairs])
    found = neighbour_support(problem)
    assert 0.2 < np.isnan(found).mean() < 0.9
    assert np.isnan(found[(problem.pair_objects[problem.match_pairs] == 2).any(axis=1)]).all()
    place = problem.coordinates.astype(float)
    for a, b in pairwise(problem.pair_start.tolist()):
        ends = place[problem.endpoints[a:b]]
        known = np.flatnonzero(np.isfinite(ends).all(axis=(1, 2)))
        unknown = np.setdiff1d(np.arange(b - a), known)
        x, y = (ends[known] @ [1, 1j]).T
        if len(known) <= 8 or len(set(x.tolist())) == 1 or len(set(y.tolist())) == 1:
            known, unknown = known[:0], np.arange(b - a)
        else:
            np.testing.assert_allclose(found[a:b][known], literal_support(x, y, 8, 0.5), rtol=0, atol=1e-4)
        assert np.isnan(found[a:b][unknown]).all()


@pytest.mark.parametrize("shape", ["even", "outlier", "line", "lattice", "rounded"])
def test_time_grows_as_the_number_of_matches_whatever_their_shape(shape: str) -> None:
    rng = np.random.default_rng(2)
    seconds = []
    for n in (5_000, 50_000):
        problem, runs = pair_of(shaped(shape, n, rng), rng), []
        for _ in range(3):
            start = time.process_time()
            neighbour_support(problem, cell=np.zeros(2))
            runs.append(time.process_time() - start)
        seconds.append(min(runs))
    assert seconds[1] < 50 * seconds[0]  # a hundred times if every match looked at every other
