"""Probabilities of pairs corrected by what a consistent answer makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from stiefelsync._border import typed
from stiefelsync.matching._canonical import as_labels
from stiefelsync.registration.candidates import Candidates

__all__ = ["recalibrated"]

Floats = NDArray[np.float64]

FEWEST_OBJECTS = 3  # fewer have no cycles: an answer would confirm whatever it was made from
FEWEST_PAIRS = 100
BINS, IN_BIN = 40, 25  # at most so many bins, of at least so many pairs
EDGE = 5e-4  # no pair is surer than this


@typed
def recalibrated(candidates: Candidates, labels: NDArray[np.int64], *, by_distance: bool = False) -> Candidates:
    """Return candidates with the probability that pairs as probable as they are joined by an answer.

    The probabilities of a mixture of similarities, or of another program, are often too high or too low as a whole: the
    two kinds overlap, or drift is not known. An answer that had to agree over many objects is right about most pairs,
    also about those whose own probability misleads. The share of pairs that it joins, made to rise with the
    probability, takes its place. Candidates of fewer than three objects, or fewer than 100, stay as they are.

    Parameters
    ----------
    labels : (m,) int
        The answer, -1 for a point alone.
    by_distance
        Whether pairs of neighbouring objects and those farther apart are corrected apart.

    Notes
    -----
    O(n log n) for n candidates. The order of probabilities stays, within a distance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.tile(rng.permutation(100), 3)
    >>> ends = np.concatenate([[(i, i + 100), (i, (i + 1) % 100 + 100), (i + 100, i + 200)] for i in range(100)])
    >>> p = np.where(labels[ends[:, 0]] == labels[ends[:, 1]], 0.6, 0.4)
    >>> found = recalibrated(Candidates(np.full(3, 100), ends, p, ("a", "b", "c")), labels)
    >>> found.p[:3].round(2).tolist()
    [0.98, 0.02, 0.98]
    """
    labels = as_labels(labels, int(np.sum(candidates.sizes)))
    if len(candidates.sizes) < FEWEST_OBJECTS:
        return candidates
    a, b = candidates.ends.T
    same = (labels[a] == labels[b]) & (labels[a] >= 0)
    first, second = candidates.objects[candidates.ends].T
    apart = second - first if by_distance else np.ones(len(a), dtype=np.int64)
    p = candidates.p.copy()
    for distance in np.unique(apart):
        inside = apart == distance
        if inside.sum() >= FEWEST_PAIRS:
            p[inside] = _share(candidates.p[inside], same[inside])
    return replace(candidates, p=p)


def _share(p: Floats, same: NDArray[np.bool_]) -> Floats:
    """Return the share of `same` among pairs about as probable, a function that never falls."""
    order = np.argsort(p, kind="stable")
    n = min(BINS, len(p) // IN_BIN)
    edges = np.linspace(0, len(p), n + 1).astype(np.int64)
    held = np.diff(edges)
    at = np.add.reduceat(p[order], edges[:-1]) / held
    # Half a pair of each kind more, so that no bin is certain.
    share = (np.add.reduceat(same[order].astype(np.float64), edges[:-1]) + 0.5) / (held + 1)
    # Bins of one probability, of which many pairs may be, are one.
    at, of = np.unique(at, return_inverse=True)
    weight = np.bincount(of, held)
    rising = optimize.isotonic_regression(np.bincount(of, share * held) / weight, weights=weight).x
    # Between bins log-odds are interpolated; beyond the outermost they go on in parallel, so that an order is left.
    x, known, value = (special.logit(np.clip(of, EDGE, 1 - EDGE)) for of in (p, at, rising))
    beyond = np.maximum(x - known[-1], 0) + np.minimum(x - known[0], 0)
    return np.asarray(np.clip(special.expit(np.interp(x, known, value) + beyond), EDGE, 1 - EDGE))
