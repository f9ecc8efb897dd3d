"""Evidence that two clusters of points are the same universe point, from strong to weak.

Every rule takes a quotient whose edges are free of conflict and returns one number per edge: 0 where it has nothing to
say, else in (0, 1], and the larger the sooner the edge should be merged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.tracks import kernels
from stiefelsync.sync.tracks.clusters import Quotient, conflicting
from stiefelsync.sync.tracks.integer_arrays import find, ordered, runs, spread

__all__ = ["Rule", "few_choices", "rule_gain", "squares", "triangle_counts", "triangles"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rule = Callable[[Quotient], Floats]

_PATHS_PER_CHUNK = 65_536  # arrays of half a megabyte stay in the cache
_HUB = 64  # neighbours beyond which a cluster is left out of squares, whose cost is their square


def rule_gain(q: Quotient, rule: Rule) -> Floats:
    """Return the evidence of one rule, with parallel matches before everything else; shape (E,).

    Where two or more matches run between the clusters the evidence is 1 plus their density, weight / (|A| |B|).

    Notes
    -----
    O(E) beside the rule. A cycle of matches of any length ends as such a bundle once the rest of it is merged.
    """
    gain = rule(q)
    if kernels.prefer_parallel(q.A, q.B, q.count, q.weight, q.start, gain) is None:
        parallel, sizes = np.flatnonzero(q.count >= 2), q.sizes
        gain[parallel] = 1 + q.weight[parallel] / (sizes[q.A[parallel]] * sizes[q.B[parallel]])
    return gain


def triangles(q: Quotient) -> Floats:
    """Third clusters have matches with both: the entries of W∘W², counted by :func:`triangle_counts`."""
    return _graded(q, triangle_counts(q.A, q.B, q.n))


def triangle_counts(A: Ints, B: Ints, n: int) -> Ints:
    """Count the triangles through every edge of a graph.

    Parameters
    ----------
    A, B : (E,) int64
        Edges between n vertices, A < B, sorted by (A, B), each once.

    Notes
    -----
    O(Σ_{(a,c)} deg(c)) over edges a < c, in chunks so that memory stays bounded.

    Examples
    --------
    >>> triangle_counts(np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3]), 4).tolist()
    [1, 1, 1, 0]
    """
    if (counted := kernels.triangle_counts(A, B, n)) is not None:
        return counted
    key = A * n + B
    out = np.append(0, np.cumsum(np.bincount(A, minlength=n)))
    paths = np.diff(out)[B]
    total = np.append(0, np.cumsum(paths))
    support = np.zeros(len(A), dtype=np.int64)
    first = 0
    while first < len(A):
        last = max(int(np.searchsorted(total, total[first] + _PATHS_PER_CHUNK, side="right")) - 1, first + 1)
        edges = slice(first, last)
        # Paths a < c < b made of the edges `one` and `two`; the third side is looked up among the edges of the same a.
        one, two = spread(out[B[edges]], paths[edges])
        low, high = out[A[first]], out[A[last - 1] + 1]
        closed, three = find(key[low:high], (A[edges] * n)[one] + B[two])
        for side in (first + one[closed], two[closed], low + three):
            np.add.at(support, side, 1)
        first = last
    return support


def squares(q: Quotient) -> Floats:
    """The edge lies on cycles of four clusters, opposite ones free of conflict.

    Notes
    -----
    O(Σ deg²) over the clusters with at most 64 neighbours, in chunks so that memory stays bounded; the few with more
    are left out.
    """
    if (counted := kernels.square_counts(q.A, q.B, q.objects, q.start, _HUB)) is not None:
        return _graded(q, counted)
    E, n = q.n_edges, q.n
    source, end = np.concatenate([q.A, q.B]), np.concatenate([q.B, q.A])
    order = ordered(source, end)
    source, end, edge = source[order], end[order], order % E
    place = np.empty(2 * E, dtype=np.int64)
    place[order] = np.arange(2 * E)
    back = place[(order + E) % (2 * E)]  # where the same edge is found at its other end
    degree = np.bincount(source, minlength=n)
    stop = np.cumsum(degree)
    # Paths x, c, y with x < y: for an edge from x to c those edges of c that come after the one back to x.
    paths = np.where(degree[end] <= _HUB, stop[end] - back - 1, 0)
    total = np.append(0, np.cumsum(paths))
    support, first = np.zeros(E, dtype=np.int64), 0
    while first < 2 * E:
        enough = int(np.searchsorted(total, total[first] + _PATHS_PER_CHUNK, side="right")) - 1
        last = int(stop[source[min(max(enough, first), 2 * E - 1)]])  # all paths from one x go together
        which, two = spread(back[first:last] + 1, paths[first:last])
        one = back[first + which]
        _add_squares(q, end[one], end[two], edge[one], edge[two], support)
        first = last
    return _graded(q, support)


def _add_squares(q: Quotient, x: Ints, y: Ints, one: Ints, two: Ints, support: Ints) -> None:
    """Count the squares that paths between x and y, along the edges one and two, make with each other; shape (p,)."""
    order = ordered(x - x.min(initial=q.n), y)
    _, _, count = runs((x * q.n + y)[order])
    shared = np.repeat(count, count)  # paths between the same two clusters
    some = np.flatnonzero(shared > 1)
    shared, some = shared[some], order[some]
    free = np.flatnonzero(~conflicting(q, x[some], y[some]))
    for side in (one, two):
        np.add.at(support, side[some[free]], shared[free] - 1)


def few_choices(q: Quotient, most: int = 1) -> Floats:
    """The smaller cluster has no other candidate than the larger, or at most `most` candidates in all.

    The evidence is the density weight / (|A| |B|) shared among the candidates: a single match into a long track leaves
    many absent ones unexplained.

    Notes
    -----
    O(E). A point all of whose matches but one contradict the tracks most likely belongs where that one leads.
    """
    if (compiled := kernels.few_choices(q.A, q.B, q.weight, q.start, most)) is not None:
        return compiled
    sizes, A, B = q.sizes, q.A, q.B
    degree = np.bincount(A, minlength=q.n) + np.bincount(B, minlength=q.n)
    choices = np.where(sizes[A] < sizes[B], degree[A], degree[B])
    choices = np.where(sizes[A] == sizes[B], np.maximum(degree[A], degree[B]), choices)
    return np.where(choices <= most, q.weight / (sizes[A] * sizes[B]) / choices, 0.0)


def _graded(q: Quotient, support: Ints) -> Floats:
    """Map support to [0, 1), weighed by how reliable the matches are."""
    if (compiled := kernels.graded(support, q.count, q.weight)) is not None:
        return compiled
    graded, some = np.zeros(q.n_edges), np.flatnonzero(support)
    value = support[some] * (q.weight[some] / q.count[some])
    graded[some] = value / (1 + value)
    return graded
