"""Go on from a solved problem: re-solve what has changed and its neighbourhood, leave everything else as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.changes import Carried, carry_over, changed_points, new_places
from stiefelsync.sync.constraints import Constraints, constrain
from stiefelsync.sync.method import Callback, Stopwatch, find_method
from stiefelsync.sync.methods.tracks import check_ranges, prepare
from stiefelsync.sync.outcome import Details, Outcome
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise
from stiefelsync.sync.tracks.grow import Tracks, grow_clusters, split
from stiefelsync.sync.tracks.integer_arrays import ordered, runs
from stiefelsync.sync.tracks.scale import Scale

__all__ = ["ExtendDetails", "extend"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Share of the points that may be placed anew before the whole problem is solved again.
_MAX_SHARE_PLACED_ANEW = 0.5
# Matches by which a point is firmly held in its track; others of the neighbourhood are placed anew.
_MIN_FIRM_MATCHES = 3


@dataclass(frozen=True, eq=False, repr=False)
class ExtendDetails(Details):
    """What `extend` tells.

    Attributes
    ----------
    placed_anew
        Points placed anew since all were last looked at.
    """

    placed_anew: int


def extend(
    solved: Synchronisation,
    matchings: Matchings,
    *,
    constraints: Constraints | None = None,
    callback: Callback | None = None,
    **options: Any,
) -> Synchronisation:
    """Return the answer to a problem that has grown or changed since it was solved.

    Parameters
    ----------
    solved
        An answer with labels.
    matchings
        The problem as it is now: with further objects, further matches, or without some of either. Objects are told by
        name where both problems have names, else by number, new ones at the end.
    constraints
        About points of the problem as it is now. Those that the answer holds already go on to hold.
    **options
        Of "tracks" if that was the method; "accurate" and "fast", which go on for others, have none.

    Returns
    -------
    Synchronisation
        Tracks that nothing has touched keep their labels. A track that changed keeps the label it had most of its
        points from; new tracks have labels that are free, then further ones.

    Notes
    -----
    Method "tracks" dissolves the tracks with a match that is new or gone and grows them anew, with the tracks they have
    matches with as clusters, less the points that hang on these by a match or two; what that costs depends on how much
    has changed. Decisions once made on little evidence then stay, and where many matches are wrong they add up. So
    ``details.placed_anew`` counts the points that were, and as soon as they are more than half of all points, the
    problem is solved as a whole again and the count begins anew. That costs less than the steps since the last time,
    and tracks that come out the same keep their labels; only then `doubt` counts.

    "accurate" begins with the labels it had, beside its other starts. Every other method improves them, all objects
    against all, as "fast" does from a start.

    Examples
    --------
    >>> from stiefelsync import datasets
    >>> problem, truth = datasets.scene(300, 20, 100, 200, 0.1, 0.3, rng=0)
    >>> before = synchronise(problem[:19], method="tracks")
    >>> after = extend(before, problem)
    >>> after.labels.shape, bool((after.labels[:1900] == before.labels).mean() > 0.5)
    ((2000,), True)
    """
    if not isinstance(matchings, Matchings):
        raise InputError(f"extend needs the Matchings of the whole problem, got {type(matchings).__name__}")
    held = _held_constraints(solved, constraints, matchings)
    if held is None:
        return _extend(solved, matchings, callback, options)
    known = constrain(matchings, held)
    grown = _extend(solved, matchings, callback, options)
    labels = _inherit(grown.labels, known.enforce(grown.labels), np.arange(matchings.n_points))
    size = max(grown.universe_size, int(labels.max(initial=-1)) + 1)
    outcome = replace(grown.outcome, labels=labels)
    return replace(grown, outcome=outcome, universe_size=size, constraints=held)


def _held_constraints(
    solved: Synchronisation, constraints: Constraints | None, matchings: Matchings
) -> Constraints | None:
    """Return what is to hold now: what held before, of points that are still there, and what is new."""
    if solved.constraints is None:
        return constraints
    held = solved.constraints.carried(solved.input, matchings, new_places(solved.input, matchings))
    return held if constraints is None else held | constraints


def _extend(
    solved: Synchronisation, matchings: Matchings, callback: Callback | None, options: dict[str, Any]
) -> Synchronisation:
    """Return what :func:`extend` does, without constraints."""
    watch = Stopwatch()
    with watch("changes"):
        carried = carry_over(solved.input, solved.labels, matchings)
    details = solved.outcome.details
    anew = details.placed_anew if isinstance(details, ExtendDetails) else 0
    if solved.method == "tracks":
        find_method("tracks").check_options(options)
        return _extend_tracks(carried, matchings, anew, watch, callback, options)
    d = max(solved.universe_size, int(matchings.sizes.max(initial=1)))
    universe: int | str = d if solved.estimate is None else "auto"
    method = "accurate" if solved.method == "accurate" else "fast"
    refined = synchronise(matchings, universe, method=method, start=carried.labels, callback=callback, **options)
    labels = _inherit(carried.labels, refined.labels, np.arange(matchings.n_points))
    size = max(refined.universe_size, int(labels.max(initial=-1)) + 1)
    outcome = replace(refined.outcome, labels=labels)
    return Synchronisation(matchings, solved.method, outcome, size, None, {**watch.seconds, **refined.timings})


def _extend_tracks(
    carried: Carried,
    matchings: Matchings,
    anew: int,
    watch: Stopwatch,
    callback: Callback | None,
    options: dict[str, Any],
) -> Synchronisation:
    with watch("changes"):
        free = _free(carried.labels, changed_points(carried, matchings))
        anew += int(free.sum())
    if anew > _MAX_SHARE_PLACED_ANEW * matchings.n_points:
        return _solve_anew(carried, matchings, watch, callback, options)
    with watch("changes"):
        held = _held(matchings, carried.labels, free)
        objects = np.zeros(matchings.n_objects, dtype=bool)
        objects[matchings.point_objects[held]] = True
        local = matchings.only_pairs(np.flatnonzero(objects[matchings.pair_objects].all(axis=1)))
        free |= _loose(local, carried.labels, held)
    with watch("neighbours"):
        given = {**find_method("tracks").defaults, **options}
        check_ranges(given["neighbours"], given["copies"], given["doubt"])
        prepared = prepare(local, neighbours=given["neighbours"], copies=given["copies"], callback=callback)
    grown = _grow(prepared.weighed, prepared.places, carried.labels, free, held, watch, prepared.callback)
    with watch("labels"):
        labels = carried.labels.copy()
        labels[held] = _inherit(carried.labels, grown.track, held)
    status = Status.STOPPED if grown.stopped else Status.DONE
    outcome = Outcome(
        labels=labels, status=status, n_iter=grown.n_iter, timings=watch.seconds, details=ExtendDetails(anew)
    )
    return Synchronisation(matchings, "tracks", outcome, int(labels.max(initial=-1)) + 1, None, watch.seconds)


def _solve_anew(
    carried: Carried, matchings: Matchings, watch: Stopwatch, callback: Callback | None, options: dict[str, Any]
) -> Synchronisation:
    """Solve the whole problem; tracks keep the labels that most of their points had."""
    whole = synchronise(matchings, method="tracks", callback=callback, **options)
    labels = _inherit(carried.labels, whole.labels, np.arange(matchings.n_points))
    outcome = replace(whole.outcome, labels=labels)
    timings = {**watch.seconds, **whole.timings}
    return Synchronisation(matchings, "tracks", outcome, int(labels.max(initial=-1)) + 1, None, timings)


def _free(labels: Ints, changed: Bools) -> Bools:
    """Return which points are to be placed anew: those that changed, and all points of their tracks; shape (m,)."""
    touched = np.zeros(int(labels.max(initial=-1)) + 2, dtype=bool)
    touched[labels[changed]] = True  # label -1 is the last entry
    touched[-1] = False
    free: Bools = touched[labels] | changed
    return free


def _held(matchings: Matchings, labels: Ints, free: Bools) -> Ints:
    """Return the points that take part: free ones, and the tracks that these have matches with; ascending."""
    objects = np.zeros(matchings.n_objects, dtype=bool)
    objects[matchings.point_objects[free]] = True
    near = matchings.only_pairs(np.flatnonzero(objects[matchings.pair_objects].any(axis=1)))
    a, b = near.endpoints.T
    either = np.flatnonzero(free[a] | free[b])
    met = _free(labels, np.zeros(len(free), dtype=bool))
    met[a[either]] = met[b[either]] = True
    return np.flatnonzero(_free(labels, met) | free)


def _loose(local: Matchings, labels: Ints, held: Ints) -> Bools:
    """Return which of the points that take part hang on their tracks by a match or two; shape (m,)."""
    a, b = local.endpoints.T
    inner = np.flatnonzero((labels[a] == labels[b]) & (labels[a] >= 0))
    degree = np.bincount(np.concatenate([a[inner], b[inner]]), minlength=len(labels))
    loose = np.zeros(len(labels), dtype=bool)
    loose[held[degree[held] < _MIN_FIRM_MATCHES]] = True
    return loose


def _grow(
    weighed: Matchings,
    places: NDArray[np.float64] | None,
    labels: Ints,
    free: Bools,
    held: Ints,
    watch: Stopwatch,
    callback: Callback | None,
) -> Tracks:
    """Grow the tracks of the points that take part, the free ones alone at first; tracks are named by places in held.

    Matches between two tracks that are not free were weighed before, when these were found to be different.
    """
    with watch("components"):
        place = np.full(len(free), -1, dtype=np.int64)
        place[held] = np.arange(len(held))
        ends = weighed.endpoints
        a, b = ends.T
        same = (labels[a] == labels[b]) & (labels[a] >= 0)
        chosen = np.flatnonzero((place[a] >= 0) & (place[b] >= 0) & (free[a] | free[b] | same))
        ends, objects = place[ends[chosen]], weighed.point_objects[held]
        fixed = np.flatnonzero(~free[held] & (labels[held] >= 0))
        first = np.arange(len(held))
        order = fixed[ordered(labels[held[fixed]])]
        _, begins, counts = runs(labels[held[order]])
        first[order] = np.repeat(order[begins], counts)
        component, conflicted = split(objects, ends, first)
        scale, inside = Scale.of(weighed), np.flatnonzero(conflicted[ends[:, 0]])
        # Only matches of free points are found wrong here, so the share of these is one of the matches of free points.
        scale = replace(scale, n_matches=int(np.count_nonzero(free[a[chosen]] | free[b[chosen]])))
        chosen, ends = chosen[inside], ends[inside]
        weights, fullness_weights = scale.bounded_weights(
            None if weighed.weights is None else weighed.weights[chosen],
            np.diff(weighed.pair_start)[weighed.match_pairs[chosen]],
        )
    return grow_clusters(
        component, conflicted, objects, ends, weights, fullness_weights, scale,
        first=first, places=None if places is None else places[held], watch=watch, callback=callback,
    )  # fmt: skip


def _inherit(before: Ints, track: Ints, points: Ints) -> Ints:
    """Return labels for the tracks of some points: the old ones where they can be, then free ones, then new ones.

    Parameters
    ----------
    before : (m,) int64
        Labels of all points; those of the other points are taken.
    track : (p,) int64
        Track of each of `points`, under any name; -1, or a track of one point, is unmatched.

    Examples
    --------
    >>> _inherit(np.array([0, 0, 1, 1, 2, -1]), np.array([7, 7, 7, 8, 9, 8]), np.arange(6)).tolist()
    [0, 0, 0, 1, -1, 1]
    """
    names, new, sizes = np.unique(track, return_inverse=True, return_counts=True)
    alone = (sizes < 2) | (names < 0)
    old, n = before[points], len(names)
    label = np.full(n, -1, dtype=np.int64)
    shared = np.flatnonzero((old >= 0) & ~alone[new])
    key, _, count = runs(np.sort(new[shared] * (int(before.max(initial=-1)) + 1) + old[shared]))
    heir, of = np.divmod(key, int(before.max(initial=-1)) + 1)
    # The largest share first: every track claims one label, and every label goes to one of its claimants.
    order = np.lexsort((heir, of, -count))
    order = order[np.sort(np.unique(heir[order], return_index=True)[1])]
    order = order[np.sort(np.unique(of[order], return_index=True)[1])]
    label[heir[order]] = of[order]
    taken = np.zeros(int(before.max(initial=-1)) + 2 + n, dtype=bool)
    elsewhere = np.ones(len(before), dtype=bool)
    elsewhere[points] = False
    taken[before[elsewhere & (before >= 0)]] = True
    taken[label[label >= 0]] = True
    unnamed = np.flatnonzero((label < 0) & ~alone)
    label[unnamed] = np.flatnonzero(~taken)[: len(unnamed)]
    return label[new]
