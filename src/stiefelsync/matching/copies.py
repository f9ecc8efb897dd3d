"""Keypoints that a detector found twice: points of one object so close that they are one, as far as matches say so."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from stiefelsync.errors import InputError
from stiefelsync.matching.graph import connected
from stiefelsync.matching.kernels import call
from stiefelsync.matching.matchings import Matchings

__all__ = ["merge_near", "representatives", "resolution"]

Ints = NDArray[np.int64]

_FEW, _MOST, _ON_GRID = 20, 0.95, 0.01  # points that show a grid, the share of them on it, and how near in cells
_POINTS_PER_CHUNK = 8_000  # arrays that stay in the cache


def merge_near(matchings: Matchings, distance: float) -> tuple[Matchings, Ints]:
    """Take points of one object for one if they are at most `distance` apart and matches lead from one to the other.

    Such points are no contradiction worth breaking a track for; COLMAP's global mapper tolerates up to 10 pixels.
    Points that no chain of matches connects stay apart however close they are.

    Parameters
    ----------
    matchings
        With coordinates.
    distance
        In pixels, 0 or more.

    Returns
    -------
    merged : Matchings
        On the same points, with every match moved to the points that stand for its ends. Where two matches of a point
        into one object are left the heavier stays, the first of equal ones.
    stands : (m,) int64
        For each point the point that stands for it; no two points that one stands for are farther apart than
        `distance`. After synchronising `merged`, an original match (a, b) is kept if the labels of ``stands[a]`` and
        ``stands[b]`` agree.

    Notes
    -----
    As :func:`representatives`.

    Examples
    --------
    >>> coordinates = [[10, 10], [10.4, 10], [5, 5], [7, 7]]
    >>> problem = Matchings.from_pairs(
    ...     {(0, 1): [[0, 0]], (0, 2): [[1, 0]], (1, 2): [[0, 0]]}, [2, 1, 1], coordinates=coordinates
    ... )
    >>> merged, stands = merge_near(problem, 1.0)
    >>> stands.tolist(), merged.pair(0, 2).tolist()
    ([0, 0, 2, 3], [[0, 0]])
    """
    if matchings.coordinates is None:
        raise InputError("these matches have no coordinates; near points cannot be merged")
    stands = representatives(matchings.coordinates, matchings.sizes, matchings.endpoints, distance)
    merged = Matchings.from_endpoints(
        stands[matchings.endpoints],
        matchings.sizes,
        weights=matchings.weights,
        names=matchings.names,
        coordinates=matchings.coordinates,
        one_to_many="repair",
    )
    return merged, stands


def representatives(coordinates: NDArray[Any], sizes: NDArray[Any], ends: Ints, distance: float) -> Ints:
    """Return for every point the point that stands for it and others of its object that are the same.

    Points are visited in order; one that no earlier point stands for, stands for itself and for every later free point
    that a chain of matches connects with it and that is no farther than `distance` from it and from all it stands for
    already. So what is taken for one lies within `distance`, pair by pair.

    Parameters
    ----------
    coordinates : (m, 2)
    sizes : (k,) int
        Points per object; coordinates are those of one object after another.
    ends : (M, 2) int
        Global indices of the two points of every match.
    distance
        In pixels, 0 or more.

    Returns
    -------
    (m,) int
        Global indices.

    Notes
    -----
    O(m log m + M + p·g), p being the pairs closer than `distance` and g the most points that one stands for.

    Examples
    --------
    >>> at = np.array([[0, 0], [0.5, 0], [0.7, 0], [0, 0]])
    >>> representatives(at, np.array([3, 1]), np.array([[0, 3], [2, 3]]), 1.0)
    array([0, 1, 0, 3])
    """
    if isinstance(distance, str) or not 0 <= distance < np.inf:
        raise InputError(f"the distance is {distance}; it must be a number of pixels, 0 or more")
    m = len(coordinates)
    component = connected(m, ends)
    stands = np.arange(m, dtype=np.int64)
    for end, size in zip(np.cumsum(sizes).tolist(), np.asarray(sizes).tolist(), strict=True):
        own = np.arange(end - size, end)
        own = own[np.isfinite(coordinates[own]).all(axis=1)]
        if len(own) < 2:
            continue
        close = own[cKDTree(coordinates[own]).query_pairs(distance, output_type="ndarray")]
        close = close[component[close[:, 0]] == component[close[:, 1]]]
        pairs = list(map(tuple, close[np.lexsort(close.T[::-1])].tolist()))
        known, others = set(pairs), defaultdict[int, list[int]](list)
        for a, b in pairs:
            if stands[a] == a and stands[b] == b and all((c, b) in known for c in others[a]):
                stands[b] = a
                others[a].append(b)
    return stands


def resolution(coordinates: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cell of the grid that the positions of every object lie on, 0 where they lie on none; shape (k,).

    Matchers without a detector often give the centres of cells of 8 pixels. Then all differences between coordinates
    are multiples of that.

    Parameters
    ----------
    coordinates : (m, 2)
    sizes : (k,) int
        Points per object; coordinates are those of one object after another.

    Notes
    -----
    O(m log m). The cell is the commonest difference of neighbouring coordinates, if at least 95 % of the coordinates
    are whole multiples of it away from the first (to within a hundredth) and there are 20 points or more.

    Examples
    --------
    >>> cells = 8.0 * np.stack(np.meshgrid(np.arange(6), np.arange(5)), axis=-1).reshape(-1, 2) + 4
    >>> resolution(np.concatenate([cells, np.sqrt(cells)]), np.array([30, 30])).tolist()
    [8.0, 0.0]
    """
    known = np.isfinite(coordinates[:, 0]) & np.isfinite(coordinates[:, 1])
    counts = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[known], minlength=len(sizes))
    cell, enough = np.zeros(len(sizes)), np.flatnonzero(counts >= _FEW)
    known &= np.repeat(counts >= _FEW, sizes)
    some, start = coordinates.compress(known, axis=0), np.append(0, np.cumsum(counts[enough]))
    chunks = np.flatnonzero(np.diff(start[:-1] // _POINTS_PER_CHUNK, prepend=-1)).tolist()
    for a, b in pairwise([*chunks, len(enough)]):
        x, y = some[start[a] : start[b]].T
        first = start[a : b + 1] - start[a]
        found = _steps(x, first)
        cell[enough[a:b]] = np.minimum(found, _steps(y, first)) if found.any() else 0.0
    return cell


def _steps(column: NDArray[Any], start: Ints) -> NDArray[np.float64]:
    """Return the cell of coordinates, (n,), group after group from `start`, (g + 1,), or 0; shape (g,)."""
    first, counts, found = start[:-1], np.diff(start), np.empty(len(start) - 1)
    values = _sorted(column, start).astype(np.float64)
    if call("find_cells", len(found), np.ascontiguousarray(start), values, _ON_GRID, _MOST, found):
        return found
    gaps = np.diff(values, append=np.inf)
    gaps[start[1:] - 1] = np.inf  # between groups; neither these count nor gaps of zero
    gaps = _sorted(np.where(gaps > 0, gaps.round(6), np.inf), start)
    equal = np.flatnonzero((gaps[1:] == gaps[:-1]) & np.isfinite(gaps[1:]))
    runs = np.flatnonzero(np.diff(equal, prepend=-2) > 1)
    often, size = np.diff(runs, append=len(equal)), gaps[equal[runs]]
    owner = np.searchsorted(start, equal[runs], side="right") - 1
    order = np.lexsort((-size, often))
    unit = np.where(np.isfinite(gaps[first]), gaps[first], 0.0)  # the smallest, where all are different
    unit[owner[order]] = size[order]  # the last is the commonest, and of equally common ones the smallest
    steps = (values - np.repeat(values[first], counts)) / np.repeat(np.where(unit > 0, unit, np.nan), counts)
    on_grid = np.add.reduceat(np.abs(steps - np.rint(steps)) < _ON_GRID, first, dtype=np.int64)
    return np.where(on_grid / counts >= _MOST, unit, 0.0)


def _sorted(values: NDArray[Any], start: Ints) -> NDArray[Any]:
    """Return values, (n,), with every group sorted."""
    values = values.copy()
    for a, b in pairwise(start.tolist()):
        values[a:b].sort()
    return values
