"""Shapes whose mistakes have a reason: halves that look alike, observations taken for others, rogues, weights.

Beside these mistakes there are errors on both sides; `hit` and `wrong` are those of
:func:`~stiefelsync.datasets.noise.both_sides` throughout.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.datasets.noise import all_pairs, assemble, both_sides, seen_by
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["alias", "halves", "rogues", "worth"]

Ints = NDArray[np.int64]
Rng = np.random.Generator | int | None
Problem = tuple[Matchings, Ints]


@drawn
def halves(
    objects: int = 40,
    half: int = 30,
    *,
    observed: float = 0.7,
    corners: float = 0.15,
    confused: float = 0.6,
    hit: float = 0.65,
    wrong: float = 0.25,
    rng: Rng = 0,
) -> Problem:
    """Draw a building whose two sides look alike: whole pairs take the points of one side for those of the other.

    Every object sees points of one side; a share `corners` of the objects see both, each point half as often. A pair of
    objects of different sides takes each point for its twin on the other side with probability `confused`, all points
    of the pair or none.

    Examples
    --------
    >>> int(halves(rng=0)[1].max())
    59
    """
    rng = generator(rng)
    side = rng.integers(2, size=objects)
    corner = rng.random(objects) < corners
    labels = []
    for i in range(objects):
        at = np.arange(2 * half) // half
        rate = np.where(corner[i], observed / 2, observed * (at == side[i]))
        labels.append(rng.permutation(np.flatnonzero(rng.random(2 * half) < rate)))
    pairs = {}
    for i, j in all_pairs(objects):
        apart = side[i] != side[j] and not (corner[i] or corner[j])
        looks = (labels[i] + half) % (2 * half) if apart and rng.random() < confused else labels[i]
        pairs[i, j] = both_sides(looks, labels[j], rng, hit=hit, wrong=wrong)
    return assemble(labels, pairs)


@drawn
def alias(
    objects: int = 30,
    universe: int = 40,
    *,
    observed: float = 0.6,
    share: float = 0.15,
    hit: float = 0.65,
    wrong: float = 0.25,
    rng: Rng = 0,
) -> Problem:
    """Draw objects some of whose points look like another point, which the object does not see, in every comparison.

    Parameters
    ----------
    share
        Probability that a point of an object looks like another.

    Examples
    --------
    >>> alias(rng=0)[0].n_objects
    30
    """
    rng = generator(rng)
    labels = seen_by(objects, universe, observed, rng)
    looks = []
    for seen in labels:
        absent = rng.permutation(np.setdiff1d(np.arange(universe), seen))
        mistaken = np.flatnonzero(rng.random(len(seen)) < share)[: len(absent)]
        look = seen.copy()
        look[mistaken] = absent[: len(mistaken)]
        looks.append(look)
    pairs = {(i, j): both_sides(looks[i], looks[j], rng, hit=hit, wrong=wrong) for i, j in all_pairs(objects)}
    return assemble(labels, pairs)


@drawn
def rogues(
    objects: int = 20,
    universe: int = 25,
    count: int = 2,
    *,
    observed: float = 0.6,
    hit: float = 0.6,
    wrong: float = 0.3,
    rng: Rng = 0,
) -> Problem:
    """Draw a problem some of whose objects have nothing but strays, as many of them as the others have matches.

    Parameters
    ----------
    count
        Objects without a right match but by chance.

    Examples
    --------
    >>> rogues(rng=0)[0].n_objects
    20
    """
    rng = generator(rng)
    labels = seen_by(objects, universe, observed, rng)
    bad = set(rng.choice(objects, count, replace=False).tolist())
    pairs = {}
    for i, j in all_pairs(objects):
        rates = {"hit": 0.0, "wrong": 0.5} if {i, j} & bad else {"hit": hit, "wrong": wrong}
        pairs[i, j] = both_sides(labels[i], labels[j], rng, **rates)
    return assemble(labels, pairs)


@drawn
def worth(
    objects: int = 16,
    universe: int = 30,
    *,
    observed: float = 0.6,
    hit: float = 0.4,
    wrong: float = 0.5,
    rng: Rng = 0,
) -> Problem:
    """Draw matches whose weights know in some pairs and not in others, each pair on a scale of its own.

    Weights are Beta(5, 2) distributed for right matches and Beta(2, 5) for wrong ones where both objects know, which is
    so in half of the pairs, and Beta(3, 3) elsewhere; a pair's weights are then multiplied by a number from 1/4 to 4.

    Examples
    --------
    >>> len(worth(rng=0)[0].weights) > 0
    True
    """
    rng = generator(rng)
    labels = seen_by(objects, universe, observed, rng)
    knows = rng.permutation(objects) < round(objects * 0.5**0.5)  # both do in half of the pairs
    pairs, values = {}, {}
    for i, j in all_pairs(objects):
        rows = both_sides(labels[i], labels[j], rng, hit=hit, wrong=wrong)
        right = labels[i][rows[:, 0]] == labels[j][rows[:, 1]]
        known = np.where(right, rng.beta(5, 2, len(rows)), rng.beta(2, 5, len(rows)))
        told = known if knows[i] and knows[j] else rng.beta(3, 3, len(rows))
        pairs[i, j], values[i, j] = rows, told * 4 ** rng.uniform(-1, 1)
    return assemble(labels, pairs, values)
