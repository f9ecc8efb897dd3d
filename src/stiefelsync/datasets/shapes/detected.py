"""Shapes whose matches err on both sides, as those of detectors do: right ones missing, strays among what is left.

`hit` and `wrong` are those of :func:`~stiefelsync.datasets.noise.both_sides` throughout.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.datasets.noise import all_pairs, assemble, both_sides, near_pairs, seen_by
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["drive", "groups", "independent", "photos", "window_detected"]

Ints = NDArray[np.int64]
Rng = np.random.Generator | int | None
Problem = tuple[Matchings, Ints]

_FEWEST = 4  # photos: pairs with fewer matches are dropped


@drawn
def independent(
    objects: int = 30,
    universe: int = 25,
    *,
    observed: float = 0.6,
    hit: float = 0.35,
    wrong: float = 0.6,
    reach: int | None = None,
    rng: Rng = 0,
) -> Problem:
    """Draw a problem as :func:`synthetic` does, every object seeing any point, with errors on both sides.

    Parameters
    ----------
    reach
        Object i is compared with i ± 1, …, i ± reach, modulo k; with all others when None.

    Examples
    --------
    >>> len(independent(rng=0)[0].pair_objects), len(independent(60, reach=5, rng=0)[0].pair_objects)
    (435, 300)
    """
    rng = generator(rng)
    labels = seen_by(objects, universe, observed, rng)
    pairs = all_pairs(objects) if reach is None else near_pairs(objects, reach, closed=True)
    return compared(labels, pairs, rng, hit=hit, wrong=wrong)


@drawn
def window_detected(
    objects: int = 60,
    universe: int = 240,
    *,
    width: int = 40,
    observed: float = 0.6,
    hit: float = 0.65,
    wrong: float = 0.25,
    reach: int = 5,
    rng: Rng = 0,
) -> Problem:
    """Draw a closed sequence whose objects see a part of a ring of universe points, with errors on both sides.

    Object i sees each of the `width` points from ⌊i·d/k⌋ on with probability `observed`; it is compared with
    i ± 1, …, i ± reach.

    Examples
    --------
    >>> window_detected(rng=0)[0].n_objects
    60
    """
    rng = generator(rng)
    labels = []
    for i in range(objects):
        inside = (np.arange(width) + i * universe // objects) % universe
        labels.append(rng.permutation(inside[rng.random(width) < observed]))
    return compared(labels, near_pairs(objects, reach, closed=True), rng, hit=hit, wrong=wrong)


@drawn
def photos(
    objects: int = 80,
    places: int = 12,
    each: int = 40,
    *,
    hit: float = 0.65,
    wrong: float = 0.25,
    unrelated: float = 0.05,
    rng: Rng = 0,
) -> Problem:
    """Draw a photo collection: some places are popular, most points rarely seen, and retrieval errs now and then.

    The popularity of places falls as 1 over their rank; three photos in ten show two of them. How visible the `each`
    points of a place are is heavy-tailed, and a photo shows more or less of them. Photos with a common place are
    compared, and a share `unrelated` of the others. Pairs with fewer than four matches are dropped.

    Examples
    --------
    >>> photos(rng=0)[0].n_objects
    80
    """
    rng = generator(rng)
    popular = 1 / np.arange(1, places + 1)
    popular /= popular.sum()
    visible = np.clip(rng.pareto(1.2, places * each) * 0.15 + 0.05, 0, 0.95)
    shown: list[set[int]] = []
    labels = []
    for _ in range(objects):
        n = 1 + (rng.random() < 0.3)
        shown.append(set(rng.choice(places, n, replace=False, p=popular).tolist()))
        there = np.concatenate([np.arange(place * each, (place + 1) * each) for place in sorted(shown[-1])])
        drawn = rng.random(len(there))
        seen = there[drawn < np.clip(visible[there] * rng.uniform(0.5, 1.6), 0, 1)]
        labels.append(rng.permutation(seen if len(seen) > 4 else rng.choice(there, 5, replace=False)))
    pairs = {}
    for i, j in all_pairs(objects):
        if shown[i] & shown[j] or rng.random() < unrelated:
            rows = both_sides(labels[i], labels[j], rng, hit=hit, wrong=wrong)
            if len(rows) >= _FEWEST:
                pairs[i, j] = rows
    return assemble(labels, pairs)


@drawn
def groups(
    count: int = 5,
    each: int = 8,
    universe: int = 30,
    *,
    observed: float = 0.7,
    inside: tuple[float, float] = (0.85, 0.15),
    between: tuple[float, float] = (0.2, 0.7),
    rng: Rng = 0,
) -> Problem:
    """Draw objects of several groups: matches are good inside a group and bad between two.

    Parameters
    ----------
    inside, between
        `hit` and `wrong` of pairs within a group, and of others.

    Examples
    --------
    >>> groups(rng=0)[0].n_objects
    40
    """
    rng = generator(rng)
    labels = seen_by(count * each, universe, observed, rng)
    group = rng.permutation(np.repeat(np.arange(count), each))
    pairs = {}
    for i, j in all_pairs(count * each):
        hit, wrong = inside if group[i] == group[j] else between
        pairs[i, j] = both_sides(labels[i], labels[j], rng, hit=hit, wrong=wrong)
    return assemble(labels, pairs)


@drawn
def drive(
    objects: int = 100,
    each: int = 30,
    *,
    legs: int = 1,
    loop: int = 20,
    observed: float = 0.7,
    stays: float = 0.8,
    hit: float = 0.65,
    wrong: float = 0.25,
    reach: int = 4,
    rng: Rng = 0,
) -> Problem:
    """Draw a drive along a road whose points come and go, and which returns to places where it was before.

    Every object is at a place with `each` points, a share `stays` of which is there at the next place, too, and sees
    each with probability `observed`. The drive has one or more legs; the last `loop` objects of a leg are at its first
    `loop` places again. Objects at most `reach` apart in time are compared, and revisits with the objects that were at
    the same place or next to it.

    Examples
    --------
    >>> drive(rng=0)[0].n_objects
    100
    """
    if legs < 1 or 2 * loop > objects // legs:
        raise InputError(f"a loop of {loop} is more than half of a leg: {objects} objects in {legs} legs")
    rng = generator(rng)
    here, fresh = np.empty(0, dtype=np.int64), 0
    labels: list[Ints] = []
    pairs = set(near_pairs(objects, reach))
    for leg in range(legs):
        first, last = leg * objects // legs, (leg + 1) * objects // legs
        places: list[Ints] = []
        for _ in range(first, last - loop):
            here = here[rng.random(len(here)) < stays]
            n = each - len(here)
            here = np.concatenate([here, fresh + np.arange(n)])
            fresh += n
            places.append(here)
            labels.append(rng.permutation(here[rng.random(each) < observed]))
        for n in range(loop):
            again = places[n]
            labels.append(rng.permutation(again[rng.random(each) < observed]))
            for before in range(max(first + n - 1, first), min(first + n + 2, last - loop)):
                pairs.add((before, last - loop + n))
    return compared(labels, sorted(pairs), rng, hit=hit, wrong=wrong)


def compared(
    labels: list[Ints], pairs: Iterable[tuple[int, int]], rng: np.random.Generator, *, hit: float, wrong: float
) -> Problem:
    """Return the problem of objects that see `labels`, compared in `pairs`, with errors on both sides.

    Examples
    --------
    >>> compared([np.arange(3), np.arange(3)], [(0, 1)], np.random.default_rng(0), hit=1, wrong=0)[0].n_matches
    3
    """
    return assemble(labels, {(i, j): both_sides(labels[i], labels[j], rng, hit=hit, wrong=wrong) for i, j in pairs})
