"""Bring flat match arrays into the canonical form of :class:`Matchings`: validated, i < j, sorted, one-to-one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import InputError, unknown_name

__all__ = ["Repair", "canonical", "check_sizes", "check_weights"]

Int32s = NDArray[np.int32]
Floats = NDArray[np.float64]
INT32_MAX = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class Repair:
    """What was dropped to make matches one-to-one.

    Attributes
    ----------
    duplicates
        Matches that were given more than once (the heaviest copy stays).
    conflicts
        Matches that gave a point a second partner in the same object (the heavier stays, the earlier on a tie).
    """

    duplicates: int = 0
    conflicts: int = 0


def check_sizes(sizes: ArrayLike) -> Int32s:
    """Return object sizes as int32, shape (k,), or say what is wrong with them."""
    array = np.asarray(sizes)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1:
        raise InputError(f"sizes must be one number per object, got an array of shape {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"sizes must be whole numbers, got {array.dtype}")
    if array.size and array.min() < 0:
        raise InputError(f"object {int(array.argmin())} has negative size {int(array.min())}")
    if int(array.sum(dtype=np.int64)) > INT32_MAX:
        raise InputError(
            f"{int(array.sum(dtype=np.int64)):,} points are more than the {INT32_MAX:,} this package can index"
        )
    return array.astype(np.int32)


def check_weights(weights: ArrayLike, n_matches: int) -> Floats:
    """Return match weights as float64, shape (M,), or say what is wrong with them."""
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n_matches,):
        raise InputError(f"{n_matches} matches need {n_matches} weights, got shape {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise InputError(f"weight {int(bad.argmax())} is {array[bad.argmax()]}; every weight must be a finite number")
    if (array <= 0).any():
        raise InputError(
            f"weight {int((array <= 0).argmax())} is {array.min()}; weights must be positive (drop the match instead)"
        )
    return array


def canonical(
    objects: NDArray[Any], points: NDArray[Any], sizes: Int32s, weights: Floats | None, on_conflict: str
) -> tuple[Int32s, NDArray[np.int64], Int32s, Floats | None, Repair | None]:
    """Return (pair_objects, pair_start, indices, weights, repair) of the matches in canonical order.

    Parameters
    ----------
    objects, points
        Integer arrays of shape (M, 2): match t joins point ``points[t, s]`` of object ``objects[t, s]``, s = 0, 1.
    """
    if on_conflict not in ("error", "repair"):
        raise unknown_name("on_conflict", on_conflict, ["error", "repair"])
    _check_range(objects, points, sizes)
    objects, points = objects.astype(np.int32, copy=False), points.astype(np.int32, copy=False)
    swap = objects[:, 0] > objects[:, 1]
    if swap.any():
        objects, points = objects.copy(), points.copy()
        objects[swap], points[swap] = objects[swap, ::-1], points[swap, ::-1]
    order = _order(objects, points, sizes)
    if order is not None:
        objects, points = objects[order], points[order]
        weights = None if weights is None else weights[order]
    repair = None
    keep = _one_to_one(objects, points, weights, order)
    if keep is not None:
        if on_conflict == "error":
            raise _conflict_error(objects, points, ~keep[0])
        mask, repair = keep
        objects, points = objects[mask], points[mask]
        weights = None if weights is None else weights[mask]
    fresh = np.ones(len(objects), dtype=bool)
    fresh[1:] = (objects[1:] != objects[:-1]).any(axis=1)
    first = np.flatnonzero(fresh)
    start = np.append(first, len(objects)).astype(np.int64)
    return np.ascontiguousarray(objects[first]), start, np.ascontiguousarray(points), weights, repair


def _check_range(objects: NDArray[Any], points: NDArray[Any], sizes: Int32s) -> None:
    k = len(sizes)
    for name, array in (("object", objects), ("point", points)):
        if not np.issubdtype(array.dtype, np.integer):
            raise InputError(f"{name} indices must be whole numbers, got {array.dtype}")
        if array.ndim != 2 or array.shape[1] != 2:
            raise InputError(f"matches must come as an array of shape (K, 2), got {array.shape}")
    if not len(objects):
        return
    outside = (objects < 0) | (objects >= k)
    if outside.any():
        raise InputError(
            f"unknown object {int(objects[outside][0])}; there are {k} objects, numbered from 0 to {k - 1}"
        )
    same = objects[:, 0] == objects[:, 1]
    if same.any():
        i = int(objects[same][0, 0])
        raise InputError(f"pair ({i}, {i}) matches object {i} with itself; only pairs of different objects are allowed")
    outside = (points < 0) | (points >= sizes[objects])
    if outside.any():
        i, a = int(objects[outside][0]), int(points[outside][0])
        raise InputError(
            f"point {a} of object {i} does not exist; object {i} has {int(sizes[i])} points, numbered from 0"
        )


def _order(objects: Int32s, points: Int32s, sizes: Int32s) -> NDArray[np.int64] | None:
    """Return the permutation that sorts by (i, j, point of i, point of j), stable, or None when already sorted."""
    k, largest = len(sizes), int(sizes.max(initial=1)) + 1
    if k * k * largest < 2**62:
        key = (objects[:, 0].astype(np.int64) * k + objects[:, 1]) * largest + points[:, 0]
        if (key[1:] > key[:-1]).all():
            return None
        if largest * (int(key.max()) + 1) < 2**62:
            return np.argsort(key * largest + points[:, 1], kind="stable")
    return np.lexsort((points[:, 1], points[:, 0], objects[:, 1], objects[:, 0]))


def _repeats(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark every row whose predecessor (in the given, sorted order) equals it in all columns."""
    same = np.zeros(len(columns[0]), dtype=bool)
    if len(same):
        same[1:] = np.logical_and.reduce([c[1:] == c[:-1] for c in columns])
    return same


def _one_to_one(
    objects: Int32s, points: Int32s, weights: Floats | None, order: NDArray[np.int64] | None
) -> tuple[NDArray[np.bool_], Repair] | None:
    """Return the matches to keep and what that drops, or None when the sorted matches are one-to-one already."""
    i, j, a, b = objects[:, 0], objects[:, 1], points[:, 0], points[:, 1]
    back = np.lexsort((b, j, i))
    if not _repeats(i, j, a).any() and not _repeats(i[back], j[back], b[back]).any():
        return None
    value = np.ones(len(i)) if weights is None else weights
    given = np.arange(len(i)) if order is None else order
    # Heaviest first, the earlier given on a tie; `rank` is that place, so every comparison below is strict.
    rank = np.empty(len(i), dtype=np.int64)
    rank[np.lexsort((given, -value))] = np.arange(len(i))
    best = np.lexsort((rank, b, a, j, i))
    alive = np.ones(len(i), dtype=bool)
    alive[best[_repeats(i[best], j[best], a[best], b[best])]] = False
    duplicates = int((~alive).sum())
    kept = np.zeros(len(i), dtype=bool)
    while alive.any():
        wins = np.ones(len(i), dtype=bool)
        live = np.flatnonzero(alive)
        for end in (a, b):
            by = live[np.lexsort((rank[live], end[live], j[live], i[live]))]
            wins[by[_repeats(i[by], j[by], end[by])]] = False
        chosen = live[wins[live]]
        kept[chosen] = True
        alive[chosen] = False
        for end in (a, b):
            rest = np.flatnonzero(alive)
            both = np.concatenate([chosen, rest])
            by = both[np.lexsort((~kept[both], end[both], j[both], i[both]))]
            group = np.cumsum(~_repeats(i[by], j[by], end[by]))
            taken = np.zeros(group[-1] + 1 if len(group) else 1, dtype=bool)
            taken[group[kept[by]]] = True
            alive[by[taken[group] & ~kept[by]]] = False
    return kept, Repair(duplicates, int(len(i) - kept.sum()) - duplicates)


def _conflict_error(objects: Int32s, points: Int32s, dropped: NDArray[np.bool_]) -> InputError:
    t = int(dropped.argmax())
    (i, j), (a, b) = objects[t].tolist(), points[t].tolist()
    count = f"{int(dropped.sum())} of {len(dropped)} matches have to go"
    advice = f"({count}; on_conflict='repair' keeps the heaviest)"
    here = (objects == objects[t]).all(axis=1)
    if (here & (points == points[t]).all(axis=1)).sum() > 1:
        return InputError(f"the match of point {a} of object {i} with point {b} of object {j} is given twice {advice}")
    if (here & (points[:, 0] == a)).sum() > 1:
        return InputError(f"point {a} of object {i} is matched to more than one point of object {j} {advice}")
    return InputError(f"point {b} of object {j} is matched to more than one point of object {i} {advice}")
