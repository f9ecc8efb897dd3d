"""Labels handed on along a spanning tree of the objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from stiefelsync.matching.matchings import Matchings

__all__ = ["along_tree"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def along_tree(matchings: Matchings, length: Floats) -> Ints:
    """Return labels, (m,), handed on along the shortest spanning tree of the objects, one tree per component.

    Parameters
    ----------
    length : (number of pairs,)
        Of every pair of objects that was compared, above 0. A point that the tree gives no label opens one.

    Examples
    --------
    >>> along_tree(Matchings.from_labels([0, 1, 1, 0], [2, 2]), np.ones(1)).tolist()
    [0, 1, 1, 0]
    """
    k = matchings.n_objects
    tree = minimum_spanning_tree(sparse.csr_array((length, tuple(matchings.pair_objects.T)), shape=(k, k)))
    before, turn, seen = np.full(k, -1), np.full(k, -1), 0
    # The largest object first: what it sees needs not be opened again and again.
    for root in np.argsort(-matchings.sizes, kind="stable").tolist():
        if turn[root] < 0:
            order, parents = breadth_first_order(tree, root, directed=False)
            before[order], turn[order] = parents[order], seen + np.arange(len(order))
            seen += len(order)
    given = _handed_on(matchings, before)
    opened = np.flatnonzero(given == np.arange(len(given)))
    for _ in range(k.bit_length()):  # twice as far along the tree every time
        given = given[given]
    # Labels are numbered in the order in which the tree reaches the objects that open them.
    number = np.empty(len(given), dtype=np.int64)
    number[opened[np.argsort(turn[matchings.point_objects[opened]], kind="stable")]] = np.arange(len(opened))
    return number[given]


def _handed_on(matchings: Matchings, before: Ints) -> Ints:
    """Return the point whose label each one takes, (m,): its match in the object before its own, (k,), or itself."""
    i, j = matchings.pair_objects.T
    used = np.flatnonzero((before[i] == j) | (before[j] == i))
    n = np.diff(matchings.pair_start)[used]
    matches = np.arange(n.sum()) + np.repeat(matchings.pair_start[used] - np.cumsum(n) + n, n)
    ends = matchings.indices[matches] + np.repeat(matchings.offsets[matchings.pair_objects[used]], n, axis=0)
    one, two = np.where(np.repeat(before[j[used]] == i[used], n)[:, None], ends, ends[:, ::-1]).T
    given = np.arange(matchings.n_points)
    given[two] = one
    return given
