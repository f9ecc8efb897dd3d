"""The steps by which keypoints are found, each on an example that can be followed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import Matchings
from stiefelsync.sync.keypoints import _both, _by_image, _Ends, _look_up, _robust_means, _sizes, _spacing, _twins

# Two correspondences of image 0 with image `other`, as four ends; what was found is one keypoint for each end.
POINT = np.arange(4)


def ends(second: int, places: list[list[float]]) -> _Ends:
    """Return the ends of a correspondence of images 0 and 1 and one of images 0 and `second`."""
    image = np.array([0, 0, 1, second])
    return _Ends(image, np.array([0, 1, 2, 3]), np.array(places), np.array([[0, 1], [0, second]]))


def test_clusters_are_numbered_image_by_image() -> None:
    assert _by_image(np.array([5, 2, 5, 0]), np.array([1, 0, 1, 1])).tolist() == [2, 0, 2, 1]
    assert _sizes(np.array([2, 0, 2, 1]), np.array([1, 0, 1, 1]), 4).tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize(
    ("second", "places", "expected"),
    [
        (1, [[0, 0], [0.5, 0], [10, 10], [10.5, 10]], [0, 0, 2, 2]),  # near in both images: one keypoint found twice
        (1, [[0, 0], [0.5, 0], [10, 10], [30, 10]], [0, 1, 2, 3]),  # near in one of the two images only
        (2, [[0, 0], [0.5, 0], [10, 10], [10.5, 10]], [0, 1, 2, 3]),  # one common image says too little
        (1, [[0, 0], [4, 0], [10, 10], [14, 10]], [0, 1, 2, 3]),  # 8 + 8 is beyond the quantile 13.3 of χ² of 4
        (1, [[0, 0], [3.6, 0], [10, 10], [13.6, 10]], [0, 0, 2, 2]),  # 6.5 + 6.5 is not
    ],
)  # fmt: skip
def test_twins_coincide_wherever_both_are_seen(second: int, places: list[list[float]], expected: list[int]) -> None:
    for noise in (1.0, 0.2, 5.0):  # the unit of all distances
        scaled = (noise * np.array(places)).tolist()
        assert _twins(ends(second, scaled), POINT, 3, noise).tolist() == expected


def test_common_images_of_two_tracks() -> None:
    track = np.array([0, 1, 0, 1, 2, 0, -1])
    problem = Matchings.from_pairs({}, [2, 3, 2])
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    assert _both(track, problem, pairs @ np.array([7, 1])).tolist() == [2, 1, 1]


def test_robust_means_are_those_of_cauchy_weights() -> None:
    rng = np.random.default_rng(0)
    xy, point, noise = rng.normal(size=(9, 2)), np.array([0, 0, 0, 0, 1, 1, 1, 2, 2]), 0.7
    found = _robust_means(xy, point, noise)
    for p in range(3):
        mine = xy[point == p]
        mean = mine.mean(axis=0)
        for _ in range(5):
            weight = [1 / (1 + (x - mean) @ (x - mean) / (2 * noise) ** 2) for x in mine]
            mean = sum(w * x for w, x in zip(weight, mine, strict=True)) / sum(weight)
        np.testing.assert_allclose(found[p], mean)


@pytest.mark.parametrize("seed", range(3))
def test_images_of_both_tracks_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Matchings.from_pairs({}, [5, 4, 6, 5])
    track = np.concatenate([rng.permutation(np.append(np.arange(5), [-1] * 3))[:size] for size in problem.sizes])
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 5)]
    images = [set(problem.point_objects[track == t].tolist()) for t in range(5)]
    keys = np.array(pairs) @ np.array([problem.n_points, 1])
    assert _both(track, problem, keys).tolist() == [len(images[a] & images[b]) for a, b in pairs]


def test_spacing_is_the_median_distance_to_the_nearest_of_the_same_side() -> None:
    image, xy = np.array([0, 0, 1, 1, 2]), np.array([[0.0, 0], [3, 0], [0, 0], [3, 4], [9, 9]])
    assert _spacing(_Ends(image, np.array([0, 0, 1, 1, 2]), xy, np.array([[0, 1], [0, 2]]))) == 4.0
    assert _spacing(_Ends(image, np.arange(5), xy, np.array([[0, 1], [0, 2]]))) == 1.0  # alone on every side


def test_numbers_are_looked_up_among_sorted_ones() -> None:
    keys, wanted = np.array([2, 5, 9]), np.array([5, 1, 9, 12])
    place, there = _look_up(keys, wanted)
    assert (keys[place][there].tolist(), there.tolist()) == ([5, 9], [True, False, True, False])
    place, there = _look_up(keys[:0], wanted)
    assert (place.tolist(), there.tolist()) == ([0] * 4, [False] * 4)
