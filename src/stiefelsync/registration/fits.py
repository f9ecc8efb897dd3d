"""How well points fit tracks, by the best of their pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from stiefelsync.registration.candidates import Candidates

__all__ = ["LEAST_ODDS", "Fits", "fits"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_ODDS = -7.6  # log-odds of pairs that are no candidates; none are beyond this


class Fits(NamedTuple):
    """Points and tracks with a candidate between them.

    Attributes
    ----------
    point, track : (n,) int
    fit : (n,)
        Mean log-odds of the best third of the pairs of the point with the track.
    """

    point: Ints
    track: Ints
    fit: Floats


def fits(candidates: Candidates, labels: Ints) -> Fits:
    """Return how well points fit their own track, and points alone the tracks near them.

    The best third of the pairs counts, for a point that takes or has one of the places of the track. The other pairs
    say less: who was badly detected on one day has improbable pairs with everybody, the right one included.

    Notes
    -----
    O(n log n) for n candidates.

    Examples
    --------
    >>> ends = np.array([[0, 1], [0, 3], [1, 3], [0, 2]])
    >>> found = Candidates(np.array([1, 2, 1]), ends, np.array([0.5, 0.9, 0.5, 0.9]), ("a", "b", "c"))
    >>> of = fits(found, np.array([0, 0, -1, 0]))
    >>> of.point.tolist(), of.fit.round(1).tolist()
    ([0, 1, 2, 3], [2.2, 0.0, 2.2, 2.2])
    """
    (a, b), odds = candidates.ends.T, special.logit(np.clip(candidates.p, 1e-9, 1 - 1e-9))
    odds = np.clip(odds, LEAST_ODDS, -LEAST_ODDS)
    point, track, odds = np.concatenate([a, b]), np.concatenate([labels[b], labels[a]]), np.concatenate([odds, odds])
    inside = (track >= 0) & ((labels[point] == track) | (labels[point] < 0))
    point, track, odds = point[inside], track[inside], odds[inside]
    order = np.lexsort((-odds, track, point))
    point, track, odds = point[order], track[order], odds[order]
    # One group for every point and track, its best pairs first.
    new = np.concatenate([[True], (np.diff(point) != 0) | (np.diff(track) != 0)])[: len(point)]
    begins, group = np.flatnonzero(new), np.cumsum(new) - 1
    counted = np.maximum((np.bincount(labels[labels >= 0], minlength=1)[track[begins]] + 1) // 3, 1)
    best = np.arange(len(point)) - begins[group] < counted[group]
    missing = counted - np.bincount(group, best, len(begins))
    total = np.bincount(group, odds * best, len(begins)) + missing * LEAST_ODDS
    return Fits(point[begins], track[begins], total / counted)
