"""What a pair of objects is for: without some, objects fall apart or lose most points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.graph import connected
from stiefelsync.matching.matchings import Matchings

__all__ = ["expendable"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Matches of a pair of images, below which programs that reconstruct scenes do not use it.
_MIN_MATCHES = 15
# Share of an object's matched points that pairs may take with them when they are dropped.
_MAX_SHARE_LOST = 0.5
_MAX_SHARE_WRONG = 0.5  # share of wrong matches beyond which a pair is dropped whatever it is for


def expendable(matchings: Matchings, kept: Bools, wrong: Floats, candidates: Bools) -> Bools:
    """Return which of the candidates can be dropped, the worst of them first.

    A pair is needed if without it (and those dropped before) its two objects no longer hang
    together by pairs of 15 matches or more, or less than half the points of one of them that had
    matches still have one. Needed pairs stay, unless more than half of their matches are wrong.

    Parameters
    ----------
    kept : (M,) bool
        The matches that count.
    wrong : (P,) float64
        Share of wrong matches of every pair.
    candidates : (P,) bool
        Pairs that might be dropped.

    Returns
    -------
    (P,) bool

    Notes
    -----
    O(P α(k) + M) for every candidate at worst; there are few.

    Examples
    --------
    Object 2 hangs on the others by the pairs (0, 2) and (1, 2), which are of the same quality: one
    of them goes.

    >>> every = np.stack([np.arange(20)] * 2, axis=1)
    >>> problem = Matchings.from_pairs({(0, 1): every, (0, 2): every, (1, 2): every}, [20] * 3)
    >>> kept, wrong = np.ones(60, dtype=bool), np.array([0.0, 0.3, 0.3])
    >>> expendable(problem, kept, wrong, wrong > 0.2).tolist()
    [False, True, False]
    >>> expendable(problem, kept, 2 * wrong, wrong > 0.2).tolist()
    [False, True, True]
    """
    dropped = np.zeros(len(candidates), dtype=bool)
    degree = np.bincount(matchings.endpoints[kept].ravel(), minlength=matchings.n_points)
    matched = np.bincount(matchings.point_objects[degree > 0], minlength=matchings.n_objects)
    left, start = matched.copy(), matchings.pair_start
    used = np.add.reduceat(np.append(kept, False), start[:-1], dtype=np.int64) >= _MIN_MATCHES
    few = np.flatnonzero(candidates)
    for pair in few[np.argsort(-wrong[few], kind="stable")].tolist():
        objects, own = matchings.pair_objects[pair], slice(start[pair], start[pair + 1])
        ends = matchings.endpoints[own][kept[own]]
        lost = (degree[ends] == 1).sum(axis=0)  # a point has one match in a pair
        needed = bool((left[objects] - lost < (1 - _MAX_SHARE_LOST) * matched[objects]).any())
        if used[pair] and not needed:
            used[pair] = False
            group = connected(matchings.n_objects, matchings.pair_objects[used])
            needed = bool(group[objects[0]] != group[objects[1]])
            used[pair] = needed
        if wrong[pair] > _MAX_SHARE_WRONG or not needed:
            dropped[pair], used[pair] = True, False
            degree[ends] -= 1
            left[objects] -= lost
    return dropped
