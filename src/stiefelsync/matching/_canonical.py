"""Bring flat match arrays into the canonical form of :class:`Matchings`.

Validated, i < j, sorted, one-to-one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from stiefelsync.errors import InputError, counted, unknown_name

__all__ = [
    "OneToMany", "Repair", "as_array", "as_coordinates", "as_labels", "as_names", "as_pairs", "as_reals",
    "canonical", "check_layout", "check_precision", "check_sizes", "check_weights", "describe", "sort_matches",
]  # fmt: skip

Int32s = NDArray[np.int32]
Floats = NDArray[np.float64]
OneToMany = Literal["error", "repair"]
INT32_MAX = int(np.iinfo(np.int32).max)
LARGEST_WEIGHT = 1e100


@dataclass(frozen=True)
class Repair:
    """What was dropped to make matches one-to-one.

    Attributes
    ----------
    duplicates
        Matches that were given more than once (the heaviest copy stays).
    second_partners
        Matches that gave a point a second partner in the same object (the heavier stays, the
        earlier on a tie).
    """

    duplicates: int = 0
    second_partners: int = 0

    @property
    def dropped(self) -> int:
        """Dropped matches in all."""
        return self.duplicates + self.second_partners


def as_array(values: Any, what: str) -> NDArray[Any]:
    """Return values as an array, or say that their rows differ in length."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{what} must form an array, but the rows given have different lengths") from None


def check_sizes(sizes: ArrayLike) -> Int32s:
    """Return object sizes as int32, shape (k,), or say what is wrong with them."""
    array = as_array(sizes, "sizes")
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1:
        raise InputError(f"sizes must be one number per object, got an array of shape {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"sizes must be whole numbers, got {array.dtype}")
    if array.size and array.min() < 0:
        raise InputError(f"object {int(array.argmin())} has negative size {int(array.min())}")
    # Only sizes that fit 32 bits cannot overflow the 64 of their sum.
    fit = int(array.max(initial=0)) <= INT32_MAX
    total = int(array.sum(dtype=np.int64)) if fit else sum(array.tolist())
    if total > INT32_MAX:
        raise InputError(f"{total:,} points are more than the {INT32_MAX:,} this package can index")
    return array.astype(np.int32)


def check_weights(weights: ArrayLike, n_matches: int) -> Floats:
    """Return a copy of match weights as float64, shape (M,), or say what is wrong with them."""
    given = as_array(weights, "weights")
    if given.size and given.dtype.kind not in "iuf":
        raise InputError(f"weights must be real numbers, got {given.dtype}")
    array = given.astype(np.float64)
    if array.shape != (n_matches,):
        raise InputError(f"{n_matches} matches need {n_matches} weights, got shape {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise InputError(f"weight {int(bad.argmax())} is {array[bad.argmax()]}; every weight must be a finite number")
    bad = array <= 0
    if bad.any():
        t = int(bad.argmax())
        raise InputError(f"weight {t} is {array[t]}; weights must be positive (drop the match instead)")
    # Products and sums of weights stay numbers.
    bad = array > LARGEST_WEIGHT
    if bad.any():
        t = int(bad.argmax())
        raise InputError(f"weight {t} is {array[t]}; weights must be at most {LARGEST_WEIGHT:g} (only ratios count)")
    return array


def check_precision(dtype: DTypeLike, weights: Floats) -> np.dtype[Any]:
    """Return float32 or float64 as `dtype` names it, or say why weights, (M,), cannot have it."""
    try:
        name = np.dtype(dtype).name
    except (TypeError, ValueError, SyntaxError):
        name = str(dtype)
    if name not in ("float32", "float64"):
        raise unknown_name("dtype", name, ["float32", "float64"])
    limits = np.finfo(name)
    outside = (weights > limits.max) | (weights < limits.smallest_subnormal)
    if outside.any():
        raise InputError(f"weight {int(outside.argmax())} is {weights[outside.argmax()]}, which {name} cannot hold")
    return limits.dtype


def as_pairs(values: Any) -> NDArray[Any]:
    """Return an integer array of shape (K, 2); an empty input becomes (0, 2)."""
    array = as_array(values, "matches")
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int32)
    advice = "; a matrix for each pair of objects is for Matchings.from_blocks" if array.ndim == 2 else ""
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"matches must come as an array of shape (K, 2), got {array.shape}{advice}")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"match indices must be whole numbers, got {array.dtype}{advice}")
    return array


def as_labels(labels: ArrayLike, m: int) -> NDArray[np.int64]:
    """Return labels as int64, shape (m,), or say what is wrong with them."""
    flat = as_array(labels, "labels")
    if flat.shape != (m,):
        raise InputError(f"{m} points need {m} labels, got shape {flat.shape}")
    if flat.size and not np.issubdtype(flat.dtype, np.integer):
        raise InputError(f"labels must be whole numbers, got {flat.dtype}")
    return flat.astype(np.int64, copy=False)


def as_names(names: Sequence[str] | None, k: int) -> tuple[str, ...] | None:
    """Return one name per object, shape (k,), all different, or None when there are none."""
    if names is None:
        return None
    if isinstance(names, str) or getattr(names, "ndim", 1) == 0:
        raise InputError(f"names must be one word per object, got the single word {str(names)!r}")
    listed = tuple(map(str, names))
    if len(listed) != k:
        raise InputError(f"{k} objects need {k} names, got {len(listed)}")
    if len(set(listed)) < k:
        twice = Counter(listed).most_common(1)[0][0]
        raise InputError(f"two objects are named {twice!r}; files tell objects apart by name, rename one")
    return listed


def as_reals(values: Any, what: str) -> Floats:
    """Return an array of float64, or say that what was given holds complex numbers."""
    array = as_array(values, what)
    if np.iscomplexobj(array):
        raise InputError(f"{what} must be real numbers, got {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def as_coordinates(coordinates: ArrayLike | None, m: int) -> NDArray[np.float32] | None:
    """Return coordinates as float32, shape (m, 2), or None when there are none."""
    if coordinates is None:
        return None
    given = as_array(coordinates, "coordinates")
    if given.size and given.dtype.kind not in "iuf":
        raise InputError(f"coordinates must be real numbers, got {given.dtype}")
    if given.shape != (m, 2):
        raise InputError(f"coordinates must have shape ({m}, 2), got {given.shape}")
    with np.errstate(over="ignore"):
        array = given.astype(np.float32)
    beyond = np.isinf(array)
    if beyond.any():
        raise InputError(f"the coordinate {given[beyond][0]} is too large")
    return array


def describe(i: int, names: tuple[str, ...] | None) -> str:
    """Return what an error calls object i: its number, and its name where it has one.

    Examples
    --------
    >>> describe(1, None), describe(1, ("left.jpg", "right.jpg"))
    ('object 1', "object 1 ('right.jpg')")
    """
    return f"object {i}" if names is None else f"object {i} ({names[i]!r})"


def canonical(
    objects: NDArray[Any],
    points: NDArray[Any],
    sizes: Int32s,
    weights: Floats | None,
    one_to_many: OneToMany,
    names: tuple[str, ...] | None,
) -> tuple[Int32s, NDArray[np.int64], Int32s, Floats | None, Repair | None]:
    """Return matches in canonical order.

    They come as (pair_objects, pair_start, indices, weights, repair).

    Parameters
    ----------
    objects, points
        Integer arrays of shape (M, 2): match t joins point ``points[t, s]`` of object ``objects[t,
        s]``, s = 0, 1.
    one_to_many
        "error" or "repair": raise where a point has two partners in one object, or keep the
        heaviest.
    names
        What errors call the objects, beside their numbers.
    """
    if one_to_many not in ("error", "repair"):
        raise unknown_name("one_to_many", one_to_many, ["error", "repair"])
    _check_range(objects, points, sizes, names)
    swap = objects[:, 0] > objects[:, 1]
    if swap.any():
        objects, points = objects.copy(), points.copy()
        objects[swap], points[swap] = objects[swap, ::-1], points[swap, ::-1]
    pair_objects, start, points, order = sort_matches(objects, points, sizes)
    if weights is not None and order is not None:
        weights = weights[order]
    keep = _one_to_one(np.repeat(np.arange(len(pair_objects)), np.diff(start)), points, weights, order)
    if keep is None:
        return pair_objects, start, points, weights, None
    mask, dropped = keep
    if one_to_many == "error":
        raise _one_to_many_error(np.repeat(pair_objects, np.diff(start), axis=0), points, ~mask, order, names)
    # Every pair keeps at least one match, its heaviest, so the pairs stay what they are.
    start = np.append(0, np.cumsum(np.add.reduceat(mask, start[:-1], dtype=np.int64)))
    return pair_objects, start, points[mask], None if weights is None else weights[mask], dropped


def sort_matches(
    objects: NDArray[Any], points: NDArray[Any], sizes: Int32s
) -> tuple[Int32s, NDArray[np.int64], Int32s, NDArray[np.int64] | None]:
    """Return matches with i < j sorted by (i, j, point of i, point of j).

    They come as (pair_objects, pair_start, indices, order).

    `order` is the permutation that was applied, None where nothing moved. `indices` is an array of
    its own, because it will be made read-only.
    """
    objects, points = objects.astype(np.int32, copy=False), points.astype(np.int32, copy=False)
    k, largest = len(sizes), int(sizes.max(initial=1))
    order: NDArray[np.int64] | None = None
    if k * k * largest * largest >= 2**63:
        order = np.lexsort((points[:, 1], points[:, 0], objects[:, 1], objects[:, 0]))
    else:
        key = objects[:, 0].astype(np.int64)
        for column, count in ((objects[:, 1], k), (points[:, 0], largest), (points[:, 1], largest)):
            key *= count
            key += column
        if (key[1:] < key[:-1]).any():
            order = np.argsort(key)
        del key  # as large as the matches
    points = points.copy() if order is None else points[order]
    objects = objects if order is None else objects[order]
    begins = np.ones(len(objects), dtype=bool)
    begins[1:] = (objects[1:] != objects[:-1]).any(axis=1)
    first = np.flatnonzero(begins)
    return objects[first], np.append(first, len(objects)).astype(np.int64), np.ascontiguousarray(points), order


def check_layout(
    sizes: Int32s,
    pair_objects: ArrayLike,
    pair_start: ArrayLike,
    indices: ArrayLike,
    weights: Floats | None,
    names: tuple[str, ...] | None,
) -> tuple[Int32s, NDArray[np.int64], Int32s, Floats | None]:
    """Return copies of a layout's arrays, or say why it is not canonical.

    They are (pair_objects, pair_start, indices, weights).
    """
    pairs, points, start = as_pairs(pair_objects), as_pairs(indices), as_array(pair_start, "pair_start")
    if start.shape != (len(pairs) + 1,) or not np.issubdtype(start.dtype, np.integer):
        raise InputError(f"{len(pairs)} object pairs need {len(pairs) + 1} whole numbers in pair_start")
    if start[0] != 0 or start[-1] != len(points) or (start[1:] <= start[:-1]).any():
        raise InputError(f"pair_start must rise from 0 to the number of matches, {len(points)}, at every pair")
    objects = np.repeat(pairs, (start[1:] - start[:-1]).astype(np.int64), axis=0)
    own_pairs, own_start, own_points, own_weights, _ = canonical(objects, points, sizes, weights, "error", names)
    if not (np.array_equal(own_pairs, pairs) and np.array_equal(own_points, points)):
        raise InputError("pairs (i < j) and their matches must be sorted; Matchings.from_arrays takes any order")
    return own_pairs, own_start, own_points, own_weights


def _check_range(objects: NDArray[Any], points: NDArray[Any], sizes: Int32s, names: tuple[str, ...] | None) -> None:
    k = len(sizes)
    if not len(objects):
        return
    if objects.min() < 0 or objects.max() >= k:
        outside = (objects < 0) | (objects >= k)
        raise InputError(
            f"unknown object {int(objects[outside][0])}; there are {counted(k, 'object')}, numbered from 0",
            int(outside.any(axis=1).argmax()),
        )
    same = objects[:, 0] == objects[:, 1]
    if same.any():
        i = int(objects[same][0, 0])
        raise InputError(
            f"pair ({i}, {i}) matches {describe(i, names)} with itself; only pairs of different objects are allowed",
            int(same.argmax()),
        )
    if points.min() >= 0 and points.max() < sizes.min():  # whatever their objects are
        return
    outside = (points < 0) | (points >= sizes[objects])
    if outside.any():
        i, a = int(objects[outside][0]), int(points[outside][0])
        raise InputError(
            f"point {a} of {describe(i, names)} does not exist; it has {counted(sizes[i], 'point')}, numbered from 0",
            int(outside.any(axis=1).argmax()),
        )


def _one_to_one(
    pair: NDArray[np.int64], points: Int32s, weights: Floats | None, order: NDArray[np.int64] | None
) -> tuple[NDArray[np.bool_], Repair] | None:
    """Return the matches to keep and what that drops; None if all are one-to-one already.

    Greedy: the heaviest match stays, the earlier given on a tie, and rules out the others of its
    two points. All matches that are the heaviest at both their points are taken at once, which
    gives the same choice.
    """
    largest = int(points.max(initial=0)) + 1
    ends = [pair * largest + points[:, side] for side in (0, 1)]
    crowded = [_shared(end) for end in ends]
    if not (crowded[0].any() or crowded[1].any()):
        return None
    duplicates = int(((ends[0][1:] == ends[0][:-1]) & (points[1:, 1] == points[:-1, 1])).sum())
    kept = ~(crowded[0] | crowded[1])
    live = np.flatnonzero(~kept)
    given = live if order is None else order[live]
    live = live[np.argsort(given) if weights is None else np.lexsort((given, -weights[live]))]
    vertices = [np.unique(end[live], return_inverse=True)[1] for end in ends]
    # `live` runs from the heaviest to the lightest, so the place in it is the rank.
    rank = np.arange(len(live))
    while len(rank):
        wins = np.ones(len(rank), dtype=bool)
        for vertex in vertices:
            best = np.full(len(live), len(live))
            np.minimum.at(best, vertex[rank], rank)
            wins &= best[vertex[rank]] == rank
        chosen = rank[wins]
        kept[live[chosen]] = True
        for vertex in vertices:
            taken = np.zeros(len(live), dtype=bool)
            taken[vertex[chosen]] = True
            rank = rank[~taken[vertex[rank]]]
    return kept, Repair(duplicates, int((~kept).sum()) - duplicates)


def _shared(end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the matches that share this end with another match."""
    if (end[1:] > end[:-1]).all():  # as matches of the first point are, being sorted
        return np.zeros(len(end), dtype=bool)
    ordered = np.sort(end)
    several = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(several):
        return np.zeros(len(end), dtype=bool)
    at = np.minimum(np.searchsorted(several, end), len(several) - 1)
    marked: NDArray[np.bool_] = several[at] == end
    return marked


def _one_to_many_error(
    objects: Int32s,
    points: Int32s,
    dropped: NDArray[np.bool_],
    order: NDArray[np.int64] | None,
    names: tuple[str, ...] | None,
) -> InputError:
    t = int(dropped.argmax())
    given = t if order is None else int(order[t])
    a, b = points[t].tolist()
    first, second = (describe(i, names) for i in objects[t].tolist())
    count = f"{int(dropped.sum())} of {len(dropped)} matches have to go"
    advice = f"({count}; one_to_many='repair' keeps the heaviest)"
    here = (objects == objects[t]).all(axis=1)
    what = f"point {b} of {second} is matched to more than one point of {first}"
    if (here & (points == points[t]).all(axis=1)).sum() > 1:
        what = f"the match of point {a} of {first} with point {b} of {second} is given twice"
    elif (here & (points[:, 0] == a)).sum() > 1:
        what = f"point {a} of {first} is matched to more than one point of {second}"
    return InputError(f"{what} {advice}", given, setting="one_to_many")
