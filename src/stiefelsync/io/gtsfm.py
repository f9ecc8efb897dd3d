"""A tracks estimator of GTSfM's shape: matches and keypoints in, conflict-free tracks out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import find_method
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


@dataclass(frozen=True, init=False)
class TracksEstimator:
    """Estimates tracks by synchronisation, where union-find would discard every track that meets an image twice.

    Attributes
    ----------
    method, universe, seed
        As in :func:`stiefelsync.synchronise`.
    make_track, make_measurement
        What to build tracks of; pass GTSfM's ``SfmTrack2d`` and ``SfmMeasurement`` to use it there.
    options
        Of the method, given by name: ``TracksEstimator("tracks", neighbours=0)``.

    Examples
    --------
    >>> matches = {(0, 1): np.array([[0, 0]]), (1, 2): np.array([[0, 0]]), (0, 2): np.array([[0, 0]])}
    >>> tracks = TracksEstimator().run(matches, [np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 2))])
    >>> [[measurement.i for measurement in track.measurements] for track in tracks]
    [[0, 1, 2]]
    """

    method: str
    universe: int | str
    seed: int
    make_track: Callable[[list[Any]], Any]
    make_measurement: Callable[[int, NDArray[Any]], Any]
    options: Mapping[str, Any] = field(hash=False)

    @typed
    def __init__(
        self,
        method: str = "accurate",
        universe: int | str = "auto",
        seed: int = 0,
        make_track: Callable[[list[Any]], Any] = Track,
        make_measurement: Callable[[int, NDArray[Any]], Any] = Measurement,
        **options: Any,
    ) -> None:
        find_method(method).check_options(options)
        vars(self).update(
            method=method, universe=universe, seed=seed, make_track=make_track, make_measurement=make_measurement,
            options=options,
        )  # fmt: skip

    @typed
    def run(self, matches_dict: Mapping[tuple[int, int], ArrayLike], keypoints: Sequence[Any]) -> list[Any]:
        """Return the tracks seen by at least two images; none where nothing matches.

        Parameters
        ----------
        matches_dict
            ``{(i, j): (K, 2) ints}``; one-to-many matches are repaired.
        keypoints
            Per image an array (N, 2), or an object whose `coordinates` are one. Method "tracks" uses the positions.
        """
        positions = [np.asarray(getattr(points, "coordinates", points)) for points in keypoints]
        for i, block in enumerate(positions):
            if len(block) and block.shape != (len(block), 2):
                raise InputError(f"the keypoints of image {i} must be of shape (N, 2), got {block.shape}")
        at = np.concatenate([np.empty((0, 2)), *(block for block in positions if len(block))])
        sizes = [len(block) for block in positions]
        problem = Matchings.from_pairs(matches_dict, sizes, coordinates=at, one_to_many="repair")
        if not problem.n_matches:
            return []
        result = synchronise(problem, self.universe, method=self.method, rng=self.seed, **self.options)
        return [
            self.make_track([self.make_measurement(i, positions[i][a]) for i, a in track.tolist()])
            for track in result.tracks()
        ]
