"""Labellings that explain the matches about as well as an answer does: what else may be true.

Our own answer is where they come from, but it is not taken for right:

* Where the method sampled a posterior, its samples are what may be true.
* Else, where a point is matched almost wherever its track goes, rows err: no two tracks were taken
  for one, since each of their points would lack partners in half of it. Points leave their track by
  the votes of its other members.
* Otherwise every match is right with a probability of its own, by what third objects say of it
  (:func:`match_probability`), and a track falls apart where those drawn to be wrong held it together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from stiefelsync.matching.graph import connected, numbered
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.confidence import witnesses
from stiefelsync.sync.result import Synchronisation

__all__ = ["Plausible", "around", "match_probability", "plausible", "stay_probability"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DRAWS = 60
_FEWEST, _FEW = 3, 10  # objects whose votes are too kind
_EVERYWHERE = 0.86  # share of the places of its track where a point is matched beyond which rows err
_ROUNDS = 50
_LEAST_RATE = 0.005
_CHANCE = 0.03  # most that a third object confirms a wrong match by chance
_CHUNK = 1 << 18  # matches whose third objects are looked at together

_VOTES = "the votes of every point's matches for its track in our answer"
_THIRDS = "what third objects say of every match of our answer"
_SAMPLES = "samples of the posterior"


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
    40
    """
    problem, labels = ours.input, ours.labels
    few = _FEWEST <= problem.n_objects <= _FEW
    samples = getattr(ours.outcome.details, "samples", None)
    if samples is not None:
        sampled = [label.astype(np.int64) for label in samples.label]
        return Plausible(sampled, np.ones(len(sampled)), _SAMPLES)
    if _matched_along_tracks(problem, labels) < _EVERYWHERE:
        return Plausible(_broken(problem, labels, rng, draws), np.ones(draws), _THIRDS)
    if not few:
        return _leaving(problem, labels, rng, draws)
    # Votes of so few are too kind, and third objects too strict.
    halves = _leaving(problem, labels, rng, draws // 2), _broken(problem, labels, rng, draws - draws // 2)
    return Plausible([*halves[0].labels, *halves[1]], np.ones(draws), f"{_VOTES}, and {_THIRDS}")


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


def _leaving(problem: Matchings, labels: Ints, rng: np.random.Generator, draws: int) -> Plausible:
    """Draw labellings in which points leave their tracks."""
    return around(labels, stay_probability(problem, labels), _VOTES, rng, draws)


def _broken(problem: Matchings, labels: Ints, rng: np.random.Generator, draws: int) -> list[Ints]:
    """Draw labellings in which tracks fall apart where matches that held them together are wrong."""
    inside = np.flatnonzero(problem.agreeing(labels))
    right, ends = match_probability(problem)[inside], problem.endpoints[inside]
    return [numbered(connected(len(labels), ends[rng.random(len(inside)) < right])) for _ in range(draws)]


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
    s, n = votes[members], _asked(matchings, labels)[members]
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


def _asked(matchings: Matchings, labels: Ints) -> Floats:
    """Return how many other members of its track every point's object was compared with; (m,), 0 without a track."""
    members = np.flatnonzero(labels >= 0)
    # Points in no track are tracks of their own.
    apart = np.where(labels < 0, labels.max(initial=-1) + 1 + np.arange(len(labels)), labels)
    asked = np.zeros(len(labels))
    asked[members] = witnesses(matchings, apart, members, labels[members])
    return asked


def _matched_along_tracks(matchings: Matchings, labels: Ints) -> float:
    """Return the share of the objects that hold a member of a point's track in which the point is matched at all.

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[0, 1]], (1, 2): [[1, 0]]}, [1, 2, 2])
    >>> round(_matched_along_tracks(problem, np.array([0, 0, -1, 0, -1])), 3)
    0.667
    """
    k = matchings.n_objects
    members = np.flatnonzero(labels >= 0)
    goes = np.unique(labels[members] * k + matchings.point_objects[members])
    a, b = matchings.endpoints.T
    a, b = np.concatenate([a, b]), np.concatenate([b, a])
    told = labels[a] >= 0
    found = np.isin(labels[a[told]] * k + matchings.point_objects[b[told]], goes)
    asked = float(_asked(matchings, labels).sum())
    return float(found.sum()) / asked if asked else 1.0


def match_probability(matchings: Matchings) -> Floats:
    """Return the probability that every match is right, (M,), by what third objects say of it.

    A third object that was compared with both objects of a match a–b, and in which a or b is matched, confirms it
    (both with one point), contradicts it (with two), or has seen one of them only. Right and wrong matches are a
    mixture; third objects see the points of a wrong match independently and confirm it by chance at most.

    Notes
    -----
    O(M·g log M) for g matches per point.

    Examples
    --------
    >>> pairs = {(i, j): [[p, p] for p in range(8)] for i in range(5) for j in range(i)}
    >>> pairs[1, 0] = [[p, (p + 1) % 8 if p < 2 else 0 if p == 2 else p] for p in range(8)]
    >>> match_probability(Matchings.from_pairs(pairs, [8] * 5))[:8].round(1).tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    seen, presence = _thirds(matchings)
    told = seen.any(axis=1)
    one, both = presence.sum() - 2 * presence.prod(), presence.prod()
    contradicted = both / max(one + both, 1e-9)
    rate, share, right = np.array([0.6, 0.2, 0.2]), 0.9, np.full(len(seen), 0.9)
    for _ in range(4 * _ROUNDS if len(seen) else 0):
        confirmed, told_in_all = (1 - right) @ seen[:, 0], (1 - right) @ seen.sum(axis=1)
        chance = float(np.clip((confirmed + _CHANCE) / (told_in_all + 1), 1e-4, min(_CHANCE, rate[0] / 2)))
        wrong = np.array([chance, (1 - chance) * contradicted, (1 - chance) * (1 - contradicted)]).clip(1e-9)
        right = expit(np.log(share / (1 - share)) + seen @ np.log(rate / wrong))
        share = float(np.clip((right[told].sum() + 9) / (told.sum() + 10), _LEAST_RATE, 1 - _LEAST_RATE / 5))
        rate = (right @ seen + 0.5) / (float((right @ seen).sum()) + 1.5)
    return right


def _thirds(matchings: Matchings) -> tuple[Floats, Floats]:
    """Return how many third objects confirm, contradict, and see one point of every match; and how often they see it.

    Returns
    -------
    seen : (M, 3)
    presence : (2,)
        Share of the third objects in which the first and the second points of matches are matched.
    """
    m, k = matchings.n_points, matchings.n_objects
    owner, (a, b) = matchings.point_objects.astype(np.int64), matchings.endpoints.T.astype(np.int64)
    from_, to = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.argsort(from_, kind="stable")
    partner = to[order]
    start = np.append(0, np.cumsum(np.bincount(from_, minlength=m)))
    i, j = matchings.pair_objects.T.astype(np.int64)
    compared = np.sort(np.concatenate([i * k + j, j * k + i]))
    seen, present = np.zeros((len(a), 3)), np.zeros(2)
    for first in range(0, len(a), _CHUNK):
        one, two = a[first : first + _CHUNK], b[first : first + _CHUNK]
        sides = []
        for here, there in ((one, two), (two, one)):
            degree = start[here + 1] - start[here]
            match = np.repeat(np.arange(len(here)), degree)
            within = np.arange(len(match)) - np.repeat(np.cumsum(degree) - degree, degree)
            point = partner[start[here[match]] + within]
            sought = owner[point] * k + owner[there[match]]
            known = compared[np.minimum(np.searchsorted(compared, sought), len(compared) - 1)] == sought
            sides.append((match[known] * k + owner[point[known]], point[known]))
        (at, x), (also, y) = sides
        present += len(at), len(also)
        _, mine, theirs = np.intersect1d(at, also, assume_unique=True, return_indices=True)
        match = at[mine] // k
        n = len(one)
        confirmed = np.bincount(match[x[mine] == y[theirs]], minlength=n)
        both = np.bincount(match, minlength=n)
        single = np.bincount(at // k, minlength=n) + np.bincount(also // k, minlength=n) - 2 * both
        seen[first : first + _CHUNK] = np.stack([confirmed, both - confirmed, single], axis=1)
    C = sparse.coo_array((np.ones(2 * len(i)), (np.r_[i, j], np.r_[j, i])), shape=(k, k)).tocsr()
    shared = C.multiply(C @ C).tocsr()
    asked = float(shared[i, j] @ np.diff(matchings.pair_start)) if len(i) else 0.0
    return seen, present / asked if asked else np.full(2, 0.5)
