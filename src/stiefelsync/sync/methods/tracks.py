"""Tracks by constrained merging: the method for universes too large for a matrix U."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions import doubt as doubts
from stiefelsync.positions.grid import resolution
from stiefelsync.positions.neighbours import fitting_support, neighbour_support, weighed
from stiefelsync.positions.same_keypoint import lead_to_copies
from stiefelsync.sync.method import Callback, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.options import option
from stiefelsync.sync.tracks.clusters import connected_parts
from stiefelsync.sync.tracks.details import TracksDetails
from stiefelsync.sync.tracks.grow import grow_from, number_tracks

__all__ = ["Prepared", "check_ranges", "prepare", "tracks"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_MIN_SHARE_OF_EXTENT = 1e-9  # of the extent: less cannot be told from rounding of float32 positions
_COPIES_SHARE_OF_EXTENT = 0.001  # of the extent of an object's points
_HARM_ON_GRIDS = 1e-9  # of a wrong match: only pairs of objects are doubted there
_DIAGONAL = 2**0.5 + 1e-6  # of a cell of a grid: points in neighbouring cells may be one


@dataclass(frozen=True)
class Options:
    """Options of tracks."""

    neighbours: int = option(8, "How many of the nearest matches to ask; 0 asks none.")
    copies: float | None = option(
        None,
        "Two points of an object closer than this, as a share of the extent of its points, are one point found twice;"
        " 0 for none. None takes a thousandth, and where positions lie on a coarser grid the diagonal of its cells.",
        kind=float,
    )
    doubt: float = option(
        1.5,
        "How many right matches it is worth losing to remove a wrong one; 0 doubts none.",
    )


@register(
    "tracks",
    summary="merges points along matches, strongest evidence first, never two points of an object",
    consistent=True,
    cost="O(Σ deg² + (m + M) log m), memory O(m + M)",
    reference="this package",
    ours=True,
    choose="thousands of universe points or more, as in structure from motion",
    sized=False,
    options=Options,
)
def tracks(
    matchings: Matchings,
    universe: int,
    options: Options,
    /,
    *,
    start: Ints | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Weigh matches by their neighbours where positions are known, grow tracks along them, and doubt the result.

    A match that moves with none of its nearest matches (``neighbour_support``) counts for nothing, any other by its
    support. This finds the wrong matches that close no cycle. Where motion is not smooth, so that less than a quarter
    of the matches have a support of ½, positions say nothing and all count alike. The same holds between objects with
    no more matches than neighbours are asked.

    A point found twice has its matches shared out among the two copies, and a track can hold only one of them. Tracks
    that meet in such copies are joined rather than cut (:func:`~stiefelsync.sync.tracks.join.join`).

    Finally the matches inside tracks are judged by third objects, by how far they lead from where local maps by their
    neighbours put them (:func:`~stiefelsync.positions.neighbours.fitting_support`), and by the pair of objects they
    belong to (:func:`~stiefelsync.positions.doubt.doubt`). Tracks that only doubtful ones hold together fall apart; so
    do those that only hopeless pairs of objects hold together. Where positions lie on a grid coarser than a thousandth
    of the extent, neighbours tell too little of single matches, and only such pairs are doubted.

    Parameters
    ----------
    start : (m,) int, optional
        Labels to go on from, -1 = unknown: clusters to begin with, where matches hold them together.

    Notes
    -----
    The universe has as many points as tracks are found; the size asked for is not used. The details are
    :class:`~stiefelsync.sync.tracks.details.TracksDetails`.

    Examples
    --------
    >>> from stiefelsync import datasets, score, synchronise
    >>> problem, truth = datasets.scene(1000, 40, 250, 500, wrong=0.1, missing=0.3, rng=0)
    >>> score(synchronise(problem, 1000, method="tracks").labels, truth).fscore > 0.98
    True
    """
    check_ranges(options.neighbours, options.copies, options.doubt)
    neighbours, copies, doubt = options.neighbours, options.copies, options.doubt
    watch = Stopwatch()
    with watch("neighbours"):
        prepared = prepare(matchings, neighbours=neighbours, copies=copies, callback=callback)
    outcome, conflicted = grow_from(prepared.weighed, start, prepared.places, prepared.callback)
    labels = cast(Ints, outcome.labels)
    if not prepared.smooth:
        return replace(outcome, timings=watch.seconds | dict(outcome.timings))
    before = after = matchings.agreeing(labels)
    hopeless: tuple[tuple[int, int], ...] = ()
    elsewhere = np.zeros_like(before)
    if outcome.status == "done":
        with watch("doubts"):
            if prepared.places is not None:
                elsewhere = lead_to_copies(matchings, labels, prepared.places, ~(before | prepared.alone))
            if doubt:
                harm = _HARM_ON_GRIDS if prepared.coarse else doubt
                # Now that it is known who can be asked, neighbours say where matches should lead, not only whether
                # they move alike.
                support = fitting_support(matchings, before, prepared.support, neighbours)
                # To which copy of a keypoint a match leads is no mistake of identity.
                found = doubts.doubt(matchings, before | elsewhere, support, harm=harm, estimates=False)
                hopeless = tuple((int(i), int(j)) for i, j in matchings.pair_objects[found.hopeless])
                if found.matches.any():  # else the matches that made the tracks still hold them together
                    labels = number_tracks(connected_parts(labels, matchings.endpoints, ~found.matches))
                    after = matchings.agreeing(labels)
    details = cast(TracksDetails, outcome.details)
    details = _account(details, matchings, conflicted, prepared.alone, elsewhere, before, after)
    details = replace(details, hopeless=hopeless, by_positions=True)
    return replace(outcome, labels=labels, timings=watch.seconds | dict(outcome.timings), details=details)


def check_ranges(neighbours: int, copies: float | None, doubt: float) -> None:
    """Raise :class:`InputError` for options out of range."""
    if neighbours < 0:
        raise InputError(f"the number of neighbours is {neighbours}; it must be 0 (positions do not count) or more")
    if copies and not _MIN_SHARE_OF_EXTENT <= copies < np.inf:
        raise InputError(
            f"the distance of copies is {copies}; it must be 0 (none) or a share of the extent,"
            f" {_MIN_SHARE_OF_EXTENT} or more"
        )
    if not 0 <= doubt < np.inf:
        raise InputError(f"doubt is {doubt}; it must be 0 (none) or a positive number")


@dataclass(frozen=True)
class Prepared:
    """A problem as tracks are grown from it.

    Attributes
    ----------
    weighed
        The matches that count, and by how much.
    alone : (M,) bool
        The matches that do not.
    places : (m, 2) float64 or None
        Positions, in such units that points of an object less than 1 apart are one point found twice.
    callback
        Like the one given, but remembering that a stop was asked for.
    support : (M,) float64
        How far every match moves with its neighbours, NaN where unknown; empty if nobody asked.
    smooth
        Whether neighbouring matches move alike.
    coarse
        Whether positions lie on a grid too coarse to doubt single matches by their neighbours.
    """

    weighed: Matchings
    alone: Bools
    places: NDArray[np.float64] | None
    callback: Callback | None
    support: Floats
    smooth: bool
    coarse: bool


def prepare(
    matchings: Matchings, *, neighbours: int, copies: float | None, callback: Callback | None = None
) -> Prepared:
    """Weigh the matches by their neighbours and look for points found twice, where positions are known.

    Where the support of a match is unknown it has the mean of the others.
    """
    matches, alone, support, smooth = matchings, np.zeros(matchings.n_matches, dtype=bool), np.empty(0), False
    if matchings.coordinates is None or not (neighbours or copies is None or copies):
        return Prepared(matches, alone, None, callback, support, smooth, coarse=False)
    report, cell = Reporter(callback), resolution(matchings.coordinates, matchings.sizes)
    if neighbours:
        progress = None if callback is None else lambda done, n: report(Progress("neighbours", done, n))
        found = neighbour_support(matchings, neighbours, cell=cell, progress=progress)
        supported = None if report.stopped else weighed(matchings, found)
        if supported is not None:
            matches, alone, support, smooth = supported, found == 0, found, True
    places, coarse = _places(matchings.coordinates, matchings.sizes, cell, copies)
    return Prepared(matches, alone, places, report, support, smooth, coarse)


def _account(
    details: TracksDetails,
    matchings: Matchings,
    conflicted: Bools,
    alone: Bools,
    copies: Bools,
    then: Bools,
    now: Bools,
) -> TracksDetails:
    """Return the details with the matches without support and the doubtful ones counted among the others.

    Of the former those that agree with the tracks all the same are kept.

    Parameters
    ----------
    conflicted : (m,) bool
        Points in components with a conflict.
    alone : (M,) bool
        Matches without support.
    copies : (M,) bool
        Those that lead to other copies of keypoints.
    then, now : (M,) bool
        Matches kept before doubts and after.
    """
    doubtful = then & ~now & ~alone
    consistent = details.matches_by_rule.consistent
    consistent -= int(np.count_nonzero(~conflicted[matchings.endpoints[doubtful, 0]]))
    matches = replace(
        details.matches_by_rule,
        consistent=consistent,
        kept=int(np.count_nonzero(now)) - consistent,
        removed=details.matches_by_rule.removed - int(np.count_nonzero(copies)),
        copies=int(np.count_nonzero(copies)),
        unsupported=int(np.count_nonzero(alone & ~now)),
        doubtful=int(np.count_nonzero(doubtful)),
    )
    return replace(details, matches_by_rule=matches, wrong=float(np.mean(~now)) if len(now) else 0.0)


def _places(
    coordinates: NDArray[Any], sizes: NDArray[np.int32], cell: Floats, copies: float | None
) -> tuple[NDArray[np.float64] | None, bool]:
    """Return the positions with the distance of copies in each object as unit, shape (m, 2); and whether on a grid.

    NaN where unknown: no position, or the same one for all points of an object. None if there are no copies. On a grid
    means that most objects have positions on one coarser than `_COPIES_SHARE_OF_EXTENT` of their extent.
    """
    known = np.isfinite(coordinates[:, 0]) & np.isfinite(coordinates[:, 1])
    places, some = coordinates.astype(np.float64), sizes > 0
    places[~known] = np.nan
    first, extent = (np.cumsum(sizes, dtype=np.int64) - sizes)[some], np.zeros(len(sizes))
    if len(first):
        low, high = (end.reduceat(places, first, axis=0) for end in (np.fmin, np.fmax))
        extent[some] = np.nan_to_num((high - low).max(axis=1))  # of an object without any position it is none
    coarse = cell[extent > 0] > _COPIES_SHARE_OF_EXTENT * extent[extent > 0]
    apart = extent * copies if copies is not None else np.maximum(_COPIES_SHARE_OF_EXTENT * extent, _DIAGONAL * cell)
    places /= np.repeat(np.where(apart > 0, apart, np.nan), sizes)[:, None]
    return None if copies == 0 else places, bool(2 * np.count_nonzero(coarse) > len(coarse))
