"""How probably every place in a table of cells is right."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from stiefelsync._border import typed
from stiefelsync.matching._canonical import as_labels
from stiefelsync.registration.candidates import Candidates
from stiefelsync.registration.fits import LEAST_ODDS, fits

__all__ = ["Evidence", "Kind", "Trust", "confidences", "evidence"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["cells", "units"]

# Coefficients of the log-odds that a place is right, fitted once on simulated days and recordings
# (`python -m benchmarks.place_confidence --fit`, seeds 300 to 311 and 400 to 410 only). Probabilities of the
# pairs of a place are not independent: a bad footprint is bad in all of them. So their log-odds are averaged, not
# added, and what they say grows with the logarithm of their number only.
LOG_ODDS: dict[Kind, dict[str, float]] = {
    "cells": {
        "constant": 1.854,
        "mean log-odds": 0.26,
        "mean log-odds squared": 0.043,
        "mean log-odds × log others": 0.243,
        "log others": 0.571,
        "mean probability": 0.08,
        "best third": 0.15,
        "best log-odds": 0.193,
        "best outside": -1.324,
        "best outside × mean log-odds": -0.217,
        "best outside × best third": 0.012,
        "log share alone": -0.157,
        "log-odds of all tracks": 0.211,
        "share of sessions": 0.177,
        "log sessions": -1.02,
        "only two": -0.79,
    },
    "units": {
        "constant": 4.294,
        "mean log-odds": 0.456,
        "mean log-odds squared": 0.041,
        "mean log-odds × log others": 0.132,
        "log others": 0.105,
        "mean probability": 1.628,
        "best third": -0.126,
        "best log-odds": 0.022,
        "best outside": -3.255,
        "best outside × mean log-odds": -0.069,
        "best outside × best third": -0.148,
        "log share alone": -0.145,
        "log-odds of all tracks": 0.322,
        "share of sessions": -3.102,
        "log sessions": 0.155,
        "only two": -0.961,
    },
}
MOST = 4.0  # log-odds of a pair beyond this say no more, but for the best pair of a place
MOST_OF_BEST = 7.0


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


class Evidence(NamedTuple):
    """What the probabilities of all pairs say about the places of an answer.

    Attributes
    ----------
    placed : (m,) bool
        Whether a point shares its track with others.
    terms : dict of str to (m,)
        Figures, under the names of `LOG_ODDS`.
    """

    placed: NDArray[np.bool_]
    terms: dict[str, Floats]


@typed
def confidences(candidates: Candidates, labels: Ints, *, kind: Kind = "cells") -> Trust:
    """Return how probably every place is right, from the probabilities of its pairs.

    A place is right if it is the same cell as most of its track, and at least one other place of it is, too.

    Parameters
    ----------
    labels : (m,) int
        Track of every point, -1 for none.
    kind : {"cells", "units"}
        Whose coefficients to use.

    Notes
    -----
    O(m + n log n) for n candidates. The log-odds are linear in the mean log-odds of the pairs with the other places of
    the track, in the best third of these pairs and the best of them, in their number, in the most probable pair
    outside, in the share of sessions in which the track has a place, in the number of sessions, and in how sure the
    whole table is, and in some products of these. How well this keeps what it promises on simulated days that it was
    not fitted to, `python -m benchmarks.place_confidence` tells.

    Examples
    --------
    >>> found = Candidates(np.array([1, 1, 1]), np.array([[0, 1], [0, 2], [1, 2]]), np.full(3, 0.99), ("a", "b", "c"))
    >>> bool((confidences(found, np.array([0, 0, 0])).places > 0.9).all())
    True
    """
    labels = as_labels(labels, int(np.sum(candidates.sizes)))
    n_tracks = int(labels.max(initial=-1)) + 1
    placed, terms = evidence(candidates, labels)
    if not placed.any():
        return Trust(np.full(len(labels), np.nan), np.full(n_tracks, np.nan))
    total = sum(weight * terms[name] for name, weight in LOG_ODDS[kind].items())
    places = np.where(placed, special.expit(total), np.nan)
    held = np.bincount(labels[placed], minlength=n_tracks)
    sums = np.bincount(labels[placed], places[placed], n_tracks)
    tracks = np.divide(sums, held, out=np.full(n_tracks, np.nan), where=held > 0)
    return Trust(places, tracks)


def evidence(candidates: Candidates, labels: Ints) -> Evidence:
    """Return what speaks for and against every place of an answer.

    Examples
    --------
    >>> found = Candidates(np.array([1, 1, 1]), np.array([[0, 1], [1, 2]]), np.full(2, 0.9), ("a", "b", "c"))
    >>> evidence(found, np.array([0, 0, -1])).terms["best outside"].tolist()
    [0.0, 0.9, 0.9]
    """
    m, k = len(labels), len(candidates.sizes)
    at = np.maximum(labels, 0)
    held = np.bincount(labels[labels >= 0], minlength=1)
    size = np.where(labels >= 0, held[at], 1)
    placed = (labels >= 0) & (size > 1)
    others = np.maximum(size - 1, 1)
    (a, b), p = candidates.ends.T, candidates.p
    inside = (labels[a] == labels[b]) & (labels[a] >= 0)

    def gathered(values: Floats) -> Floats:
        one, other = (np.bincount(end[inside], values[inside], m) for end in (a, b))
        return np.asarray(one + other, dtype=np.float64)

    def largest(values: Floats, of: NDArray[np.bool_], least: float) -> Floats:
        most = np.full(m, least)
        np.maximum.at(most, a[of], values[of])
        np.maximum.at(most, b[of], values[of])
        return most

    log_odds = special.logit(np.clip(p, 1e-6, 1 - 1e-6))
    mean_p = gathered(p) / others
    # Pairs that are no candidates at all speak against the place as strongly as any.
    absent = others - gathered(np.ones(len(p)))
    mean = (gathered(np.clip(log_odds, -MOST, MOST)) - MOST * np.where(placed, absent, 0)) / others
    sure = special.logit(np.clip(mean_p[placed].mean() if placed.any() else 0.5, 0.01, 0.99))
    outside = largest(p, ~inside, 0.0)
    third = np.full(m, LEAST_ODDS)
    found = fits(candidates, labels)
    own = labels[found.point] == found.track
    third[found.point[own]] = found.fit[own]
    terms = {
        "constant": np.ones(m),
        "mean log-odds": mean,
        "mean log-odds squared": mean**2,
        "mean log-odds × log others": mean * np.log(others),
        "log others": np.log(others),
        "mean probability": mean_p,
        "best third": third,
        "best log-odds": largest(np.clip(log_odds, -MOST, MOST_OF_BEST), inside, -MOST),
        "best outside": outside,
        "best outside × mean log-odds": outside * mean,
        "best outside × best third": outside * third,
        "log share alone": np.full(m, np.log(np.mean(size == 1) + 0.02) if m else 0.0),
        "log-odds of all tracks": np.full(m, sure),
        "share of sessions": size / k,
        "log sessions": np.full(m, np.log(k)),
        "only two": (others == 1).astype(np.float64),
    }
    return Evidence(placed, terms)
