"""Joining points along edges one after another, never two points of an object."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["join_in_order", "label_tracks"]

_EDGES_PER_REPORT = 100_000  # seldom enough to cost nothing


def join_in_order(
    owner: NDArray[np.int32],
    edges: NDArray[np.int64],
    *,
    allowed: Callable[[int, int, int], bool] = lambda _edge, _left, _right: True,
    stop: Callable[[int], bool] = lambda _done: False,
) -> NDArray[np.int64]:
    """Return for each point a point that stands for its track after joining along the edges in their order.

    Parameters
    ----------
    owner : (m,) int
        Object of every point.
    edges : (E, 2) int
        Points to join, first come, first served; an edge whose tracks both have a point of one
        object is skipped.
    allowed
        Asked last, with the number of the edge and the points that stand for its two tracks; if it
        says yes, they are joined, and one of the two points stands for both.
    stop
        Told the number of edges done, now and then; a true answer ends the joining.

    Returns
    -------
    track : (m,) int64

    Notes
    -----
    O(E + m log m), because the smaller set of objects always goes into the larger; a loop in
    Python.

    Examples
    --------
    >>> join_in_order(np.array([0, 0, 1, 2]), np.array([[0, 2], [2, 3], [1, 3]])).tolist()
    [0, 1, 0, 0]
    """
    parent = list(range(len(owner)))
    objects = [{o} for o in owner.tolist()]

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for number, (a, b) in enumerate(edges.tolist()):
        if number % _EDGES_PER_REPORT == 0 and stop(number):
            break
        a, b = root(a), root(b)
        if a == b or not objects[a].isdisjoint(objects[b]) or not allowed(number, a, b):
            continue
        if len(objects[a]) < len(objects[b]):
            a, b = b, a
        parent[b] = a
        objects[a] |= objects[b]
        objects[b] = set()
    return np.array([root(x) for x in range(len(owner))], dtype=np.int64)


def label_tracks(track: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return labels for tracks named by points, both (m,); a point alone is unmatched, -1.

    Examples
    --------
    >>> label_tracks(np.array([3, 1, 1, 3, 4])).tolist()
    [1, 0, 0, 1, -1]
    """
    good = np.bincount(track, minlength=len(track)) > 1
    return np.where(good, np.cumsum(good) - 1, -1)[track]
