"""Operations on arrays of whole numbers.

Ranges, look-up, sorting and runs, without a loop over entries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching._sorting import ordered

__all__ = ["find", "ordered", "runs", "spread"]

Ints = NDArray[np.int64]

# At most one in so many places of a table is taken, so that few numbers are searched for in vain.
_PLACES_PER_KEY = 8


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
    O(w log K); if w > K, O(K + w) and O(log K) for each number that shares its low bits with one
    that is there.

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
        mask = (1 << (_PLACES_PER_KEY * len(keys)).bit_length()) - 1
        occurs = np.zeros(mask + 1, dtype=bool)
        occurs[keys & mask] = True
        which = np.flatnonzero(occurs[wanted & mask])
        wanted = wanted[which]
    where = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = np.flatnonzero(keys[where] == wanted)
    return which[found], where[found]


def runs(numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the different ones of sorted numbers, where each begins, and how often it occurs.

    Examples
    --------
    >>> [part.tolist() for part in runs(np.array([2, 5, 5, 5]))]
    [[2, 5], [0, 1], [1, 3]]
    """
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)])
    return numbers[first], first, np.diff(np.append(first, len(numbers)))
