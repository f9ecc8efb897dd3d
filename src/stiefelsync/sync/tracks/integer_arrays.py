"""Operations on arrays of whole numbers: ranges, look-up, sorting, runs and forests, without a loop over entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.sync.tracks import kernels

__all__ = ["find", "ordered", "popcount", "roots", "runs", "spread"]

Ints = NDArray[np.int64]

_FEW, _MOST = 2_000, 2**31 - 2  # numbers for which a counting sort pays, and that it can count
_WIDE = 4  # it takes a place for every possible number, so these should not be many more than there are
_SPARSE = 8  # at most one in so many places of a table is taken, so that few numbers are searched for in vain


def spread(start: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Concatenate the ranges ``start[t], …, start[t] + counts[t] - 1``.

    Returns
    -------
    which, joined : (Σ counts,) int64
        The number t of the range that each entry belongs to, and the ranges.

    Examples
    --------
    >>> [part.tolist() for part in spread(np.array([5, 0]), np.array([2, 3]))]
    [[0, 0, 1, 1, 1], [5, 6, 0, 1, 2]]
    """
    which = np.repeat(np.arange(len(counts)), counts)
    joined = (start - np.cumsum(counts) + counts)[which]
    joined += np.arange(len(which))
    return which, joined


def find(keys: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Look numbers up in a sorted array.

    Returns
    -------
    which, where : (f,) int64
        Those of `wanted` that were found, and their places in `keys`.

    Notes
    -----
    O(w log K); if w > K, O(K + w) and O(log K) for each number that shares its low bits with one that is there.

    Examples
    --------
    >>> [found.tolist() for found in find(np.array([2, 3, 7]), np.array([7, 5, 2]))]
    [[0, 2], [2, 0]]
    """
    if not len(keys):
        return keys, keys
    which = np.arange(len(wanted))
    if len(wanted) > len(keys):
        # Only numbers whose low bits occur among the keys need be searched for.
        mask = (1 << (_SPARSE * len(keys)).bit_length()) - 1
        occurs = np.zeros(mask + 1, dtype=bool)
        occurs[keys & mask] = True
        which = np.flatnonzero(occurs[wanted & mask])
        wanted = wanted[which]
    where = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = np.flatnonzero(keys[where] == wanted)
    return which[found], where[found]


def ordered(*keys: NDArray[np.integer[Any]]) -> Ints:
    """Return the order that sorts by the first of several keys, then by the second …, equal ones as they stand.

    Parameters
    ----------
    *keys : (n,) int
        Not negative.

    Notes
    -----
    A counting sort for each key, the last one first: O(n + max key). SciPy does it when turning rows into columns; that
    is two to four times as fast as sorting numbers. Keys that are far larger than n are sorted by comparison.

    Examples
    --------
    >>> ordered(np.array([7, 2, 7, 0])).tolist()
    [3, 1, 0, 2]
    >>> ordered(np.array([1, 0, 1, 0]), np.array([5, 9, 4, 8])).tolist()
    [3, 1, 2, 0]
    """
    n = len(keys[0])
    largest = max(int(key.max(initial=0)) for key in keys)
    if n < _FEW or n > _MOST or largest > min(_WIDE * n, _MOST):
        return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    if (order := kernels.order_by(keys, [int(key.max(initial=0)) for key in keys])) is not None:
        return order
    order, ends = np.arange(n, dtype=np.int32), np.array([0, n], dtype=np.int32)
    for passes, key in enumerate(reversed(keys)):
        columns = (key[order] if passes else key).astype(np.int32)
        order = sparse.csr_array((order, columns, ends), shape=(1, largest + 1)).tocsc().data
    return np.asarray(order, dtype=np.int64)


def popcount(words: NDArray[np.uint64]) -> Ints:
    """Return how many bits of every word are set.

    Examples
    --------
    >>> popcount(np.array([0, 5, 2**64 - 1], dtype=np.uint64)).tolist()
    [0, 2, 64]
    """
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(words), dtype=np.int64)
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64)  # NumPy 1
    return np.asarray(bits.sum(axis=1), dtype=np.int64)


def runs(numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the different ones of sorted numbers, where each begins, and how often it occurs.

    Examples
    --------
    >>> [part.tolist() for part in runs(np.array([2, 5, 5, 5]))]
    [[2, 5], [0, 1], [1, 3]]
    """
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)])
    return numbers[first], first, np.diff(np.append(first, len(numbers)))


def roots(tree: Ints) -> Ints:
    """Follow the pointers of a forest, shape (n,), from every vertex to its root, which points to itself."""
    while not np.array_equal(tree, further := tree[tree]):
        tree = further
    return tree
