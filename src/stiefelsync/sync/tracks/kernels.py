"""Compiled forms of what growing tracks does in NumPy, with the same results; None where there are none."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from stiefelsync._kernels.library import address, library

__all__ = ["conflicting", "contracted", "joined", "merged_points", "order_by", "pruned", "tree_of", "triangle_counts"]

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
def contracted(
    found: Any, A: Ints, B: Ints, count: Ints, weight: Floats, n: int, name: Ints | None = None
) -> tuple[Ints, Ints, Ints, Floats] | None:
    """Return the edges between different ones of n clusters, each once and sorted, with summed counts and weights.

    The edges given are A and B, shape (E,), or name[A] and name[B].
    """
    if max(len(A), n) > _MOST:
        return None
    E = len(A)
    given = [np.ascontiguousarray(part, np.int64) for part in (A, B, count)]
    weight, renamed = np.ascontiguousarray(weight, np.float64), None if name is None else _at(name)
    one, two, counts = (np.empty(E, dtype=np.int64) for _ in range(3))
    weights = np.empty(E)
    found.contract_edges.restype = ctypes.c_int64
    left = found.contract_edges(
        _at(given[0]), _at(given[1]), renamed, _at(given[2]), _at(weight), _number(E), _number(n),
        _at(one), _at(two), _at(counts), _at(weights),
    )  # fmt: skip
    if left < 0:
        raise MemoryError("no memory for the edges between clusters")
    return one[:left].copy(), two[:left].copy(), counts[:left].copy(), weights[:left].copy()  # the rest may go


@_compiled
def merged_points(
    found: Any, tree: Ints, start: Ints, points: Ints, objects: Ints
) -> tuple[Ints, Ints, Ints, Ints] | None:
    """Return the points and objects of merged clusters, where each begins, and how many were merged in it.

    Numbers the trees, (n,), from 0 in the order in which they first appear, in place.
    """
    n, new = len(tree), [np.empty(size, dtype=np.int64) for size in (len(points), len(points), len(start), len(tree))]
    found.merge_points.restype = ctypes.c_int64
    given = [np.ascontiguousarray(part, np.int64) for part in (start, points, objects)]
    trees = found.merge_points(_at(tree), _number(n), *map(_at, given), *map(_at, new))
    if trees < 0:
        raise MemoryError("no memory for merged clusters")
    return new[0], new[1], new[2][: trees + 1].copy(), new[3][:trees].copy()


@_compiled
def triangle_counts(found: Any, A: Ints, B: Ints, n: int) -> Ints:
    """Count the triangles through every edge, (E,), of a graph of n vertices."""
    support, ends = np.zeros(len(A), dtype=np.int64), [np.ascontiguousarray(end, np.int64) for end in (A, B)]
    if found.count_edge_triangles(*map(_at, ends), _number(len(A)), _number(n), _at(support)):
        raise MemoryError("no memory for triangles")
    return support


@_compiled
def conflicting(found: Any, objects: Ints, start: Ints, words: NDArray[np.uint64], A: Ints, B: Ints) -> Bools:
    """Return for pairs of clusters, (E,), whether both hold a point of the same object."""
    bad = np.empty(len(A), dtype=bool)
    held = [np.ascontiguousarray(array, np.int64) for array in (objects, start)]
    words, pairs = np.ascontiguousarray(words), [np.ascontiguousarray(end, np.int64) for end in (A, B)]
    found.find_conflicts(*map(_at, (*held, words, *pairs)), _number(len(A)), _at(bad))
    return bad


@_compiled
def tree_of(found: Any, A: Ints, B: Ints, gain: Floats, start: Ints, objects: Ints) -> Ints:
    """Return the tree that each cluster is merged into, by the number of one of its clusters; shape (n,)."""
    n, k = len(start) - 1, int(objects.max(initial=-1)) + 1
    tree = np.empty(n, dtype=np.int64)
    A, B, start, objects = (np.ascontiguousarray(x, np.int64) for x in (A, B, start, objects))
    gain = np.ascontiguousarray(gain, np.float64)
    sizes = _number(len(A)), _at(start), _at(objects), _number(n), _number(k)
    if found.grow_trees(_at(A), _at(B), _at(gain), *sizes, _at(tree)):
        raise MemoryError("no memory for merging clusters")
    return tree


@_compiled
def pruned(
    found: Any, q: tuple[Ints, Ints, Ints, Ints, Ints, Ints, Floats, Bools]
) -> tuple[tuple[Ints, Ints, Ints, Ints, Ints, Ints, Floats], Ints, Ints]:
    """Return what is left of a quotient without edges in conflict and clusters without an edge; see `prune`.

    Takes the quotient's arrays in their order, returns them without the last, and the points of finished clusters.
    """
    points, objects, start, A, B, count = (np.ascontiguousarray(part, np.int64) for part in q[:6])
    weight, fresh = np.ascontiguousarray(q[6], np.float64), np.ascontiguousarray(q[7], np.bool_)
    p, n, E = len(points), len(start) - 1, len(A)
    new = [np.empty(size, dtype=np.int64) for size in (p, p, n + 1, E, E, E)]
    weights, done, first, left = np.empty(E), np.empty(p, np.int64), np.empty(p, np.int64), np.empty(3, np.int64)
    clusters, edges = (*map(_at, (points, objects, start)), _number(n)), (*map(_at, (A, B, count, weight)), _number(E))
    if found.prune_clusters(*clusters, *edges, _at(fresh), *map(_at, (*new, weights, done, first, left))):
        raise MemoryError("no memory for what is left of the clusters")
    n, E, p = left.tolist()
    sizes, gone = (p, p, n + 1, E, E, E), len(done) - p
    parts = [part[:size].copy() for part, size in zip(new, sizes, strict=True)]  # the rest may go
    return (parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], weights[:E].copy()), done[:gone], first[:gone]


@_compiled
def joined(
    found: Any,
    a: Ints,
    b: Ints,
    weights: Floats,
    track: Ints,
    objects: NDArray[np.integer[Any]],
    places: Floats | None,
    copy: float,
    *,
    least: int,
    rounds: int,
    rounding: float,
) -> tuple[Ints, int] | None:
    """Join tracks as :func:`~stiefelsync.sync.tracks.join.join` says: the tracks of n points, and how many joins.

    Parameters
    ----------
    a, b, weights : (M,)
        Matches, sorted by a.
    track, objects : (n,)
    places : (n, 2) or None
    copy
        Weight of two points of an object in the same place.
    """
    if max(len(a), len(track)) > _MOST:
        return None
    one, two, here, owner = (np.array(part, dtype=np.int32) for part in (a, b, track, objects))
    weights = np.ascontiguousarray(weights, np.float64)
    places = None if places is None else np.ascontiguousarray(places, np.float64)
    found.join_tracks.restype = ctypes.c_int64
    joins = found.join_tracks(
        _at(one), _at(two), _at(weights), _number(len(a)), _number(len(here)), _at(here),
        _at(owner), _number(int(owner.max(initial=-1)) + 1), None if places is None else _at(places),
        ctypes.c_double(copy), ctypes.c_double(rounding), _number(least), _number(rounds),
    )  # fmt: skip
    if joins < 0:
        raise MemoryError("no memory for joining tracks")
    return here.astype(np.int64), joins


def _at(array: NDArray[Any]) -> ctypes.c_void_p:
    """Return where an array begins; whoever asks keeps the array until the kernel is done."""
    return ctypes.c_void_p(address(array))


def _number(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)
