"""Tracks as they grow: clusters, matches between them, merges that never break a track.

Everything here is vectorised over all clusters at once; nothing loops over points, matches or
components.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call
from stiefelsync.sync.tracks.integer_arrays import ordered

__all__ = [
    "Quotient",
    "conflicting",
    "conflicting_edges",
    "connected_parts",
    "contract",
    "merge_and_prune",
    "mutual_best",
    "prune",
    "singletons",
]  # fmt: skip

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_SHUFFLE = 2654435761  # odd, so multiplication by it permutes the 31-bit numbers
_BITS = 31  # of the numbers that are shuffled


@dataclass(frozen=True)
class Quotient:
    """The match graph with every cluster of points contracted to one vertex.

    Attributes
    ----------
    points : (p,) int64
        The points still under consideration, cluster after cluster and by object within a cluster.
    objects : (p,) int64
        Their objects; all different within a cluster.
    start : (n + 1,) int64
        Where each of the n clusters begins in `points`.
    A, B : (E,) int64
        Clusters that have a match between them, A < B, sorted.
    count : (E,) int64
        Matches between A and B.
    weight : (E,) float64
        Their total weight.
    untested : (n,) bool
        Clusters that grew since edges were last tested for conflicts.
    """

    points: Ints
    objects: Ints
    start: Ints
    A: Ints
    B: Ints
    count: Ints
    weight: Floats
    untested: Bools

    @classmethod
    def tested(cls, points: Ints, objects: Ints, start: Ints, A: Ints, B: Ints, count: Ints, weight: Floats) -> Self:
        """Return a quotient no edge of which joins clusters in conflict."""
        return cls(points, objects, start, A, B, count, weight, np.zeros(len(start) - 1, dtype=bool))

    @property
    def n(self) -> int:
        """Number of clusters."""
        return len(self.start) - 1

    @cached_property
    def sizes(self) -> Ints:
        """Points per cluster; shape (n,)."""
        return np.diff(self.start)

    @cached_property
    def clusters(self) -> Ints:
        """Cluster of every point; shape (p,)."""
        return np.repeat(np.arange(self.n), self.sizes)

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """The objects of every cluster, modulo 64, as bits; shape (n,)."""
        return np.bitwise_or.reduceat(np.uint64(1) << (self.objects & 63).astype(np.uint64), self.start[:-1])

    @property
    def n_edges(self) -> int:
        """Number of cluster pairs with a match between them."""
        return len(self.A)

    def without(self, dropped: Ints) -> Quotient:
        """Return the quotient without the edges whose numbers are given."""
        if not len(dropped):
            return self
        kept = np.ones(self.n_edges, dtype=bool)
        kept[dropped] = False
        keep = np.flatnonzero(kept)
        return replace(self, A=self.A[keep], B=self.B[keep], count=self.count[keep], weight=self.weight[keep])


def singletons(points: Ints, objects: Ints, ends: Ints, weights: Floats) -> Quotient:
    """Return the quotient in which every point is a cluster of its own.

    Parameters
    ----------
    points, objects : (p,) int64
        Points, ascending, and their objects.
    ends : (E, 2) int64
        Matches as positions in `points`, the smaller first, no two equal.
    weights : (E,) float64

    Examples
    --------
    >>> q = singletons(np.array([3, 4, 7]), np.array([0, 1, 1]), np.array([[0, 2], [0, 1]]), np.ones(2))
    >>> q.n, q.A.tolist(), q.B.tolist()
    (3, [0, 0], [1, 2])
    """
    A, B = (np.ascontiguousarray(end) for end in ends.T)
    if not ((A[1:] > A[:-1]) | ((A[1:] == A[:-1]) & (B[1:] > B[:-1]))).all():
        order = ordered(A, B)
        A, B, weights = A[order], B[order], weights[order]
    return Quotient.tested(points, objects, np.arange(len(points) + 1), A, B, np.ones(len(A), np.int64), weights)


def contract(
    points: Ints, objects: Ints, names: Ints, A: Ints, B: Ints, count: Ints, weight: Floats, *, untested: bool = True
) -> Quotient:
    """Return the quotient of clusters that are there already.

    Parameters
    ----------
    points, objects : (p,) int64
        Points, ascending, and their objects.
    names : (p,) int64
        The cluster of every point, named by its first point; no cluster has two points of an
        object.
    A, B : (E,) int64
        Matches or edges, as the names of the clusters at their ends.
    count, weight : (E,)
        Matches along each edge and their total weight.
    untested
        Whether some edge may join clusters in conflict.

    Notes
    -----
    O((p + E) log(p + E)). Edges within a cluster are dropped, parallel ones added up.

    Examples
    --------
    >>> points, one = np.arange(4), np.ones(2)
    >>> q = contract(points, points, np.array([0, 1, 0, 1]), np.array([1, 0]), np.array([0, 1]), one.astype(int), one)
    >>> q.points.tolist(), q.A.tolist(), q.B.tolist(), q.count.tolist()
    ([0, 2, 1, 3], [0], [1], [2])
    """
    # Clusters are numbered in the order of their first points.
    first = points[np.flatnonzero(names == points)]
    place = np.zeros(int(points.max(initial=-1)) + 1, dtype=np.int64)
    place[first] = np.arange(len(first))
    order = ordered(place[names], objects)
    start = np.append(0, np.cumsum(np.bincount(place[names], minlength=len(first))))
    edges = _contracted(place[A], place[B], count, weight, len(first))
    return Quotient(points[order], objects[order], start, *edges, np.full(len(first), untested))


def conflicting(q: Quotient, A: Ints, B: Ints) -> Bools:
    """Return for pairs of clusters, shape (E,), whether both hold a point of the same object.

    Notes
    -----
    A cluster's objects, modulo 64, are bits of one word. Words that do not meet say no; for the
    pairs left the objects of both clusters are compared, O(|A| + |B|).
    """
    bad = np.zeros(len(A), dtype=bool)
    if len(A):
        call("find_conflicts", q.objects, q.start, q.words, A, B, len(A), bad)
    return bad


def conflicting_edges(q: Quotient) -> Ints:
    """Return the edges, by number, between clusters that can never be one; untested ones only."""
    edges = np.flatnonzero(q.untested[q.A] | q.untested[q.B])
    return edges[conflicting(q, q.A[edges], q.B[edges])]


def prune(q: Quotient) -> tuple[Quotient, Ints, Ints]:
    """Drop the edges between clusters that can never be one, then clusters without an edge.

    Returns
    -------
    q
        What is still open.
    points, track : (r,) int64
        The points whose clusters are finished, and the first point of each one's cluster.
    """
    rest, points, track, _ = _merged(q, None, None)
    return rest, points, track


def merge_and_prune(q: Quotient, gain: Floats, lost_edge: Bools | None = None) -> tuple[Quotient, Ints, Ints, int]:
    """Merge every cluster along its best edge where no object then has two points; prune.

    Parameters
    ----------
    gain : (E,) float
        How strongly an edge speaks for a merge; only positive ones count.
    lost_edge : (m,) bool, optional
        The first points of clusters that an edge of was dropped are marked here.

    Returns
    -------
    q, points, track
        As for :func:`prune`.
    dropped : int
        Matches dropped because they join clusters that can never be one.

    Notes
    -----
    Each cluster chooses its best edge (Borůvka's rule). Where the trees of chosen edges are free of
    conflict they are merged whole; in the others only edges that are the best of both ends are. No
    edge may join clusters in conflict, as after :func:`prune`; so the best edge of all is always
    merged, and repeated calls come to an end. O((p + E) log(p + E)).
    """
    return _merged(q, gain, lost_edge)


def _merged(q: Quotient, gain: Floats | None, lost_edge: Bools | None) -> tuple[Quotient, Ints, Ints, int]:
    """Do what :func:`merge_and_prune` does; without a gain nothing is merged."""
    # The kernel writes into arrays as long as before the round; clusters and edges only become
    # fewer.
    p, n, E, k = len(q.points), q.n, q.n_edges, int(q.objects.max(initial=-1)) + 1
    points, objects, start, A, B, count = (np.empty(size, dtype=np.int64) for size in (p, p, n + 1, E, E, E))
    weight, done, first, left = np.empty(E), np.empty(p, np.int64), np.empty(p, np.int64), np.empty(4, np.int64)
    call(
        "merge_round", q.points, q.objects, q.start, n, k, q.A, q.B, q.count, q.weight, E, gain, q.untested,
        points, objects, start, A, B, count, weight, done, first, lost_edge, left,
    )  # fmt: skip
    n, E, stay, dropped = left.tolist()
    rest = Quotient.tested(
        _shortened(points, stay), _shortened(objects, stay), _shortened(start, n + 1),
        _shortened(A, E), _shortened(B, E), _shortened(count, E), _shortened(weight, E),
    )  # fmt: skip
    return rest, done[: p - stay], first[: p - stay], dropped


def _shortened(array: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the first n entries of an array, as a copy where that lets most of its memory go."""
    return array[:n] if 2 * n > len(array) else array[:n].copy()


def connected_parts(labels: Ints, ends: Ints, counts: Bools | None = None) -> Ints:
    """Return the first point of each point's part: the points of its label that matches connect.

    Shape (m,).

    Of the matches, (M, 2), only those count that `counts`, (M,), says, if given.

    Examples
    --------
    >>> connected_parts(np.array([0, 0, 0, -1, -1]), np.array([[0, 2], [2, 3], [3, 4]])).tolist()
    [0, 1, 0, 3, 4]
    """
    first = np.empty(len(labels), dtype=np.int64)
    call("find_parts", labels, len(labels), ends, len(ends), counts, first)
    return first


def mutual_best(A: Ints, B: Ints, gain: Floats, n: int) -> Bools:
    """Return which edges, of positive gain, are the best of both their ends among n vertices.

    Shape (E,).

    Examples
    --------
    >>> mutual_best(np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([1.0, 2.0, 1.0]), 4).tolist()
    [False, True, False]
    """
    return np.logical_and(*_best(A, B, gain, n))


def _best(A: Ints, B: Ints, gain: Floats, n: int) -> tuple[Bools, Bools]:
    """Return which edges are the best of their end A, and which of their end B."""
    priority = _priority(gain)
    best = np.full(n, -1, dtype=np.int64)
    np.maximum.at(best, A, priority)
    np.maximum.at(best, B, priority)
    return best[A] == priority, best[B] == priority


def _priority(gain: Floats) -> Ints:
    """Return numbers that order edges, (E,): gain first, then a shuffled number.

    Ties make short trees, not chains.
    """
    priority = np.arange(len(gain)) * _SHUFFLE
    priority &= (1 << _BITS) - 1
    # The bits of a positive float sort like it.
    priority |= gain.astype(np.float32).view(np.int32).astype(np.int64) << _BITS
    return priority


def _contracted(A: Ints, B: Ints, count: Ints, weight: Floats, n: int) -> tuple[Ints, Ints, Ints, Floats]:
    """Return the edges between different clusters, each once, with summed counts and weights."""
    one, two, counts = (np.empty(len(A), dtype=np.int64) for _ in range(3))
    weights = np.empty(len(A))
    left = call("contract_edges", A, B, count, weight, len(A), n, one, two, counts, weights)
    return _shortened(one, left), _shortened(two, left), _shortened(counts, left), _shortened(weights, left)
