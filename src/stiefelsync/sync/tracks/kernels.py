"""Compiled forms of what growing tracks does in NumPy, with the same results; None where there are none."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from stiefelsync._kernels.library import address, library

__all__ = [
    "broken", "compared", "conflicting", "contracted", "few_choices", "graded", "joined", "merged", "order_by",
    "pieces", "prefer_parallel", "sorted_matches", "square_counts", "triangle_counts",
]  # fmt: skip

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

P = ParamSpec("P")
R = TypeVar("R")

_MOST = 2**31 - 2  # entries that 32 bits can count


def _compiled(function: Callable[Concatenate[Any, P], R]) -> Callable[P, R | None]:
    """Give a function the library as its first argument, or let it return None where there is none."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
        found = library()
        return None if found is None else function(found, *args, **kwargs)

    return call


@_compiled
def order_by(found: Any, keys: tuple[NDArray[Any], ...], most: list[int]) -> Ints | None:
    """Return the order of entries by one key or by two, (n,) each, the first one first; keys from 0 to `most`."""
    n = len(keys[0])
    if len(keys) > 2 or n > _MOST:
        return None
    order, largest = np.empty(n, dtype=np.int64), np.array(most, dtype=np.int64)
    arrays = [np.ascontiguousarray(key, dtype=np.int64) for key in keys]
    minor = _at(arrays[1]) if len(arrays) > 1 else None
    if found.order_by(_at(arrays[0]), minor, _number(n), _at(largest), _at(order)):
        raise MemoryError("no memory for sorting")
    return order


@_compiled
def sorted_matches(found: Any, ends: Ints, chosen: Bools) -> tuple[Ints, Ints] | None:
    """Return the numbers of the matches, (M, 2), of chosen points, sorted by their ends, and these matches themselves.

    None, too, if the second ends of a point's matches do not ascend.
    """
    M, m = len(ends), len(chosen)
    if max(M, m) > _MOST:
        return None
    ends, chosen = np.ascontiguousarray(ends, np.int64), np.ascontiguousarray(chosen, np.bool_)
    by_ends, order, rising = np.empty((M, 2), np.int64), np.empty(M, np.int64), np.empty(1, np.bool_)
    found.sort_matches.restype = ctypes.c_int64
    n = found.sort_matches(_at(ends), _number(M), _at(chosen), _number(m), *map(_at, (by_ends, order, rising)))
    if n < 0:
        raise MemoryError("no memory for sorting matches")
    return (_first(order, n), _first(by_ends, n)) if rising[0] else None


@_compiled
def contracted(
    found: Any, A: Ints, B: Ints, count: Ints, weight: Floats, n: int
) -> tuple[Ints, Ints, Ints, Floats] | None:
    """Return the edges between different ones of n clusters, each once and sorted, with summed counts and weights."""
    if max(len(A), n) > _MOST:
        return None
    E = len(A)
    given = [np.ascontiguousarray(part, np.int64) for part in (A, B, count)]
    weight = np.ascontiguousarray(weight, np.float64)
    one, two, counts = (np.empty(E, dtype=np.int64) for _ in range(3))
    weights = np.empty(E)
    found.contract_edges.restype = ctypes.c_int64
    left = found.contract_edges(
        *map(_at, (*given, weight)), _number(E), _number(n), *map(_at, (one, two, counts, weights))
    )  # fmt: skip
    if left < 0:
        raise MemoryError("no memory for the edges between clusters")
    return _first(one, left), _first(two, left), _first(counts, left), _first(weights, left)


@_compiled
def triangle_counts(found: Any, A: Ints, B: Ints, n: int) -> Ints | None:
    """Count the triangles through every edge, (E,), of a graph of n vertices."""
    if max(len(A), n) > _MOST:
        return None
    support, ends = np.zeros(len(A), dtype=np.int64), [np.ascontiguousarray(end, np.int64) for end in (A, B)]
    if found.count_edge_triangles(*map(_at, ends), _number(len(A)), _number(n), _at(support)):
        raise MemoryError("no memory for triangles")
    return support


@_compiled
def square_counts(found: Any, A: Ints, B: Ints, objects: Ints, start: Ints, hub: int) -> Ints | None:
    """Count the squares through every edge, (E,), between clusters; see :func:`~stiefelsync.sync.tracks.rules.squares`.

    Those with more than `hub` edges are left out.
    """
    if 2 * max(len(A), len(start)) > _MOST:
        return None
    support, n = np.zeros(len(A), dtype=np.int64), len(start) - 1
    ends, held = ([np.ascontiguousarray(part, np.int64) for part in parts] for parts in ((A, B), (objects, start)))
    sizes = _number(len(A)), _number(n), _number(hub)
    if found.count_edge_squares(*map(_at, ends), *sizes, *map(_at, held), _at(support)):
        raise MemoryError("no memory for squares")
    return support


@_compiled
def graded(found: Any, support: Ints, count: Ints, weight: Floats) -> Floats:
    """Return the evidence of edges, (E,), by their support."""
    given = [np.ascontiguousarray(part, np.int64) for part in (support, count)]
    weight, gain = np.ascontiguousarray(weight, np.float64), np.empty(len(weight))
    found.grade_support(*map(_at, (*given, weight)), _number(len(weight)), _at(gain))
    return gain


@_compiled
def few_choices(found: Any, A: Ints, B: Ints, weight: Floats, start: Ints, most: int) -> Floats:
    """Return the evidence of edges, (E,), of clusters that have at most so many."""
    A, B, start = (np.ascontiguousarray(part, np.int64) for part in (A, B, start))
    weight, gain, n = np.ascontiguousarray(weight, np.float64), np.empty(len(A)), len(start) - 1
    edges = *map(_at, (A, B, weight)), _number(len(A))
    if found.weigh_choices(*edges, _at(start), _number(n), _number(most), _at(gain)):
        raise MemoryError("no memory for the choices of clusters")
    return gain


@_compiled
def prefer_parallel(found: Any, A: Ints, B: Ints, count: Ints, weight: Floats, start: Ints, gain: Floats) -> bool:
    """Write the evidence of edges of two matches or more into `gain`, (E,)."""
    A, B, count, start = (np.ascontiguousarray(part, np.int64) for part in (A, B, count, start))
    weight = np.ascontiguousarray(weight, np.float64)
    found.prefer_parallel(*map(_at, (A, B, count, weight)), _number(len(A)), _at(start), _at(gain))
    return True


@_compiled
def conflicting(found: Any, objects: Ints, start: Ints, words: NDArray[np.uint64], A: Ints, B: Ints) -> Bools:
    """Return for pairs of clusters, (E,), whether both hold a point of the same object."""
    bad = np.empty(len(A), dtype=bool)
    held = [np.ascontiguousarray(array, np.int64) for array in (objects, start)]
    words, pairs = np.ascontiguousarray(words), [np.ascontiguousarray(end, np.int64) for end in (A, B)]
    found.find_conflicts(*map(_at, (*held, words, *pairs)), _number(len(A)), _at(bad))
    return bad


@_compiled
def merged(
    found: Any, q: tuple[Ints, Ints, Ints, Ints, Ints, Ints, Floats, Bools], gain: Floats | None, torn: Bools | None
) -> tuple[tuple[Ints, Ints, Ints, Ints, Ints, Ints, Floats], Ints, Ints, int] | None:
    """Return what is left of a quotient after one round; see :func:`~stiefelsync.sync.tracks.clusters.merge_and_prune`.

    Takes the quotient's arrays in their order, returns them without the last, the points of finished clusters, the
    first point of each one's cluster, and how many matches were dropped. Without a gain nothing is merged.
    """
    points, objects, start, A, B, count = (np.ascontiguousarray(part, np.int64) for part in q[:6])
    weight, fresh = np.ascontiguousarray(q[6], np.float64), np.ascontiguousarray(q[7], np.bool_)
    p, n, E, k = len(points), len(start) - 1, len(A), int(objects.max(initial=-1)) + 1
    if max(E, k, int(points.max(initial=-1))) > _MOST:
        return None
    gain = None if gain is None else np.ascontiguousarray(gain, np.float64)
    new = [np.empty(size, dtype=np.int64) for size in (p, p, n + 1, E, E, E)]
    weights, done, first, left = np.empty(E), np.empty(p, np.int64), np.empty(p, np.int64), np.empty(4, np.int64)
    failed = found.merge_round(
        *map(_at, (points, objects, start)), _number(n), _number(k), *map(_at, (A, B, count, weight)), _number(E),
        None if gain is None else _at(gain), _at(fresh), *map(_at, (*new, weights, done, first)),
        None if torn is None else _at(torn), _at(left),
    )  # fmt: skip
    if failed:
        raise MemoryError("no memory for merging clusters")
    n, E, stay, dropped = left.tolist()
    parts = [_first(part, size) for part, size in zip(new, (stay, stay, n + 1, E, E, E), strict=True)]
    rest = parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], _first(weights, E)
    return rest, done[: p - stay], first[: p - stay], dropped


@_compiled
def broken(found: Any, component: Ints, objects: NDArray[np.integer[Any]]) -> Bools | None:
    """Return which components, (m,) by name, hold two points of one object; None, too, if objects do not ascend."""
    m = len(component)
    component, objects = np.ascontiguousarray(component, np.int64), np.ascontiguousarray(objects, np.int32)
    last, bad = np.full(m, -1, dtype=np.int32), np.zeros(m, dtype=bool)
    told = found.find_broken_components(_at(component), _at(objects), _number(m), _at(last), _at(bad))
    return bad if told else None


@_compiled
def compared(found: Any, ends: Ints, weights: Floats, other: Ints, track: Ints, component: Ints) -> Floats:
    """Return how much more weight of matches, (M, 2), other tracks than these keep in every component, (m,) by name."""
    parts = [np.ascontiguousarray(part, np.int64) for part in (other, track, component)]
    ends, weights = np.ascontiguousarray(ends, np.int64), np.ascontiguousarray(weights, np.float64)
    gain = np.zeros(len(track))
    found.compare_tracks(_at(ends), _at(weights), _number(len(ends)), *map(_at, (*parts, gain)))
    return gain


@_compiled
def pieces(found: Any, labels: Ints, ends: Ints, counts: Bools | None) -> Ints | None:
    """Return the first point of those that matches, (M, 2), connect with each of the points inside its label, (m,)."""
    m = len(labels)
    if m > _MOST:
        return None
    labels, ends = (np.ascontiguousarray(part, np.int64) for part in (labels, ends))
    first, some = np.empty(m, np.int64), None if counts is None else np.ascontiguousarray(counts, np.bool_)
    which = None if some is None else _at(some)
    if found.find_pieces(_at(labels), _number(m), _at(ends), _number(len(ends)), which, _at(first)):
        raise MemoryError("no memory for pieces of tracks")
    return first


@_compiled
def joined(
    found: Any,
    track: Ints,
    objects: NDArray[np.integer[Any]],
    ends: Ints,
    weights: Floats,
    places: Floats | None,
    copy: float,
    *,
    least: int,
    rounds: int,
    rounding: float,
) -> tuple[Ints, int] | None:
    """Join tracks as :func:`~stiefelsync.sync.tracks.join.join` says, whose parameters these are.

    `copy` is the weight of two points of an object in the same place.
    """
    M, m = len(ends), len(track)
    if max(M, m) > _MOST:
        return None
    if (ends[1:, 0] < ends[:-1, 0]).any():
        order = np.argsort(ends[:, 0], kind="stable")
        ends, weights = ends[order], weights[order]
    track, owner = np.array(track, dtype=np.int64), np.ascontiguousarray(objects, np.int32)
    ends, weights = np.ascontiguousarray(ends, np.int64), np.ascontiguousarray(weights, np.float64)
    places = None if places is None else np.ascontiguousarray(places, np.float64)
    found.join_tracks.restype = ctypes.c_int64
    joins = found.join_tracks(
        _at(ends), _at(weights), _number(M), _at(track), _at(owner), _number(m),
        None if places is None else _at(places), ctypes.c_double(copy), ctypes.c_double(rounding),
        _number(least), _number(rounds),
    )  # fmt: skip
    if joins < 0:
        raise MemoryError("no memory for joining tracks")
    return track, joins


def _first(array: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the first n entries of an array, as a copy where that lets most of its memory go."""
    return array[:n] if 2 * n > len(array) else array[:n].copy()


def _at(array: NDArray[Any]) -> ctypes.c_void_p:
    """Return where an array begins; whoever asks keeps the array until the kernel is done."""
    return ctypes.c_void_p(address(array))


def _number(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)
