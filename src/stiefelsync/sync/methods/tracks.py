"""Tracks by constrained merging: the method for universes too large for a matrix U."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.neighbour_support import neighbour_support
from stiefelsync.sync.method import Callback, Outcome, Progress, Stopwatch, register
from stiefelsync.sync.tracks.grow import grow_tracks

__all__ = ["tracks"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LEAST_SHARE = 1e-9
_SMOOTH = 0.25  # share of matches with a support of ½ or more


@register(
    "tracks",
    summary="merges points along matches, strongest evidence first, never two points of an object",
    consistent=True,
    cost="O(Σ deg² + (m + M) log m), memory O(m + M)",
    reference="this package",
    choose="thousands of universe points or more, as in structure from motion",
    sized=False,
)
def tracks(
    matchings: Matchings,
    universe: int,
    /,
    *,
    start: Ints | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
    neighbours: int = 8,
    copies: float = 0.001,
) -> Outcome:
    """Weigh matches by their neighbours where positions are known, then grow tracks along them.

    A match that moves with none of its nearest matches (``neighbour_support``) counts for nothing, any other by its
    support. This finds the wrong matches that close no cycle. Where motion is not smooth, so that less than a quarter
    of the matches have a support of ½, positions say nothing and all count alike. The same holds between objects with
    no more matches than neighbours are asked.

    A point found twice has its matches shared out among the two copies, and a track can hold only one of them. Tracks
    that meet in such copies are joined rather than cut (:func:`~stiefelsync.sync.tracks.join.join`).

    Parameters
    ----------
    start : (m,) int, optional
        Labels to go on from, -1 = unknown: clusters to begin with, where matches hold them together.
    neighbours
        How many of the nearest matches to ask; 0 asks none.
    copies
        Two points of an object closer than this, as a share of the extent of its points, are one point found twice; 0
        for none.

    Notes
    -----
    The universe has as many points as tracks are found; the size asked for is not used. ``details["matches"]`` of the
    outcome counts the matches without support that are not kept under ``"unsupported"``, all others as `grow_tracks`
    does.

    Examples
    --------
    >>> from stiefelsync import datasets, score, synchronise
    >>> problem, truth = datasets.scene(1000, 40, 250, 500, wrong=0.1, missing=0.3, rng=0)
    >>> score(synchronise(problem, 1000, method="tracks").labels, truth).fscore > 0.98
    True
    """
    if neighbours < 0:
        raise InputError(f"the number of neighbours is {neighbours}; it must be 0 (positions do not count) or more")
    if copies and not _LEAST_SHARE <= copies < np.inf:
        raise InputError(
            f"the distance of copies is {copies}; it must be 0 (none) or a share of the extent, {_LEAST_SHARE} or more"
        )
    watch, weighed, alone = Stopwatch(), matchings, np.zeros(matchings.n_matches, dtype=bool)
    if neighbours and matchings.coordinates is not None:
        with watch("neighbours"):
            weighed, alone, callback = _weigh(matchings, neighbours, callback)
    places = None
    if copies and matchings.coordinates is not None:
        places = _places(matchings.coordinates, matchings.offsets) / copies
    outcome = grow_tracks(weighed, start=start, places=places, callback=callback)
    timings = watch.seconds | dict(outcome.timings)
    return replace(outcome, timings=timings, details=_account(outcome, matchings, alone))


def _weigh(
    matchings: Matchings, neighbours: int, callback: Callback | None
) -> tuple[Matchings, Bools, Callback | None]:
    """Return the matches with support, weighed by it, which are without, and a callback that remembers to stop.

    Where nothing is known a match has the mean support of the others.
    """
    stopped = False

    def report(done: int, total: int) -> bool:
        nonlocal stopped
        stopped = stopped or (callback is not None and bool(callback(Progress("neighbours", done, total))))
        return stopped

    support = neighbour_support(matchings, neighbours, progress=report)
    if stopped:
        return matchings, np.zeros(matchings.n_matches, dtype=bool), lambda _: True
    known = np.isfinite(support)
    alone = support == 0
    if not known.any() or np.mean(support[known] >= 0.5) < _SMOOTH:
        return matchings, np.zeros(matchings.n_matches, dtype=bool), callback
    support[~known] = support[known].mean()
    weights = np.maximum(matchings.match_weights * support, np.finfo(np.float64).tiny)
    return matchings.keep(~alone).with_weights(weights[~alone]), alone, callback


def _account(outcome: Outcome, matchings: Matchings, alone: Bools) -> dict[str, Any]:
    """Return the details with the matches without support counted among the others.

    Those that agree with the tracks all the same are kept.
    """
    agree = int(matchings.agreeing(cast(Ints, outcome.labels))[alone].sum())
    matches = dict(outcome.details["matches"])
    matches["kept"] += agree
    matches["unsupported"] = int(alone.sum()) - agree
    wrong = (matches["removed"] + matches["unsupported"]) / max(matchings.n_matches, 1)
    return {**outcome.details, "matches": matches, "wrong": wrong}


def _places(coordinates: NDArray[np.floating[Any]], offsets: Ints) -> NDArray[np.float64]:
    """Return the positions with the extent of each object's points as unit; shape (m, 2).

    Not a number where nothing is known: no position, or the same one for all points of an object.
    """
    places = np.where(np.isfinite(coordinates), coordinates, np.nan).astype(np.float64)
    for first, last in pairwise(offsets):
        some = places[first:last]
        known = some[np.isfinite(some).all(axis=1)]
        some /= (np.ptp(known, axis=0).max() if len(known) else 0.0) or np.nan
    return places
