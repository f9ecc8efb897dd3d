"""A tracks estimator of GTSfM's shape: matches and keypoints in, conflict-free tracks out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.synchronise import synchronise

__all__ = ["Measurement", "Track", "TracksEstimator"]


@dataclass(frozen=True, eq=False)
class Measurement:
    """A keypoint of a track: the image `i` and its position `uv`, shape (2,)."""

    i: int
    uv: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Track:
    """One 3-D point's keypoints, at most one per image."""

    measurements: list[Measurement]


@dataclass(frozen=True)
class TracksEstimator:
    """Estimates tracks by synchronisation, where union-find would discard every track that meets an image twice.

    Attributes
    ----------
    method, universe, seed
        As in :func:`stiefelsync.synchronise`.
    make_track, make_measurement
        What to build tracks of; pass GTSfM's ``SfmTrack2d`` and ``SfmMeasurement`` to use it there.

    Examples
    --------
    >>> matches = {(0, 1): np.array([[0, 0]]), (1, 2): np.array([[0, 0]]), (0, 2): np.array([[0, 0]])}
    >>> tracks = TracksEstimator().run(matches, [np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 2))])
    >>> [[measurement.i for measurement in track.measurements] for track in tracks]
    [[0, 1, 2]]
    """

    method: str = "accurate"
    universe: int | str = "auto"
    seed: int = 0
    make_track: Callable[[list[Any]], Any] = Track
    make_measurement: Callable[[int, NDArray[Any]], Any] = Measurement

    def run(self, matches_dict: Mapping[tuple[int, int], ArrayLike], keypoints: Sequence[Any]) -> list[Any]:
        """Return the tracks seen by at least two images.

        Parameters
        ----------
        matches_dict
            ``{(i, j): (K, 2) ints}``; one-to-many matches are repaired.
        keypoints
            Per image an array (N, 2), or an object whose `coordinates` are one.
        """
        positions = [np.asarray(getattr(points, "coordinates", points)) for points in keypoints]
        problem = Matchings.from_pairs(matches_dict, [len(block) for block in positions], on_conflict="repair")
        result = synchronise(problem, self.universe, method=self.method, rng=self.seed)
        return [
            self.make_track([self.make_measurement(i, positions[i][a]) for i, a in track.tolist()])
            for track in result.tracks()
        ]
