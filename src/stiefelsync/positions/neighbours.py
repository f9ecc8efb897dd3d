"""Whether matches that start side by side end side by side.

Evidence from positions, where cycles have none.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call, constant
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.grid import resolution
from stiefelsync.stiefel.threads import workers

__all__ = ["fitting_support", "is_smooth", "neighbour_support", "weighed"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MIN_SHARE_SMOOTH = 0.25  # share of matches with a support of ½ or more
# Cells for the ratio of offsets: as many angles, and factors of √2, from 1/16 to 16.
_ANGLES, _SCALES = constant("angles"), constant("scales")
# Root mean square of the difference of two positions rounded to cells, in cells.
_ROUNDING_IN_CELLS = (1 / 3) ** 0.5
_MATCHES_PER_CHUNK = 16_000  # arrays of a few megabytes
# Borders of the cells, and their centres (cells, 2): the same for the kernel, whatever the
# processor's logarithm.
_TANGENTS = np.tan((np.arange(_ANGLES // 4) + 0.5) * (2 * np.pi / _ANGLES)).astype(np.float32)
_SQUARED_LENGTHS = (2.0 ** (np.arange(1, _SCALES) - 0.5 - _SCALES // 2)).astype(np.float32)
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

    Let (x, y) be the positions of a match's points and (x', y') those of a match nearby, as complex
    numbers. What is around x lies turned and scaled around y, so that ``y' − y ≈ z·(x' − x)`` with
    one z for the two objects: the commonest ratio of offsets. Two matches agree by ``max(0, 1 − |Δy
    − z·Δx| / (tolerance·max(|Δy|, |z·Δx|)))``. The support is the mean of that over the nearest
    matches in the first object and those in the second. Where positions lie on a grid
    (:func:`~stiefelsync.positions.grid.resolution`), what rounding does to the difference is taken
    off.

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
        Called with the number of matches done and the number of all; a true return value ends the
        search.

    Returns
    -------
    (M,) float64
        In [0, 1]; 0 where no neighbour agrees at all. NaN where unknown: for matches with an
        unknown position, and between objects with no more than `neighbours` matches or with all of
        them in one place.

    Notes
    -----
    The points of every object are sorted along a curve, O(m log m). The tree of a pair has leaves
    of eight matches in this order, which ask together, O(neighbours + n / 2000) for each of a
    pair's n matches. In chunks of pairs, on threads. In single precision, as positions are: an
    agreement is off by less than a millionth.

    Turning, moving or scaling the points of an object changes next to nothing. It takes smooth
    motion for granted, as of images of surfaces: three quarters of the matches of photographs have
    a support above .6. Of points that move at random three quarters have less than about .1, and
    the figures mean nothing.

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
    # Points sorted along a curve once per object: what is near in space is near in this order, in
    # every pair.
    place, start = np.ascontiguousarray(matchings.coordinates, np.float32), matchings.pair_start
    cell = resolution(place, matchings.sizes) if cell is None else np.asarray(cell, np.float64)
    cells, support = cell[matchings.pair_objects], np.full(matchings.n_matches, np.nan)
    turn, turns = np.empty(len(place), dtype=np.int32), int(matchings.sizes.max(initial=0))
    call("order_points", place, matchings.offsets, matchings.n_objects, turn)

    def judge(pairs: slice) -> None:
        first = start[pairs.start : pairs.stop + 1]
        some, n = slice(first[0], first[-1]), len(first) - 1
        known = matchings.endpoints[some], first - first[0], n, neighbours, tolerance, cells[pairs]
        borders = _ROUNDING_IN_CELLS, _TANGENTS, _SQUARED_LENGTHS, _CENTRES
        call("neighbour_support", place, turn, turns, *known, *borders, support[some])

    _in_chunks(judge, start, progress)
    return support


def fitting_support(matchings: Matchings, kept: Bools, support: Floats, neighbours: int = 8) -> Floats:
    """Return the support of every match, less where local maps by its neighbours miss it by more.

    Support asks whether matches move alike at all, and lets a repeated window pass that is a few
    pixels off. Here an affine map is fitted to those of the nearest matches that are kept, from one
    object to the other, which says where the match should lead; and one the other way. Let r be the
    distance by which the better of the two misses it, and r̃ the median of that over the matches
    kept. The support is divided by ``1 + r / r̃``. No match has a say in maps it is judged by.

    Maps are least squares, fitted three times: a neighbour counts half, the next time, that was
    missed by twice as much as is usual among them.

    Parameters
    ----------
    kept : (M,) bool
        The matches that agree with tracks.
    support : (M,) float64
        Of :func:`neighbour_support`. Matches without any neither have a say nor are judged.
    neighbours
        How many of the nearest matches to ask, either way.

    Returns
    -------
    (M,) float64
        In [0, 1], NaN where support is. Half the support for matches that have less than four
        neighbours which are kept, or are between objects with no more matches than `neighbours`.

    Notes
    -----
    O(neighbours) for every match, and the cost of :func:`neighbour_support`.

    Examples
    --------
    A grid of 36 points, sheared; one match leads aside by a third of the way to the next point.

    >>> grid = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    >>> sheared = grid @ [[1, 0.2], [0, 1]]
    >>> sheared[14] += 0.3
    >>> problem = Matchings.from_pairs(
    ...     {(0, 1): np.stack([np.arange(36)] * 2, axis=1)}, [36, 36], coordinates=np.vstack([grid, sheared])
    ... )
    >>> support = neighbour_support(problem)
    >>> fitting = fitting_support(problem, np.ones(36, dtype=bool), support)
    >>> int(support.argmin()) == 14, int((fitting / support).argmin())
    (False, 14)
    """
    if matchings.coordinates is None:
        raise InputError("these matches have no coordinates; their neighbours are unknown")
    asked = np.asarray(kept | (support > 0))
    start = np.append(0, np.cumsum(asked))[matchings.pair_start]
    ends, counts = matchings.endpoints[asked], np.ascontiguousarray(kept[asked])
    place = np.ascontiguousarray(matchings.coordinates, np.float32)
    missed = np.full(len(ends), np.nan)
    turn, turns = np.empty(len(place), dtype=np.int32), int(matchings.sizes.max(initial=0))
    call("order_points", place, matchings.offsets, matchings.n_objects, turn)

    def judge(pairs: slice) -> None:
        first = start[pairs.start : pairs.stop + 1]
        some, n = slice(first[0], first[-1]), len(first) - 1
        known = ends[some], first - first[0], n, neighbours, counts[some]
        call("miss_neighbours", place, turn, turns, *known, missed[some])

    _in_chunks(judge, start)
    usual = np.median(missed[counts & np.isfinite(missed)]) if np.isfinite(missed[counts]).any() else 0.0
    # What is unknown is taken for usual, and so is everything where maps are exact.
    share = np.full(len(ends), 0.5)
    if usual > 0:
        share = np.where(np.isfinite(missed), 1 / (1 + missed / usual), share)
    fitting = support.copy()
    fitting[asked] *= share
    return fitting


def _in_chunks(
    judge: Callable[[slice], None], start: Ints, progress: Callable[[int, int], object] | None = None
) -> None:
    """Judge all pairs, whose matches begin at `start`, some at a time, until `progress` says stop."""
    # Chunks of pairs depend on nothing else, so that threads change no figure.
    chunks = _chunks(start)
    with ThreadPoolExecutor(min(len(chunks), workers()) or 1) as pool:
        for pairs, _ in zip(chunks, pool.map(judge, chunks), strict=True):
            if progress is not None and progress(int(start[pairs.stop]), int(start[-1])):
                pool.shutdown(cancel_futures=True)
                break


def is_smooth(support: Floats) -> bool:
    """Return whether neighbouring matches move alike.

    Else supports, (M,) with NaN where unknown, mean nothing.

    They do if a quarter of those known are ½ or more.

    Examples
    --------
    >>> is_smooth(np.array([0.9, 0.1, 0.0, np.nan])), is_smooth(np.array([np.nan]))
    (True, False)
    """
    n = np.count_nonzero(np.isfinite(support))
    return bool(n > 0 and np.count_nonzero(support >= 0.5) / n >= _MIN_SHARE_SMOOTH)


def weighed(matchings: Matchings, support: Floats) -> Matchings | None:
    """Return the matches that have support, (M,), their weights multiplied by it.

    Where unknown, by the mean support.

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
    # A match whose support is unknown is worth as much as the average of the others.
    factor = support if known.all() else np.where(known, support, support[known].mean())
    kept, factor = matchings.keep(counts), factor.compress(counts)
    tiny = np.finfo(np.float64).tiny
    return kept.with_weights(factor if kept.weights is None else np.maximum(kept.weights * factor, tiny))


def _chunks(start: Ints) -> list[slice]:
    """Split pairs into runs of about `_MATCHES_PER_CHUNK` matches, which begin at `start`."""
    first = np.flatnonzero(np.diff(start[:-1] // _MATCHES_PER_CHUNK, prepend=-1))
    return [slice(a, b) for a, b in pairwise([*first.tolist(), len(start) - 1])]
