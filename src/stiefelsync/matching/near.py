"""Keypoints that a detector found twice: points of one object so close that they are one, as far as matches say so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from stiefelsync.errors import InputError
from stiefelsync.matching.graph import components
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
        into one object are left the first stays.
    stands : (m,) int64
        For each point the point that stands for it, never farther than `distance`. After synchronising `merged`, an
        original match (a, b) is kept if the labels of ``stands[a]`` and ``stands[b]`` agree.

    Notes
    -----
    O(m log m + pairs within `distance`).

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
    _, component = components(matchings)
    stands = representatives(matchings.coordinates, matchings.sizes, distance, component)
    ends = stands[matchings.endpoints]
    owner = matchings.point_objects[ends]
    merged = Matchings.from_arrays(
        owner,
        ends - matchings.offsets[owner],
        matchings.sizes,
        weights=matchings.weights,
        names=matchings.names,
        coordinates=matchings.coordinates,
        on_conflict="repair",
    )
    return merged, stands


def representatives(
    coordinates: NDArray[Any], sizes: NDArray[Any], distance: float, groups: Ints | None = None
) -> Ints:
    """Return for every point the point that stands for it and all others of its object within `distance`.

    Points are visited in order; one that no earlier point stands for, stands for itself and for every later free point
    no farther than `distance`. So a point is never farther than `distance` from the one that stands for it.

    Parameters
    ----------
    coordinates : (m, 2)
    sizes : (k,) int
        Points per object; coordinates are those of one object after another.
    distance
        In pixels, 0 or more.
    groups : (m,) int, optional
        Points of different groups never stand for each other.

    Returns
    -------
    (m,) int
        Global indices.

    Notes
    -----
    O(m log m + pairs closer than `distance`).

    Examples
    --------
    >>> representatives(np.array([[0, 0], [9, 9], [0.5, 0], [0, 0]]), np.array([3, 1]), 1.0)
    array([0, 1, 0, 3])
    """
    if isinstance(distance, str) or not 0 <= distance < np.inf:
        raise InputError(f"the distance is {distance}; it must be a number of pixels, 0 or more")
    stands = np.arange(len(coordinates), dtype=np.int64)
    for end, size in zip(np.cumsum(sizes).tolist(), np.asarray(sizes).tolist(), strict=True):
        own = np.arange(end - size, end)
        own = own[np.isfinite(coordinates[own]).all(axis=1)]
        if len(own) < 2:
            continue
        close = own[cKDTree(coordinates[own]).query_pairs(distance, output_type="ndarray")]
        if groups is not None:
            close = close[groups[close[:, 0]] == groups[close[:, 1]]]
        for a, b in close[np.lexsort(close.T[::-1])].tolist():
            if stands[a] == a and stands[b] == b:
                stands[b] = a
    return stands
