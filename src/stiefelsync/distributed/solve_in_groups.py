"""Tracks in groups of objects: each solved apart, contracted to clusters, then the whole.

The same steps run in one process, out of core, and on many machines; only who runs them and where
matches come from differs. Labels depend on the matches and the groups alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stiefelsync.distributed.contracted import Contracted, Edges
from stiefelsync.distributed.groups import Part, parts, regions
from stiefelsync.distributed.steps import (
    Source,
    bundle,
    collect,
    compare_answers,
    connect,
    cross,
    join_inside,
    solve,
)
from stiefelsync.errors import InputError
from stiefelsync.matching.graph import connected
from stiefelsync.sync.method import Callback, Progress
from stiefelsync.sync.tracks.grow import number_tracks
from stiefelsync.sync.tracks.integer_arrays import runs, spread
from stiefelsync.sync.tracks.join import join
from stiefelsync.sync.tracks.scale import ROUNDING, Scale

__all__ = ["Answer", "Run", "in_turn", "solve_in_groups"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Tasks = Iterable[tuple[Any, ...]]

# Bytes, measured with some room: per point of the whole, per match of a group, per edge of the
# contracted problem, per two tracks with matches between them, and per match that a join at a
# border may depend on.
_PER_POINT, _PER_MATCH, _PER_EDGE, _PER_KEY, _PER_JOINED = 64, 220, 300, 24, 200


class Run(Protocol):
    """Who does the work: calls a function for n tuples of arguments, yields results in order."""

    def __call__(
        self, stage: str, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n: int
    ) -> Iterator[Any]:
        """Yield ``function(*task)`` for each task."""
        ...


def in_turn(stage: str, function: Callable[..., Any], tasks: Tasks, n: int) -> Iterator[Any]:
    """Do all the work here, one task after another.

    Examples
    --------
    >>> list(in_turn("sums", max, [(1, 2), (4, 3)], 2))
    [2, 4]
    """
    for task in tasks:
        yield function(*task)


@dataclass(frozen=True)
class Answer:
    """Tracks of a problem solved in groups.

    Attributes
    ----------
    labels : (m,) int64
        Tracks numbered by their first points, -1 for points of none.
    kept
        Matches inside tracks; 0 where the callback asked to stop before that was known.
    joins, n_iter
        Joins, and rounds of merging the contracted problem.
    stopped
        Whether the callback asked to stop.
    """

    labels: Ints
    kept: int
    joins: int
    n_iter: int
    stopped: bool


def solve_in_groups(
    source: Source,
    groups: Ints,
    scale: Scale,
    *,
    run: Run = in_turn,
    memory: float | None = None,
    callback: Callback | None = None,
) -> Answer:
    """Grow tracks in groups of objects, then between them.

    1. *groups*: the points of each group are merged along matches that close triangles inside it;
    2. *crossings*: what that gave is contracted to clusters, and the matches between regions (ten
       groups) to edges;
    3. *regions*: the clusters of each region are merged, by all rules but the last, where no edge
       from outside is near;
    4. *whole*: components free of conflict are finished tracks; in the others all rules run on the
       clusters;
    5. *joining*: as :func:`~stiefelsync.sync.tracks.join.join`, first within groups, then at their
       borders.

    With weights a second answer is grown along the heaviest first. Of the two each part of the
    problem that neither cuts has the one that keeps more weight.

    Parameters
    ----------
    source
        The matches.
    groups : (k,) int64
        Group of every object.
    scale
        Of the whole problem.
    run
        Who works on the parts.
    memory
        Most bytes to use; if more are needed, an error says how many before they are.
    callback
        Called after every part; a true return value asks to stop, and the points not yet placed
        stay alone.

    Notes
    -----
    This process needs O(m) and what does not fit into groups: clusters with open edges, and matches
    between tracks that might be joined. Matches are read four times, seven with weights.
    """
    plan = _Plan(source, groups, scale, run, memory, callback or (lambda _: False))
    plan.need(
        _PER_MATCH * max((int(source.counts[p.inside].sum()) for p in plan.parts), default=0), "the largest group"
    )
    track, n_iter = plan.grow(by_weight=False)
    if scale.median is not None and not plan.stopped:
        other, more = plan.grow(by_weight=True)
        n_iter += more
        plan.choose(track, other)
    joins, kept = plan.join(track)
    return Answer(number_tracks(track), kept, joins, n_iter, plan.stopped)


class _Plan:
    """The steps, and what they share."""

    def __init__(
        self, source: Source, groups: Ints, scale: Scale, run: Run, memory: float | None, callback: Callback
    ) -> None:
        self.source, self.scale, self._run = source, scale, run
        self.parts = parts(groups, source.pair_objects)
        self.regions = regions(groups, source.pair_objects, source.counts)
        self.memory, self.callback, self.stopped = memory, callback, False
        self.sizes = source.sizes.astype(np.int64)
        self.offsets = np.append(0, np.cumsum(self.sizes))
        self.m = int(self.offsets[-1])
        self.owners = np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)
        # Of one weight, a single match outweighs no expelled point.
        self.least = 2 if scale.median is None else 1
        self.ends = [np.unique(source.pair_objects[_all(part)]).astype(np.int64) for part in self.parts]

    def need(self, more: float, what: str) -> None:
        """Raise an error if `more` bytes for `what` are too many."""
        total = _PER_POINT * self.m + more
        if self.memory is not None and total > self.memory:
            raise InputError(
                f"{what} takes the need to about {total / 1e9:.1f} GB, more than the {self.memory / 1e9:.1f} GB"
                " allowed; allow more memory, or take smaller groups if it is a group that is too large"
            )

    def points(self, objects: Ints) -> Ints:
        """Return the points of some objects, ascending."""
        return spread(self.offsets[objects], self.sizes[objects])[1]

    def named(self, track: Ints, objects: Ints) -> NDArray[np.integer[Any]]:
        """Return the tracks of some objects' points, by first points, short enough to be sent."""
        return track[self.points(objects)].astype(np.int32 if self.m < 2**31 else np.int64)

    def places(self, points: Ints) -> Ints:
        """Return where each of all points stands among these, which are ascending; shape (m,)."""
        place = np.empty(self.m, dtype=np.int64)
        place[points] = np.arange(len(points))
        return place

    def run(
        self, stage: str, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], parts: list[Part]
    ) -> Iterator[tuple[int, Any]]:
        """Yield numbers of parts and their results; ends early if the callback asks to stop."""
        for number, result in enumerate(self._run(stage, function, tasks, len(parts))):
            yield number, result
            if self.callback(Progress(stage, number + 1, len(parts))):
                self.stopped = True
                return

    def grow(self, by_weight: bool) -> tuple[Ints, int]:
        """Return each point's track, by its first point, and the rounds it took."""
        suffix = " by weight" if by_weight else ""
        first, lost_edge, edges, dropped = np.arange(self.m), np.zeros(self.m, dtype=bool), [], 0
        tasks: Tasks = ((self.source, part, self.scale, by_weight) for part in self.parts)
        for number, found in self.run(f"groups{suffix}", solve, tasks, self.parts):
            rows = self.points(self.parts[number].objects)
            first[rows], lost_edge[rows] = rows[found.first], found.lost_edge
            edges.append(Edges(rows[found.A], rows[found.B], found.count, found.weight))
            dropped += found.dropped
        across = [] if self.stopped else self._crossings(first, by_weight)
        if not self.stopped and not by_weight:
            dropped += self._connect(first, lost_edge, edges, across)
        if self.stopped:
            return first, 0
        every = Edges.together(edges + across)
        edges.clear()
        across.clear()
        self.need(_PER_EDGE * len(every.A), "the contracted problem")
        whole = Contracted(first, self.owners, lost_edge, every, dropped)
        track, n_iter, self.stopped = (
            whole.finish_by_weight(self.callback) if by_weight else whole.finish(self.scale.n_matches, self.callback)
        )
        return track, n_iter

    def _crossings(self, first: Ints, by_weight: bool) -> list[Edges]:
        """Return the edges between regions, by weight between groups."""
        parts = self.parts if by_weight else self.regions
        ends = [np.unique(self.source.pair_objects[part.crossing]).astype(np.int64) for part in parts]
        tasks = (
            (self.source, part, objects, self.named(first, objects), self.scale, by_weight)
            for part, objects in zip(parts, ends, strict=True)
        )
        return [found for _, found in self.run(f"crossings{' by weight' * by_weight}", cross, tasks, parts)]

    def _connect(self, first: Ints, lost_edge: Bools, edges: list[Edges], across: list[Edges]) -> int:
        """Let clusters in each region grow, in place; return how many matches were dropped."""
        touched, place = np.zeros(self.m, dtype=bool), np.empty(self.m, dtype=np.int32)
        for some in across:
            touched[some.A] = touched[some.B] = True
        region = np.empty(len(self.sizes), dtype=np.int64)
        for number, part in enumerate(self.regions):
            region[part.objects] = number
        of = np.array([region[part.objects[0]] for part in self.parts])

        def tasks() -> Iterator[tuple[Any, ...]]:
            for number, part in enumerate(self.regions):
                rows = self.points(part.objects)
                place[rows] = np.arange(len(rows))
                inner = Edges.together([edges[group] for group in np.flatnonzero(of == number)]).renamed(place)
                yield self.source, part, place[first[rows]], lost_edge[rows], inner, touched[rows], self.scale

        dropped, left = 0, []
        for number, found in self.run("regions", connect, tasks(), self.regions):
            rows = self.points(self.regions[number].objects)
            first[rows], lost_edge[rows] = rows[found.first], found.lost_edge
            left.append(Edges(rows[found.A], rows[found.B], found.count, found.weight))
            dropped += found.dropped
        edges[:] = left
        across[:] = [some.renamed(first) for some in across]
        return dropped

    def choose(self, track: Ints, other: Ints) -> None:
        """Take other tracks where they keep more weight of matches."""
        own = np.arange(self.m)
        unit = connected(self.m, np.stack([np.concatenate([track, other]), np.concatenate([own, own])], axis=1))
        gain = np.zeros(self.m)
        tasks = (
            (self.source, part, objects, *(x[self.points(objects)] for x in (unit, track, other)), self.scale)
            for part, objects in zip(self.parts, self.ends, strict=True)
        )
        for _, found in self.run("comparing", compare_answers, tasks, self.parts):
            gain[found.A] += found.weight
        better = np.flatnonzero(gain[unit] > ROUNDING)
        track[better] = other[better]

    def join(self, track: Ints) -> tuple[int, int]:
        """Join tracks in place; return how many joins, and matches inside tracks then."""
        if self.stopped:
            return 0, 0
        joins, border = self._join_inside(track)
        wanted = self._wanted(track, border)[track]
        points = np.flatnonzero(wanted)
        ends, weights, others, kept = self._collect(track, wanted, border)
        self.callback(Progress("last joins", 0))  # which takes a while and has no parts
        place = self.places(points)
        ends, here = place[ends], place[track[points]]
        joined, more = join(here, self.owners[points], ends, weights, least=self.least)
        track[points] = points[joined]
        for a, b in (ends.T, place[others].T):
            kept += int(np.count_nonzero(joined[a] == joined[b]))
        return joins + more, kept

    def _join_inside(self, track: Ints) -> tuple[int, Bools]:
        """Join tracks within groups; return how many, and which points are in tracks across."""
        group = np.empty(self.m, dtype=np.int32)
        for number, part in enumerate(self.parts):
            group[self.points(part.objects)] = number
        across = np.zeros(self.m, dtype=bool)
        across[track[np.flatnonzero(group != group[track])]] = True
        border, joins, place = across[track], 0, np.empty(self.m, dtype=np.int32)

        def tasks() -> Iterator[tuple[Any, ...]]:
            for part in self.parts:
                rows = self.points(part.objects)
                place[rows] = np.arange(len(rows))
                yield self.source, part, place[track[rows]], ~border[rows], self.scale, self.least

        for number, found in self.run("joining groups", join_inside, tasks(), self.parts):
            rows = self.points(self.parts[number].objects)
            inner = np.flatnonzero(~border[rows])
            track[rows[inner]] = rows[found.track[inner]]
            joins += found.joins
        return joins, border

    def _wanted(self, track: Ints, border: Bools) -> Bools:
        """Return which tracks, by name, might be joined at a border; shape (m,)."""
        keys, counts = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        tasks = (
            (self.source, part, objects, self.named(track, objects), border[self.points(objects)], self.m)
            for part, objects in zip(self.parts, self.ends, strict=True)
        )
        for _, found in self.run("bundles", bundle, tasks, self.parts):
            keys.append(found.key)
            counts.append(found.count)
            self.need(_PER_KEY * sum(map(len, keys)), "counting the matches between tracks")
        key, several = np.concatenate(keys), np.concatenate(counts) >= self.least
        found, _, times = runs(np.sort(key))
        wanted = np.zeros(self.m, dtype=bool)
        for some in (key[several], found[times >= self.least]):
            wanted[np.concatenate(np.divmod(some, max(self.m, 1)))] = True
        return wanted

    def _collect(
        self, track: Ints, wanted: Bools, border: Bools
    ) -> tuple[Ints, NDArray[np.float64], NDArray[np.int64], int]:
        """Return what joins at borders depend on: matches, (M, 2), weights, the rest of `Kept`."""
        ends, weights, others, decided = [np.empty((0, 2), np.int64)], [np.empty(0)], [np.empty((0, 2), np.int64)], 0
        tasks = (
            (self.source, part, objects, self.named(track, objects), wanted[rows], border[rows], self.scale)
            for part, objects in zip(self.parts, self.ends, strict=True)
            for rows in (self.points(objects),)
        )
        for number, found in self.run("joining", collect, tasks, self.parts):
            rows = self.points(self.ends[number])
            ends.append(rows[found.ends])
            others.append(rows[found.others])
            weights.append(found.weights)
            decided += found.decided
            self.need(_PER_JOINED * sum(map(len, weights)), "joining tracks")
        return np.concatenate(ends), np.concatenate(weights), np.concatenate(others), decided


def _all(part: Part) -> Ints:
    return np.concatenate([part.inside, part.crossing])
