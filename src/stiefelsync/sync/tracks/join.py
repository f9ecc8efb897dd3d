"""Join tracks that a conflict keeps apart, where matches outweigh the points given up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call
from stiefelsync.sync.tracks.scale import ROUNDING

__all__ = ["join"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MAX_ROUNDS = 20  # joins by copies may undo each other, and this ends it


def join(
    track: Ints,
    objects: NDArray[np.integer[Any]],
    ends: Ints,
    weights: Floats,
    places: Floats | None = None,
    *,
    least: int | None = None,
) -> tuple[Ints, int]:
    """Join pairs of tracks if that keeps more weight of matches.

    Where both tracks have a point of the same object, one of the two is expelled and then a track
    of its own: the one with less weight of matches into the two tracks, or all of one track,
    whichever keeps most. A join is made only if the weight of matches inside tracks grows, so that
    without `places` the objective tr(PᵀWP) grows with every join.

    Two points of an object in the same place are one point found twice. As a match between the
    tracks would, they say that these belong together, so each such pair counts as one of average
    weight, if the join makes a longer track.

    Parameters
    ----------
    track : (m,) int64
        Track of every point, named by one of its points.
    objects : (m,) int
        Object of every point.
    ends : (M, 2) int64
        Matches, as points.
    weights : (M,) float64
    places : (m, 2) float64, optional
        Positions, in such units that points of an object less than 1 apart are in the same place.
    least
        Matches there must be between two tracks; None: two if a single one cannot be enough, else
        one.

    Returns
    -------
    track : (m,) int64
        The tracks afterwards; a new array.
    joined : int
        Number of joins.

    Notes
    -----
    O(M log M), then at most twenty rounds over the tracks with matches between them. In each round
    tracks join with the one they share most weight of matches with, if that is mutual.

    Examples
    --------
    Two tracks of three points each hold a point of object 2; four matches join them, two the
    expelled point.

    >>> track, objects = np.array([0, 0, 0, 3, 3, 3]), np.array([0, 1, 2, 2, 3, 4])
    >>> ends = np.array([[0, 1], [0, 2], [3, 4], [4, 5], [0, 4], [0, 5], [1, 4], [1, 5]])
    >>> join(track, objects, ends, np.ones(8))[0].tolist()
    [0, 0, 0, 3, 0, 0]

    One match between them is not enough, unless the two points of object 2 are in the same place.

    >>> join(track, objects, ends[:5], np.ones(5))[0].tolist()
    [0, 0, 0, 3, 3, 3]
    >>> join(track, objects, ends[:5], np.ones(5), np.zeros((6, 2)))[0].tolist()
    [0, 0, 0, 3, 0, 0]
    """
    copy = float(weights.mean()) if len(weights) else 0.0
    # Among matches of one weight a single one outweighs no expelled point.
    if least is None:
        least = 2 if places is None and (weights == weights[:1]).all() else 1
    if (ends[1:, 0] < ends[:-1, 0]).any():
        order = np.argsort(ends[:, 0], kind="stable")
        ends, weights = ends[order], weights[order]
    track, owner = track.copy(), np.ascontiguousarray(objects, np.int32)
    joined = call(
        "join_tracks", ends, weights, len(ends), track, owner, len(track), places, copy, ROUNDING, least, _MAX_ROUNDS
    )
    return track, joined
