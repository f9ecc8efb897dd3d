"""Join tracks that a conflict keeps apart, where the matches between them outweigh the points given up for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.large_merge import mutual_best, ordered

__all__ = ["join"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MOST_ROUNDS = 5


def join(track: Ints, objects: NDArray[np.integer[Any]], ends: Ints, weights: Floats) -> tuple[Ints, int]:
    """Join pairs of tracks with two or more matches between them if that keeps more weight of matches.

    Where both tracks have a point of the same object, the one with less weight of matches into the two tracks is
    expelled and stays alone. A join is made only if the weight of matches inside tracks grows, so that the objective
    tr(PᵀWP) of the labelling grows with every join.

    Parameters
    ----------
    track : (m,) int64
        Track of every point, named by one of its points.
    objects : (m,) int
        Object of every point.
    ends : (M, 2) int64
        Matches, as points.
    weights : (M,) float64

    Returns
    -------
    track : (m,) int64
        The tracks afterwards; a new array.
    joined : int
        Number of joins.

    Notes
    -----
    O(M log M), then at most five rounds over the tracks with two or more matches between them. In each round tracks
    join with the one they share most matches with, if that is mutual.

    Examples
    --------
    Two tracks of three points each hold a point of object 2; four matches join them, two the expelled point.

    >>> track, objects = np.array([0, 0, 0, 3, 3, 3]), np.array([0, 1, 2, 2, 3, 4])
    >>> ends = np.array([[0, 1], [0, 2], [3, 4], [4, 5], [0, 4], [0, 5], [1, 4], [1, 5]])
    >>> join(track, objects, ends, np.ones(8))[0].tolist()
    [0, 0, 0, 3, 0, 0]
    """
    track, m, joined = track.copy(), len(track), 0
    a, b = ends.T
    key, count = _bundles(track, a, b)
    involved = np.zeros(m, dtype=bool)
    involved[key // m] = involved[key % m] = True
    involved = involved[track]
    inside = np.flatnonzero(involved[a] & involved[b])
    a, b, weights = a[inside], b[inside], weights[inside]
    tried = key[:0]
    for _ in range(_MOST_ROUNDS):
        fresh = np.flatnonzero(~np.isin(key, tried))
        if not len(fresh):
            break
        A, B = key[fresh] // m, key[fresh] % m
        chosen = mutual_best(A, B, count[fresh].astype(np.float64), m)
        gained = _join_pairs(track, objects, a, b, weights, A[chosen], B[chosen])
        tried = np.append(tried, key[fresh][chosen])
        if gained:
            key, count = _bundles(track, a, b)
        joined += gained
    return track, joined


def _bundles(track: Ints, a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of tracks A < B with at least two matches between them, as A·m + B, and their numbers."""
    A, B = track[a], track[b]
    apart = np.flatnonzero(A != B)
    A, B = A[apart], B[apart]
    key = np.sort(np.minimum(A, B) * len(track) + np.maximum(A, B))
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    count = np.diff(np.append(first, len(key)))
    several = np.flatnonzero(count > 1)
    return key[first[several]], count[several]


def _join_pairs(
    track: Ints, objects: NDArray[np.integer[Any]], a: Ints, b: Ints, weights: Floats, A: Ints, B: Ints
) -> int:
    """Join those pairs of tracks A and B, shape (n,), disjoint, that gain by it; change `track`, return how many."""
    m, n = len(track), len(A)
    group = np.full(m, -1)
    group[A] = group[B] = np.arange(n)
    group = group[track]
    of = group[a]
    within = np.flatnonzero((of >= 0) & (of == group[b]))
    a, b, w, of = a[within], b[within], weights[within], of[within]
    degree = np.bincount(a, weights=w, minlength=m) + np.bincount(b, weights=w, minlength=m)
    points = np.flatnonzero(group >= 0)
    place = group[points] * (int(objects.max(initial=0)) + 1) + objects[points]
    order = ordered(place)
    points, place = points[order], place[order]
    twice = np.flatnonzero(place[1:] == place[:-1])
    one, two = points[twice], points[twice + 1]
    stays = np.ones(m, dtype=bool)
    stays[np.where(degree[one] < degree[two], one, two)] = False
    same, both = np.flatnonzero(track[a] == track[b]), np.flatnonzero(stays[a] & stays[b])
    before = np.bincount(of[same], weights=w[same], minlength=n)
    after = np.bincount(of[both], weights=w[both], minlength=n)
    gains = after > before
    moved = points[gains[group[points]]]
    name = np.full(n, m)
    np.minimum.at(name, group[moved[stays[moved]]], moved[stays[moved]])
    track[moved] = np.where(stays[moved], name[group[moved]], moved)
    return int(gains.sum())
