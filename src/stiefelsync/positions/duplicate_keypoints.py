"""Keypoints that a detector found twice.

Points of one object so close that they are one, as far as matches say so.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from stiefelsync.errors import InputError
from stiefelsync.matching.graph import connected

__all__ = ["representatives"]

Ints = NDArray[np.int64]


def representatives(coordinates: NDArray[Any], sizes: NDArray[Any], ends: Ints, distance: float) -> Ints:
    """Return for every point the one that stands for it and others that are the same.

    Points are visited in order; one that no earlier point stands for, stands for itself and for
    every later free point that a chain of matches connects with it and that is no farther than
    `distance` from it and from all it stands for already. So what is taken for one lies within
    `distance`, pair by pair. Points that no chain of matches joins stay apart however close they
    are. COLMAP's global mapper tolerates points of a track up to 10 pixels apart.

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
    O(m log m + M + p·g), p being the pairs closer than `distance` and g the most points that one
    stands for.

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
        # Near in the image and connected by matches; either alone says little.
        close = own[cKDTree(coordinates[own]).query_pairs(distance, output_type="ndarray")]
        close = close[component[close[:, 0]] == component[close[:, 1]]]
        pairs = list(map(tuple, close[np.lexsort(close.T[::-1])].tolist()))
        known, others = set(pairs), defaultdict[int, list[int]](list)
        for a, b in pairs:
            if stands[a] == a and stands[b] == b and all((c, b) in known for c in others[a]):
                stands[b] = a
                others[a].append(b)
    return stands
