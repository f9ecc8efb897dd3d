"""How good an answer is: precision, recall, fscore against a truth.

Without one, the objective and the cycle error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["CycleError", "Score", "cycle_error", "objective", "score", "triplet_cycles"]

Ints = NDArray[np.int64]

# Object triplets that are listed one by one; beyond they are drawn.
_MAX_LISTED_TRIPLETS = 4_000_000
_COMPOSED_PER_CHUNK = 1_000_000  # composed matches handled at once
_MAX_TABLE_ENTRIES = 1 << 26  # entries of a dense partner table
# Looked at by default with such a table, and without: seconds.
_MAX_COMPOSED = {True: 20_000_000, False: 2_500_000}


@dataclass(frozen=True)
class Score:
    """How well the matches of an answer agree with the true ones.

    Attributes
    ----------
    precision
        Share of the answer's matches that are true; 1 when the answer has none.
    recall
        Share of the true matches that the answer has; 1 when there are none.
    fscore
        Harmonic mean of the two, ``2 |A ∩ T| / (|A| + |T|)``; 1 when both are empty.
    """

    precision: float
    recall: float
    fscore: float


@typed
def score(answer: ArrayLike | Matchings, truth: ArrayLike | Matchings) -> Score:
    """Compare the matches of an answer with the true ones, over all object pairs i < j.

    Parameters
    ----------
    answer, truth : (m,) int, or Matchings, or Synchronisation
        Universe point of every point (-1 = unmatched), or matches, or an answer with either. The
        names of universe points are irrelevant.

    Notes
    -----
    O(m log m) for labels: a universe point seen n times stands for n(n-1)/2 matches and none of
    them is made. Object sizes are not needed, because two points of one object never carry the same
    label in a valid answer. Matches cost O(M log M). Weights are ignored.

    Examples
    --------
    >>> score([0, 1, 0, 1, 0, -1], [5, 3, 5, 3, 3, 5])
    Score(precision=0.5, recall=0.333..., fscore=0.4)
    """
    sides = [side if isinstance(side, Matchings) else _as_labels(side) for side in map(_plain, (answer, truth))]
    m = [side.n_points if isinstance(side, Matchings) else len(side) for side in sides]
    if m[0] != m[1]:
        raise InputError(f"the answer has {m[0]} points but the truth has {m[1]}; both must describe the same points")
    found, true = map(_count, sides)
    both = _count_common(*sides)
    return Score(
        precision=both / found if found else 1.0,
        recall=both / true if true else 1.0,
        fscore=2 * both / (found + true) if found + true else 1.0,
    )


def _plain(side: Any) -> Any:
    """Return the labels of an answer of :func:`~stiefelsync.synchronise`, or its matches if it has none."""
    if not hasattr(side, "outcome"):
        return side
    return side.labels if side.consistent else side.matchings()


def objective(labels: ArrayLike, matchings: Matchings) -> float:
    """Return the objective tr(PᵀWP) of a labelling, equation (7) of the paper in terms of labels.

    With P the 0/1 matrix of the labels and W the matching matrix with identity diagonal blocks this
    is ``m + 2 · (weight of the kept matches)``; an unmatched point (label -1) counts as a universe
    point of its own.

    Parameters
    ----------
    labels : (m,) int

    Notes
    -----
    O(m + M).

    Examples
    --------
    >>> objective([0, 1, 1, 0], Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]]}, [2, 2]))
    8.0
    """
    kept = matchings.agreeing(labels)
    weight = kept.sum() if matchings.weights is None else matchings.weights[kept].sum()
    return float(matchings.n_points + 2 * weight)


@dataclass(frozen=True)
class CycleError:
    """How often going round by a third object contradicts the direct match.

    Attributes
    ----------
    value
        The share of contradictions; 0 when nothing can be judged. ``float()`` gives it too.
    standard_error
        Of `value`, from sampling object triplets; 0 when exact.
    triplets
        Object triplets looked at.
    exact
        Whether these were all triplets.
    judged
        Composed matches that were confirmed or contradicted; 0 when nothing can be judged.
    """

    value: float
    standard_error: float
    triplets: int
    exact: bool
    judged: int

    def __float__(self) -> float:
        return self.value


@typed
def cycle_error(
    matchings: Matchings, *, max_triplets: int | None = None, rng: np.random.Generator | int | None = 0
) -> CycleError:
    """Measure how far matchings are from cycle consistency, P_il P_lj ⊆ P_ij for all i, l, j.

    A *composed* match takes a point a of object i over a point of object l to a point b of object
    j. The direct matching between i and j *confirms* it by the match a-b, *contradicts* it by
    matching a or b with another point, and says nothing when neither has a partner. The cycle error
    is contradicted / (confirmed + contradicted) over all object triplets whose three pairs all have
    matches, each counted with every one of its objects in the middle. Consistent matchings have
    error 0, also when they are partial.

    Parameters
    ----------
    max_triplets
        Look at a uniform random sample of so many triplets if there are more. By default as many as
        take a few seconds: every triplet of 111 objects with 30 points each.
    rng
        Generator or seed of the sample.

    Notes
    -----
    O(log M) per composed match, of which a triplet has about three times the matches of a pair. The
    standard error is that of a ratio estimator with triplets as units, without finite-population
    correction (so rather too large).

    Examples
    --------
    >>> loop = {(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 0], [1, 1]], (0, 2): [[0, 1], [1, 0]]}
    >>> cycle_error(Matchings.from_pairs(loop, [2, 2, 2]))
    CycleError(value=1.0, standard_error=0.0, triplets=1, exact=True, judged=6)
    """
    if max_triplets is None:
        per_pair = matchings.n_matches / max(len(matchings.pair_objects), 1)
        budget = _MAX_COMPOSED[matchings.n_points * matchings.n_objects <= _MAX_TABLE_ENTRIES]
        max_triplets = max(int(budget / (3 * max(per_pair, 1))), 2)
    if not max_triplets >= 2:
        raise InputError(f"max_triplets must be at least 2, got {max_triplets}")
    triplets, exact, confirmed, contradicted = _count_cycles(matchings, max_triplets, generator(rng))
    judged = confirmed + contradicted
    total = judged.sum()
    value = float(contradicted.sum() / total) if total else 0.0
    error = 0.0
    # Composed matches of one triplet hang together, so triplets are the units of the sample, not
    # matches.
    if not exact and total:
        n = len(triplets)
        error = float(np.sqrt(n / (n - 1) * ((contradicted - value * judged) ** 2).sum()) / total)
    return CycleError(value, error, len(triplets), exact, int(total))


def triplet_cycles(
    matchings: Matchings, max_triplets: int, *, rng: np.random.Generator | int | None = 0
) -> tuple[Ints, Ints, Ints]:
    """Return triplets of compared objects, and how many composed matches each confirms or not.

    Parameters
    ----------
    max_triplets
        Look at a uniform random sample of so many triplets if there are more.

    Returns
    -------
    triplets : (T, 3) int64
        Objects i < j < l.
    confirmed, contradicted : (T,) int64
        As for :func:`cycle_error`; every cycle counts three times, once for each of its objects in
        the middle.

    Examples
    --------
    >>> loop = {(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 0], [1, 1]], (0, 2): [[0, 0], [1, 1]]}
    >>> triplet_cycles(Matchings.from_pairs(loop, [2, 2, 2]), 10)
    (array([[0, 1, 2]]), array([6]), array([0]))
    """
    triplets, _, confirmed, contradicted = _count_cycles(matchings, max_triplets, generator(rng))
    return triplets, confirmed.astype(np.int64), contradicted.astype(np.int64)


def _count_cycles(
    matchings: Matchings, limit: int, rng: np.random.Generator
) -> tuple[Ints, bool, NDArray[np.float64], NDArray[np.float64]]:
    """Return triplets, whether these are all, and their confirmed and contradicted matches."""
    triplets, exact = _triplets(matchings, limit, rng)
    partner = _partner_lookup(matchings)
    confirmed, contradicted = np.zeros(len(triplets)), np.zeros(len(triplets))
    for i, j, l in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        for part in _parts(matchings, triplets[:, [i, l]]):
            yes, no = _judge(matchings, triplets[part][:, [i, j, l]], partner)
            confirmed[part] += yes
            contradicted[part] += no
    return triplets, exact, confirmed, contradicted


def _triplets(matchings: Matchings, limit: int, rng: np.random.Generator) -> tuple[Ints, bool]:
    """Return triplets i < j < l with matches in all three pairs, (n, 3), and whether all.

    A wedge i < j < l, pairs (i, j) and (j, l), is closed when (i, l) is a pair too; every triplet
    is one closed wedge.
    """
    pairs, k = matchings.pair_objects.astype(np.int64), matchings.n_objects
    key = pairs[:, 0] * k + pairs[:, 1]
    # Wedges are numbered without being listed: `ends` says how many begin with each pair, so any
    # can be drawn.
    first = np.searchsorted(pairs[:, 0], np.arange(k + 1))
    ahead = np.diff(first)[pairs[:, 1]]
    ends = np.cumsum(ahead)
    n_wedges = int(ends[-1]) if len(ends) else 0

    def closed(number: Ints) -> Ints:
        pair = np.searchsorted(ends, number, side="right")
        i, j = pairs[pair].T
        l = pairs[first[j] + number - (ends[pair] - ahead[pair]), 1]
        # Pair (j, l) comes after (i, l), so the search never ends behind the last pair.
        there: NDArray[np.bool_] = key[np.searchsorted(key, i * k + l)] == i * k + l
        return np.stack([i, j, l], axis=1)[there]

    if n_wedges <= _MAX_LISTED_TRIPLETS:
        every = closed(np.arange(n_wedges))
        if len(every) <= limit:
            return every, True
        return every[rng.choice(len(every), limit, replace=False)], False
    # Few wedges may be closed, so four times as many are drawn as wanted; repetitions are rare
    # among so many.
    drawn = [closed(rng.integers(n_wedges, size=limit)) for _ in range(4)]
    return np.concatenate(drawn)[:limit], False


def _partner_lookup(matchings: Matchings) -> Callable[[Ints, Ints], Ints]:
    """Return a function (points, objects) -> each point's partner there; -1 = none."""
    k = matchings.n_objects
    a, b = matchings.endpoints.T
    of = matchings.point_objects
    source, target = np.concatenate([a, b]), np.concatenate([b, a])
    if matchings.n_points * k <= _MAX_TABLE_ENTRIES:
        table = np.full((matchings.n_points, k), -1, dtype=np.int32)
        table[source, of[target]] = target
        return lambda points, objects: table[points, objects].astype(np.int64)
    # Too large for a table: look up (point, object) among sorted keys.
    key = source * k + of[target]
    order = np.argsort(key)
    key, target = key[order], target[order]

    def find(points: Ints, objects: Ints) -> Ints:
        wanted = points * k + objects
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where(key[at] == wanted, target[at], -1)

    return find


def _pair_numbers(matchings: Matchings, ends: Ints) -> Ints:
    pairs, k = matchings.pair_objects.astype(np.int64), matchings.n_objects
    numbers: Ints = np.searchsorted(pairs[:, 0] * k + pairs[:, 1], ends.min(axis=1) * k + ends.max(axis=1))
    return numbers


def _parts(matchings: Matchings, ends: Ints) -> list[slice]:
    """Cut the triplets into slices of about a million composed matches."""
    length = np.diff(matchings.pair_start)[_pair_numbers(matchings, ends)]
    cuts = np.flatnonzero(np.diff(np.cumsum(length) // _COMPOSED_PER_CHUNK)) + 1
    bounds = [0, *cuts.tolist(), len(ends)]
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def _judge(matchings: Matchings, triplets: Ints, partner: Callable[[Ints, Ints], Ints]) -> tuple[Ints, Ints]:
    """Return how many composed matches i → l → j each triplet confirms, and contradicts."""
    pair = _pair_numbers(matchings, triplets[:, [0, 2]])
    start = matchings.pair_start[pair]
    length = matchings.pair_start[pair + 1] - start
    owner = np.repeat(np.arange(len(triplets)), length)
    match = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length) + start[owner]
    # One row per match of the pair (i, l), turned so that it leads from i to l.
    i, j, l = triplets[owner].T
    flipped = i > l
    a, c = np.where(flipped, matchings.endpoints[match].T[::-1], matchings.endpoints[match].T)
    b = partner(c, j)
    composed = b >= 0
    a, b, i, j, owner = a[composed], b[composed], i[composed], j[composed], owner[composed]
    # Confirmed by the same match, contradicted by any other of either end; else nobody says
    # anything.
    direct = partner(a, j)
    confirmed = direct == b
    contradicted = ~confirmed & ((direct >= 0) | (partner(b, i) >= 0))
    n = len(triplets)
    return np.bincount(owner[confirmed], minlength=n), np.bincount(owner[contradicted], minlength=n)


def _as_labels(values: ArrayLike) -> Ints:
    labels = np.asarray(values)
    if labels.ndim != 1 or not (labels.size == 0 or np.issubdtype(labels.dtype, np.integer)):
        raise InputError(f"labels must be one whole number per point, got {labels.dtype} of shape {labels.shape}")
    return labels.astype(np.int64, copy=False)


def _pairs_in(keys: Ints) -> int:
    """Return Σ n(n-1)/2 over the multiplicities n of the keys."""
    n = np.unique(keys, return_counts=True)[1]
    return int((n * (n - 1) // 2).sum())


def _count(side: Ints | Matchings) -> int:
    return side.n_matches if isinstance(side, Matchings) else _pairs_in(side[side >= 0])


def _count_common(answer: Ints | Matchings, truth: Ints | Matchings) -> int:
    if isinstance(answer, Matchings) and isinstance(truth, Matchings):
        if not np.array_equal(answer.sizes, truth.sizes):
            raise InputError("the answer and the truth have objects of different sizes")
        return int(answer.shared_with(truth).sum())
    if isinstance(answer, Matchings):
        return int(answer.agreeing(truth).sum())  # type: ignore[arg-type]
    if isinstance(truth, Matchings):
        return int(truth.agreeing(answer).sum())
    seen = (answer >= 0) & (truth >= 0)
    first, second = (np.unique(side[seen], return_inverse=True)[1] for side in (answer, truth))
    return _pairs_in(first * (int(second.max(initial=0)) + 1) + second)
