"""Shapes with objects of very different or very large size, and universes most of which is seen once.

Errors are on both sides; `hit` and `wrong` are those of :func:`~stiefelsync.datasets.noise.both_sides` throughout.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.datasets.noise import all_pairs
from stiefelsync.datasets.shapes.detected import compared
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["large_detected", "singles", "unequal"]

Ints = NDArray[np.int64]
Rng = np.random.Generator | int | None
Problem = tuple[Matchings, Ints]


@drawn
def unequal(
    objects: int = 30,
    least: int = 2,
    most: int = 600,
    universe: int = 800,
    *,
    hit: float = 0.65,
    wrong: float = 0.25,
    rng: Rng = 0,
) -> Problem:
    """Draw objects of `least` to `most` points, evenly spread on a logarithmic scale; both extremes occur.

    How popular a point is falls as a power .8 of its rank, so that small objects see what others see, too.

    Examples
    --------
    >>> sizes = unequal(rng=0)[0].sizes
    >>> int(sizes.min()), int(sizes.max())
    (2, 600)
    """
    if not 1 <= least <= most <= universe:
        raise InputError(f"sizes must lie between 1 and the universe, got {least} to {most} of {universe}")
    rng = generator(rng)
    sizes = np.rint(np.geomspace(least, most, objects)).astype(np.int64)
    popular = 1 / np.arange(1, universe + 1) ** 0.8
    popular /= popular.sum()
    labels = [rng.choice(universe, size, replace=False, p=popular) for size in rng.permutation(sizes)]
    return compared(labels, all_pairs(objects), rng, hit=hit, wrong=wrong)


@drawn
def singles(
    objects: int = 25,
    shared: int = 12,
    own: int = 30,
    *,
    observed: float = 0.7,
    hit: float = 0.65,
    wrong: float = 0.15,
    rng: Rng = 0,
) -> Problem:
    """Draw objects most of whose points nobody else sees.

    Every object sees any of `shared` points with probability `observed`, and `own` points that no other sees.

    Examples
    --------
    >>> _, truth = singles(rng=0)
    >>> int((np.bincount(truth) == 1).sum())
    750
    """
    rng = generator(rng)
    labels = []
    for i in range(objects):
        seen = np.flatnonzero(rng.random(shared) < observed)
        labels.append(rng.permutation(np.concatenate([seen, shared + i * own + np.arange(own)])))
    return compared(labels, all_pairs(objects), rng, hit=hit, wrong=wrong)


@drawn
def large_detected(
    points: int = 2000, objects: int = 4, *, hit: float = 0.65, wrong: float = 0.25, rng: Rng = 0
) -> Problem:
    """Draw few large objects as :func:`large` does, with errors on both sides.

    Each sees `points` of 1.25 times as many universe points, drawn at random.

    Examples
    --------
    >>> large_detected(200, rng=0)[0].sizes.tolist()
    [200, 200, 200, 200]
    """
    rng = generator(rng)
    labels = [rng.permutation(points * 5 // 4)[:points] for _ in range(objects)]
    return compared(labels, all_pairs(objects), rng, hit=hit, wrong=wrong)
