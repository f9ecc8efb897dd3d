"""Which pairs of objects are of the same thing.

What others think of them, and what third objects make of that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from stiefelsync.errors import InputError
from stiefelsync.matching._canonical import as_reals
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import triplet_cycles

__all__ = ["pair_odds"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_TRIPLETS = 2_000_000  # of objects that are looked at; beyond, a random sample of them
_CERTAIN = 5.0  # log-odds that a triplet with that many cycles can be trusted with
_LEAN = 0.1  # log-odds in favour of pairs nobody has an opinion on
_TWICE = 0.5  # odds of a third bad pair after two
# Of messages, the share of them in which they grow, and their sum at first.
_ROUNDS, _GROWING, _FIRST = 60, 0.7, 2.0
_LEAST_CHANGE = 1e-3  # of any log-odds, at which messages have settled
_CALIBRATIONS = 5
_SHRINKAGE = 4.0  # pairs that speak for the odds as they are given
_SURE = 30.0  # log-odds that count as certain


def pair_odds(matchings: Matchings, prior: ArrayLike, *, rng: np.random.Generator | int | None = 0) -> Floats:
    """Return the log-odds that matches of every pair of objects are of the same thing.

    A prior on pairs is given.

    Things that look alike, such as the two ends of a building, give matches that are wrong and
    contradict nothing: a way over two wrong pairs and a right one closes. Only one wrong pair among
    three shows, since then cycles break. So every triplet of compared objects has a factor. Where
    its cycles close, exactly one bad pair is as good as impossible, and three are half as likely as
    two of them; where they break, it is impossible that none is bad. Impossible means ``exp(−5)``,
    or less strictly with fewer than five cycles, or such as disagree.

    Beliefs of pairs begin at the prior and follow messages between triplets and pairs (loopy belief
    propagation). These grow from little to their full strength, so that many weak opinions decide
    before any of them is certain. A prior that is too sure, too unsure or leans to one side is
    corrected in turn: ``a + b·prior`` is fitted to the beliefs by logistic regression, shrunk to
    the prior.

    Parameters
    ----------
    prior : (P,) float
        Log-odds of each pair of ``matchings.pair_objects``, as a network that compares images or a
        retrieval system has them; 0 where nothing is known. Without any opinion pairs are good
        unless cycles break: cycles alone do not tell look-alikes apart.
    rng
        For the triplets of very many objects, which are sampled.

    Notes
    -----
    O(T) for each of some hundred rounds over T ≤ 2,000,000 triplets, and the cost of counting their
    cycles.

    Examples
    --------
    Objects 0 and 1 show one thing and 2 and 3 its twin; all match with all. The opinion on one pair
    is mistaken.

    >>> from itertools import combinations
    >>> every = np.stack([np.arange(6)] * 2, axis=1)
    >>> problem = Matchings.from_pairs({pair: every for pair in combinations(range(4), 2)}, [6] * 4)
    >>> pair_odds(problem, [2.0, 0.5, -2.0, -2.0, -2.0, 2.0]) > 0
    array([ True, False, False, False, False,  True])
    """
    given = as_reals(prior, "the prior")
    P = len(matchings.pair_objects)
    if given.shape != (P,) or not np.isfinite(given).all():
        raise InputError(f"the prior holds one finite number per pair, shape ({P},); got shape {given.shape}")
    triplets, closed, broken = triplet_cycles(matchings, _MOST_TRIPLETS, rng=rng)
    if not len(triplets):
        return given.copy()
    pairs = _pair_numbers(matchings, triplets)
    # By how much a triplet is trusted: +5 where five cycles or more close, −5 where they break.
    count = (closed + broken) / 3
    trust = np.minimum(count, _CERTAIN) * (2 * closed / np.maximum(closed + broken, 1) - 1)
    level, slope = 0.0, 1.0
    for _ in range(_CALIBRATIONS):
        belief = _believe(_LEAN + level + slope * given, pairs, trust)
        before = level, slope
        level, slope = _calibrate(given, belief)
        if abs(level - before[0]) + abs(slope - before[1]) < _LEAST_CHANGE:
            break
    return belief


def _pair_numbers(matchings: Matchings, triplets: Ints) -> Ints:
    """Return the pairs (i, j), (i, l), (j, l) of triplets i < j < l by their numbers, (T, 3)."""
    first, second = matchings.pair_objects.astype(np.int64).T
    k = matchings.n_objects
    i, j, l = triplets.T
    return np.stack([np.searchsorted(first * k + second, a * k + b) for a, b in ((i, j), (i, l), (j, l))], axis=1)


def _believe(prior: Floats, pairs: Ints, trust: Floats) -> Floats:
    """Return the log-odds of pairs, (P,), after messages from triplets of pairs, (T, 3).

    How far these are trusted is given, (T,).
    """
    # How likely no, one, and three bad pairs are, two being the measure. No bad pair and three are
    # together as likely as the ways of having two that differ by one pair: so a triplet that closes
    # says nothing to who knows nothing.
    closes = np.clip(trust / _CERTAIN, 0, 1)
    none = np.where(trust > 0, (1 + _TWICE) ** closes, np.exp(np.minimum(trust, 0)))
    one, three = np.exp(np.minimum(-trust, 0)), _TWICE**closes
    degree = np.bincount(pairs.ravel(), minlength=len(prior))
    faint = np.minimum(1, _FIRST / np.maximum(degree, 1))[pairs]
    messages, belief = np.zeros(pairs.shape), prior
    for turn in range(_ROUNDS):
        # Of every pair what all say but the triplet itself.
        good = expit(np.clip(belief[pairs] - messages, -_SURE, _SURE))
        new = np.empty_like(messages)
        for at, (u, v) in enumerate(((1, 2), (0, 2), (0, 1))):
            both = good[:, u] * good[:, v]
            neither = (1 - good[:, u]) * (1 - good[:, v])
            either = 1 - both - neither
            new[:, at] = np.log((both * none + either * one + neither) / (both * one + either + neither * three))
        strength = min(1.0, (turn + 1) / (_GROWING * _ROUNDS))
        messages += (new * (faint + strength * (1 - faint)) - messages) / 2
        before, belief = belief, prior + np.bincount(pairs.ravel(), messages.ravel(), len(prior))
        if strength == 1 and np.abs(belief - before).max() < _LEAST_CHANGE:
            break
    return belief


def _calibrate(given: Floats, belief: Floats) -> tuple[float, float]:
    """Return a and b ≥ 0 with which a + b·given is likeliest, shrunk to 0 and 1."""
    target, x = expit(np.clip(belief, -_SURE, _SURE)), np.array([0.0, 1.0])
    for _ in range(30):  # Newton's steps
        p = expit(x[0] + x[1] * given)
        w = p * (1 - p)
        slope = np.array([(target - p).sum() - _SHRINKAGE * x[0] / 4, ((target - p) @ given) - _SHRINKAGE * (x[1] - 1)])
        curve = np.array([[w.sum() + _SHRINKAGE / 4, w @ given], [w @ given, w @ given**2 + _SHRINKAGE]])
        step = np.linalg.solve(curve, slope)
        x = np.array([x[0] + step[0], max(x[1] + step[1], 0.0)])
        if np.abs(step).max() < _LEAST_CHANGE:
            break
    return float(x[0]), float(x[1])
