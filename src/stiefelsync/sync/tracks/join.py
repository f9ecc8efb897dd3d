"""Join tracks that a conflict keeps apart, where the matches between them outweigh the points given up for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.tracks import kernels
from stiefelsync.sync.tracks.clusters import mutual_best, pieces
from stiefelsync.sync.tracks.integer_arrays import find, ordered, runs, spread
from stiefelsync.sync.tracks.numbers import ROUNDING

__all__ = ["join"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MOST_ROUNDS = 20  # joins by copies may undo each other, and this ends it
_FEW = 8  # points of which there are so many times fewer than matches are looked up, others marked


def join(
    track: Ints,
    objects: NDArray[np.integer[Any]],
    ends: Ints,
    weights: Floats,
    places: Floats | None = None,
    *,
    least: int | None = None,
) -> tuple[Ints, int]:
    """Join pairs of tracks if that keeps more weight of matches.

    Where both tracks have a point of the same object, one of the two is expelled and then a track of its own: the one
    with less weight of matches into the two tracks, or all of one track, whichever keeps most. A join is made only if
    the weight of matches inside tracks grows, so that without `places` the objective tr(PᵀWP) grows with every join.

    Two points of an object in the same place are one point found twice. As a match between the tracks would, they say
    that these belong together, so each such pair counts as one of average weight, if the join makes a longer track.

    Parameters
    ----------
    track : (m,) int64
        Track of every point, named by one of its points.
    objects : (m,) int
        Object of every point.
    ends : (M, 2) int64
        Matches, as points.
    weights : (M,) float64
    places : (m, 2) float64, optional
        Positions, in such units that points of an object less than 1 apart are in the same place.
    least
        Matches there must be between two tracks; None: two if a single one cannot be enough, else one.

    Returns
    -------
    track : (m,) int64
        The tracks afterwards; a new array.
    joined : int
        Number of joins.

    Notes
    -----
    O(M log M), then at most twenty rounds over the tracks with matches between them. In each round tracks join with
    the one they share most weight of matches with, if that is mutual.

    Examples
    --------
    Two tracks of three points each hold a point of object 2; four matches join them, two the expelled point.

    >>> track, objects = np.array([0, 0, 0, 3, 3, 3]), np.array([0, 1, 2, 2, 3, 4])
    >>> ends = np.array([[0, 1], [0, 2], [3, 4], [4, 5], [0, 4], [0, 5], [1, 4], [1, 5]])
    >>> join(track, objects, ends, np.ones(8))[0].tolist()
    [0, 0, 0, 3, 0, 0]

    One match between them is not enough, unless the two points of object 2 are in the same place.

    >>> join(track, objects, ends[:5], np.ones(5))[0].tolist()
    [0, 0, 0, 3, 3, 3]
    >>> join(track, objects, ends[:5], np.ones(5), np.zeros((6, 2)))[0].tolist()
    [0, 0, 0, 3, 0, 0]
    """
    copy = float(weights.mean()) if len(weights) else 0.0
    # Among matches of one weight a single one outweighs no expelled point.
    if least is None:
        least = 2 if places is None and (weights == weights[:1]).all() else 1
    given = track, objects, ends, weights, places, copy
    if (found := kernels.joined(*given, least=least, rounds=_MOST_ROUNDS, rounding=ROUNDING)) is not None:
        return found
    points, here, matches = _involved(ends, weights, track, least)
    here, joined = _join(matches, here, objects[points], None if places is None else places[points], copy, least)
    # Without the expelled points a track may fall apart.
    track = track.copy()
    track[points] = points[pieces(here, np.stack([matches.a, matches.b], axis=1))]
    return track, joined


def _join(
    matches: _Matches, here: Ints, objects: NDArray[np.integer[Any]], places: Floats | None, copy: float, least: int
) -> tuple[Ints, int]:
    """Do what the kernel does: return the tracks, (n,), and the number of joins."""
    here, joined = here.copy(), 0
    bundles, held = matches.bundles(here, least), np.zeros(len(here))
    matches.hold(held, here, np.arange(len(here)))
    for _ in range(_MOST_ROUNDS):
        fresh = np.flatnonzero(~bundles.tried)
        if not len(fresh):
            break
        best = mutual_best(bundles.A[fresh], bundles.B[fresh], bundles.weight[fresh], len(here))
        chosen = fresh[best]
        bundles.tried[chosen] = True
        pairs = _Pairs.of(here, objects, bundles.A[chosen], bundles.B[chosen])
        earned = copy * pairs.copies(places)
        pairs = pairs.worthwhile(bundles.weight[chosen] + earned, held)
        gain, expelled = _best_choice(pairs, here, matches, earned)
        moved = pairs.points[(gain > 0)[pairs.pair[pairs.points]]]
        if len(moved):
            before = here.copy()
            joined += pairs.join(here, gain > 0, expelled)
            bundles = bundles.after(matches, before, here, moved, least)
            matches.hold(held, here, moved)
    return here, joined


@dataclass(frozen=True)
class _Matches:
    """Matches a < b between points, shape (M,), and their weights."""

    a: Ints
    b: Ints
    weights: Floats

    @cached_property
    def _at(self) -> tuple[Ints, Ints]:
        """Matches by their points: those of point i are ``order[start[i]:start[i + 1]]``, each plus M for the end b."""
        ends = np.concatenate([self.a, self.b])
        return ordered(ends), np.append(0, np.cumsum(np.bincount(ends)))

    def at(self, points: Ints) -> Ints:
        """Return the numbers of the matches that have an end among these points, ascending."""
        if len(points) * _FEW > len(self.a):
            ours = np.zeros(max(int(self.b.max(initial=-1)), int(points.max(initial=-1))) + 1, dtype=bool)
            ours[points] = True
            return np.flatnonzero(ours[self.a] | ours[self.b])
        order, start = self._at
        points = points[points < len(start) - 1]  # those beyond have no match
        which = np.sort(order[spread(start[points], np.diff(start)[points])[1]] % len(self.a))
        return runs(which)[0]

    def hold(self, held: Floats, track: Ints, points: Ints) -> None:
        """Write the weight of the matches that each of these points, whole tracks, has in its track into `held`."""
        some = self.at(points)
        a, b = self.a[some], self.b[some]
        inner = np.flatnonzero(track[a] == track[b])
        both, w = np.concatenate([a[inner], b[inner]]), self.weights[some[inner]]
        held[points] = np.bincount(both, np.concatenate([w, w]), len(held))[points]

    def between(self, track: Ints, some: Ints | None = None) -> tuple[Ints, Ints, Ints]:
        """Return the matches between different tracks, of all or of some, and these tracks A < B."""
        a, b = (self.a, self.b) if some is None else (self.a[some], self.b[some])
        A, B = track[a], track[b]
        apart = np.flatnonzero(A != B)
        A, B = A[apart], B[apart]
        return apart if some is None else some[apart], np.minimum(A, B), np.maximum(A, B)

    def bundles(self, track: Ints, least: int, some: Ints | None = None) -> _Bundles:
        """Return the tracks with `least` or more matches between them, all or only those that some matches are of."""
        apart, A, B = self.between(track, some)
        order = ordered(A, B)
        _, first, count = runs((A * len(track) + B)[order])
        which = np.repeat(np.arange(len(first)), count)
        weights: Floats = np.bincount(which, self.weights[apart[order]]).astype(np.float64)  # int if there is none
        enough = np.flatnonzero(count >= least)
        one = order[first[enough]]
        return _Bundles(A[one], B[one], weights[enough], np.zeros(len(enough), dtype=bool))


@dataclass(frozen=True)
class _Bundles:
    """Pairs of tracks A < B, sorted, with matches between them; the weight of these; which pairs were tried."""

    A: Ints
    B: Ints
    weight: Floats
    tried: Bools

    def after(self, matches: _Matches, before: Ints, now: Ints, moved: Ints, least: int) -> _Bundles:
        """Return the bundles when the points that moved, and no others, have other tracks than before."""
        m = len(now)
        touched, changed = np.zeros(m, dtype=bool), now != before
        touched[before[moved]] = touched[now[moved]] = True
        changed[now[changed]] = True  # the tracks that grew keep their names
        same = np.flatnonzero(~touched[self.A] & ~touched[self.B])
        again = np.flatnonzero(self.tried & ~(changed[self.A] | changed[self.B]))
        new = matches.bundles(now, least, matches.at(np.flatnonzero(touched[now])))
        key, wanted = self.A * m + self.B, new.A * m + new.B
        new.tried[find(key[again], wanted)[0]] = True
        place = np.searchsorted(key[same], wanted)
        return _Bundles(
            np.insert(self.A[same], place, new.A), np.insert(self.B[same], place, new.B),
            np.insert(self.weight[same], place, new.weight), np.insert(self.tried[same], place, new.tried),
        )  # fmt: skip


def _involved(ends: Ints, weights: Floats, track: Ints, least: int) -> tuple[Ints, Ints, _Matches]:
    """Return the points, ascending, of tracks that could be joined, their tracks, and their matches sorted by a.

    Names of tracks and ends of matches are places among the points.
    """
    bundles = _Matches(ends[:, 0], ends[:, 1], weights).bundles(track, least)
    involved = np.zeros(len(track), dtype=bool)
    involved[bundles.A] = involved[bundles.B] = True
    involved = involved[track]
    a, b = ends.T
    inside = np.flatnonzero(involved[a] & involved[b])
    a, b = a[inside], b[inside]
    if (a[1:] < a[:-1]).any():
        order = ordered(a)
        a, b, inside = a[order], b[order], inside[order]
    place = np.cumsum(involved) - 1
    points = np.flatnonzero(involved)
    return points, place[track[points]], _Matches(place[a], place[b], weights[inside])


@dataclass(frozen=True)
class _Pairs:
    """Disjoint pairs of tracks that might be joined.

    Attributes
    ----------
    points : (p,) int64
        The points of all the tracks.
    pair : (m,) int64
        The pair of a point's track, -1 for all other points.
    smaller : (n,) int64
        How many points the smaller of the two tracks has.
    one, two : (c,) int64
        Points of the same object, `one` in the first and `two` in the second track of a pair.
    """

    points: Ints
    pair: Ints
    smaller: Ints
    one: Ints
    two: Ints

    @classmethod
    def of(cls, track: Ints, objects: NDArray[np.integer[Any]], A: Ints, B: Ints) -> _Pairs:
        """Return the pairs of the tracks A and B, shape (n,)."""
        pair = np.full(len(track), -1)
        pair[A] = pair[B] = np.arange(len(A))
        pair = pair[track]
        points = np.flatnonzero(pair >= 0)
        order = ordered(pair[points], objects[points])
        in_pair, owner = pair[points[order]], objects[points[order]]
        twice = np.flatnonzero((np.diff(in_pair) == 0) & (np.diff(owner) == 0))
        one, two = points[order[twice]], points[order[twice + 1]]
        swap = track[one] != A[pair[one]]
        one, two = np.where(swap, two, one), np.where(swap, one, two)
        sizes = np.bincount(track, minlength=len(track))
        return cls(points, pair, np.minimum(sizes[A], sizes[B]), one, two)

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.smaller)

    def worthwhile(self, gained: Floats, held: Floats) -> _Pairs:
        """Return the same pairs, knowing only points of those that may gain more, (n,), than they lose in any case.

        Of two points of an object one goes, and with it the weight of the matches it has in its track, `held`, (m,).
        """
        loss = np.full(self.n, -np.inf)
        np.maximum.at(loss, self.pair[self.one], np.minimum(held[self.one], held[self.two]))
        which = gained > loss
        points = self.points[which[self.pair[self.points]]]
        pair = np.full(len(self.pair), -1)
        pair[points] = self.pair[points]
        kept = np.flatnonzero(which[self.pair[self.one]])
        return _Pairs(points, pair, self.smaller, self.one[kept], self.two[kept])

    def copies(self, places: Floats | None) -> Floats:
        """Count the points in the same place, if a join makes a longer track; shape (n,)."""
        if places is None:
            return np.zeros(self.n)
        pair = self.pair[self.one]
        near = ((places[self.one] - places[self.two]) ** 2).sum(axis=1) < 1
        longer = np.bincount(pair, minlength=self.n) < self.smaller
        return np.where(longer, np.bincount(pair[near], minlength=self.n), 0.0)

    def join(self, track: Ints, which: Bools, expelled: Ints) -> int:
        """Join the tracks of some pairs, name them by their first points in `track`, and return how many they are."""
        stays = np.ones(len(track), dtype=bool)
        stays[expelled] = False
        moved = self.points[which[self.pair[self.points]]]
        track[moved] = moved
        stay = moved[stays[moved]]
        name = np.full(self.n, len(track))
        np.minimum.at(name, self.pair[stay], stay)
        track[stay] = name[self.pair[stay]]
        return int(which.sum())


def _best_choice(pairs: _Pairs, track: Ints, matches: _Matches, earned: Floats) -> tuple[Floats, Ints]:
    """Return what is gained at most by joining each pair, shape (n,), and which points are to be expelled for that.

    Parameters
    ----------
    earned : (n,) float64
        What is gained beside the weight of matches, if there is a match between the tracks.
    """
    n, near = pairs.n, matches.at(pairs.points)
    of = pairs.pair[matches.a[near]]
    within = np.flatnonzero((of >= 0) & (of == pairs.pair[matches.b[near]]))
    near, of = near[within], of[within]
    a, b, w = matches.a[near], matches.b[near], matches.weights[near]
    between = track[a] != track[b]
    before = np.bincount(of[~between], weights=w[~between], minlength=n)
    degree = np.bincount(a, w, len(track)) + np.bincount(b, w, len(track))
    one, two = pairs.one, pairs.two
    gain, expelled = np.zeros(n), one
    for choice in (np.where(degree[one] < degree[two], one, two), one, two):
        stays = np.ones(len(track), dtype=bool)
        stays[choice] = False
        kept = np.flatnonzero(stays[a] & stays[b])
        linked = np.bincount(of[kept[between[kept]]], minlength=n) > 0
        gained = np.bincount(of[kept], weights=w[kept], minlength=n) - before + np.where(linked, earned, 0.0)
        better = gained > gain + ROUNDING
        gain = np.where(better, gained, gain)
        expelled = np.where(better[pairs.pair[one]], choice, expelled)
    return gain, expelled
