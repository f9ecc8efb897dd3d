"""Points of one object that are one: against a slow transcription, and what is asked of the caller."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, datasets
from stiefelsync.matching.graph import components
from stiefelsync.positions.duplicate_keypoints import representatives


def literal_representatives(problem: Matchings, distance: float) -> list[int]:
    """Visit the points in order: a free one stands for every later free one near it and near all it stands for."""
    _, component = components(problem)
    at, owner = problem.coordinates, problem.point_objects
    stands: list[int | None] = [None] * problem.n_points
    for a in range(problem.n_points):
        if stands[a] is not None:
            continue
        stands[a], group = a, [a]
        for b in range(a + 1, problem.n_points):
            near = all(np.linalg.norm(at[b] - at[c]) <= distance for c in group)
            if stands[b] is None and owner[b] == owner[a] and component[b] == component[a] and near:
                stands[b] = a
                group.append(b)
    return [s for s in stands if s is not None]


def stands_for(problem: Matchings, distance: float) -> list[int]:
    return representatives(problem.coordinates, problem.sizes, problem.endpoints, distance).tolist()


@pytest.mark.parametrize("distance", [0.0, 0.5, 1.0, 2.5, 40.0])
@pytest.mark.parametrize("seed", range(4))
def test_representatives_are_those_of_the_rule(distance: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, _ = datasets.synthetic(6, 5, 0.9, 0.5, rng=seed)
    at = rng.integers(0, 5, size=(problem.n_points, 2)) * 0.5  # many at the same distance, some at the same place
    problem = Matchings.from_pairs(problem.pairs(), problem.sizes, coordinates=at)
    expected = literal_representatives(problem, distance)
    assert stands_for(problem, distance) == expected


def test_points_without_a_position_stand_for_themselves() -> None:
    at = np.array([[0, 0], [np.nan, 0], [0, 0.1], [5, 5]])
    problem = Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[1, 0]], (1, 2): [[0, 0]]}, [2, 1, 1], coordinates=at)
    assert stands_for(problem, 9.0) == [0, 1, 2, 3]


def test_near_points_are_merged_only_where_matches_connect_them() -> None:
    coordinates = np.array([[0, 0], [0, 1], [50, 0], [50, 1], [5, 5], [5, 50], [9, 9]])
    pairs = {(0, 1): [[0, 0], [2, 1]], (0, 2): [[1, 0]], (1, 2): [[0, 0]]}
    problem = Matchings.from_pairs(pairs, [4, 2, 1], coordinates=coordinates)
    assert stands_for(problem, 2.0) == [0, 0, 2, 3, 4, 5, 6]
    assert stands_for(problem, 0.5) == list(range(7))


def test_an_object_of_two_points_that_are_one() -> None:
    problem = Matchings.from_pairs(
        {(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 1], coordinates=np.zeros((4, 2))
    )
    assert stands_for(problem, 1.0) == [0, 0, 2, 3]


def test_the_distance_is_a_number_of_pixels() -> None:
    placed = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], coordinates=np.zeros((2, 2)))
    for distance in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="it must be a number of pixels, 0 or more"):
            stands_for(placed, distance)
