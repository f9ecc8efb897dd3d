"""Positions on a grid: noticed, allowed for, and told."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import Matchings, synchronise
from stiefelsync.inspection import inspect
from stiefelsync.positions import neighbours as module
from stiefelsync.positions.grid import resolution
from stiefelsync.positions.neighbours import neighbour_support


def two_views(cell: float, n: int = 400, seed: int = 0) -> Matchings:
    """Two views of a plane, one turned a little and larger, rounded to the centres of cells."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 1000, (n, 2))
    second = first @ (1.2 * np.array([[0.98, 0.2], [-0.2, 0.98]])) + 300
    places = np.concatenate([first, second])
    if cell:
        places = (np.floor(places / cell) + 0.5) * cell
    return Matchings.from_pairs({(0, 1): np.stack([np.arange(n)] * 2, axis=1)}, [n, n], coordinates=places)


@pytest.mark.parametrize("cell", [0.0, 1.0, 8.0, 16.0])
def test_the_cell_is_found(cell: float) -> None:
    problem = two_views(cell)
    np.testing.assert_allclose(resolution(problem.coordinates, problem.sizes), cell)


def test_twenty_points_are_enough() -> None:
    at = 8.0 * np.stack(np.meshgrid(np.arange(5), np.arange(4)), axis=-1).reshape(20, 2)
    assert resolution(at, np.array([20])).tolist() == [8.0]
    assert resolution(at[:19], np.array([19])).tolist() == [0.0]


def test_few_points_and_unknown_ones_are_on_no_grid() -> None:
    at = 8.0 * np.arange(20).reshape(10, 2)
    assert resolution(at, np.array([10])).tolist() == [0.0]
    assert resolution(np.full((30, 2), np.nan), np.array([30, 0])).tolist() == [0.0, 0.0]
    assert resolution(np.full((30, 2), 4.0), np.array([30])).tolist() == [0.0]


def test_rounding_is_not_held_against_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = two_views(16.0, n=3000)
    allowed = neighbour_support(problem)
    monkeypatch.setattr(module, "resolution", lambda coordinates, sizes: np.zeros(len(sizes)))
    held = neighbour_support(problem)
    assert (allowed >= held).all()
    assert allowed.mean() - held.mean() > (1 - held.mean()) / 3  # all matches are right: a third of the loss at least


def test_neighbouring_cells_are_one_point_by_default() -> None:
    """Six objects see one point, object 2 in two cells: objects 0 and 1 know the one, the others know the other."""
    others = 8.0 * np.random.default_rng(0).integers(0, 60, (25, 2)) + 4
    places = np.vstack([[[404.0, 404.0]], others, [[412.0, 412.0]]])
    sizes = [26, 26, 27, 26, 26, 26]
    local = np.concatenate([np.arange(size) for size in sizes])
    owner = np.repeat(np.arange(6), sizes)
    pairs = {}
    for i in range(6):
        for j in range(i + 1, 6):
            rows = [[p, p] for p in range(1, 26)]
            if j < 3 or (i < 2 and j == 3):
                rows.append([0, 0])
            elif i > 1:
                rows.append([26 if i == 2 else 0, 0])
            pairs[i, j] = rows
    problem = Matchings.from_pairs(pairs, sizes, coordinates=places[local])
    for options, whole in (({}, True), ({"copies": 0.001}, False)):
        labels = synchronise(problem, method="tracks", neighbours=0, **options).labels
        assert (len(np.unique(labels[(local == 0) & (owner != 2)])) == 1) == whole


def test_the_distance_of_conflicts_follows_the_grid() -> None:
    assert inspect(two_views(0.0)).near == 10
    assert inspect(two_views(16.0)).near == 24


def test_inspection_says_whether_it_is_worth_while() -> None:
    assert inspect(two_views(0.0)).worth.startswith("no:")
    problem = two_views(0.0)
    rng, indices = np.random.default_rng(1), problem.indices.copy()
    wrong = rng.choice(400, 80, replace=False)
    indices[wrong, 1] = indices[rng.permutation(wrong), 1]
    mixed = Matchings.from_pairs({(0, 1): indices}, problem.sizes, coordinates=problem.coordinates)
    found = inspect(mixed)
    assert found.worth.startswith("yes:")
    assert found.alone_share == pytest.approx(0.2, abs=0.05)
