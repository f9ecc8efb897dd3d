"""Join tracks that a conflict keeps apart, where the matches between them outweigh the points given up for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.large_merge import mutual_best

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
    key, _ = _bundles(track, ends)
    involved = np.zeros(m, dtype=bool)
    involved[key // m] = involved[key % m] = True
    involved = involved[track]
    inside = np.flatnonzero(involved[ends[:, 0]] & involved[ends[:, 1]])
    ends, weights = ends[inside], weights[inside]
    tried = key[:0]
    for _ in range(_MOST_ROUNDS):
        key, count = _bundles(track, ends)
        fresh = ~np.isin(key, tried)
        key, count = key[fresh], count[fresh]
        if not len(key):
            break
        chosen = mutual_best(key // m, key % m, count.astype(np.float64), m)
        pairs = np.stack([key[chosen] // m, key[chosen] % m], axis=1)
        tried = np.append(tried, key[chosen])
        joined += _join_pairs(track, objects, ends, weights, pairs)
    return track, joined


def _bundles(track: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of tracks A < B with at least two matches between them, as A·m + B, and their numbers."""
    A, B = track[ends[:, 0]], track[ends[:, 1]]
    key = np.sort((np.minimum(A, B) * len(track) + np.maximum(A, B))[A != B])
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    count = np.diff(np.append(first, len(key)))
    return key[first[count > 1]], count[count > 1]


def _join_pairs(track: Ints, objects: NDArray[np.integer[Any]], ends: Ints, weights: Floats, pairs: Ints) -> int:
    """Join those of the pairs of tracks, shape (n, 2), disjoint, that gain by it; change `track`, return how many."""
    m, n = len(track), len(pairs)
    group = np.full(m, -1)
    group[pairs.T] = np.arange(n)
    group = group[track]
    within = np.flatnonzero((group[ends[:, 0]] >= 0) & (group[ends[:, 0]] == group[ends[:, 1]]))
    (a, b), w = ends[within].T, weights[within]
    of = group[a]
    degree = np.bincount(a, weights=w, minlength=m) + np.bincount(b, weights=w, minlength=m)
    points = np.flatnonzero(group >= 0)
    points = points[np.lexsort((-degree[points], objects[points], group[points]))]
    again = (group[points[1:]] == group[points[:-1]]) & (objects[points[1:]] == objects[points[:-1]])
    stays = np.zeros(m, dtype=bool)
    stays[points] = np.append(True, ~again)[: len(points)]
    same, both = track[a] == track[b], stays[a] & stays[b]
    before = np.bincount(of[same], weights=w[same], minlength=n)
    after = np.bincount(of[both], weights=w[both], minlength=n)
    gains = after > before
    moved = points[gains[group[points]]]
    name = np.full(n, m)
    np.minimum.at(name, group[moved[stays[moved]]], moved[stays[moved]])
    track[moved] = np.where(stays[moved], name[group[moved]], moved)
    return int(gains.sum())
