"""Synchronise when the universe is large (tracks through many images, cells in many sessions): no m×d matrix here."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Outcome, Progress, Stopwatch
from stiefelsync.sync.tracks.clusters import Quotient, merge, prune, singletons
from stiefelsync.sync.tracks.integer_arrays import trees
from stiefelsync.sync.tracks.join import join
from stiefelsync.sync.tracks.rules import Rule, few_choices, rule_gain, squares, triangles

__all__ = ["grow_tracks"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RULES: dict[str, Rule] = {
    "triangles": triangles,
    "squares": squares,
    "only choice": few_choices,
    "few choices": few_choices,
}
"""The rules in the order in which they are tried, by the names under which their shares are reported."""

# A rule is left for the next, weaker one when a round of it merges less than this share of the clusters.
_LEAST_SHARE = 0.05
_MOST_ROUNDS = 50  # of merging along the heaviest matches
_MOST_WEIGHT, _LEAST_WEIGHT = 2.0, 1e-6  # in medians
_ROUNDING = 1e-9


def grow_tracks(matchings: Matchings, *, places: Floats | None = None, callback: Callback | None = None) -> Outcome:
    """Split the match graph into tracks, each with at most one point of every object.

    W is block diagonal over the connected components of the match graph. Components in which no object has two points
    are finished tracks, exactly what union-find gives. The points of all the others start alone and are merged into
    clusters along matches, strongest evidence first, never so that an object has two points in a cluster:

    1. *triangles*: matches that close a triangle, the entries of W∘W² (this is what breaks a giant component);
    2. *squares*: matches that close a cycle of four;
    3. *only choice*: a cluster's only match that contradicts nothing;
    4. *few choices*: the best of at most 1/w such matches, w being the share of matches found wrong so far.

    From the second round on two or more matches between the same two clusters come before all of these. If matches have
    different weights, a second answer is made by merging along the *heaviest first*, and each component has
    the one of the two that keeps more weight. Finally, tracks that a conflict keeps apart are joined where the
    matches between them outweigh those of the points given up for it (:func:`~stiefelsync.sync.tracks.join.join`). What
    then has no support stays unmatched.

    Parameters
    ----------
    matchings
        The problem. Weights, if there are any, decide between matches of equal evidence and between answers; none
        counts for more than two of the median.
    places : (m, 2) float64, optional
        Positions of the points, in such units that points of an object less than 1 apart are one point found twice.
    callback
        Called after every round with the number of points that are settled; a true return value ends the merging.

    Returns
    -------
    Outcome
        Its labels are numbered from 0 by first point, -1 for points of no track. `details` says by which rule points
        were placed (``"points"``), what became of the matches (``"matches"``), how many tracks were repaired
        (``"tracks"``) and joined (``"joins"``), and which share of all matches contradicts the tracks (``"wrong"``).

    Notes
    -----
    Deterministic. Time O(Σ deg² + (m + M) log m) for some twenty rounds, with weights fifty, memory O(m + M); all steps
    are vectorised over all components at once.

    Examples
    --------
    A wrong match, of point 1 of object 2 with point 0 of object 3, joins two tracks; union-find has to discard both.

    >>> problem = Matchings.from_labels([0, 1, 0, 1, 0, 1, 0, 1], [2, 2, 2, 2])
    >>> right = {key: block for key, block in problem.pairs().items() if key != (2, 3)}
    >>> grow_tracks(Matchings.from_pairs(right | {(2, 3): [[1, 0]]}, [2, 2, 2, 2])).labels.tolist()
    [0, 1, 0, 1, 0, 1, 0, 1]
    """
    watch = Stopwatch()
    with watch("components"):
        component, conflicted = _components(matchings)
        inside = np.flatnonzero(conflicted[matchings.endpoints[:, 0]])
        ends, weights = matchings.endpoints[inside], _bounded(matchings.match_weights[inside])
    with watch("merging"):
        # Pairs with many matches first: wrong matches are spread over the pairs more evenly than right ones.
        trust = weights * np.diff(matchings.pair_start)[matchings.match_pairs[inside]]
        points, track = np.flatnonzero(conflicted), component.copy()
        q = _alone(points, matchings.point_objects, ends, trust)
        rule_of, n_iter, stopped = _grow(q, track, ends, matchings.n_matches, callback)
        if not stopped and (weights != weights[:1]).any():
            q = _alone(points, matchings.point_objects, ends, weights)
            heaviest, rounds, stopped = _grow_by_weight(q, component, callback)
            n_iter += rounds
            better = _heavier(heaviest, track, component, ends, weights)
            track[better] = heaviest[better]
            rule_of[better] = np.where(np.bincount(track)[track[better]] > 1, len(RULES), -1)
    with watch("joining"):
        track, joins = join(track, matchings.point_objects, ends, weights, places)
    with watch("labels"):
        labels = _numbered(track)
        details = _account(matchings, labels, conflicted, rule_of) | {"joins": joins}
    status = "stopped by the callback" if stopped else "done"
    return Outcome(labels=labels, status=status, n_iter=n_iter, timings=watch.seconds, details=details)


def _components(matchings: Matchings) -> tuple[Ints, Bools]:
    """Return every point's component, as the number of its first point, and whether that component has a conflict."""
    m, k = matchings.n_points, matchings.n_objects
    first = trees(m, *matchings.endpoints.T)
    key = np.sort(first * k + matchings.point_objects)
    broken = np.zeros(m, dtype=bool)
    broken[key[1:][key[1:] == key[:-1]] // max(k, 1)] = True
    return first, broken[first]


def _bounded(weights: Floats) -> Floats:
    """Return weights with the median as unit, the largest cut off, so that no few matches outvote all the others."""
    if (weights == weights[:1]).all():
        return np.ones(len(weights))
    median = np.median(weights)
    share = np.minimum(weights / _MOST_WEIGHT, median) / median  # in this order nothing overflows
    return np.maximum(_MOST_WEIGHT * share, _LEAST_WEIGHT)


def _alone(points: Ints, objects: NDArray[np.int32], ends: Ints, trust: Floats) -> Quotient:
    """Return the points, each a cluster of its own."""
    place = np.zeros(len(objects), dtype=np.int64)
    place[points] = np.arange(len(points))
    return singletons(points, objects[points].astype(np.int64), place[ends], trust / trust.max(initial=1.0))


def _grow(
    q: Quotient, track: Ints, ends: Ints, n_matches: int, callback: Callback | None
) -> tuple[NDArray[np.int8], int, bool]:
    """Merge clusters, rule after rule, and write each point's track, by its first point, into `track`.

    Returns
    -------
    rule_of : (m,) int8
        The place in `RULES` of the rule under which a point ceased to be alone, -1 if under none.
    n_iter
        Rounds.
    stopped
        Whether the callback asked to stop.
    """
    rule_of = np.full(len(track), -1, dtype=np.int8)
    total, n_iter, stopped = len(q.points), 0, False
    _write(q, track)
    for number, name in enumerate(RULES):
        rule = RULES[name]
        if name == "few choices":
            wrong = int((track[ends[:, 0]] != track[ends[:, 1]]).sum() - q.count.sum())
            rule = partial(few_choices, most=max(n_matches // max(wrong, 1), 1))
        merged = q.n
        while q.n_edges and not stopped and merged > _LEAST_SHARE * q.n:
            gain = rule_gain(q, rule)
            if not (gain > 0).any():
                break
            before = q.n
            q = merge(q, gain)
            merged = before - q.n
            q, done, first = prune(q)
            track[done] = first
            n_iter += 1
            if callback is not None:
                stopped = bool(callback(Progress("tracks", total - len(q.points), total)))
        _write(q, track)
        rule_of[(np.bincount(track)[track] > 1) & (rule_of < 0)] = number
    return rule_of, n_iter, stopped


def _grow_by_weight(q: Quotient, component: Ints, callback: Callback | None) -> tuple[Ints, int, bool]:
    """Merge clusters with the heaviest matches between them first.

    Returns
    -------
    track : (m,) int64
        Every point's track, by its first point.
    n_iter, stopped
        As of `_grow`.
    """
    track, total, n_iter, stopped = component.copy(), len(q.points), 0, False
    while q.n_edges and n_iter < _MOST_ROUNDS and not stopped:
        q, done, first = prune(merge(q, q.weight / q.count))
        track[done] = first
        n_iter += 1
        if callback is not None:
            stopped = bool(callback(Progress("heaviest first", total - len(q.points), total)))
    _write(q, track)
    return track, n_iter, stopped


def _heavier(other: Ints, track: Ints, component: Ints, ends: Ints, weights: Floats) -> Bools:
    """Return which points are in components where other tracks keep more weight of matches; shape (m,)."""
    a, b = ends.T
    change = weights * ((other[a] == other[b]) * 1.0 - (track[a] == track[b]))
    gain = np.bincount(component[a], weights=change, minlength=len(track))
    return np.asarray(gain[component] > _ROUNDING)


def _write(q: Quotient, track: Ints) -> None:
    """Write the tracks of the points under consideration, by their first points, into `track`."""
    track[q.points] = q.points[q.start[q.clusters]]


def _numbered(track: Ints) -> Ints:
    """Number the tracks of two or more points from 0 by their first point; -1 for a point alone."""
    size = np.bincount(track, minlength=len(track))
    number = np.where(size > 1, np.cumsum(size > 1) - 1, -1)
    return number[track]


def _account(matchings: Matchings, labels: Ints, conflicted: Bools, rule_of: NDArray[np.int8]) -> dict[str, Any]:
    """Return how many points, matches and tracks were decided by which rule."""
    a, b = matchings.endpoints.T
    matched, repaired = labels >= 0, conflicted[a]
    kept = (labels[a] == labels[b]) & matched[a]
    removed = int((~kept).sum())
    mended = np.zeros(int(labels.max(initial=-1)) + 1, dtype=bool)
    mended[labels[matched & conflicted]] = True
    placed = np.bincount(rule_of[matched & conflicted] + 1, minlength=len(RULES) + 2).tolist()
    return {
        "points": {
            "consistent": int((matched & ~conflicted).sum()),
            **dict(zip([*RULES, "heaviest first"], placed[1:], strict=True)),
            "joining": placed[0],
            "unmatched": int((~matched).sum()),
        },
        "matches": {
            "consistent": int((~repaired).sum()),
            "kept": int((repaired & kept).sum()),
            "removed": removed,
        },
        "tracks": {"consistent": int((~mended).sum()), "repaired": int(mended.sum())},
        "wrong": removed / max(matchings.n_matches, 1),
    }
