"""Matches between tracks that differ only by copies of a keypoint.

Found twice, or in neighbouring cells of a grid.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings

__all__ = ["lead_to_copies"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MEMBERS_PER_CHUNK = 1_000_000  # points of tracks looked up at once


def lead_to_copies(matchings: Matchings, labels: Ints, places: Floats, asked: Bools | None = None) -> Bools:
    """Return which matches join two tracks that contradict each other by copies of keypoints only.

    A track holds one point of an object. A keypoint found twice, or seen in two neighbouring cells
    of a grid, is two points, and its matches are shared out among two tracks. A match between these
    contradicts the tracks, but is no mistake of identity: in most objects that both tracks have a
    point of, the two are so near that they may be one.

    Parameters
    ----------
    labels : (m,) int
        Track of every point, -1 for points in none, which are tracks of their own.
    places : (m, 2) float64
        Positions, in such units that points of an object less than 1 apart are one point found
        twice; NaN where unknown.
    asked : (M,) bool, optional
        The matches to ask about, all of them by default.

    Returns
    -------
    (M,) bool
        Never true of a match inside a track, nor of one between tracks without a common object.

    Notes
    -----
    O(m + M + (n + l) log n), where n counts the points of tracks with such a match, and l sums the
    lengths of the shorter tracks over all pairs of tracks with one.

    Examples
    --------
    Points 0 and 1 of the first object are half a unit apart, and each is matched with the point of
    another object.

    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[1, 0]], (1, 2): [[0, 0]]}, [2, 1, 1])
    >>> at = np.array([[0.0, 0.0], [0.5, 0.0], [3.0, 3.0], [7.0, 7.0]])
    >>> lead_to_copies(problem, np.array([0, -1, 0, 0]), at).tolist()
    [False, True, False]
    >>> lead_to_copies(problem, np.array([0, -1, 0, 0]), 4 * at).any()
    np.False_
    """
    k, found = matchings.n_objects, np.zeros(matchings.n_matches, dtype=bool)
    track = np.where(labels >= 0, labels, np.arange(len(labels)) + int(labels.max(initial=-1)) + 1)
    one, two = track[matchings.endpoints].T
    between = np.flatnonzero(one != two) if asked is None else np.flatnonzero((one != two) & asked)
    if not len(between):
        return found
    # Every pair of tracks once, however many matches join them; the shorter first, whose points are
    # looked up.
    size = np.bincount(track, minlength=1)
    one, two = one[between], two[between]
    swap = (size[one] > size[two]) | ((size[one] == size[two]) & (one > two))
    shorter, longer = np.where(swap, two, one), np.where(swap, one, two)
    keys, of_match = np.unique(shorter * len(size) + longer, return_inverse=True)
    shorter, longer = np.divmod(keys, len(size))
    # The points of these tracks, by track and object.
    involved = np.zeros(len(size), dtype=bool)
    involved[shorter] = involved[longer] = True
    order = np.flatnonzero(involved[track])
    key = track[order] * k + matchings.point_objects[order]
    by = np.argsort(key, kind="stable")
    key, order = key[by], order[by]
    counts = np.where(involved, size, 0)
    start = np.cumsum(counts) - counts
    near = np.zeros(len(keys), dtype=np.int64)
    count = size[shorter]
    for part in _chunks(count):
        which = np.repeat(np.arange(part.start, part.stop), count[part])
        before = np.cumsum(count[part]) - count[part]
        point = order[start[shorter[which]] + np.arange(len(which)) - before[which - part.start]]
        wanted = longer[which] * k + matchings.point_objects[point]
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        common = key[at] == wanted
        apart = ((places[point[common]] - places[order[at[common]]]) ** 2).sum(axis=1)
        near += np.bincount(which[common], (apart < 1).astype(np.int64) - (apart >= 1), len(keys)).astype(np.int64)
    found[between] = (near > 0)[of_match]
    return found


def _chunks(counts: Ints) -> list[slice]:
    """Split rows into runs of about `_MEMBERS_PER_CHUNK` counts each."""
    cuts = np.flatnonzero(np.diff(np.cumsum(counts) // _MEMBERS_PER_CHUNK)) + 1
    bounds = [0, *cuts.tolist(), len(counts)]
    return [slice(a, b) for a, b in pairwise(bounds)]
