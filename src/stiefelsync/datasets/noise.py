"""How matches go wrong: the parts that random problems are put together from.

Beside the noise models of :func:`synthetic` there are those of real matchers. `both_sides` draws
errors that are independent in rows and columns, so that the pattern of matched columns tells
nothing for certain. `mutual_best` and `best_assignment` match by scores; where the scores come from
noisy descriptors, errors belong to observations and repeat themselves in all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings

__all__ = [
    "LEAST_SEEN",
    "all_pairs",
    "assemble",
    "best_assignment",
    "both_sides",
    "mutual_best",
    "near_pairs",
    "seen_by",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST_SEEN = 0.01
"""Points that an object must be expected to see, since it is drawn again until it sees some."""


def both_sides(first: ArrayLike, second: ArrayLike, rng: np.random.Generator, *, hit: float, wrong: float) -> Ints:
    """Draw the matches of two objects with errors that are independent on both sides.

    Of n points that both objects see, each is matched rightly with probability `hit`. Of the points
    that are then left over, u in the one and v in the other, Binomial(min(u, v), `wrong`) are
    paired at random. Such a stray pair is right by chance now and then.

    Parameters
    ----------
    first, second : (m_i,), (m_j,) int
        Universe points of the two objects, all different within an object.

    Returns
    -------
    (n, 2) int64
        Point of the first and of the second object of every match.

    Examples
    --------
    >>> both_sides([5, 7, 9], [9, 4, 5], np.random.default_rng(0), hit=1.0, wrong=0.0).tolist()
    [[0, 2], [2, 0]]
    """
    for name, rate in (("hit", hit), ("wrong", wrong)):
        if not 0 <= rate <= 1:
            raise InputError(f"{name} must be between 0 and 1, got {rate}")
    first, second = np.asarray(first), np.asarray(second)
    # partner[a] is the point of the second object that shows the same universe point as a, or -1.
    partner = np.full(len(first), -1, dtype=np.int64)
    _, a, b = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    partner[a] = b
    rows = np.flatnonzero((partner >= 0) & (rng.random(len(first)) < hit))
    columns = partner[rows]
    left = np.setdiff1d(np.arange(len(first)), rows)
    right = np.setdiff1d(np.arange(len(second)), columns)
    room = min(len(left), len(right))
    n = rng.binomial(room, wrong) if room else 0
    stray = np.stack([rng.permutation(left)[:n], rng.permutation(right)[:n]], axis=1)
    return np.concatenate([np.stack([rows, columns], axis=1), stray]).astype(np.int64)


def mutual_best(scores: Floats, least: float = -np.inf) -> tuple[Ints, Floats]:
    """Return the entries that are the largest of their row and of their column, and their scores.

    Parameters
    ----------
    scores : (m_i, m_j)
    least
        Entries below are left out.

    Examples
    --------
    >>> mutual_best(np.array([[0.9, 0.8], [0.7, 0.1]]))[0].tolist()
    [[0, 0]]
    """
    a = np.arange(len(scores))
    b = scores.argmax(axis=1)
    good = (scores.argmax(axis=0)[b] == a) & (scores[a, b] >= least)
    return np.stack([a[good], b[good]], axis=1), scores[a[good], b[good]]


def best_assignment(scores: Floats, least: float = -np.inf) -> tuple[Ints, Floats]:
    """Return the one-to-one choice of entries with the largest sum of scores, and their scores.

    Parameters
    ----------
    scores : (m_i, m_j)
    least
        Entries below are left out of the choice after it was made.

    Examples
    --------
    >>> best_assignment(np.array([[0.9, 0.8], [0.7, 0.1]]))[0].tolist()
    [[0, 1], [1, 0]]
    """
    a, b = linear_sum_assignment(-scores)
    good = scores[a, b] >= least
    return np.stack([a[good], b[good]], axis=1), scores[a[good], b[good]]


def seen_by(objects: int, universe: int, observed: float, rng: np.random.Generator, *, least: int = 2) -> list[Ints]:
    """Draw what every object sees: each universe point with probability `observed`, in random order.

    An object that sees fewer than `least` points is drawn again.

    Examples
    --------
    >>> [sorted(seen.tolist()) for seen in seen_by(2, 3, 1.0, np.random.default_rng(0))]
    [[0, 1, 2], [0, 1, 2]]
    """
    if not LEAST_SEEN <= observed * universe <= universe or universe < least:
        raise InputError(
            f"observed must be above 0 and at most 1, and the universe at least {least}; got {observed} and {universe}"
        )
    labels = []
    for _ in range(objects):
        while len(seen := np.flatnonzero(rng.random(universe) < observed)) < least:
            pass
        labels.append(rng.permutation(seen))
    return labels


def all_pairs(objects: int) -> list[tuple[int, int]]:
    """Return the pairs i < j of all objects.

    Examples
    --------
    >>> all_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(i, j) for i in range(objects) for j in range(i + 1, objects)]


def near_pairs(objects: int, reach: int, *, closed: bool = False) -> list[tuple[int, int]]:
    """Return the pairs i < j of objects at most `reach` apart in a sequence, or on a ring where it is closed.

    Examples
    --------
    >>> near_pairs(4, 1), near_pairs(4, 1, closed=True)
    ([(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 3), (1, 2), (2, 3)])
    """
    pairs = set()
    for i in range(objects):
        for j in range(i + 1, i + min(reach, objects) + 1):
            if closed or j < objects:
                pairs.add((min(i, j % objects), max(i, j % objects)))
    return sorted(pairs)


def assemble(
    labels: Sequence[Ints],
    pairs: Mapping[tuple[int, int], Ints],
    weights: Mapping[tuple[int, int], Floats] | None = None,
) -> tuple[Matchings, Ints]:
    """Return the problem of objects that see `labels`, matched as in `pairs`, and its truth.

    Parameters
    ----------
    labels
        Universe points of every object, any names, all different within an object.
    pairs, weights
        Matches by pair of objects and, where there are any, their weights. Pairs without a match
        are left out.

    Returns
    -------
    matchings : Matchings
    truth : (m,) int64
        Universe point of every point, numbered from 0 without holes.

    Examples
    --------
    >>> assemble([np.array([4, 7]), np.array([7])], {(0, 1): np.array([[1, 0]])})[1].tolist()
    [0, 1, 1]
    """
    matched = {pair: rows for pair, rows in pairs.items() if len(rows)}
    truth = np.unique(np.concatenate(list(labels)), return_inverse=True)[1].astype(np.int64)
    worth = None if weights is None else {pair: weights[pair] for pair in matched}
    return Matchings.from_pairs(matched, [len(seen) for seen in labels], weights=worth), truth
