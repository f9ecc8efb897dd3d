"""Tracks by constrained merging: the method for universes too large for a matrix U."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.neighbours import neighbour_support
from stiefelsync.sync.large import solve_large
from stiefelsync.sync.registry import Callback, Outcome, Progress, Stopwatch, register

__all__ = ["tracks"]


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
    rng: np.random.Generator,
    callback: Callback | None = None,
    neighbours: int = 8,
    copies: float = 0.001,
) -> Outcome:
    """Weigh matches by their neighbours, where positions are known; then :func:`~stiefelsync.sync.large.solve_large`.

    A match that moves with none of its nearest matches (:func:`~stiefelsync.matching.neighbours.neighbour_support`)
    counts for nothing, any other by its support. This finds the wrong matches that close no cycle. Where motion is not
    smooth, so that less than a quarter of the matches have a support of ½, positions say nothing and all count alike.

    A point found twice has its matches shared out among the two copies, and a track can hold only one of them. Tracks
    that meet in such copies are joined rather than cut (:func:`~stiefelsync.sync.large_join.join`).

    Parameters
    ----------
    neighbours
        How many of the nearest matches to ask; 0 asks none.
    copies
        Two points of an object closer than this, as a share of the extent of its points, are one point found twice; 0
        for none.

    Notes
    -----
    The universe has as many points as tracks are found; the size asked for is not used. ``details["matches"]`` of the
    outcome counts the matches without support under ``"unsupported"``, all others as `solve_large` does.

    Examples
    --------
    >>> from stiefelsync import datasets, score, synchronise
    >>> problem, truth = datasets.scene(1000, 40, 250, 500, wrong=0.1, missing=0.3, rng=0)
    >>> score(synchronise(problem, 1000, method="tracks").labels, truth).fscore > 0.98
    True
    """
    if neighbours < 0:
        raise InputError(f"the number of neighbours is {neighbours}; it must be 0 (positions do not count) or more")
    if not 0 <= copies < np.inf:
        raise InputError(f"the distance of copies is {copies}; it must be a share of the extent, 0 (none) or more")
    watch, supported = Stopwatch(), matchings
    if neighbours and matchings.coordinates is not None:
        with watch("neighbours"):
            supported = _supported(matchings, neighbours, callback)
    places = _places(matchings) / copies if copies and matchings.coordinates is not None else None
    outcome = solve_large(supported, places=places, callback=callback)
    matches = outcome.details["matches"] | {"unsupported": matchings.n_matches - supported.n_matches}
    return replace(
        outcome, timings=watch.seconds | dict(outcome.timings), details={**outcome.details, "matches": matches}
    )


def _supported(matchings: Matchings, neighbours: int, callback: Callback | None) -> Matchings:
    """Return the matches with support, weighed by it, or all as they are where positions say nothing."""
    report = None if callback is None else lambda done, total: callback(Progress("neighbours", done, total))
    support = neighbour_support(matchings, neighbours, progress=report)
    if 4 * np.count_nonzero(support >= 0.5) < matchings.n_matches:
        return matchings
    kept = matchings.keep(support > 0)
    return kept.with_weights(kept.match_weights * support[support > 0])


def _places(matchings: Matchings) -> NDArray[np.float64]:
    """Return the positions with the extent of each object's points as unit; shape (m, 2).

    Not a number where nothing is known: no position, or the same one for all points of an object.
    """
    places = np.array(matchings.coordinates, dtype=np.float64)
    for first, last in pairwise(matchings.offsets):
        some = places[first:last]
        known = some[np.isfinite(some).all(axis=1)]
        some /= (np.ptp(known, axis=0).max() if len(known) else 0.0) or np.nan
    return places
