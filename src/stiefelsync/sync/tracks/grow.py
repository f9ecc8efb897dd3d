"""Synchronise when the universe is large (tracks through many images, cells in many sessions).

No m×d matrix here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call
from stiefelsync.matching.graph import connected
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.method import Callback, Outcome, Progress, Stopwatch
from stiefelsync.sync.tracks.clusters import (
    Quotient,
    conflicting_edges,
    connected_parts,
    contract,
    merge_and_prune,
    singletons,
)
from stiefelsync.sync.tracks.details import account
from stiefelsync.sync.tracks.integer_arrays import ordered, runs
from stiefelsync.sync.tracks.join import join
from stiefelsync.sync.tracks.rules import Rule, few_choices, rule_gain, squares, triangles
from stiefelsync.sync.tracks.scale import ROUNDING, Scale

__all__ = [
    "RULES", "Grown", "Tracks", "grow_by_rules", "grow_by_weight", "grow_clusters", "grow_from", "grow_tracks",
    "matches_of", "number_tracks", "split",
]  # fmt: skip

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RULES: dict[str, Rule] = {
    "triangles": triangles,
    "squares": squares,
    "only choice": few_choices,
    "few choices": few_choices,
}
"""The rules in the order in which they are tried, by the names that reports use."""

# A rule is left for the next, weaker one when a round of it merges less than this share of the
# clusters.
_MIN_SHARE_MERGED = 0.05
_MAX_ROUNDS_BY_WEIGHT = 50  # of merging along the heaviest matches


def grow_tracks(
    matchings: Matchings, *, start: Ints | None = None, places: Floats | None = None, callback: Callback | None = None
) -> Outcome:
    """Split the match graph into tracks, each with at most one point of every object.

    W is block diagonal over the connected components of the match graph. Components in which no
    object has two points are finished tracks, exactly what union-find gives. The points of all the
    others start alone and are merged into clusters along matches, strongest evidence first, never
    so that an object has two points in a cluster:

    1. *triangles*: matches that close a triangle, the entries of W∘W² (this is what breaks a giant
       component);
    2. *squares*: matches that close a cycle of four;
    3. *only choice*: a cluster's only match that contradicts nothing;
    4. *few choices*: the best of at most 1/w such matches, w being the share of matches found wrong
       so far.

    From the second round on two or more matches between the same two clusters come before all of
    these. If matches have different weights, a second answer is made by merging along the *heaviest
    first*, and each component has the one of the two that keeps more weight. Finally, tracks that a
    conflict keeps apart are joined where the matches between them outweigh those of the points
    given up for it (:func:`~stiefelsync.sync.tracks.join.join`). What then has no support stays
    unmatched.

    Parameters
    ----------
    matchings
        The problem. Weights, if there are any, decide between matches of equal evidence and between
        answers; none counts for more than two of the median.
    start : (m,) int64, optional
        Labels to go on from, -1 for points that start alone. Of each label the parts that hang
        together by matches are the first clusters, instead of single points.
    places : (m, 2) float64, optional
        Positions of the points, in such units that points of an object less than 1 apart are one
        point found twice.
    callback
        Called after every round with the number of points that are placed; a true return value ends
        the merging.

    Returns
    -------
    Outcome
        Its labels are numbered from 0 by first point, -1 for points of no track. Its details are
        :class:`~stiefelsync.sync.tracks.details.TracksDetails`: by which rule points were placed,
        what became of the matches, how many tracks were repaired and joined.

    Notes
    -----
    Deterministic. Time O(Σ deg² + (m + M) log m) for some twenty rounds, with weights fifty, memory
    O(m + M); all steps are vectorised over all components at once.

    Examples
    --------
    A wrong match, of point 1 of object 2 with point 0 of object 3, joins two tracks; union-find has
    to discard both.

    >>> problem = Matchings.from_labels([0, 1, 0, 1, 0, 1, 0, 1], [2, 2, 2, 2])
    >>> right = {key: block for key, block in problem.pairs().items() if key != (2, 3)}
    >>> grow_tracks(Matchings.from_pairs(right | {(2, 3): [[1, 0]]}, [2, 2, 2, 2])).labels.tolist()
    [0, 1, 0, 1, 0, 1, 0, 1]
    """
    return grow_from(matchings, start, places, callback)[0]


def grow_from(
    matchings: Matchings, start: Ints | None, places: Floats | None, callback: Callback | None
) -> tuple[Outcome, Bools]:
    """Do what :func:`grow_tracks` does.

    Return also which points, (m,), are in components with a conflict.
    """
    watch = Stopwatch()
    with watch("components"):
        objects, ends = matchings.point_objects, matchings.endpoints
        # Components free of conflict are finished; everything below is about the others.
        component, conflicted = split(objects, ends)
        inside, ends = matches_of(conflicted, ends)
        scale, counts = Scale.of(matchings), np.diff(matchings.pair_start)
        weights, fullness_weights = scale.bounded_weights(
            None if matchings.weights is None else matchings.weights[inside], np.repeat(counts, counts)[inside]
        )
        first = None if start is None else connected_parts(start, ends)
    grown = grow_clusters(
        component, conflicted, objects, ends, weights, fullness_weights, scale,
        first=first, places=places, watch=watch, callback=callback,
    )  # fmt: skip
    with watch("labels"):
        labels = number_tracks(grown.track)
        details = account(matchings, labels, conflicted, grown.rule_of, [*RULES, "heaviest first"], grown.joins)
    status = Status.STOPPED if grown.stopped else Status.DONE
    outcome = Outcome(labels=labels, status=status, n_iter=grown.n_iter, timings=watch.seconds, details=details)
    return outcome, conflicted


@dataclass(frozen=True)
class Tracks:
    """Finished tracks, by their first points, and how they came about.

    Attributes
    ----------
    track : (m,) int64
        First point of each point's track.
    rule_of : (m,) int8
        The place of the rule in `RULES` and the words after it, by which a point ceased to be
        alone, -1 if by none.
    joins, n_iter
        Joins of tracks and rounds of merging.
    stopped
        Whether the callback asked to stop.
    """

    track: Ints
    rule_of: NDArray[np.int8]
    joins: int
    n_iter: int
    stopped: bool


def grow_clusters(
    component: Ints,
    conflicted: Bools,
    objects: NDArray[np.int32],
    ends: Ints,
    weights: Floats,
    fullness_weights: Floats,
    scale: Scale,
    *,
    first: Ints | None,
    places: Floats | None,
    watch: Stopwatch,
    callback: Callback | None = None,
) -> Tracks:
    """Merge the points of conflicted components into tracks, as :func:`grow_tracks` says.

    Parameters
    ----------
    component, conflicted : (m,)
        As :func:`split` returns them.
    objects : (m,) int
    ends : (M, 2) int64
        The matches inside conflicted components.
    weights, fullness_weights : (M,) float64
        As `scale` makes them.
    first : (m,) int64 or None
        First point of the cluster in which each point starts; None: all alone.
    """
    with watch("merging"):
        points, track = np.flatnonzero(conflicted), component.copy()
        q = _clusters(points, objects, ends, fullness_weights, first)
        # Rules weigh by fullness, the second answer by the weights alone, along the same edges if
        # none was moved.
        again = replace(q, weight=weights) if scale.median is not None and q.weight is fullness_weights else None
        # Matches that a given start has dropped count as found wrong: "few choices" asks how many
        # are.
        dropped = 0 if first is None else int((first[ends[:, 0]] != first[ends[:, 1]]).sum() - q.count.sum())
        grown = grow_by_rules(q, track, scale.n_matches, dropped=dropped, callback=callback)
        rule_of, n_iter, stopped = grown.rule_of, grown.n_iter, grown.stopped
        if not stopped and scale.median is not None:
            q = _clusters(points, objects, ends, weights, first) if again is None else again
            heaviest, rounds, stopped = grow_by_weight(q, component, callback)
            n_iter += rounds
            # Each component has the answer that keeps more weight, so one bad component spoils no
            # other.
            better = _heavier(heaviest, track, component, ends, weights)
            track[better] = heaviest[better]
            rule_of[better] = np.where(np.bincount(track)[track[better]] > 1, len(RULES), -1)
    with watch("joining"):
        track, joins = join(track, objects, ends, weights, places)
    return Tracks(track, rule_of, joins, n_iter, stopped)


def split(objects: NDArray[np.int32], ends: Ints, first: Ints | None = None) -> tuple[Ints, Bools]:
    """Return every point's component, by its first point, and whether that has a conflict.

    Parameters
    ----------
    objects : (m,) int
        Object of every point.
    ends : (M, 2) int64
        Matches as points, the smaller first.
    first : (m,) int64, optional
        First point of the cluster that each point is in already.
    """
    m = len(objects)
    if first is not None:
        inner = np.flatnonzero(first != np.arange(m))
        ends = np.concatenate([ends, np.stack([first[inner], inner], axis=1)])
    component = connected(m, ends)
    # Points of an object come one after another, so that the last one met in a component tells.
    order = None if (objects[1:] >= objects[:-1]).all() else np.argsort(objects, kind="stable")
    names, owner = (component, objects) if order is None else (component[order], objects[order])
    last, broken = np.full(m, -1, dtype=np.int32), np.zeros(m, dtype=bool)
    call("find_broken_components", names, np.ascontiguousarray(owner, np.int32), m, last, broken)
    return component, broken[component]


def matches_of(chosen: Bools, ends: Ints) -> tuple[Ints, Ints]:
    """Return the matches of chosen points, (m,), sorted by their ends: numbers, and matches."""
    M, m = len(ends), len(chosen)
    by_ends, order, rising = np.empty((M, 2), np.int64), np.empty(M, np.int64), np.empty(1, np.bool_)
    n = call("sort_matches", ends, M, chosen, m, by_ends, order, rising)
    order, by_ends = order[:n], by_ends[:n]
    if not rising[0]:  # the second ends of a point's matches do not ascend
        again = ordered(*by_ends.T)
        order, by_ends = order[again], by_ends[again]
    return (order, by_ends) if 2 * n > M else (order.copy(), by_ends.copy())


def _clusters(
    points: Ints, objects: NDArray[np.int32], ends: Ints, fullness_weights: Floats, first: Ints | None = None
) -> Quotient:
    """Return points as clusters: each alone, or with those of the same `first` point, (m,)."""
    if first is not None:
        a, b = first[ends].T
        count = np.ones(len(ends), dtype=np.int64)
        q = contract(points, objects[points].astype(np.int64), first[points], a, b, count, fullness_weights)
        return q.without(conflicting_edges(q))
    place = np.zeros(len(objects), dtype=np.int64)
    place[points] = np.arange(len(points))
    return singletons(points, objects[points].astype(np.int64), place[ends], fullness_weights)


@dataclass(frozen=True)
class Grown:
    """What became of clusters.

    Attributes
    ----------
    q
        The clusters with edges left between them that contradict nothing.
    rule_of : (m,) int8
        The place in `RULES` of the rule under which a point ceased to be alone, -1 if under none.
    lost_edge : (m,) bool
        Points that were the first of a cluster when an edge of that was dropped.
    dropped
        Matches dropped because they contradict the clusters.
    n_iter
        Rounds.
    stopped
        Whether the callback asked to stop.
    """

    q: Quotient
    rule_of: NDArray[np.int8]
    lost_edge: Bools
    dropped: int
    n_iter: int
    stopped: bool


def grow_by_rules(
    q: Quotient,
    track: Ints,
    n_matches: int,
    *,
    rules: Sequence[str] = tuple(RULES),
    dropped: int = 0,
    left_alone: Callable[[Quotient], Bools] | None = None,
    callback: Callback | None = None,
) -> Grown:
    """Merge clusters, rule after rule; write each point's track, by first point, to `track`.

    Parameters
    ----------
    q
        Clusters, whose edges are free of conflict.
    track : (m,) int64
        Written where points are in `q`.
    n_matches
        Matches of the whole problem.
    dropped
        Matches of the whole problem found wrong before.
    left_alone
        Says which clusters, (n,), are to be left as they are.
    """
    rule_of, lost_edge = np.full(len(track), -1, dtype=np.int8), np.zeros(len(track), dtype=bool)
    total, n_iter, stopped = len(q.points), 0, False
    _write(q, track)
    for name in rules:
        rule, number = RULES[name], list(RULES).index(name)
        # The more matches were found wrong, the fewer candidates a cluster may have for its best
        # one to be believed.
        if name == "few choices":
            rule = partial(few_choices, most=max(n_matches // max(dropped, 1), 1))
        merged = q.n
        # Where a round hardly merges any more the next, weaker rule takes over.
        while q.n_edges and not stopped and merged > _MIN_SHARE_MERGED * q.n:
            gain = rule_gain(q, rule)
            if left_alone is not None:
                closed = left_alone(q)
                gain[closed[q.A] | closed[q.B]] = 0
            if not (gain > 0).any():
                break
            before = q.n
            q, done, first, more = merge_and_prune(q, gain, lost_edge)
            sizes = runs(first)[2]
            merged = before - q.n - len(sizes)
            dropped += more
            track[done] = first
            _mark(rule_of, done, sizes, number)
            n_iter += 1
            if callback is not None:
                stopped = bool(callback(Progress("tracks", total - len(q.points), total)))
        _mark(rule_of, q.points, q.sizes, number)
    _write(q, track)
    return Grown(q, rule_of, lost_edge, dropped, n_iter, stopped)


def _mark(rule_of: NDArray[np.int8], points: Ints, sizes: Ints, number: int) -> None:
    """Note the rule for points of clusters of two or more, if none is noted yet."""
    grown = points[np.repeat(sizes > 1, sizes)]
    rule_of[grown[rule_of[grown] < 0]] = number


def grow_by_weight(q: Quotient, component: Ints, callback: Callback | None = None) -> tuple[Ints, int, bool]:
    """Merge clusters with the heaviest matches between them first.

    Returns
    -------
    track : (m,) int64
        Every point's track, by its first point.
    n_iter, stopped
        As for `grow_by_rules`.
    """
    track, total, n_iter, stopped = component.copy(), len(q.points), 0, False
    while q.n_edges and n_iter < _MAX_ROUNDS_BY_WEIGHT and not stopped:
        q, done, first, _ = merge_and_prune(q, q.weight / q.count)
        track[done] = first
        n_iter += 1
        if callback is not None:
            stopped = bool(callback(Progress("heaviest first", total - len(q.points), total)))
    _write(q, track)
    return track, n_iter, stopped


def _heavier(other: Ints, track: Ints, component: Ints, ends: Ints, weights: Floats) -> Bools:
    """Return which points are in components where other tracks keep more weight of matches.

    Shape (m,).
    """
    # Weight kept is compared component by component; below rounding the first answer stays.
    gain = np.zeros(len(track))
    call("compare_tracks", ends, weights, len(ends), other, track, component, gain)
    return np.asarray(gain[component] > ROUNDING)


def _write(q: Quotient, track: Ints) -> None:
    """Write the tracks of the points under consideration, by their first points, into `track`."""
    track[q.points] = q.points[q.start[q.clusters]]


def number_tracks(track: Ints) -> Ints:
    """Number the tracks of two or more points from 0 by their first point; -1 for a point alone."""
    size = np.bincount(track, minlength=len(track))
    number = np.where(size > 1, np.cumsum(size > 1) - 1, -1)
    return number[track]
