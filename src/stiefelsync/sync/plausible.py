"""Labellings that explain the matches about as well as an answer does: what else may be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from stiefelsync.matching.graph import numbered
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.confidence import witnesses
from stiefelsync.sync.result import Synchronisation

__all__ = ["Plausible", "around", "plausible", "stay_probability"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DRAWS = 60
_ROUNDS = 50
_LEAST_RATE = 0.005


@dataclass(frozen=True, eq=False)
class Plausible:
    """Labellings that may be true.

    Attributes
    ----------
    labels
        Arrays (m,), every point with a label; one that is alone has its own.
    weight : (S,)
        How plausible each of them is.
    basis
        Where they come from, in a phrase.
    """

    labels: Sequence[Ints]
    weight: NDArray[np.float64]
    basis: str


def plausible(ours: Synchronisation, *, rng: np.random.Generator, draws: int = DRAWS) -> Plausible:
    """Draw labellings that explain the matches of a problem about as well as our answer to it.

    Examples
    --------
    >>> from stiefelsync import datasets, synchronise
    >>> problem, truth = datasets.synthetic(8, 6, observed=1.0, error=0.1, rng=0)
    >>> len(plausible(synchronise(problem, 8), rng=np.random.default_rng(0)).labels)
    60
    """
    sure = stay_probability(ours.input, ours.labels)
    return around(ours.labels, sure, "the votes of every point's matches for its track in our answer", rng, draws)


def around(labels: Ints, sure: Floats, basis: str, rng: np.random.Generator, draws: int = DRAWS) -> Plausible:
    """Draw labellings in which every point stays in its track with some probability, or else is alone.

    Parameters
    ----------
    labels : (m,) int64
        -1 for points in no track.
    sure : (m,)
        The probabilities.
    basis
        Where they come from, in a phrase.

    Examples
    --------
    >>> labels = np.array([0, 0, 1])
    >>> around(labels, np.ones(3), "faith", np.random.default_rng(0), 1).labels[0].tolist()
    [0, 0, 1]
    """
    apart = labels.max(initial=-1) + 1 + np.arange(len(labels))
    taken = [numbered(np.where(rng.random(len(labels)) < sure, labels, apart)) for _ in range(draws)]
    return Plausible(taken, np.ones(draws), basis)


def stay_probability(matchings: Matchings, labels: Ints) -> Floats:
    """Return for every point the probability that it belongs to its track, 0 for one in none; shape (m,).

    Of n members of its track whose objects were compared with its own, s are matched with it.
    Points that belong there and points that do not are a mixture of two binomials, which is fitted.

    Notes
    -----
    O(m + M) for each of the rounds.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 0, 0, 0], [1, 1, 1, 1])
    >>> stay_probability(problem, np.zeros(4, dtype=np.int64)).round(1).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    ends = matchings.endpoints[matchings.agreeing(labels)]
    votes = np.bincount(ends.ravel(), minlength=len(labels)).astype(np.float64)
    members = np.flatnonzero(labels >= 0)
    asked = np.zeros(len(labels))
    # Points in no track are tracks of their own.
    apart = np.where(labels < 0, labels.max(initial=-1) + 1 + np.arange(len(labels)), labels)
    asked[members] = witnesses(matchings, apart, members, labels[members])
    s, n = votes[members], asked[members]
    # Begin with half of the votes missing among those who do not belong, and every tenth point one
    # of them.
    held = float(np.clip(s.sum() / max(n.sum(), 1), _LEAST_RATE, 1 - _LEAST_RATE))
    stray, share, right = held / 2, 0.9, np.ones(len(s))
    for _ in range(_ROUNDS):
        odds = np.log(share / (1 - share)) + s * np.log(held / stray) + (n - s) * np.log((1 - held) / (1 - stray))
        right = expit(odds)
        share = float(np.clip((right.sum() + 9) / (len(right) + 10), _LEAST_RATE, 1 - _LEAST_RATE))
        held, stray = (
            float(np.clip((w @ s + 1) / (w @ n + 2), _LEAST_RATE, 1 - _LEAST_RATE)) for w in (right, 1 - right)
        )
        stray = min(stray, held / 2)
    found = np.zeros(len(labels))
    found[members] = right
    return found
