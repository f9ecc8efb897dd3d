"""Which matches, and which pairs of objects, deserve doubt: third objects and neighbours as witnesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings

__all__ = ["Doubt", "Witnesses", "doubt", "witnesses"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVEL = 0.03
"""Share of well-confirmed matches that have less support than what is called little."""
HOPELESS = 0.5
"""A pair of objects is hopeless if more than this share of its matches have little support."""
_CONFIRMED = 2  # cycles of three through a match that stands for the right ones
_FEW = 100  # such matches below which their supports say nothing about the others'
_LOOKUPS_PER_CHUNK = 4_000_000  # a few arrays of 32 megabytes


@dataclass(frozen=True)
class Witnesses:
    """What third objects say on every match (x, y); each shape (M,) int64.

    Attributes
    ----------
    agree
        Third objects in which x and y have the same partner: triangles of matches.
    differ
        Third objects in which they have different partners.
    silent
        Third objects compared with both, in which only one of them has a partner.
    """

    agree: Ints
    differ: Ints
    silent: Ints


@dataclass(frozen=True)
class Doubt:
    """Matches and pairs of objects that deserve doubt.

    Attributes
    ----------
    matches : (M,) bool
        Matches with too little support for what third objects say on them, and all of hopeless pairs.
    little : (P,) float64
        Share of every pair's matches that have little support; about `LEVEL` where all are right.
    hopeless : (P,) bool
        Pairs of which more than half of the matches have little support.
    """

    matches: Bools
    little: Floats
    hopeless: Bools


def witnesses(matchings: Matchings) -> Witnesses:
    """Ask for every match the third objects in which one of its points, or both, have a partner.

    Notes
    -----
    O(Σ (deg x + deg y) log M) over the matches (x, y), in chunks.

    Examples
    --------
    Points of four objects; the match between the objects 0 and 1 closes a triangle with object 2, and object 3 knows
    only the point of object 0.

    >>> problem = Matchings.from_pairs(
    ...     {(0, 1): [[0, 0]], (0, 2): [[0, 0]], (1, 2): [[0, 0]], (0, 3): [[0, 0]], (1, 3): [[1, 1]]}, [1, 2, 1, 2]
    ... )
    >>> found = witnesses(problem)
    >>> found.agree.tolist(), found.differ.tolist(), found.silent.tolist()
    ([1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 1, 0, 0])
    """
    k, M, ends = max(matchings.n_objects, 1), matchings.n_matches, matchings.endpoints
    objects = matchings.point_objects.astype(np.int64)
    key = np.concatenate([ends[:, 0] * k + objects[ends[:, 1]], ends[:, 1] * k + objects[ends[:, 0]]])
    order = np.argsort(key, kind="stable")
    key, partner = key[order], np.concatenate([ends[:, 1], ends[:, 0]])[order]
    degree = np.bincount(ends.ravel(), minlength=matchings.n_points)
    start = np.cumsum(degree) - degree
    i, j = np.sort(matchings.pair_objects.astype(np.int64), axis=1).T
    compared = np.sort(i * k + j)
    agree, differ, silent = (np.zeros(M, dtype=np.int64) for _ in range(3))
    for x, y, first in ((ends[:, 0], ends[:, 1], True), (ends[:, 1], ends[:, 0], False)):
        # Every third object with a partner of both points is met from either side; it is counted from the first.
        for rows in _chunks(degree[x]):
            which, at = _ranges(start[x[rows]], degree[x[rows]])
            third, end = partner[at], y[rows][which]
            other = np.flatnonzero(third != end)
            which, third, end = which[other] + rows.start, third[other], end[other]
            place, there = _find(key, end * k + objects[third])
            same = there & (partner[place] == third)
            if first:
                agree += np.bincount(which[same], minlength=M)
                differ += np.bincount(which[there & ~same], minlength=M)
            a, b = objects[end], objects[third]
            known = _find(compared, np.minimum(a, b) * k + np.maximum(a, b))[1]
            silent += np.bincount(which[~there & known], minlength=M)
    return Witnesses(agree, differ, silent)


def doubt(matchings: Matchings, support: Floats, *, level: float = LEVEL) -> Doubt:
    """Find the matches whose support is too little for what third objects say on them.

    The supports of matches on two cycles of three or more tell what support right matches have: F is their
    distribution. A match with ``agree`` triangles, and with D partners of its points in third objects that say nothing
    of or against it (``D = silent + 2·differ``), is doubtful if ``F(support) < level·(1 + D) / (1 + 2·agree)``.
    Matches that no third object could confirm are left alone: they contradict nothing and mappers ignore them.

    A pair of objects in which a share s of the matches have little support, F < level, is doubted as a whole: for its
    matches `level` becomes ``level / (1 - s)``, and if s is more than one half, all of them are doubtful.

    Parameters
    ----------
    matchings
        Tracks' matches, or any others.
    support : (M,) float64
        Of :func:`~stiefelsync.matching.neighbour_support.neighbour_support`; NaN where unknown: such matches are not
        doubted.
    level
        The share of well-confirmed matches that would be called doubtful without any other evidence.

    Notes
    -----
    Cost of :func:`witnesses`. With fewer than 100 well-confirmed matches nothing is doubted.

    Examples
    --------
    Four objects that see the same 40 points, and one match that no triangle and no neighbour confirms.

    >>> right = Matchings.from_labels(np.tile(np.append(np.arange(40), -1), 4), [41] * 4)
    >>> wrong = {(0, 1): np.vstack([right.pair(0, 1), [[40, 40]]]), (0, 2): np.vstack([right.pair(0, 2), [[40, 40]]])}
    >>> problem = Matchings.from_pairs(right.pairs() | wrong, [41] * 4)
    >>> support = np.where((problem.indices == 40).all(axis=1), 0.1, 0.8)
    >>> found = doubt(problem, support)
    >>> problem.indices[found.matches].tolist(), found.hopeless.any()
    ([[40, 40], [40, 40]], np.False_)
    """
    if not 0 < level < 1:
        raise InputError(f"the level of doubt is {level}; it must lie between 0 and 1")
    n_pairs, pair = len(matchings.pair_objects), matchings.match_pairs
    nothing = Doubt(np.zeros(len(pair), dtype=bool), np.zeros(n_pairs), np.zeros(n_pairs, dtype=bool))
    asked, known = witnesses(matchings), np.isfinite(support)
    confirmed = np.sort(support[known & (asked.agree >= _CONFIRMED)])
    if len(confirmed) < _FEW:
        return nothing
    rank = np.searchsorted(confirmed, np.where(known, support, np.inf), side="right") / len(confirmed)
    count = np.maximum(np.bincount(pair, minlength=n_pairs), 1)
    little = np.bincount(pair, known & (rank < level), minlength=n_pairs) / count
    dissent = asked.silent + 2 * asked.differ
    bound = (1 + dissent) / (1 + 2 * asked.agree) * (level / (1 - np.minimum(little, HOPELESS)))[pair]
    hopeless = little > HOPELESS
    doubtful = known & (asked.agree + dissent > 0) & (rank < bound)
    return Doubt(doubtful | hopeless[pair], little, hopeless)


def _ranges(start: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of the ranges ``start[t], …, start[t] + counts[t] - 1`` and their entries, concatenated."""
    which = np.repeat(np.arange(len(counts)), counts)
    return which, (start - np.cumsum(counts) + counts)[which] + np.arange(len(which))


def _find(keys: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Return where each number would stand among sorted ones, and whether it is there."""
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    return place, keys[place] == wanted


def _chunks(counts: Ints) -> list[slice]:
    """Split rows into runs of about `_LOOKUPS_PER_CHUNK` counts each."""
    if not len(counts):
        return []
    before = np.cumsum(counts) - counts
    starts = np.flatnonzero(np.diff(before // _LOOKUPS_PER_CHUNK, prepend=-1)).tolist()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(counts)], strict=True)]
