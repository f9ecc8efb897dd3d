"""What has changed between two problems, in points, without looking at what has not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.tracks.integer_arrays import find, spread

__all__ = ["Carried", "carry_over", "changed_points", "new_places"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Carried:
    """A solved problem, its objects put where another problem has them.

    Attributes
    ----------
    before
        The old problem without the objects that are gone, in the order of the new one.
    place : (k,) int64
        Where its objects are in the new problem, ascending.
    labels : (m,) int64
        Of the points of the new problem, -1 where nothing is known.
    bereft : (m,) bool
        Points of the new problem that had a match with an object that is gone.
    """

    before: Matchings
    place: Ints
    labels: Ints
    bereft: Bools


def carry_over(before: Matchings, labels: Ints, after: Matchings) -> Carried:
    """Put the objects of a solved problem where another one has them.

    Objects are told by name where both problems have names, else by number. Points of an object
    keep their numbers; it may have more of them, or fewer.

    Parameters
    ----------
    labels : (m,) int64
        Of the points before.

    Examples
    --------
    >>> old = Matchings.from_labels([0, 0], [1, 1], names=["b", "a"])
    >>> new = Matchings.from_labels([0, 0, 0], [1, 1, 1], names=["a", "c", "b"])
    >>> carried = carry_over(old, np.array([7, 8]), new)
    >>> carried.place.tolist(), carried.labels.tolist()
    ([0, 2], [8, -1, 7])
    """
    place, bereft = new_places(before, after), np.zeros(before.n_points, dtype=bool)
    if (place < 0).any():
        gone = place[before.point_objects[before.endpoints]] < 0
        bereft[before.endpoints[gone[:, ::-1]]] = True
    kept = np.flatnonzero(place >= 0)
    kept = kept[np.argsort(place[kept])]
    if not np.array_equal(kept, np.arange(before.n_objects)):
        rows = spread(before.offsets[kept], before.sizes[kept].astype(np.int64))[1]
        before, labels, bereft, place = before[kept], labels[rows], bereft[rows], place[kept]
    common = np.minimum(before.sizes, after.sizes[place]).astype(np.int64)
    new, old = (spread(offsets, common)[1] for offsets in (after.offsets[place], before.offsets[:-1]))
    carried, alone = np.full(after.n_points, -1, dtype=np.int64), np.zeros(after.n_points, dtype=bool)
    carried[new], alone[new] = labels[old], bereft[old]
    return Carried(before, place, carried, alone)


def new_places(before: Matchings, after: Matchings) -> Ints:
    """Return the number that each object has in the other problem, -1 if it is gone; shape (k,).

    Examples
    --------
    >>> old, new = (Matchings.from_labels([0, 0], [1, 1], names=names) for names in (["b", "a"], ["a", "c"]))
    >>> new_places(old, new).tolist()
    [-1, 0]
    """
    if before.names is not None and after.names is not None:
        number = {name: i for i, name in enumerate(after.names)}
        return np.array([number.get(name, -1) for name in before.names], dtype=np.int64)
    if after.n_objects < before.n_objects:
        raise InputError(
            f"the problem had {before.n_objects} objects and has {after.n_objects} now; objects without names are told"
            " by number, so name them if some are gone"
        )
    return np.arange(before.n_objects)


def changed_points(carried: Carried, after: Matchings) -> Bools:
    """Return which points are ends of a match that is new, gone or weighted otherwise; shape (m,).

    Notes
    -----
    One comparison per run of pairs that follow each other in both problems, so the cost of what is
    unchanged is that of comparing memory.
    """
    before, place, changed, k = carried.before, carried.place, carried.bereft.copy(), after.n_objects
    old = place[before.pair_objects].astype(np.int64) @ np.array([k, 1])
    new = after.pair_objects.astype(np.int64) @ np.array([k, 1])
    which, where = find(new, old)
    same = np.diff(before.pair_start)[which] == np.diff(after.pair_start)[where]
    which, where = which[same], where[same]
    equal = np.zeros(len(old), dtype=bool)
    breaks = np.flatnonzero((np.diff(which) != 1) | (np.diff(where) != 1)) + 1
    for run in np.split(np.arange(len(which)), breaks):
        if len(run):
            equal[which[run]] = _equal(before, which[run], after, where[run])
    untouched = np.zeros(len(new), dtype=bool)
    untouched[where[equal[which]]] = True
    parts = before.only_pairs(np.flatnonzero(~equal)), after.only_pairs(np.flatnonzero(~untouched))
    old, gone = _keys(parts[0], after.offsets[place], after.sizes[place], after.n_points)
    new, come = _keys(parts[1], after.offsets[:-1], after.sizes, after.n_points)
    which, where = find(new, old)
    other = np.flatnonzero(parts[0].match_weights[gone][which] != parts[1].match_weights[come][where])
    differs = np.concatenate([np.setxor1d(old, new, assume_unique=True), old[which[other]]])
    changed[np.concatenate(np.divmod(differs, max(after.n_points, 1)))] = True
    return changed


def _keys(part: Matchings, starts: Ints, sizes: NDArray[np.int32], m: int) -> tuple[Ints, Ints]:
    """Return the matches between points that are there as a·m + b, ascending, and their numbers in `part`."""
    owner = part.pair_objects[part.match_pairs]
    there = np.flatnonzero((part.indices < sizes[owner]).all(axis=1))
    keys = (part.indices[there] + starts[owner[there]]) @ np.array([m, 1])
    order = np.argsort(keys)
    return keys[order], there[order]


def _equal(before: Matchings, which: Ints, after: Matchings, where: Ints) -> Bools:
    """Return which pairs of one run have equal matches in both problems; shape (n,)."""
    alike = _alike(before, which, after, where)
    if alike or len(which) == 1:
        return np.full(len(which), alike)
    middle = len(which) // 2
    return np.append(
        _equal(before, which[:middle], after, where[:middle]), _equal(before, which[middle:], after, where[middle:])
    )


def _alike(before: Matchings, which: Ints, after: Matchings, where: Ints) -> bool:
    """Return whether pairs that follow each other in both problems, with as many matches, have equal ones."""
    one = slice(before.pair_start[which[0]], before.pair_start[which[-1] + 1])
    two = slice(after.pair_start[where[0]], after.pair_start[where[-1] + 1])
    alike = np.array_equal(before.indices[one], after.indices[two])
    if alike and (before.weights is not None or after.weights is not None):
        alike = np.array_equal(before.match_weights[one], after.match_weights[two])
    return alike
