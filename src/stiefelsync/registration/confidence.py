"""How probably every place in a table of cells is right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from stiefelsync.registration.candidates import Candidates

__all__ = ["Trust", "confidences"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Coefficients of the log-odds that a place is right, fitted once on simulated sessions of three difficulties, of 4, 7
# and 12 days and 150 and 280 cells (`benchmarks/sessions.py --fit`, seeds 300 to 311; no other seeds are among them).
# Probabilities of the pairs of a place are not independent: a bad footprint is bad in all of them. So their log-odds
# are averaged, not added, and what they say grows with the logarithm of their number only.
LOG_ODDS = {
    "constant": -0.059,
    "mean log-odds": 0.731,
    "mean log-odds × log others": 0.195,
    "log others": -0.209,
    "mean probability": -0.736,
    "best outside": -1.752,
    "log share alone": -0.677,
    "log-odds of all tracks": -0.211,
    "share of sessions": 3.226,
    "only two": -1.721,
}
MOST = 4.0  # log-odds of a pair beyond this say no more


class Trust(NamedTuple):
    """Probabilities of being right.

    Attributes
    ----------
    places : (m,)
        For every point that it belongs where it was put; NaN for one that was put nowhere.
    tracks : (T,)
        For every label the mean over its places: the share of them expected to be right; NaN where it has fewer than
        two.
    """

    places: Floats
    tracks: Floats


def confidences(candidates: Candidates, labels: Ints) -> Trust:
    """Return how probably every place is right, from the probabilities of its pairs.

    A place is right if it is the same cell as most of its track, and at least one other place of it is, too.

    Parameters
    ----------
    labels : (m,) int
        Track of every point, -1 for none.

    Notes
    -----
    O(m + candidates). The log-odds are linear in the mean log-odds of the pairs with the other places of the track, in
    their number, in the most probable pair outside, in the share of sessions in which the track has a place, and in
    how sure the whole table is. On simulated sessions that it was not fitted to, it keeps what it promises within .05
    in every tenth (`benchmarks/sessions.py`).

    Examples
    --------
    >>> found = Candidates(np.array([1, 1, 1]), np.array([[0, 1], [0, 2], [1, 2]]), np.full(3, 0.99), ("a", "b", "c"))
    >>> bool((confidences(found, np.array([0, 0, 0])).places > 0.9).all())
    True
    """
    labels = np.asarray(labels, dtype=np.int64)
    m, k = len(labels), len(candidates.sizes)
    n_tracks = int(labels.max(initial=-1)) + 1
    at = np.maximum(labels, 0)
    held = np.bincount(labels[labels >= 0], minlength=max(n_tracks, 1))
    size = np.where(labels >= 0, held[at], 1)
    placed = (labels >= 0) & (size > 1)
    if not placed.any():
        return Trust(np.full(m, np.nan), np.full(n_tracks, np.nan))
    others = np.maximum(size - 1, 1)
    (a, b), p = candidates.ends.T, candidates.p
    inside = (labels[a] == labels[b]) & (labels[a] >= 0)

    def gathered(values: Floats) -> Floats:
        one, other = (np.bincount(end[inside], values[inside], m) for end in (a, b))
        return np.asarray(one + other, dtype=np.float64)

    log_odds = np.clip(special.logit(np.clip(p, 1e-6, 1 - 1e-6)), -MOST, MOST)
    mean_p = gathered(p) / others
    # Pairs that are no candidates at all speak against the place as strongly as any.
    absent = others - gathered(np.ones(len(p)))
    mean = (gathered(log_odds) - MOST * np.where(placed, absent, 0)) / others
    outside = np.zeros(m)
    np.maximum.at(outside, a[~inside], p[~inside])
    np.maximum.at(outside, b[~inside], p[~inside])
    sure = special.logit(np.clip(mean_p[placed].mean(), 0.01, 0.99))
    terms = {
        "constant": np.ones(m),
        "mean log-odds": mean,
        "mean log-odds × log others": mean * np.log(others),
        "log others": np.log(others),
        "mean probability": mean_p,
        "best outside": outside,
        "log share alone": np.full(m, np.log(np.mean(size == 1) + 0.02)),
        "log-odds of all tracks": np.full(m, sure),
        "share of sessions": size / k,
        "only two": (others == 1).astype(np.float64),
    }
    total = sum(LOG_ODDS[name] * value for name, value in terms.items())
    places = np.where(placed, special.expit(total), np.nan)
    tracks = np.bincount(at[placed], places[placed], max(n_tracks, 1)) / np.maximum(held, 1)
    return Trust(places, np.where(held > 1, tracks, np.nan)[:n_tracks])
