"""Problems of the shapes that users have: sequences, windows of visibility, crowds, few large objects, a rogue.

Every generator returns the matchings and the true universe point of every point, as :func:`synthetic` does. Its noise,
unless it says otherwise, is *row*: in each compared pair every row is selected with probability `error` and the
selected rows are permuted at random, so that one side of every pair stays clean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stiefelsync.datasets._drawn import drawn
from stiefelsync.datasets.noise import LEAST_SEEN
from stiefelsync.datasets.synthetic import permute_selected, synthetic
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["crowd", "large", "networks", "ring", "rogue", "twins", "uneven", "video", "weighted", "window"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator | int | None
Problem = tuple[Matchings, Ints]

_RUN = 10  # video: objects of the first run, and the distance up to which blocks are right
_DECAY, _MAX_ERROR = 0.01, 0.4  # video: errors per step beyond that distance, at most so many …
_BETWEEN = 0.35  # … and between the two runs at least so many,
_CONFUSED = 0.55  # where a pair of look-alikes is swapped with this probability


@drawn
def ring(
    objects: int = 60, universe: int = 25, *, observed: float = 0.6, error: float = 0.3, reach: int = 5, rng: Rng = 0
) -> Problem:
    """Draw a closed sequence: every object sees any point with probability `observed`, only neighbours are compared.

    Parameters
    ----------
    objects, universe
        k and d.
    reach
        Object i is compared with i ± 1, …, i ± reach, modulo k.

    Examples
    --------
    >>> len(ring(rng=0)[0].pair_objects)
    300
    """
    rng = generator(rng)
    seen = _observe(np.full((objects, universe), observed), rng)
    return _row_noise(seen, _neighbours(objects, reach), error, rng)


@drawn
def window(
    objects: int = 60,
    universe: int = 240,
    *,
    width: int = 40,
    observed: float = 0.6,
    error: float = 0.4,
    reach: int = 5,
    rng: Rng = 0,
) -> Problem:
    """Draw a closed sequence whose objects see only a part of a ring of universe points.

    Object i sees each of the `width` points from ⌊i·d/k⌋ on with probability `observed`.

    Examples
    --------
    >>> window(rng=0)[0].n_objects
    60
    """
    rng = generator(rng)
    first = np.arange(objects) * universe // objects
    inside = (np.arange(universe) - first[:, None]) % universe < width
    seen = _observe(np.where(inside, observed, 0.0), rng)
    return _row_noise(seen, _neighbours(objects, reach), error, rng)


@drawn
def crowd(
    objects: int = 2000,
    universe: int = 30,
    *,
    least: int = 5,
    most: int = 15,
    partners: float = 50,
    error: float = 0.3,
    rng: Rng = 0,
) -> Problem:
    """Draw many small objects of `least` to `most` points, each compared with about `partners` others at random.

    Examples
    --------
    >>> crowd(100, rng=0)[0].n_objects
    100
    """
    rng = generator(rng)
    sizes = rng.integers(least, most + 1, objects)
    seen = rng.random((objects, universe)).argsort(axis=1).argsort(axis=1) < sizes[:, None]
    i, j = np.triu_indices(objects, 1)
    chosen = rng.random(len(i)) < partners / max(objects - 1, 1)
    return _row_noise(seen, np.stack([i, j], axis=1)[chosen], error, rng)


@drawn
def large(points: int = 2000, objects: int = 4, *, error: float = 0.3, rng: Rng = 0) -> Problem:
    """Draw few large objects: each sees `points` of 1.25 times as many universe points, drawn at random.

    Examples
    --------
    >>> large(200, rng=0)[0].sizes.tolist()
    [200, 200, 200, 200]
    """
    rng = generator(rng)
    seen = rng.random((objects, points * 5 // 4)).argsort(axis=1).argsort(axis=1) < points
    return _row_noise(seen, _all_pairs(objects), error, rng)


@drawn
def rogue(objects: int = 20, universe: int = 25, *, observed: float = 0.6, error: float = 0.3, rng: Rng = 0) -> Problem:
    """Draw a problem one of whose objects, drawn at random, has nothing but random matches.

    Examples
    --------
    >>> rogue(rng=0)[0].n_objects
    20
    """
    rng = generator(rng)
    seen = _observe(np.full((objects, universe), observed), rng)
    pairs = _all_pairs(objects)
    bad = (pairs == rng.integers(objects)).any(axis=1)
    return _row_noise(seen, pairs, np.where(bad, 1.0, error), rng)


@drawn
def twins(
    objects: int = 20,
    universe: int = 60,
    *,
    observed: float = 0.8,
    error: float = 0.3,
    share: float = 0.05,
    confused: float = 0.5,
    rng: Rng = 0,
) -> Problem:
    """Draw a problem where some points have a twin, another point, that they are confused with in some pairs.

    Parameters
    ----------
    share
        Share of the universe points that have a twin; a twin is one of the others.
    confused
        Probability that a compared pair of objects takes such a point for its twin and the twin for it.

    Examples
    --------
    >>> twins(rng=0)[0].n_objects
    20
    """
    rng = generator(rng)
    seen = _observe(np.full((objects, universe), observed), rng)
    n = round(share * universe)
    couples = rng.permutation(universe)[: 2 * n].reshape(2, n).T
    return _row_noise(seen, _all_pairs(objects), error, rng, couples=couples, confused=confused)


@drawn
def weighted(
    objects: int = 8, universe: int = 25, *, observed: float = 0.6, error: float = 0.6, rng: Rng = 0
) -> Problem:
    """Draw a problem whose weights know: Beta(5, 2) distributed for right matches, Beta(2, 5) for wrong ones.

    Examples
    --------
    >>> len(weighted(rng=0)[0].weights) > 0
    True
    """
    rng = generator(rng)
    matchings, truth = synthetic(universe, objects, observed, error, rng=rng)
    n = matchings.n_matches
    weights = np.where(matchings.agreeing(truth), rng.beta(5, 2, n), rng.beta(2, 5, n))
    return matchings.with_weights(weights), truth


@drawn
def uneven(objects: int = 30, universe: int = 25, *, of: str = "points", error: float = 0.6, rng: Rng = 0) -> Problem:
    """Draw a problem where half of the universe points, or half of the objects, are seen (or see) ninefold.

    Parameters
    ----------
    of : {"points", "objects"}
        What differs: every second universe point is seen by 90 %, the others by 10 % of the objects; or every second
        object sees 90 %, the others 10 % of the universe.

    Examples
    --------
    >>> uneven(of="objects", rng=0)[0].n_objects
    30
    """
    if of not in ("points", "objects"):
        raise InputError(f'of must be "points" or "objects", got {of!r}')
    rng = generator(rng)
    n = universe if of == "points" else objects
    rate = np.where(np.arange(n) % 2 == 0, 0.9, 0.1)
    chance = np.broadcast_to(rate if of == "points" else rate[:, None], (objects, universe))
    return _row_noise(_observe(chance, rng), _all_pairs(objects), error, rng)


@drawn
def networks(
    objects: int = 3,
    points: int = 64,
    *,
    stimuli: int = 24,
    noise: float = 0.855,
    weights: bool = True,
    rng: Rng = 0,
) -> Problem:
    """Draw networks with the same neurons in different orders, matched pair by pair from soft scores.

    A neuron's responses to the stimuli are normally distributed, and each network adds normal noise. The scores of a
    pair are the correlations of responses; its matches are their best assignment, a full permutation.

    Parameters
    ----------
    stimuli
        Responses per neuron.
    noise
        Standard deviation of the noise; that of the responses is 1. With the default a match is right in about 86 %.
    weights
        Whether the matches carry their scores as weights.

    Examples
    --------
    >>> networks(rng=0)[0].n_matches
    192
    """
    if stimuli < 2:
        raise InputError(f"neurons are compared by two responses or more, got stimuli={stimuli}")
    rng = generator(rng)
    truth = rng.permuted(np.tile(np.arange(points), (objects, 1)), axis=1)
    responses = rng.standard_normal((points, stimuli))[truth]
    responses += noise * rng.standard_normal(responses.shape)
    responses -= responses.mean(axis=2, keepdims=True)
    responses /= np.linalg.norm(responses, axis=2, keepdims=True)
    pairs, values = {}, {}
    for i, j in _all_pairs(objects).tolist():
        scores = responses[i] @ responses[j].T
        row, column = linear_sum_assignment(scores, maximize=True)
        pairs[i, j] = np.stack([row, column], axis=1)
        # Matchings want positive weights; the correlation of an assigned entry is rarely below zero.
        values[i, j] = np.maximum(scores[row, column], 1e-3)
    return Matchings.from_pairs(pairs, [points] * objects, weights=values if weights else None), truth.ravel()


@drawn
def video(objects: int = 101, universe: int = 30, *, look_alikes: int = 4, rng: Rng = 0) -> Problem:
    """Draw full permutations along a sequence of two runs, whose far blocks share their mistakes.

    The first ten objects are one run, the others the second. Blocks of objects at most ten apart are right. Beyond,
    rows are permuted at rate min(.01·(``|i − j|`` − 10), .4). Between the runs each pair of look-alike points is
    swapped first, with probability .55, and the rate is at least .35.

    Parameters
    ----------
    look_alikes
        Pairs of universe points that look alike.

    Examples
    --------
    >>> video(rng=0)[0]
    Matchings(101 objects, 3,030 points, 151,500 matches in 5,050 of 5,050 pairs)
    """
    rng = generator(rng)
    pairs = _all_pairs(objects)
    i, j = pairs.T
    far = j - i > _RUN
    between = far & (i < _RUN) & (j >= _RUN)
    error = np.where(far, np.minimum(_DECAY * (j - i - _RUN), _MAX_ERROR), 0.0)
    error = np.where(between, np.maximum(error, _BETWEEN), error)
    couples = rng.permutation(universe)[: 2 * look_alikes].reshape(2, -1).T
    seen = np.ones((objects, universe), dtype=bool)
    return _row_noise(seen, pairs, error, rng, couples=couples, confused=_CONFUSED * between)


def _observe(chance: Floats, rng: np.random.Generator) -> Bools:
    """Return who sees what, shape (k, d), drawing again for an object that sees nothing."""
    if not (chance.sum(axis=1) >= LEAST_SEEN).all():
        raise InputError(f"every object must be expected to see {LEAST_SEEN:g} points or more")
    seen = rng.random(chance.shape) < chance
    while (empty := ~seen.any(axis=1)).any():
        seen[empty] = rng.random((int(empty.sum()), chance.shape[1])) < chance[empty]
    return np.asarray(seen)


def _neighbours(k: int, reach: int) -> Ints:
    """Return the pairs i < j at most `reach` apart on a ring of k objects, shape (P, 2)."""
    i, j = np.triu_indices(k, 1)
    near = np.minimum(j - i, k - (j - i)) <= reach
    return np.stack([i[near], j[near]], axis=1)


def _all_pairs(k: int) -> Ints:
    return np.stack(np.triu_indices(k, 1), axis=1)


def _row_noise(
    seen: Bools,
    pairs: Ints,
    error: float | Floats,
    rng: np.random.Generator,
    *,
    couples: Ints | None = None,
    confused: float | Floats = 0.0,
) -> Problem:
    """Return the problem of objects that see `seen`, (k, d), compared in `pairs`, (P, 2) sorted by their first object.

    `error` and `confused` may differ from pair to pair; `couples`, (n, 2), are universe points that are swapped.
    """
    k, d = seen.shape
    labels = [rng.permutation(np.flatnonzero(row)) for row in seen]
    where = np.full((k, d), -1, dtype=np.int64)
    for i, label in enumerate(labels):
        where[i, label] = np.arange(len(label))
    error, confused = (np.broadcast_to(rate, len(pairs)) for rate in (error, confused))
    objects, points = [], []
    cuts = np.searchsorted(pairs[:, 0], np.arange(k + 1))
    for i in range(k):
        some = slice(cuts[i], cuts[i + 1])
        there = where[pairs[some, 1]]
        for u, v in [] if couples is None else couples.tolist():
            swap = rng.random(len(there)) < confused[some]
            there[np.ix_(swap, [u, v])] = there[np.ix_(swap, [v, u])]
        targets = there[:, labels[i]]
        targets = permute_selected(targets, rng.random(targets.shape) < error[some, None], rng)
        row, a = np.nonzero(targets >= 0)
        objects.append(pairs[some][row])
        points.append(np.stack([a, targets[row, a]], axis=1))
    matchings = Matchings.from_arrays(np.concatenate(objects), np.concatenate(points), seen.sum(axis=1))
    return matchings, np.concatenate(labels)
