"""What is done with one part of a problem that is solved in groups.

Each function reads its own matches and no others.

Every answer is a frozen dataclass of arrays and numbers, so that it can be sent elsewhere or kept
in a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stiefelsync.distributed.contracted import Contracted, Edges
from stiefelsync.distributed.groups import Part
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.tracks.clusters import singletons
from stiefelsync.sync.tracks.grow import grow_by_rules, grow_by_weight
from stiefelsync.sync.tracks.integer_arrays import ordered, runs, spread
from stiefelsync.sync.tracks.join import join
from stiefelsync.sync.tracks.scale import Scale

__all__ = [
    "Bundles",
    "Clusters",
    "Edges",
    "InMemory",
    "Joined",
    "Kept",
    "Source",
    "bundle",
    "collect",
    "compare_answers",
    "connect",
    "cross",
    "join_inside",
    "solve",
    "sum_edges",
]  # fmt: skip

Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Weaker rules would decide at the border of a group what the matches across it know better.
_RULES_IN_GROUPS = ("triangles",)
_MATCHES_AT_A_TIME = 4_000_000  # between groups: half a gigabyte, as much as a large group


class Source(Protocol):
    """Matches that can be read in parts.

    Attributes
    ----------
    sizes : (k,) int
        Points per object.
    pair_objects : (P, 2) int
        Pairs i < j of objects with matches, sorted.
    counts : (P,) int64
        Matches of each pair.
    """

    @property
    def sizes(self) -> NDArray[np.integer]:
        """As above."""
        ...

    @property
    def pair_objects(self) -> NDArray[np.integer]:
        """As above."""
        ...

    @property
    def counts(self) -> Ints:
        """As above."""
        ...

    def read(self, pairs: Ints) -> tuple[Ints, NDArray[np.integer], Floats | None]:
        """Return how many matches pairs have, (p,), matches, (K, 2), and weights, (K,), or None."""
        ...

    def only(self, pairs: Ints) -> Source:
        """Return the part of the source that knows these pairs only, renumbered.

        It is sent to who reads them.
        """
        ...


@dataclass(frozen=True)
class InMemory:
    """A problem in memory as a source."""

    matchings: Matchings

    @property
    def sizes(self) -> Int32s:
        """Points per object."""
        return self.matchings.sizes

    @property
    def pair_objects(self) -> Int32s:
        """Pairs of objects."""
        return self.matchings.pair_objects

    @property
    def counts(self) -> Ints:
        """Matches of each pair."""
        return np.diff(self.matchings.pair_start)

    def read(self, pairs: Ints) -> tuple[Ints, Int32s, Floats | None]:
        """Return matches and weights of some pairs."""
        counts, weights = self.counts[pairs], self.matchings.weights
        rows = spread(self.matchings.pair_start[pairs], counts)[1]
        return counts, self.matchings.indices[rows], None if weights is None else weights[rows]

    def only(self, pairs: Ints) -> InMemory:
        """Return these pairs and their matches."""
        return InMemory(self.matchings.only_pairs(pairs))


@dataclass(frozen=True)
class _Matches:
    """Matches of a part: ends as places among the points of its objects, (K, 2).

    Weights and fullness_weights, (K,).
    """

    ends: Ints
    weights: Floats
    fullness_weights: Floats

    @classmethod
    def read(cls, source: Source, pairs: Ints, objects: Ints, scale: Scale) -> _Matches:
        counts, indices, weights = source.read(pairs)
        start = np.zeros(len(source.sizes), dtype=np.int64)
        sizes = source.sizes[objects].astype(np.int64)
        start[objects] = np.cumsum(sizes) - sizes
        ends = np.repeat(start[source.pair_objects[pairs]].reshape(-1, 2), counts, axis=0)
        ends += indices
        return cls(ends, *scale.bounded_weights(weights, np.repeat(counts, counts)))


@dataclass(frozen=True)
class Clusters:
    """What a group or a region has found.

    Clusters, and the edges between them that contradict nothing.

    Attributes
    ----------
    first : (n,) int32
        First point of each point's cluster, as a place among the points of the group or region.
    lost_edge : (n,) bool
        Points whose cluster had an edge that was dropped.
    A, B, count, weight : (E,)
        The edges left, as :class:`Edges`, by places.
    dropped, n_iter
        Matches dropped, and rounds.
    """

    first: Int32s
    lost_edge: Bools
    A: Int32s
    B: Int32s
    count: Ints
    weight: Floats
    dropped: int
    n_iter: int


def solve(source: Source, part: Part, scale: Scale, by_weight: bool) -> Clusters:
    """Merge points of one group along its matches, by strong evidence or heaviest first."""
    matches = _Matches.read(source, part.inside, part.objects, scale)
    sizes = source.sizes[part.objects].astype(np.int64)
    points = np.arange(int(sizes.sum()))
    owner = np.repeat(part.objects, sizes)
    if by_weight:
        q = singletons(points, owner, matches.ends, matches.weights)
        first, n_iter, _ = grow_by_weight(q, points)
        nothing = np.empty(0, dtype=np.int32)
        none = np.zeros(len(points), dtype=bool)
        return Clusters(first.astype(np.int32), none, nothing, nothing, np.empty(0, np.int64), np.empty(0), 0, n_iter)
    first = points.copy()
    q = singletons(points, owner, matches.ends, matches.fullness_weights)
    grown = grow_by_rules(q, first, scale.n_matches, rules=_RULES_IN_GROUPS)
    lost_edge, q = np.zeros(len(points), dtype=bool), grown.q
    lost_edge[first[np.flatnonzero(grown.lost_edge)]] = True
    names = q.points[q.start[:-1]].astype(np.int32)
    return Clusters(
        first.astype(np.int32), lost_edge[first], names[q.A], names[q.B], q.count, q.weight, grown.dropped, grown.n_iter
    )


def cross(
    source: Source, part: Part, objects: Ints, first: NDArray[np.integer], scale: Scale, by_weight: bool
) -> Edges:
    """Return the edges between the clusters of this group or region and of later ones.

    Parameters
    ----------
    objects : (o,) int64
        Objects of the crossing pairs, ascending.
    first : (n,) int
        First point of the cluster of each of their points.
    """
    return _between(source, part.crossing, objects, first, scale, by_weight)


def _between(
    source: Source, pairs: Ints, objects: Ints, first: NDArray[np.integer], scale: Scale, by_weight: bool
) -> Edges:
    """Return the edges along the matches of some pairs of objects, read some at a time."""
    found = []
    for some in np.split(pairs, np.flatnonzero(np.diff(np.cumsum(source.counts[pairs]) // _MATCHES_AT_A_TIME)) + 1):
        matches = _Matches.read(source, some, objects, scale)
        A, B = first[matches.ends].T
        weights = matches.weights if by_weight else matches.fullness_weights
        found.append(sum_edges(A, B, np.ones(len(A), np.int64), weights))
    return Edges.together(found)


def connect(
    source: Source, part: Part, first: Int32s, lost_edge: Bools, edges: Edges, touched: Bools, scale: Scale
) -> Clusters:
    """Go on with the clusters of the groups of one region, as far as what is outside has no say.

    Parameters
    ----------
    part
        The region; inside it are the pairs of objects of different groups.
    first, lost_edge : (n,)
        Of all its points, as in :class:`Clusters`.
    edges
        Those left inside groups, by places among its points.
    touched : (n,) bool
        First points of clusters with edges to other regions.
    """
    owner = np.repeat(part.objects, source.sizes[part.objects])
    between = _between(source, part.inside, part.objects, first, scale, by_weight=False)
    every = Edges.together([edges, between])
    grown = Contracted(first.astype(np.int64), owner, lost_edge, every).go_on(touched)
    A, B = (ends.astype(np.int32) for ends in (grown.edges.A, grown.edges.B))
    return Clusters(
        grown.first.astype(np.int32), grown.lost_edge, A, B, grown.edges.count, grown.edges.weight, grown.dropped, 0
    )


def sum_edges(A: NDArray[np.integer], B: NDArray[np.integer], count: Ints, weight: Floats) -> Edges:
    """Return each edge once, the smaller end first and sorted, with counts and weights added up.

    Examples
    --------
    >>> sum_edges(np.array([5, 2]), np.array([2, 5]), np.array([1, 3]), np.ones(2)).count.tolist()
    [4]
    """
    low, high = np.minimum(A, B).astype(np.int64), np.maximum(A, B).astype(np.int64)
    span = int(high.max(initial=0)) + 1
    order = ordered(low, high)
    key, first, _ = runs((low * span + high)[order])
    if not len(key):
        return Edges(key, key, np.empty(0, np.int64), np.empty(0))
    return Edges(key // span, key % span, np.add.reduceat(count[order], first), np.add.reduceat(weight[order], first))


@dataclass(frozen=True)
class Joined:
    """Tracks of the points of a group, (n,), each named by one of its points, as a place.

    And the number of joins.
    """

    track: Int32s
    joins: int


def join_inside(
    source: Source, part: Part, track: NDArray[np.integer], inside: Bools, scale: Scale, least: int
) -> Joined:
    """Join tracks that have no point outside this group.

    Parameters
    ----------
    track : (n,) int
        Track of each point of the group, as the place of one of its points where `inside`.
    inside : (n,) bool
        Points of tracks within the group.
    """
    matches = _Matches.read(source, part.inside, part.objects, scale)
    chosen = np.flatnonzero(inside[matches.ends].all(axis=1))
    owner = np.repeat(part.objects, source.sizes[part.objects])
    here = np.where(inside, track, np.arange(len(track)))
    joined, joins = join(here, owner, matches.ends[chosen], matches.weights[chosen], least=least)
    return Joined(joined.astype(np.int32), joins)


@dataclass(frozen=True)
class Bundles:
    """Matches of a part between different tracks, one of them at a border.

    Attributes
    ----------
    key : (n,) int64
        The tracks A < B as A·m + B.
    count : (n,) int32
        Matches between them.
    """

    key: Ints
    count: Int32s


def bundle(source: Source, part: Part, objects: Ints, track: NDArray[np.integer], border: Bools, m: int) -> Bundles:
    """Count the matches between each two tracks.

    Parameters
    ----------
    objects : (o,) int64
        Objects of the pairs of this part, ascending.
    track, border : (n,)
        Track of each of their points, and whether that reaches into several groups.
    """
    matches = _Matches.read(source, _pairs(part), objects, Scale(1, 1))
    a, b = matches.ends.T
    A, B = track[a].astype(np.int64), track[b].astype(np.int64)
    apart = np.flatnonzero((A != B) & (border[a] | border[b]))
    key, _, count = runs(np.sort(np.minimum(A[apart], B[apart]) * m + np.maximum(A[apart], B[apart])))
    return Bundles(key, count.astype(np.int32))


@dataclass(frozen=True)
class Kept:
    """What the last joins depend on.

    Attributes
    ----------
    ends, weights : (K, 2), (K,)
        The matches, as places among the points of a part, and their weights.
    others : (L, 2) int32
        Further matches between tracks that might be joined: they have no say, but may be kept.
    decided
        Matches inside all other tracks.
    """

    ends: Int32s
    weights: Floats
    others: Int32s
    decided: int


def collect(
    source: Source,
    part: Part,
    objects: Ints,
    track: NDArray[np.integer],
    wanted: Bools,
    border: Bools,
    scale: Scale,
) -> Kept:
    """Return the matches that joins at borders depend on.

    Inside wanted tracks, or between one and another at a border.

    Parameters
    ----------
    track, wanted, border : (n,)
        Track of each point of `objects`, whether it might be joined, and whether it reaches into
        several groups.
    """
    matches = _Matches.read(source, _pairs(part), objects, scale)
    a, b = matches.ends.T
    inside, asked = track[a] == track[b], wanted[a] & wanted[b]
    decides = asked & (border[a] | border[b] | inside)
    chosen, ends = np.flatnonzero(decides), matches.ends.astype(np.int32)
    decided = int(np.count_nonzero(inside & ~asked))
    return Kept(ends[chosen], matches.weights[chosen], ends[np.flatnonzero(asked & ~decides)], decided)


def compare_answers(
    source: Source, part: Part, objects: Ints, unit: Ints, track: Ints, other: Ints, scale: Scale
) -> Edges:
    """Return how much more weight other tracks keep in each unit (as `A` and `weight`)."""
    matches = _Matches.read(source, _pairs(part), objects, scale)
    a, b = matches.ends.T
    change = matches.weights * ((other[a] == other[b]) * 1.0 - (track[a] == track[b]))
    some = np.flatnonzero(change)
    where = unit[a[some]]
    return sum_edges(where, where, np.ones(len(some), np.int64), change[some])


def _pairs(part: Part) -> Ints:
    return np.sort(np.concatenate([part.inside, part.crossing]))
