"""Tracks as they grow: clusters of points, the matches between them, and merges that never break a track.

Everything here is vectorised over all clusters at once; nothing loops over points, matches or components.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

__all__ = ["Quotient", "conflicting", "find", "merge", "mutual_best", "prune", "ranges", "singletons"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_SHUFFLE = 2654435761  # odd, so multiplication by it permutes the 31-bit numbers
_BITS = 31
_EDGES_PER_CHUNK = 250_000


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
    fresh : (n,) bool
        Clusters that grew since edges were last tested for conflicts.
    """

    points: Ints
    objects: Ints
    start: Ints
    A: Ints
    B: Ints
    count: Ints
    weight: Floats
    fresh: Bools

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

    @property
    def n_edges(self) -> int:
        """Number of cluster pairs with a match between them."""
        return len(self.A)

    def without(self, dropped: Ints) -> Quotient:
        """Return the quotient without the edges whose numbers are given."""
        if not len(dropped):
            return self
        keep = np.ones(self.n_edges, dtype=bool)
        keep[dropped] = False
        return replace(self, A=self.A[keep], B=self.B[keep], count=self.count[keep], weight=self.weight[keep])


def ranges(start: Ints, counts: Ints) -> Ints:
    """Concatenate the ranges ``start[t], …, start[t] + counts[t] - 1``.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(counts) - counts
    joined: Ints = np.arange(int(counts.sum())) + np.repeat(start - before, counts)
    return joined


def find(keys: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Look numbers up in a sorted array.

    Returns
    -------
    which, where : (f,) int64
        Those of `wanted` that were found, and their places in `keys`.

    Notes
    -----
    O(w log K), several times faster if `wanted` is nearly sorted, for the search then stays in the cache.

    Examples
    --------
    >>> [found.tolist() for found in find(np.array([2, 3, 7]), np.array([7, 5, 2]))]
    [[0, 2], [2, 0]]
    """
    if not len(keys):
        return keys, keys
    where = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    which = np.flatnonzero(keys[where] == wanted)
    return which, where[which]


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
    n = len(points)
    key = ends[:, 0] * n + ends[:, 1]
    order = np.argsort(key)
    key = key[order]
    count = np.ones(len(key), dtype=np.int64)
    return Quotient(
        points,
        objects,
        np.arange(n + 1),
        key // max(n, 1),
        key % max(n, 1),
        count,
        weights[order],
        np.zeros(n, dtype=bool),
    )


def conflicting(q: Quotient, A: Ints, B: Ints) -> Bools:
    """Tell for pairs of clusters, shape (E,), whether both hold a point of the same object.

    Notes
    -----
    O(Σ min(|A|, |B|) log p): the smaller cluster's objects are looked up in the larger one, in the order of the
    larger, which keeps the search in the cache.
    """
    bad = np.zeros(len(A), dtype=bool)
    sizes, k = q.sizes, int(q.objects.max(initial=0)) + 1
    keys = q.clusters * k + q.objects
    for first in range(0, len(A), _EDGES_PER_CHUNK):
        left, right = A[first : first + _EDGES_PER_CHUNK], B[first : first + _EDGES_PER_CHUNK]
        swap = sizes[left] > sizes[right]
        small, large = np.where(swap, right, left), np.where(swap, left, right)
        order = np.argsort(large)
        small, large = small[order], large[order]
        n = sizes[small]
        found, _ = find(keys, np.repeat(large * k, n) + q.objects[ranges(q.start[small], n)])
        bad[first + np.repeat(order, n)[found]] = True
    return bad


def prune(q: Quotient) -> tuple[Quotient, Ints, Ints]:
    """Drop the edges between clusters that can never be one, then the clusters without an edge left.

    Returns
    -------
    q
        What is still open.
    points, track : (r,) int64
        The points whose clusters are finished, and the first point of each one's cluster.
    """
    untested = np.flatnonzero(q.fresh[q.A] | q.fresh[q.B])
    q = q.without(untested[conflicting(q, q.A[untested], q.B[untested])])
    active = np.zeros(q.n, dtype=bool)
    active[q.A] = active[q.B] = True
    cluster = q.clusters
    stays = active[cluster]
    place = np.cumsum(active) - 1
    rest = Quotient(
        q.points[stays], q.objects[stays], np.append(0, np.cumsum(q.sizes[active])),
        place[q.A], place[q.B], q.count, q.weight, np.zeros(int(active.sum()), dtype=bool),
    )  # fmt: skip
    return rest, q.points[~stays], q.points[q.start[cluster[~stays]]]


def merge(q: Quotient, gain: Floats) -> Quotient:
    """Merge every cluster along its best edge, as far as no object then has two points in a cluster.

    Parameters
    ----------
    gain : (E,) float
        How strongly an edge speaks for a merge; only positive ones count.

    Notes
    -----
    Each cluster chooses its best edge (Borůvka's rule). Where the trees of chosen edges are free of conflict they
    are merged whole; in the others only edges that are the best of both ends are, and if such a pair is in conflict
    its edge is dropped. The best edge of all is always merged or dropped, so that repeated calls come to an end.
    O((p + E) log(p + E)).
    """
    candidates = np.flatnonzero(gain > 0)
    A, B = q.A[candidates], q.B[candidates]
    best_of_A, best_of_B = _best(A, B, gain[candidates], q.n)
    chosen = best_of_A | best_of_B
    tree = _components(A[chosen], B[chosen], q.n)
    broken = _broken(q, tree)
    if broken.any():
        pairs = best_of_A & best_of_B & broken[tree[A]]
        clash = conflicting(q, A[pairs], B[pairs])
        chosen &= ~broken[tree[A]]
        chosen[np.flatnonzero(pairs)[~clash]] = True
        tree = _components(A[chosen], B[chosen], q.n)
        q = q.without(candidates[pairs][clash])
    inside = np.bincount(tree)
    order = np.argsort(_keys(q, tree))
    start = np.append(0, np.cumsum(np.bincount(tree, weights=q.sizes).astype(np.int64)))
    edges = _contracted(tree[q.A], tree[q.B], q.count, q.weight, len(inside))
    return Quotient(q.points[order], q.objects[order], start, *edges, inside > 1)


def mutual_best(A: Ints, B: Ints, gain: Floats, n: int) -> Bools:
    """Tell which edges, of positive gain, are the best of both their ends among n vertices; shape (E,).

    Examples
    --------
    >>> mutual_best(np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([1.0, 2.0, 1.0]), 4).tolist()
    [False, True, False]
    """
    return np.logical_and(*_best(A, B, gain, n))


def _best(A: Ints, B: Ints, gain: Floats, n: int) -> tuple[Bools, Bools]:
    """Tell which edges are the best of their end A, and which of their end B."""
    # One integer orders the edges: gain first (the bits of a positive float sort like it), then a shuffled number, so
    # that ties make short trees instead of long chains.
    bits = gain.astype(np.float32).view(np.int32).astype(np.int64)
    priority = (bits << _BITS) | (np.arange(len(A)) * _SHUFFLE) % (1 << _BITS)
    best = np.full(n, -1, dtype=np.int64)
    np.maximum.at(best, A, priority)
    np.maximum.at(best, B, priority)
    return best[A] == priority, best[B] == priority


def _components(A: Ints, B: Ints, n: int) -> Ints:
    graph = sparse.coo_array((np.ones(len(A), dtype=np.int8), (A, B)), shape=(n, n))
    tree: Ints = connected_components(graph, directed=False)[1].astype(np.int64)
    return tree


def _keys(q: Quotient, tree: Ints) -> Ints:
    """Return a number per point that orders by the tree its cluster belongs to, then by object; shape (p,)."""
    keys: Ints = np.repeat(tree * (int(q.objects.max()) + 1), q.sizes) + q.objects
    return keys


def _broken(q: Quotient, tree: Ints) -> Bools:
    """Tell which trees of clusters hold two points of one object."""
    keys = np.sort(_keys(q, tree))
    twice = keys[1:][keys[1:] == keys[:-1]]
    broken = np.zeros(int(tree.max()) + 1, dtype=bool)
    broken[twice // (int(q.objects.max()) + 1)] = True
    return broken


def _contracted(A: Ints, B: Ints, count: Ints, weight: Floats, n: int) -> tuple[Ints, Ints, Ints, Floats]:
    """Return the edges between different clusters, each once and sorted, with summed counts and weights."""
    between = A != B
    low, high = np.minimum(A, B)[between], np.maximum(A, B)[between]
    # One complex matrix sorts the edges and adds up counts (real) and weights (imaginary) in a single pass.
    both = count[between] + 1j * weight[between]
    graph = sparse.coo_array((both, (low, high)), shape=(n, n)).tocsr()
    row = np.repeat(np.arange(n), np.diff(graph.indptr))
    return row, graph.indices.astype(np.int64), np.rint(graph.data.real).astype(np.int64), graph.data.imag.copy()
