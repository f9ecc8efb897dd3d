"""Shapes matched by noisy descriptors: errors belong to observations and repeat themselves in all pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.datasets.noise import all_pairs, assemble, best_assignment, mutual_best, near_pairs
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["cells", "merging", "reid"]

Rng = np.random.Generator | int | None
Problem = tuple[Matchings, NDArray[np.int64]]


@drawn
def cells(
    sessions: int = 20,
    alive: int = 120,
    *,
    life: float = 8,
    seen: float = 0.85,
    jitter: float = 0.018,
    gate: float = 0.05,
    reach: int = 3,
    weights: bool = False,
    rng: Rng = 0,
) -> Problem:
    """Draw cells over imaging sessions: they drift, die, are born, and neighbours are taken for each other.

    Cells lie at random in the unit square. From session to session one in `life` is replaced by a new one elsewhere
    and all drift a little; every session has a deformation and a shift of its own. Sessions at most `reach` apart are
    matched by the best assignment of positions.

    Parameters
    ----------
    alive
        Cells at any one time.
    seen
        Probability that a session shows a cell that lives.
    jitter
        Standard deviation of a position's error.
    gate
        Largest distance of a match.
    weights
        Whether the matches carry weights, which fall linearly with distance from 1 to .05.

    Examples
    --------
    >>> cells(rng=0)[0].n_objects
    20
    """
    rng = generator(rng)
    place = rng.random((alive, 2))
    name, fresh = np.arange(alive), alive
    labels, positions = [], []
    for _ in range(sessions):
        dead = rng.random(alive) < 1 / life
        n = int(dead.sum())
        place[dead] = rng.random((n, 2))
        name[dead] = fresh + np.arange(n)
        fresh += n
        place = place + rng.normal(0, 0.006, place.shape)
        warp = rng.normal(0, 0.008, (2, 2))
        shown = rng.permutation(alive)[rng.random(alive) < seen]
        error = rng.normal(0, jitter, (len(shown), 2)) + rng.normal(0, 0.008, 2)
        labels.append(name[shown])
        positions.append(place[shown] + (place[shown] - 0.5) @ warp + error)
    pairs, values = {}, {}
    for i, j in near_pairs(sessions, reach):
        distance = np.sqrt(((positions[i][:, None] - positions[j]) ** 2).sum(axis=-1))
        # Beyond three gates all distances cost the same, so that far cells do not bend the near ones' choice.
        pairs[i, j], score = best_assignment(np.maximum(-distance, -3 * gate), -gate)
        values[i, j] = 1 + score / gate * 0.95
    return assemble(labels, pairs, values if weights else None)


@drawn
def reid(
    cameras: int = 6,
    people: int = 200,
    *,
    features: int = 24,
    noise: float = 0.75,
    bias: float = 0.5,
    least: float = 0.35,
    weights: bool = False,
    rng: Rng = 0,
) -> Problem:
    """Draw people to be recognised by several cameras, some of whom look alike.

    Everybody is seen by one to four cameras. A person's features are those of one of 40 styles and some of their own;
    an image adds noise, a camera its own bias. Two cameras match whom they find most alike in both directions.

    Parameters
    ----------
    noise, bias
        Standard deviations of an image's noise and of a camera's bias.
    least
        Smallest cosine of a match.
    weights
        Whether the matches carry their cosines as weights.

    Examples
    --------
    >>> reid(rng=0)[0].n_objects
    6
    """
    rng = generator(rng)
    styles = rng.normal(size=(40, features))
    looks = 0.75 * styles[rng.integers(40, size=people)] + 0.65 * rng.normal(size=(people, features))
    present: list[list[int]] = [[] for _ in range(cameras)]
    for person in range(people):
        for camera in rng.choice(cameras, rng.integers(1, 5), replace=False):
            present[camera].append(person)
    labels = [rng.permutation(np.array(some, dtype=np.int64)) for some in present]
    images = []
    for some in labels:
        image = looks[some] + noise * rng.normal(size=(len(some), features)) + bias * rng.normal(size=features)
        images.append(image / np.linalg.norm(image, axis=1, keepdims=True))
    pairs, values = {}, {}
    for i, j in all_pairs(cameras):
        pairs[i, j], values[i, j] = mutual_best(images[i] @ images[j].T, least)
    return assemble(labels, pairs, values if weights else None)


@drawn
def merging(
    networks: int = 6,
    units: int = 256,
    *,
    features: int = 48,
    noise: float = 1.15,
    weights: bool = False,
    rng: Rng = 0,
) -> Problem:
    """Draw networks with the same units in different orders, matched in full; some units and networks are noisier.

    Parameters
    ----------
    noise
        Mean standard deviation of a feature's noise; that of the features is about 1.3.
    weights
        Whether the matches carry their cosines as weights.

    Examples
    --------
    >>> merging(rng=0)[0]
    Matchings(6 objects, 1,536 points, 3,840 matches in 15 of 15 pairs)
    """
    rng = generator(rng)
    own, kinds = rng.normal(size=(units, features)), rng.normal(size=(16, features))
    looks = own + 0.8 * kinds[rng.integers(16, size=units)]
    depth = rng.uniform(0.6, 1.6, units)
    labels = [rng.permutation(units) for _ in range(networks)]
    images = []
    for order in labels:
        scale = noise * rng.uniform(0.7, 1.3) * depth[order][:, None]
        image = looks[order] + scale * rng.normal(size=(units, features))
        images.append(image / np.linalg.norm(image, axis=1, keepdims=True))
    pairs, values = {}, {}
    for i, j in all_pairs(networks):
        pairs[i, j], score = best_assignment(images[i] @ images[j].T)
        values[i, j] = np.maximum(score, 1e-3)
    return assemble(labels, pairs, values if weights else None)
