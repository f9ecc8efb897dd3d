"""Whole numbers sorted by counting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call

__all__ = ["ordered"]

Ints = NDArray[np.int64]

# Numbers for which it pays, and that it can count.
_MIN_COUNTING_SORT, _MAX_COUNTING_SORT = 2_000, 2**31 - 2
# It takes a place for every possible number, so these should not be many more than there are.
_MAX_KEY_PER_NUMBER = 4


def ordered(*keys: NDArray[np.integer[Any]]) -> Ints:
    """Return the order that sorts by the first key, then the second …, stably.

    Parameters
    ----------
    *keys : (n,) int
        Not negative.

    Notes
    -----
    A counting sort for each key, the last one first: O(n + max key), which is two to four times as
    fast as sorting numbers. Keys that are far larger than n, and more than two of them, are sorted
    by comparison.

    Examples
    --------
    >>> ordered(np.array([7, 2, 7, 0])).tolist()
    [3, 1, 0, 2]
    >>> ordered(np.array([1, 0, 1, 0]), np.array([5, 9, 4, 8])).tolist()
    [3, 1, 2, 0]
    """
    n, largest = len(keys[0]), np.array([key.max(initial=0) for key in keys], dtype=np.int64)
    widest = min(_MAX_KEY_PER_NUMBER * n, _MAX_COUNTING_SORT)
    if not _MIN_COUNTING_SORT <= n <= _MAX_COUNTING_SORT or largest.max() > widest or len(keys) > 2:
        return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    order, (major, *minor) = np.empty(n, dtype=np.int64), [np.ascontiguousarray(key, np.int64) for key in keys]
    call("order_by", major, minor[0] if minor else None, n, largest, order)
    return order
