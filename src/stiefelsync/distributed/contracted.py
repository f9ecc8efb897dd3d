"""Clusters that groups have found, with the edges left between them.

They grow on, in a region or as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.graph import connected
from stiefelsync.sync.method import Callback
from stiefelsync.sync.tracks.clusters import Quotient, contract, prune
from stiefelsync.sync.tracks.grow import RULES, Grown, grow_by_rules, grow_by_weight

__all__ = ["Contracted", "Edges"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_STRONG = ("triangles",)  # rules whose decisions do not wait for what is beyond a border
_LAST = "few choices"  # needs to know how many matches of the whole are wrong


@dataclass(frozen=True)
class Edges:
    """Edges between clusters, by first points, with their matches and their weight; (E,)."""

    A: Ints
    B: Ints
    count: Ints
    weight: Floats

    def take(self, which: Ints) -> Edges:
        """Return some of them."""
        return Edges(self.A[which], self.B[which], self.count[which], self.weight[which])

    def renamed(self, name: NDArray[np.integer]) -> Edges:
        """Return them with other names, shape (m,), for the first points."""
        return replace(self, A=name[self.A].astype(np.int64), B=name[self.B].astype(np.int64))

    @classmethod
    def together(cls, edges: Sequence[Edges]) -> Edges:
        """Return several sets of edges as one."""
        nothing = cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        every = [nothing, *edges]
        return cls(*(np.concatenate([getattr(some, name) for some in every]) for name in ("A", "B", "count", "weight")))


@dataclass(frozen=True)
class Contracted:
    """Clusters of points and the edges between them, of which none joins clusters in conflict.

    Attributes
    ----------
    first : (m,) int64
        First point of each point's cluster.
    owner : (m,) int
        Object of each point.
    lost_edge : (m,) bool
        Points whose cluster had an edge that was dropped.
    edges
        Named by first points.
    dropped
        Matches found wrong before.
    """

    first: Ints
    owner: NDArray[np.integer]
    lost_edge: Bools
    edges: Edges
    dropped: int = 0

    def finish(self, n_matches: int, callback: Callback | None) -> tuple[Ints, int, bool]:
        """Apply all rules; return tracks, by first points, the rounds, and whether stopped.

        Components free of conflict are finished tracks.
        """
        opened = _Open.of(self)
        grown = grow_by_rules(opened.q, opened.track, n_matches, dropped=self.dropped, callback=callback)
        return opened.written(self.first), grown.n_iter, grown.stopped

    def finish_by_weight(self, callback: Callback | None) -> tuple[Ints, int, bool]:
        """Do the same, heaviest edges first, some of which may join clusters in conflict."""
        opened = _Open.of(self, tested=False)
        track, n_iter, stopped = grow_by_weight(opened.q, opened.track, callback)
        return replace(opened, track=track).written(self.first), n_iter, stopped

    def go_on(self, touched: Bools) -> Contracted:
        """Apply all rules but the last as far as what is outside has no say.

        Triangles merge whatever they close in. Weaker rules leave clusters alone that have edges to
        the outside, and the neighbours of these, since a better choice may come from there.

        Parameters
        ----------
        touched : (m,) bool
            First points of clusters with edges to the outside.
        """
        opened = _Open.of(self, touched)
        watched = touched[self.first[opened.points]]
        strong = grow_by_rules(opened.q, opened.track, 1, rules=_STRONG)
        weak = [name for name in RULES if name not in (*_STRONG, _LAST)]
        left = grow_by_rules(strong.q, opened.track, 1, rules=weak, left_alone=lambda q: _near(q, watched))
        return self._after(opened, strong, left)

    def _after(self, opened: _Open, *grown: Grown) -> Contracted:
        """Return what is left after some rules, and what was lost_edge on the way."""
        first, q = opened.written(self.first), grown[-1].q
        names = opened.points[q.points[q.start[:-1]]]
        edges = Edges(names[q.A], names[q.B], q.count, q.weight)
        lost_edge = np.zeros(len(first), dtype=bool)
        lost_edge[first[np.flatnonzero(self.lost_edge)]] = True
        for some in grown:
            lost_edge[first[opened.points[np.flatnonzero(some.lost_edge)]]] = True
        return Contracted(
            first, self.owner, lost_edge[first], edges, self.dropped + sum(some.dropped for some in grown)
        )


@dataclass(frozen=True)
class _Open:
    """The clusters with edges, as a quotient.

    Its points, like `track`, (p,), are places in `points`, (p,).
    """

    points: Ints
    track: Ints
    q: Quotient

    @classmethod
    def of(cls, given: Contracted, touched: Bools | None = None, *, tested: bool = True) -> _Open:
        """Finish the components free of conflict (and of `touched` points), open all others.

        Parameters
        ----------
        tested
            Whether no edge joins clusters in conflict.
        """
        first, edges, m = given.first, given.edges, len(given.first)
        active = np.zeros(m, dtype=bool)
        active[edges.A] = active[edges.B] = True
        points = np.flatnonzero(active[first])
        place = np.empty(m, dtype=np.int64)
        place[points] = np.arange(len(points))
        names, edges, owner = place[first[points]], edges.renamed(place), given.owner[points].astype(np.int64)
        component = connected(len(points), np.stack([edges.A, edges.B], axis=1))[names]
        unfinished = given.lost_edge[points] if touched is None else given.lost_edge[points] | touched[points]
        conflicted = _conflicted(component, owner, unfinished)
        track = component.copy()
        some = np.flatnonzero(conflicted)
        inside = edges.take(np.flatnonzero(conflicted[edges.A]))
        q = contract(
            some, owner[some], names[some], inside.A, inside.B, inside.count, inside.weight, untested=not tested
        )  # fmt: skip
        q, done, begin = prune(q)
        track[done] = begin
        return cls(points, track, q)

    def written(self, first: Ints) -> Ints:
        """Return first points of all clusters, (m,), those of the open ones as they are now."""
        now = first.copy()
        now[self.points] = self.points[self.track]
        return now


def _near(q: Quotient, watched: Bools) -> Bools:
    """Return which clusters hold a watched point or have an edge with one that does; shape (n,)."""
    held = np.logical_or.reduceat(watched[q.points], q.start[:-1]) if q.n else np.zeros(0, dtype=bool)
    near = held.copy()
    near[q.A[held[q.B]]] = True
    near[q.B[held[q.A]]] = True
    return near


def _conflicted(component: Ints, owner: Ints, lost_edge: Bools) -> Bools:
    """Return which points are in components with two points of an object or with a dropped match.

    Shape (p,).
    """
    k = int(owner.max(initial=0)) + 1
    key = np.sort(component * k + owner)
    broken = np.zeros(len(component), dtype=bool)
    broken[key[1:][key[1:] == key[:-1]] // k] = True
    broken[component[np.flatnonzero(lost_edge)]] = True
    conflicted: Bools = broken[component]
    return conflicted
