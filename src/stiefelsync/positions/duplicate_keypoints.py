"""Keypoints that a detector found twice: points of one object so close that they are one, as far as matches say so."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from stiefelsync.errors import InputError
from stiefelsync.matching.graph import connected
from stiefelsync.matching.matchings import Matchings

__all__ = ["merge_near", "representatives"]

Ints = NDArray[np.int64]


def merge_near(matchings: Matchings, distance: float) -> tuple[Matchings, Ints]:
    """Take points of one object for one if they are at most `distance` apart and matches lead from one to the other.

    Such points are no contradiction worth breaking a track for; COLMAP's global mapper tolerates up to 10 pixels.
    Points that no chain of matches connects stay apart however close they are.

    Parameters
    ----------
    matchings
        With coordinates.
    distance
        In pixels, 0 or more.

    Returns
    -------
    merged : Matchings
        On the same points, with every match moved to the points that stand for its ends. Where two matches of a point
        into one object are left the heavier stays, the first of equal ones.
    stands : (m,) int64
        For each point the point that stands for it; no two points that one stands for are farther apart than
        `distance`. After synchronising `merged`, an original match (a, b) is kept if the labels of ``stands[a]`` and
        ``stands[b]`` agree.

    Notes
    -----
    As :func:`representatives`.

    Examples
    --------
    >>> coordinates = [[10, 10], [10.4, 10], [5, 5], [7, 7]]
    >>> problem = Matchings.from_pairs(
    ...     {(0, 1): [[0, 0]], (0, 2): [[1, 0]], (1, 2): [[0, 0]]}, [2, 1, 1], coordinates=coordinates
    ... )
    >>> merged, stands = merge_near(problem, 1.0)
    >>> stands.tolist(), merged.pair(0, 2).tolist()
    ([0, 0, 2, 3], [[0, 0]])
    """
    if matchings.coordinates is None:
        raise InputError("these matches have no coordinates; near points cannot be merged")
    stands = representatives(matchings.coordinates, matchings.sizes, matchings.endpoints, distance)
    merged = Matchings.from_endpoints(
        stands[matchings.endpoints],
        matchings.sizes,
        weights=matchings.weights,
        names=matchings.names,
        coordinates=matchings.coordinates,
        one_to_many="repair",
    )
    return merged, stands


def representatives(coordinates: NDArray[Any], sizes: NDArray[Any], ends: Ints, distance: float) -> Ints:
    """Return for every point the point that stands for it and others of its object that are the same.

    Points are visited in order; one that no earlier point stands for, stands for itself and for every later free point
    that a chain of matches connects with it and that is no farther than `distance` from it and from all it stands for
    already. So what is taken for one lies within `distance`, pair by pair.

    Parameters
    ----------
    coordinates : (m, 2)
    sizes : (k,) int
        Points per object; coordinates are those of one object after another.
    ends : (M, 2) int
        Global indices of the two points of every match.
    distance
        In pixels, 0 or more.

    Returns
    -------
    (m,) int
        Global indices.

    Notes
    -----
    O(m log m + M + p·g), p being the pairs closer than `distance` and g the most points that one stands for.

    Examples
    --------
    >>> at = np.array([[0, 0], [0.5, 0], [0.7, 0], [0, 0]])
    >>> representatives(at, np.array([3, 1]), np.array([[0, 3], [2, 3]]), 1.0)
    array([0, 1, 0, 3])
    """
    if isinstance(distance, str) or not 0 <= distance < np.inf:
        raise InputError(f"the distance is {distance}; it must be a number of pixels, 0 or more")
    m = len(coordinates)
    component = connected(m, ends)
    stands = np.arange(m, dtype=np.int64)
    for end, size in zip(np.cumsum(sizes).tolist(), np.asarray(sizes).tolist(), strict=True):
        own = np.arange(end - size, end)
        own = own[np.isfinite(coordinates[own]).all(axis=1)]
        if len(own) < 2:
            continue
        close = own[cKDTree(coordinates[own]).query_pairs(distance, output_type="ndarray")]
        close = close[component[close[:, 0]] == component[close[:, 1]]]
        pairs = list(map(tuple, close[np.lexsort(close.T[::-1])].tolist()))
        known, others = set(pairs), defaultdict[int, list[int]](list)
        for a, b in pairs:
            if stands[a] == a and stands[b] == b and all((c, b) in known for c in others[a]):
                stands[b] = a
                others[a].append(b)
    return stands
