"""The grid that a matcher without a detector rounded positions to."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call

__all__ = ["resolution"]

Ints = NDArray[np.int64]

_MIN_POINTS = 20  # of an object that can show a grid
_MIN_SHARE_ON_GRID = 0.95  # of these points
_TOLERANCE_IN_CELLS = 0.01  # within which a point is on it
_POINTS_PER_CHUNK = 8_000  # arrays that stay in the cache


def resolution(coordinates: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cell of the grid that positions of every object lie on, 0 for none; (k,).

    Matchers without a detector often give the centres of cells of 8 pixels. Then all differences
    between coordinates are multiples of that.

    Parameters
    ----------
    coordinates : (m, 2)
    sizes : (k,) int
        Points per object; coordinates are those of one object after another.

    Notes
    -----
    O(m log m). The cell is the commonest difference of neighbouring coordinates, if at least 95 %
    of the coordinates are whole multiples of it away from the first (to within a hundredth) and
    there are 20 points or more.

    Examples
    --------
    >>> cells = 8.0 * np.stack(np.meshgrid(np.arange(6), np.arange(5)), axis=-1).reshape(-1, 2) + 4
    >>> resolution(np.concatenate([cells, np.sqrt(cells)]), np.array([30, 30])).tolist()
    [8.0, 0.0]
    """
    known = np.isfinite(coordinates[:, 0]) & np.isfinite(coordinates[:, 1])
    counts = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[known], minlength=len(sizes))
    cell, enough = np.zeros(len(sizes)), np.flatnonzero(counts >= _MIN_POINTS)
    known &= np.repeat(counts >= _MIN_POINTS, sizes)
    # A grid is told from the coordinates of objects with enough points, some objects at a time.
    some, start = coordinates.compress(known, axis=0), np.append(0, np.cumsum(counts[enough]))
    chunks = np.flatnonzero(np.diff(start[:-1] // _POINTS_PER_CHUNK, prepend=-1)).tolist()
    for a, b in pairwise([*chunks, len(enough)]):
        x, y = some[start[a] : start[b]].T
        first = start[a : b + 1] - start[a]
        # Both coordinates must lie on a grid, and of two different ones the finer is taken: 0 says
        # that one does not.
        found = _steps(x, first)
        cell[enough[a:b]] = np.minimum(found, _steps(y, first)) if found.any() else 0.0
    return cell


def _steps(column: NDArray[Any], start: Ints) -> NDArray[np.float64]:
    """Return the cell of coordinates, (n,), group after group from `start`, (g + 1,), or 0.

    Shape (g,).
    """
    found = np.empty(len(start) - 1)
    values = _sorted(column, start).astype(np.float64)
    call("find_cells", len(found), start, values, _TOLERANCE_IN_CELLS, _MIN_SHARE_ON_GRID, found)
    return found


def _sorted(values: NDArray[Any], start: Ints) -> NDArray[Any]:
    """Return values, (n,), with every group sorted."""
    values = values.copy()
    for a, b in pairwise(start.tolist()):
        values[a:b].sort()
    return values
