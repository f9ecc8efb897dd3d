"""Positions off the grid that a matcher rounded them to.

Where the matches around a point put it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.grid import resolution

__all__ = ["refine_positions"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROUNDS = 3  # of moving positions; from the third on little changes
_FITS = 3  # of a map to neighbours, those far from it counting less each time
_MIN_MATCHES_OF_PAIR = 4  # matches of a pair of objects below which they determine no map
# Residual, in cells, at which a neighbour counts half; rounding both positions leaves .58.
_HALF_WEIGHT_IN_CELLS = 0.6
_DECAY_OF_NEARNESS = 1.5  # the farthest neighbour counts exp(−1.5) as much as the match itself
_RIDGE = 1e-6  # so that neighbours in a line determine a map; along the line nothing changes


def refine_positions(matchings: Matchings, *, neighbours: int = 8, cell: Floats | None = None) -> Floats:
    """Move positions on a grid to where their matches, and the matches around these, put them.

    A matcher without a detector gives centres of cells, off by up to half a cell, and by as much
    the points of a track fail to be images of one point. Let match (x, y) and its nearest matches
    between the same two objects determine an affine map, ``y' ≈ t + A(x' − x)``: rounding averages
    out, and t is where they put y. Each point moves to the mean of its own position in the middle
    of the cell and of where its matches put it, but not out of its cell. Thrice, with maps by the
    positions found so far.

    Parameters
    ----------
    matchings
        With coordinates; wrong matches removed.
    neighbours
        How many of the nearest matches determine a map, besides the match itself.
    cell : (k,) float64, optional
        The cells of the grids that positions lie on, if they are known already (otherwise by
        :func:`~stiefelsync.positions.grid.resolution`). Objects with 0 keep their positions.

    Returns
    -------
    (m, 2) float64
        Points without a match stay where they are.

    Notes
    -----
    O(M·neighbours) for each round. Maps flatten what is not flat, and all points of a region alike,
    which is worse for cameras than errors of each point by itself. So few neighbours are asked, and
    a point's own position counts as much as what any of its matches says
    (``docs/evidence/poses.md``).

    Examples
    --------
    A hundred points, turned a little and rounded to cells of 8.

    >>> rng = np.random.default_rng(0)
    >>> exact = rng.uniform(0, 80, (100, 2))
    >>> exact = np.vstack([exact, exact @ [[0.98, 0.2], [-0.2, 0.98]]])
    >>> given = exact // 8 * 8 + 4
    >>> same = np.stack([np.arange(100)] * 2, axis=1)
    >>> problem = Matchings.from_pairs({(0, 1): same}, [100, 100], coordinates=given)
    >>> def off(at):
    ...     return np.hypot(*(at[100:] - at[:100] @ [[0.98, 0.2], [-0.2, 0.98]]).T).mean()
    >>> round(float(off(given)), 1), round(float(off(refine_positions(problem))), 1)
    (4.1, 2.2)
    """
    if matchings.coordinates is None:
        raise InputError("these matches have no coordinates; there is nothing to refine")
    if neighbours < 1:
        raise InputError(f"the number of neighbours is {neighbours}; it must be at least 1")
    cell = resolution(matchings.coordinates, matchings.sizes) if cell is None else cell
    # Neighbours are looked for once: positions move by less than a cell, which hardly changes who
    # is near.
    given = np.asarray(matchings.coordinates, dtype=np.float64)
    size = np.repeat(cell, matchings.sizes)[:, None]
    pairs = _pairs(matchings, given, cell, neighbours)
    at = given.copy()
    # Every round starts from the middles of the cells; only the maps use the positions found so
    # far.
    for _ in range(_ROUNDS if pairs else 0):
        total, count = given.copy(), np.ones(len(given))
        for ends, near in pairs:
            scale = float(np.sqrt(np.mean(size[ends[0]] ** 2)))
            for one, other in ((0, 1), (1, 0)):
                point = ends[:, other]
                put = _put(at[ends[:, one]], at[point], near[one], _HALF_WEIGHT_IN_CELLS * scale)
                # A map that puts a point far out of its cell is wrong, and counts for next to
                # nothing.
                weight = 1 / (1 + (((put - given[point]) ** 2).sum(axis=1) / scale**2) ** 2)
                total[point] += weight[:, None] * put  # a point has one match in a pair
                count[point] += weight
        # The true position is known to lie in the cell.
        at = np.clip(total / count[:, None], given - size / 2, given + size / 2)
    return at


def _pairs(matchings: Matchings, at: Floats, cell: Floats, neighbours: int) -> list[tuple[Ints, tuple[Ints, Ints]]]:
    """Return the matches of every pair with a grid, and the nearest of each by either end.

    Only those with known positions.
    """
    found = []
    starts = np.searchsorted(matchings.match_pairs, np.arange(len(matchings.pair_objects) + 1))
    known: NDArray[np.bool_] = np.asarray(np.isfinite(at).all(axis=1))
    for objects, (first, last) in zip(matchings.pair_objects, pairwise(starts.tolist()), strict=True):
        ends = matchings.endpoints[first:last]
        ends = ends[known[ends].all(axis=1)]
        if cell[objects].any() and len(ends) >= _MIN_MATCHES_OF_PAIR:
            k = min(neighbours + 1, len(ends))
            one, two = (cKDTree(at[ends[:, side]]).query(at[ends[:, side]], k=k)[1] for side in (0, 1))
            found.append((ends, (one, two)))
    return found


def _put(x: Floats, y: Floats, near: Ints, spread: float) -> Floats:
    """Return where affine maps from x to y, by the matches nearest to each, put y; (n, 2).

    The maps are weighted least squares; a residual of `spread` halves the weight of a match the
    next time.
    """
    # Offsets in units of the farthest neighbour, so that the ridge means the same at every scale.
    offset, target = x[near] - x[:, None], y[near]
    reach = np.sqrt((offset**2).sum(axis=2).max(axis=1))
    offset /= np.maximum(reach, 1e-9)[:, None, None]
    nearness = np.exp(-_DECAY_OF_NEARNESS * (offset**2).sum(axis=2))
    weight = nearness
    for _ in range(_FITS):
        # Moments about the weighted mean: two equations for each row of A.
        total = weight.sum(axis=1)
        middle, aim = (np.einsum("nk,nkc->nc", weight, part) / total[:, None] for part in (offset, target))
        u, v = offset - middle[:, None], target - aim[:, None]
        a, b, d = (np.einsum("nk,nk,nk->n", weight, u[..., s], u[..., t]) for s, t in ((0, 0), (0, 1), (1, 1)))
        # The 2 × 2 normal equations, solved by hand for all matches at once.
        a, d = a + _RIDGE, d + _RIDGE
        p, q = (np.einsum("nk,nk,nkc->nc", weight, u[..., s], v) for s in (0, 1))
        determinant = (a * d - b * b)[:, None]
        by_x, by_y = (d[:, None] * p - b[:, None] * q) / determinant, (a[:, None] * q - b[:, None] * p) / determinant
        # Matches that move otherwise, wrong ones among them, count less the next time.
        residual = v - u[..., :1] * by_x[:, None] - u[..., 1:] * by_y[:, None]
        weight = nearness / (1 + (residual**2).sum(axis=2) / spread**2)
    return np.asarray(aim - middle[:, :1] * by_x - middle[:, 1:] * by_y)
