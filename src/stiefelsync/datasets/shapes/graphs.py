"""Shapes that differ in who is compared with whom: stars, two sides, maps with queries, mosaics, hubs.

Errors are on both sides; `hit` and `wrong` are those of :func:`~stiefelsync.datasets.noise.both_sides` throughout.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.datasets.noise import all_pairs, assemble, both_sides, near_pairs, seen_by
from stiefelsync.datasets.shapes.detected import compared
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["bipartite", "hierarchy", "hubs", "mosaic", "queries", "skips", "star"]

Ints = NDArray[np.int64]
Rng = np.random.Generator | int | None
Problem = tuple[Matchings, Ints]


@drawn
def star(
    objects: int = 31,
    universe: int = 60,
    *,
    observed: float = 0.6,
    own: int = 10,
    hit: float = 0.65,
    wrong: float = 0.25,
    rng: Rng = 0,
) -> Problem:
    """Draw a reference that all others are compared with, and they with nothing else; there are no cycles.

    Object 0 sees the universe, every other object any of its points with probability `observed` and `own` points that
    no other sees.

    Examples
    --------
    >>> matchings, truth = star(rng=0)
    >>> set(matchings.pair_objects[:, 0].tolist())
    {0}
    """
    rng = generator(rng)
    labels = [rng.permutation(universe), *seen_by(objects - 1, universe, observed, rng)]
    for i in range(1, objects):
        alone = universe + (i - 1) * own + np.arange(own)
        labels[i] = rng.permutation(np.concatenate([labels[i], alone]))
    return compared(labels, [(0, i) for i in range(1, objects)], rng, hit=hit, wrong=wrong)


@drawn
def bipartite(
    left: int = 12,
    right: int = 12,
    universe: int = 40,
    *,
    observed: float = 0.6,
    hit: float = 0.65,
    wrong: float = 0.25,
    rng: Rng = 0,
) -> Problem:
    """Draw two sets of objects; each of the one is compared with each of the other, so that there is no triangle.

    Examples
    --------
    >>> len(bipartite(rng=0)[0].pair_objects)
    144
    """
    rng = generator(rng)
    labels = seen_by(left + right, universe, observed, rng)
    pairs = [(i, left + j) for i in range(left) for j in range(right)]
    return compared(labels, pairs, rng, hit=hit, wrong=wrong)


@drawn
def queries(
    objects: int = 48,
    count: int = 12,
    universe: int = 200,
    *,
    width: int = 40,
    observed: float = 0.6,
    partners: int = 6,
    known: tuple[float, float] = (0.9, 0.1),
    asked: tuple[float, float] = (0.5, 0.3),
    rng: Rng = 0,
) -> Problem:
    """Draw a map with good matches and queries that are compared with a few objects of it, and not with each other.

    The map is a closed sequence as in :func:`window_detected`, neighbours up to four apart compared. A query sees any
    of `width` points that begin anywhere and is compared with the `partners` objects of the map that begin nearest.

    Parameters
    ----------
    known, asked
        `hit` and `wrong` inside the map, and of queries.

    Examples
    --------
    >>> queries(rng=0)[0].n_objects
    60
    """
    rng = generator(rng)
    begin = np.concatenate([np.arange(objects) * universe // objects, rng.integers(universe, size=count)])
    labels = []
    for first in begin:
        inside = (first + np.arange(width)) % universe
        labels.append(rng.permutation(inside[rng.random(width) < observed]))
    pairs = {}
    for i, j in near_pairs(objects, 4, closed=True):
        pairs[i, j] = both_sides(labels[i], labels[j], rng, hit=known[0], wrong=known[1])
    for query in range(objects, objects + count):
        apart = np.abs(begin[:objects] - begin[query])
        nearest = np.argsort(np.minimum(apart, universe - apart), kind="stable")[:partners]
        for i in np.sort(nearest).tolist():
            pairs[i, query] = both_sides(labels[i], labels[query], rng, hit=asked[0], wrong=asked[1])
    return assemble(labels, pairs)


@drawn
def mosaic(
    side: int = 8,
    *,
    extent: float = 2.2,
    density: float = 6,
    observed: float = 0.7,
    hit: float = 0.65,
    wrong: float = 0.25,
    rng: Rng = 0,
) -> Problem:
    """Draw overlapping tiles of a picture, each compared with the eight around it.

    Tile (x, y) covers the square from (x, y) to (x + extent, y + extent) of a plane with `density` points per unit
    square, and sees what is inside with probability `observed`.

    Examples
    --------
    >>> mosaic(rng=0)[0].n_objects
    64
    """
    rng = generator(rng)
    width = side - 1 + extent
    points = rng.random((round(density * width**2), 2)) * width
    corners = np.stack(np.divmod(np.arange(side**2), side), axis=1)
    labels = []
    for corner in corners:
        inside = np.flatnonzero(((points >= corner) & (points < corner + extent)).all(axis=1))
        labels.append(rng.permutation(inside[rng.random(len(inside)) < observed]))
    pairs = [(i, j) for i, j in all_pairs(side**2) if np.abs(corners[i] - corners[j]).max() <= 1]
    return compared(labels, pairs, rng, hit=hit, wrong=wrong)


@drawn
def hierarchy(
    sites: int = 3,
    rooms: int = 3,
    each: int = 5,
    *,
    common: int = 8,
    of_site: int = 10,
    of_room: int = 12,
    observed: float = 0.7,
    levels: tuple[tuple[float, float], ...] = ((0.8, 0.15), (0.5, 0.4), (0.25, 0.6)),
    rng: Rng = 0,
) -> Problem:
    """Draw groups of groups: points common to all, of a site and of a room; the further apart the worse the matches.

    Parameters
    ----------
    common, of_site, of_room
        Points that everybody, a site's and a room's objects see, each with probability `observed`.
    levels
        `hit` and `wrong` of objects of one room, of one site, and of different sites.

    Examples
    --------
    >>> hierarchy(rng=0)[0].n_objects
    45
    """
    rng = generator(rng)
    room = rng.permutation(np.repeat(np.arange(sites * rooms), each))
    labels = []
    for here in room:
        site = common + here // rooms * of_site + np.arange(of_site)
        own = common + sites * of_site + here * of_room + np.arange(of_room)
        there = np.concatenate([np.arange(common), site, own])
        labels.append(rng.permutation(there[rng.random(len(there)) < observed]))
    pairs = {}
    for i, j in all_pairs(len(room)):
        level = 0 if room[i] == room[j] else 1 if room[i] // rooms == room[j] // rooms else 2
        pairs[i, j] = both_sides(labels[i], labels[j], rng, hit=levels[level][0], wrong=levels[level][1])
    return assemble(labels, pairs)


@drawn
def skips(
    objects: int = 80,
    born: float = 3,
    *,
    distances: tuple[int, ...] = (1, 2, 4, 8, 16),
    observed: float = 0.8,
    near: float = 0.85,
    far: float = 0.45,
    wrong: float = 0.25,
    rng: Rng = 0,
) -> Problem:
    """Draw a sequence whose objects are compared with the next and with some much later; some points live long.

    Every step Poisson(`born`) points appear; they live for two steps and a heavy-tailed (Pareto) time more. The rate of
    right matches falls evenly from the nearest of the `distances`, `near`, to the furthest, `far`.

    Examples
    --------
    >>> matchings, _ = skips(rng=0)
    >>> sorted(set((matchings.pair_objects[:, 1] - matchings.pair_objects[:, 0]).tolist()))
    [1, 2, 4, 8, 16]
    """
    rng = generator(rng)
    # What was born long before the first object is still there.
    begin = np.repeat(np.arange(-objects, objects), rng.poisson(born, 2 * objects))
    end = begin + 2 + np.rint(4 * rng.pareto(1.3, len(begin))).astype(np.int64)
    labels = []
    for i in range(objects):
        alive = np.flatnonzero((begin <= i) & (i < end))
        labels.append(rng.permutation(alive[rng.random(len(alive)) < observed]))
    hits = dict(zip(distances, np.linspace(near, far, len(distances)).tolist(), strict=True))
    pairs = {}
    for i in range(objects):
        for step, hit in hits.items():
            if i + step < objects:
                pairs[i, i + step] = both_sides(labels[i], labels[i + step], rng, hit=hit, wrong=wrong)
    return assemble(labels, pairs)


@drawn
def hubs(
    clusters: int = 6,
    each: int = 8,
    *,
    common: int = 10,
    own: int = 20,
    observed: float = 0.6,
    hit: float = 0.65,
    wrong: float = 0.25,
    rng: Rng = 0,
) -> Problem:
    """Draw clusters that meet in their hubs only: hubs are compared with hubs, members with theirs and two neighbours.

    There are `common` points of everybody and `own` points of every cluster. The first object of a cluster is its hub
    and sees nine points in ten, the others any with probability `observed`.

    Examples
    --------
    >>> len(hubs(rng=0)[0].pair_objects)  # 6·7 to hubs, 6·7 around them, 15 between
    99
    """
    rng = generator(rng)
    labels = []
    pairs = {(i * each, j * each) for i, j in all_pairs(clusters)}
    for cluster in range(clusters):
        there = np.concatenate([np.arange(common), common + cluster * own + np.arange(own)])
        first = cluster * each
        for member in range(each):
            rate = observed if member else 0.9
            labels.append(rng.permutation(there[rng.random(len(there)) < rate]))
            if member:
                pairs.add((first, first + member))
        # The members stand around their hub.
        pairs |= {(first + 1 + i, first + 1 + j) for i, j in near_pairs(each - 1, 1, closed=True)}
    return compared(labels, sorted(pairs), rng, hit=hit, wrong=wrong)
