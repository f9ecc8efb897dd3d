"""What only COLMAP's rule promises: pixels decide whether a track with two points of an image goes."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.datasets import synthetic
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import METHODS
from stiefelsync.sync.synchronise import synchronise

PAIRS = {(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}  # a path through four points, two of object 0


def labels(*first: tuple[float, float], **options: float) -> list[int]:
    problem = Matchings.from_pairs(PAIRS, [2, 1, 1], coordinates=[*first, (5, 5), (5, 5)])
    return synchronise(problem, method="colmap-tracks", **options).labels.tolist()


@pytest.mark.parametrize("offset", [(10, 0), (0, 10), (7, 7), (6, 8), (0, 0)])
def test_points_within_ten_pixels_are_one(offset: tuple[float, float]) -> None:
    assert labels((200, 100), (200 + offset[0], 100 + offset[1])) == [0, -1, 0, 0]


@pytest.mark.parametrize("offset", [(10.5, 0), (0, -11), (8, 8), (np.nan, 0)])
def test_points_farther_apart_condemn_the_track(offset: tuple[float, float]) -> None:
    assert labels((200, 100), (200 + offset[0], 100 + offset[1])) == [-1] * 4


def test_the_distance_is_an_option() -> None:
    assert labels((0, 0), (3, 0), apart=2.0) == [-1] * 4
    assert labels((0, 0), (30, 0), apart=40.0) == [0, -1, 0, 0]
    with pytest.raises(InputError, match="must be at least 0, got -1"):
        labels((0, 0), (3, 0), apart=-1.0)


@pytest.mark.parametrize("seed", range(4))
def test_without_positions_it_is_union_find(seed: int) -> None:
    problem, _ = synthetic(30, 5, 0.5, 0.15, rng=seed)
    ours, theirs = (METHODS[n].run(problem, 30, rng=np.random.default_rng(0)) for n in ("colmap-tracks", "union-find"))
    assert ours.details.dropped_tracks == theirs.details.dropped_tracks > 0
    np.testing.assert_array_equal(ours.labels, theirs.labels)
