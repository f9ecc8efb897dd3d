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
from stiefelsync.matching.kernels import call
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.grid import resolution
from stiefelsync.stiefel.threads import workers

__all__ = ["is_smooth", "neighbour_support", "weighed"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_SMOOTH = 0.25  # share of matches with a support of ½ or more
_ANGLES, _SCALES = 16, 16  # cells for the ratio of offsets: 22.5 degrees, and a factor of √2 from 1/16 to 16
_ROUNDS = 5  # of taking the mean
_ROUNDED = (1 / 3) ** 0.5  # root mean square of the difference of two positions rounded to cells, in cells
_EVERY = 4  # which of the ratios decide on the commonest
_MATCHES_PER_CHUNK = 16_000  # arrays of a few megabytes
_USUAL = 16  # powers of two around one, of positions whose offsets have squares that are no trouble
_SPARE = 4  # neighbours looked for beyond those wanted, to see whether the last of these is as near as others
# Borders of the cells, and their centres (cells, 2): the same for the kernel, whatever the processor's logarithm.
_TANGENTS = np.tan((np.arange(_ANGLES // 4) + 0.5) * (2 * np.pi / _ANGLES)).astype(np.float32)
_SQUARES = (2.0 ** (np.arange(1, _SCALES) - 0.5 - _SCALES // 2)).astype(np.float32)
_CENTRES = np.array([
    (r * np.cos(a), r * np.sin(a))
    for r in 2.0 ** (np.arange(-_SCALES // 2, _SCALES // 2) / 2) for a in np.arange(_ANGLES) * (2 * np.pi / _ANGLES)
])  # fmt: skip


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
    lie on a grid (:func:`~stiefelsync.positions.grid.resolution`), what rounding does to the difference is taken off.

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
    A tree is asked, O(neighbours + log n) for each of a pair's n matches. The kernel sorts the points of every object
    along a curve, O(m log m). That of a pair has leaves of eight matches in this order, which ask together,
    O(neighbours + n / 2000). In chunks of pairs, on threads. In single precision, as positions are: an agreement is off
    by less than a millionth.

    Turning, moving or scaling the points of an object changes next to nothing. It takes smooth motion for granted, as
    of images of surfaces: three quarters of the matches of photographs have a support above .6. Of points that move at
    random three quarters have less than about .1, and the figures mean nothing.

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
    place, start = np.ascontiguousarray(matchings.coordinates, np.float32), matchings.pair_start
    cell = resolution(place, matchings.sizes) if cell is None else np.asarray(cell, np.float64)
    cells, support = cell[matchings.pair_objects], np.full(matchings.n_matches, np.nan)
    turn, turns = _turns(place, matchings.offsets), int(matchings.sizes.max(initial=0))

    def judge(pairs: slice) -> None:
        first = start[pairs.start : pairs.stop + 1]
        some = slice(first[0], first[-1])
        given = matchings.endpoints[some], first - first[0], neighbours, tolerance, cells[pairs], support[some]
        _write_support(place, turn, turns, *given)

    chunks = _chunks(start)
    with ThreadPoolExecutor(min(len(chunks), workers()) or 1) as pool:
        for pairs, _ in zip(chunks, pool.map(judge, chunks), strict=True):
            if progress is not None and progress(int(start[pairs.stop]), len(support)):
                pool.shutdown(cancel_futures=True)
                break
    return support


def is_smooth(support: Floats) -> bool:
    """Return whether neighbouring matches move alike: else supports, (M,) with NaN where unknown, mean nothing.

    They do if a quarter of those known are ½ or more.

    Examples
    --------
    >>> is_smooth(np.array([0.9, 0.1, 0.0, np.nan])), is_smooth(np.array([np.nan]))
    (True, False)
    """
    n = np.count_nonzero(np.isfinite(support))
    return bool(n > 0 and np.count_nonzero(support >= 0.5) / n >= _SMOOTH)


def weighed(matchings: Matchings, support: Floats) -> Matchings | None:
    """Return the matches that have support, (M,), their weights multiplied by it; where unknown, by the mean support.

    None if neighbouring matches do not move alike.

    Examples
    --------
    >>> three = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1], [2, 2]]}, [3, 3])
    >>> weighed(three, np.array([0.0, 0.5, np.nan])).weights.tolist()
    [0.5, 0.25]
    """
    if not is_smooth(support):
        return None
    known, counts = np.isfinite(support), support != 0
    factor = support if known.all() else np.where(known, support, support[known].mean())
    kept, factor = matchings.keep(counts), factor.compress(counts)
    tiny = np.finfo(np.float64).tiny
    return kept.with_weights(factor if kept.weights is None else np.maximum(kept.weights * factor, tiny))


def _chunks(start: Ints) -> list[slice]:
    """Split pairs, whose matches begin at `start`, (P + 1,), into runs of about `_MATCHES_PER_CHUNK` matches."""
    first = np.flatnonzero(np.diff(start[:-1] // _MATCHES_PER_CHUNK, prepend=-1))
    return [slice(a, b) for a, b in pairwise([*first.tolist(), len(start) - 1])]


def _turns(place: NDArray[np.float32], offsets: Ints) -> NDArray[np.int32] | None:
    """Number the points of every object along a curve on which neighbours are near each other, (m,); for the kernel."""
    turn = np.empty(len(place), dtype=np.int32)
    return turn if call("order_points", place, offsets, len(offsets) - 1, turn) else None


def _write_support(
    place: Any, turn: Any, turns: int, ends: Ints, first: Ints, neighbours: int, tolerance: float, cells: Floats,
    support: Floats,
) -> None:  # fmt: skip
    """Write the support of matches between the points `ends`, (n, 2), pair after pair from `first`, (g + 1,), if known.

    Points take up to so many turns. Positions in cells of a grid, shape (g, 2), are uncertain by that much.
    """
    if turn is None:
        _write_plainly(place, ends, first, neighbours, tolerance, cells, support)
        return
    known = place, turn, turns, ends, first, len(first) - 1, neighbours, float(tolerance)
    call("neighbour_support", *known, np.ascontiguousarray(cells), _ROUNDED, _TANGENTS, _SQUARES, _CENTRES, support)


def _write_plainly(
    place: Any, ends: Ints, first: Ints, neighbours: int, tolerance: float, cells: Floats, support: Floats
) -> None:
    """Do the same without the kernel."""
    x, y = (place[end] for end in ends.T)
    group = np.repeat(np.arange(len(cells)), np.diff(first))
    known = np.flatnonzero(np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1))
    known = known[_spread_out(x[known], group[known]) & _spread_out(y[known], group[known])]
    known = known[np.bincount(group[known], minlength=1)[group[known]] > neighbours]
    if len(known):
        first = np.flatnonzero(np.diff(group[known], prepend=-1, append=len(cells)))
        cells = cells[group[known[first[:-1]]]]
        support[known] = _agreement(x[known], y[known], first, neighbours, tolerance, cells)


def _spread_out(x: Singles, pair: Ints) -> NDArray[np.bool_]:
    """Return which positions, shape (n, 2), sorted by pair, are not the only ones of their pair."""
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    different = (x != np.repeat(x[first], np.diff(np.append(first, len(x))), axis=0)).any(axis=1)
    return (np.bincount(pair[different], minlength=int(pair.max(initial=0)) + 1) > 0)[pair]


def _agreement(x: Singles, y: Singles, first: Ints, neighbours: int, tolerance: float, cells: Floats) -> Floats:
    """Return how far matches of known positions, (n, 2), agree with their neighbours.

    The same sums as the kernel's in the same order, by real numbers, which no processor fuses.
    """
    group = np.repeat(np.arange(len(first) - 1), np.diff(first))
    near = np.hstack([_nearest(p.astype(np.float64), first, neighbours) for p in (x, y)])
    unit = _unit(np.hstack([x, y]), first)
    x, y = ((p * unit[group, None]).astype(np.float32) for p in (x, y))
    (ax, bx), (ay, by) = ((p[near] - p[:, None]).transpose(2, 0, 1) for p in (x, y))
    few = slice(None, None, _EVERY)
    z = _commonest(ax[:, few], bx[:, few], ay[:, few], by[:, few], group, tolerance)
    re, im = z[:, group, None].astype(np.float32)
    ex, fx = ax * re - bx * im, ax * im + bx * re
    longer = np.maximum(ex**2 + fx**2, ay**2 + by**2)
    difference = (ay - ex) ** 2 + (by - fx) ** 2
    rounding = unit * (_ROUNDED * np.sqrt(cells[:, 1] ** 2 + (z[0] ** 2 + z[1] ** 2) * cells[:, 0] ** 2))
    less = rounding[group, None].astype(np.float32)
    error = np.where(less > 0, np.maximum(np.sqrt(difference) - less, 0) ** 2, difference)
    with np.errstate(invalid="ignore"):  # without any offset there is no agreement
        share = 1 - np.sqrt(error / longer) * (1 / np.float32(tolerance))
    return np.asarray(np.where(share > 0, share, 0).astype(np.float64).mean(axis=1))


def _unit(place: Singles, first: Ints) -> Floats:
    """Return what to multiply positions, (n, 4), by so that squares neither overflow nor vanish; shape (groups,)."""
    exponent = np.frexp(np.maximum.reduceat(np.abs(place).max(axis=1), first[:-1]))[1]
    return np.ldexp(1.0, np.where(np.abs(exponent) > _USUAL, -exponent, 0))


def _nearest(x: Floats, first: Ints, neighbours: int) -> Ints:
    """Return for every position the nearest others of its group, of equally near ones the first; (n, neighbours)."""
    n, group = len(x), np.repeat(np.arange(len(first) - 1), np.diff(first))
    points = np.column_stack([x, group * (4 * (np.abs(x - x[0]).max() + 1))])
    tree = cKDTree(points, compact_nodes=False, balanced_tree=False)  # built once, asked once
    near: Ints = tree.query(points, k=min(neighbours + 1 + _SPARE, n))[1]
    far = np.sum((x[near] - x[:, None]) ** 2, axis=2)
    far[(group[near] != group[:, None]) | (near == np.arange(n)[:, None])] = np.inf
    order = np.lexsort((near, far), axis=1)
    near, far = np.take_along_axis(near, order, 1), np.take_along_axis(far, order, 1)
    # All who might be as near as the last are in sight if one in sight is farther, or the whole group is in sight.
    last = far[:, neighbours - 1]
    farther = (np.isfinite(far) & (far > (1 + 1e-9) * last[:, None])).any(axis=1)
    all_of_them = np.isfinite(far).sum(axis=1) == np.diff(first)[group] - 1
    for i in np.flatnonzero(~farther & ~all_of_them).tolist():
        a, b = first[group[i]], first[group[i] + 1]
        apart = np.sum((x[a:b] - x[i]) ** 2, axis=1)
        apart[i - a] = np.inf
        near[i, :neighbours] = a + np.argsort(apart, kind="stable")[:neighbours]
    return near[:, :neighbours]


def _commonest(ax: Singles, bx: Singles, ay: Singles, by: Singles, group: Ints, tolerance: float) -> Floats:
    """Return for every group the mean ratio (ay + i by) / (ax + i bx), (n, c), around the fullest cell; (2, groups)."""
    n, owner = int(group[-1]) + 1, np.repeat(group, ax.shape[1])
    length = (ax**2 + bx**2).ravel()
    some = np.flatnonzero(length > 0)
    length, owner = length[some], owner[some]
    re, im = (part.ravel()[some] / length for part in (ay * ax + by * bx, by * ax - ay * bx))
    some = np.flatnonzero((re != 0) | (im != 0))
    re, im, owner = re[some], im[some], owner[some]
    turn = (np.abs(im)[:, None] >= np.abs(re)[:, None] * _TANGENTS).sum(axis=1)
    turn = np.where(re < 0, _ANGLES // 2 - turn, turn)
    turn = np.where(im < 0, (_ANGLES - turn) % _ANGLES, turn)
    scale = np.searchsorted(_SQUARES, re**2 + im**2, side="right")
    votes = np.bincount((owner * _SCALES + scale) * _ANGLES + turn, minlength=n * _SCALES * _ANGLES).reshape(n, -1)
    z, parts = _CENTRES[votes.argmax(axis=1)].T, (re.astype(np.float64), im.astype(np.float64))
    lane = owner * 8 + (np.arange(len(owner)) - np.searchsorted(owner, np.arange(n))[owner]) % 8
    for _ in range(_ROUNDS):
        reach = tolerance * tolerance * (z[0] ** 2 + z[1] ** 2)
        near = np.flatnonzero((parts[0] - z[0, owner]) ** 2 + (parts[1] - z[1, owner]) ** 2 <= reach[owner])
        count = np.bincount(owner[near], minlength=n)
        eight = np.stack([np.bincount(lane[near], part[near], 8 * n) for part in parts]).reshape(2, n, 8)
        four = eight[..., :4] + eight[..., 4:]
        two = four[..., :2] + four[..., 2:]
        z = np.where(count > 0, (two[..., 0] + two[..., 1]) / np.maximum(count, 1), z)
    return np.asarray(z)
