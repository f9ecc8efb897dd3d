"""Do matches that start side by side end side by side? Evidence from positions, where cycles have none."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from stiefelsync.errors import InputError
from stiefelsync.matching.copies import resolution
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.threads import workers

__all__ = ["SMOOTH", "neighbour_support", "weighed"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

SMOOTH = 0.25
"""Share of matches with a support of ½ or more, below which motion is not smooth and supports mean nothing."""
_ANGLES, _SCALES = 16, 16  # cells for the ratio of offsets: 22.5 degrees, and a factor of √2 from 1/16 to 16
_ROUNDS = 5  # of taking the mean
_ROUNDED = (1 / 3) ** 0.5  # root mean square of the difference of two positions rounded to cells, in cells
_EVERY = 4  # which of the ratios decide on the commonest
_MATCHES_PER_CHUNK = 16_000  # arrays of a few megabytes


def neighbour_support(
    matchings: Matchings,
    neighbours: int = 8,
    *,
    tolerance: float = 0.5,
    cell: Floats | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Floats:
    """Return how far every match moves with its nearest matches between the same two objects.

    Let (x, y) be the positions of a match's points and (x', y') those of a match nearby, as complex numbers. What is
    around x lies turned and scaled around y, so that ``y' − y ≈ z·(x' − x)`` with one z for the two objects: the
    commonest ratio of offsets. Two matches agree by ``max(0, 1 − |Δy − z·Δx| / (tolerance·max(|Δy|, |z·Δx|)))``. The
    support is the mean of that over the nearest matches in the first object and those in the second. Where positions
    lie on a grid (:func:`~stiefelsync.matching.copies.resolution`), what rounding does to the difference is taken off.

    Parameters
    ----------
    matchings
        With coordinates.
    neighbours
        How many of the nearest matches to ask, in each of the two objects.
    tolerance
        Matches agree if their offsets differ by less than this share of the longer one.
    cell : (k,) float64, optional
        The cells of the grids that positions lie on, if they are known already.
    progress
        Called with the number of matches done and the number of all; a true return value ends the search.

    Returns
    -------
    (M,) float64
        In [0, 1]; 0 where no neighbour agrees at all. NaN where unknown: for matches with an unknown position, and
        between objects with no more than `neighbours` matches or with all of them in one place.

    Notes
    -----
    O(M·(neighbours + log M)), in chunks of pairs of objects, on threads. Turning, moving or scaling the points of
    an object changes next to nothing. It takes smooth motion for granted, as of images of surfaces: three quarters of
    the matches of photographs have a support above .6. Of points that move at random three quarters have less than
    about .1, and the figures mean nothing.

    Examples
    --------
    A grid of 16 points turned by a right angle; the last match leads across the grid.

    >>> grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    >>> turned, partner = grid @ [[0, 1], [-1, 0]], np.append(np.arange(1, 15), 0)
    >>> problem = Matchings.from_pairs(
    ...     {(0, 1): np.stack([np.arange(1, 16), partner], axis=1)}, [16, 16], coordinates=np.vstack([grid, turned])
    ... )
    >>> (neighbour_support(problem) == 0).nonzero()[0].tolist()
    [14]
    """
    if matchings.coordinates is None:
        raise InputError("these matches have no coordinates; their neighbours are unknown")
    if neighbours < 1:
        raise InputError(f"the number of neighbours is {neighbours}; it must be at least 1")
    place = np.where(np.isfinite(matchings.coordinates), matchings.coordinates, np.nan) @ np.array([1, 1j])
    x, y = place[matchings.endpoints].T
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    pair = matchings.match_pairs[known]
    known = known[_spread_out(x[known], pair) & _spread_out(y[known], pair)]
    pair = matchings.match_pairs[known]
    known = known[np.bincount(pair, minlength=1)[pair] > neighbours]
    support = np.full(matchings.n_matches, np.nan)
    cell = resolution(matchings.coordinates, matchings.offsets) if cell is None else cell

    def judged(chunk: slice) -> Floats:
        some = known[chunk]
        pairs = matchings.match_pairs[some]
        return _support(x[some], y[some], pairs, neighbours, tolerance, cell[matchings.pair_objects[pairs]])

    chunks = _chunks(matchings.match_pairs[known])
    with ThreadPoolExecutor(min(len(chunks), workers()) or 1) as pool:
        for chunk, found in zip(chunks, pool.map(judged, chunks), strict=True):
            support[known[chunk]] = found
            if progress is not None and progress(chunk.stop, len(known)):
                pool.shutdown(cancel_futures=True)
                break
    return support


def weighed(matchings: Matchings, support: Floats) -> Matchings:
    """Return the matches that have support, (M,), their weights multiplied by it; where unknown, by the mean support.

    Examples
    --------
    >>> three = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1], [2, 2]]}, [3, 3])
    >>> weighed(three, np.array([0.0, 0.5, np.nan])).weights.tolist()
    [0.5, 0.25]
    """
    mean = support[np.isfinite(support)].mean()
    weights = matchings.match_weights * np.where(np.isfinite(support), support, mean)
    some = support != 0
    return matchings.keep(some).with_weights(np.maximum(weights, np.finfo(np.float64).tiny)[some])


def _spread_out(x: Complexes, pair: Ints) -> NDArray[np.bool_]:
    """Return which positions, shape (n,), sorted by pair, are not the only ones of their pair."""
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    different = x != np.repeat(x[first], np.diff(np.append(first, len(x))))
    return (np.bincount(pair[different], minlength=int(pair.max(initial=0)) + 1) > 0)[pair]


def _chunks(pair: Ints) -> list[slice]:
    """Split matches sorted by pair into runs of whole pairs, about `_MATCHES_PER_CHUNK` each."""
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    first = starts[np.flatnonzero(np.diff(starts // _MATCHES_PER_CHUNK, prepend=-1))]
    return [slice(a, b) for a, b in pairwise([*first.tolist(), len(pair)])]


def _support(x: Complexes, y: Complexes, pair: Ints, neighbours: int, tolerance: float, cells: Floats) -> Floats:
    """Return the support of matches between the positions x and y, shape (n,), sorted by pair.

    Positions in cells of a grid, shape (n, 2), are uncertain by that much.
    """
    group = np.cumsum(np.diff(pair, prepend=pair[0]) != 0)
    near = np.hstack([_nearest(x, group, neighbours), _nearest(y, group, neighbours)])
    dx, dy = x[near] - x[:, None], y[near] - y[:, None]
    some = dx[:, ::_EVERY]
    ratio = np.divide(dy[:, ::_EVERY], some, out=np.zeros_like(some), where=some != 0)
    z = _commonest(ratio, group, tolerance)[group]
    # Squares of lengths: several times as fast as absolute values of complex numbers.
    dx *= z[:, None]
    longer = np.maximum(_squared(dx), _squared(dy))
    dy -= dx
    difference = _squared(dy)
    if cells.any():
        rounding = _ROUNDED * np.hypot(cells[:, 1], np.abs(z) * cells[:, 0])[:, None]
        difference = np.maximum(np.sqrt(difference) - rounding, 0) ** 2
    error = np.divide(difference, longer, out=np.ones_like(longer), where=longer > 0)
    np.sqrt(error, out=error)
    return np.asarray(np.maximum(0, 1 - error / tolerance).mean(axis=1))


def _squared(z: Complexes) -> Floats:
    """Return the squares of absolute values."""
    return np.asarray(z.real**2 + z.imag**2)


def _nearest(x: Complexes, group: Ints, neighbours: int) -> Ints:
    """Return for every position the nearest others of its group; shape (n, neighbours)."""
    points = np.stack([x.real, x.imag, group * (4 * (np.abs(x - x[0]).max() + 1))], axis=1)
    tree = cKDTree(points, compact_nodes=False, balanced_tree=False)  # built once, asked once
    near: Ints = tree.query(points, k=neighbours + 1)[1]
    # Each is the nearest to itself; where others lie in the same place it may come later, or not at all.
    row, column = np.nonzero(near[:, 1:] == np.arange(len(x))[:, None])
    near[row, column + 1] = near[row, 0]
    return near[:, 1:]


def _commonest(ratio: NDArray[Any], group: Ints, tolerance: float) -> Complexes:
    """Return for every group the mean of the ratios, shape (n, c), around the fullest cell of angle and scale."""
    n, group = int(group.max()) + 1, np.repeat(group, ratio.shape[1])
    ratio = ratio.ravel()
    group, ratio = group[ratio != 0], ratio[ratio != 0]
    scale = np.clip(np.rint(np.log2(_squared(ratio))) + _SCALES // 2, 0, _SCALES - 1).astype(np.int64)
    angle = np.rint(np.angle(ratio) / (2 * np.pi) * _ANGLES).astype(np.int64) % _ANGLES
    cells = _ANGLES * _SCALES
    votes = np.bincount(group * cells + scale * _ANGLES + angle, minlength=n * cells).reshape(n, cells)
    scale, angle = np.divmod(votes.argmax(axis=1), _ANGLES)
    centre: Complexes = 2.0 ** ((scale - _SCALES // 2) / 2) * np.exp(2j * np.pi * angle / _ANGLES)
    for _ in range(_ROUNDS):
        reach = tolerance**2 * _squared(centre)
        near = np.flatnonzero(_squared(ratio - centre[group]) <= reach[group])
        owner, close = group[near], ratio[near]
        real, imag = (np.bincount(owner, part, minlength=n) for part in (close.real, close.imag))
        count = np.bincount(owner, minlength=n)
        centre = np.where(count > 0, (real + 1j * imag) / np.maximum(count, 1), centre)
    return centre
