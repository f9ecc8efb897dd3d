"""Label the objects that join a solved problem, without going over the matches of those that were there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.gauss_seidel import State, withdraw
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_odds

__all__ = ["label_newcomers"]

Ints = NDArray[np.int64]

_ROUNDS, _SWEEPS = 3, 50  # as `refine` has them
_LEAST_PAIRS = 100  # of old objects, from which rates are estimated: some thousand matches
_FITS = 0.5  # share of the old objects' share of right matches that newcomers must have


class _Part(MatchTable):
    """Some matches of a problem all of whose objects were compared."""

    @property
    def complete(self) -> bool:
        """Whether all objects of the problem were compared."""
        return True


def label_newcomers(matchings: Matchings, labels: Ints, newcomers: Ints, d: int) -> Ints | None:
    """Return labels, (m,), in which the newcomers have the likeliest ones, given those of all other objects.

    Parameters
    ----------
    labels : (m,) int64
        Of the problem as it was, -1 for the points of newcomers.
    newcomers : (n,) int64
        Objects.
    d
        Number of labels.

    Returns
    -------
    labels : (m,) int64 or None
        None where this would be rash: not all objects were compared with each other, or the newcomers fit the labels
        less than half as well as the others do.

    Notes
    -----
    O(the newcomers' matches + k²·d). Rates are estimated from as many pairs of old objects as the newcomers have, then
    from both. As :func:`~stiefelsync.sync.likelihood.gauss_seidel.refine` for the newcomers alone.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> label_newcomers(problem, np.array([0, 1, 1, 0, -1, -1]), np.array([2]), 2).tolist()
    [0, 1, 1, 0, 0, 1]
    """
    none = np.empty(0, dtype=np.int32)
    if not MatchTable(matchings, d, *[none] * 3).complete:
        return None
    new = np.zeros(matchings.n_objects, dtype=bool)
    new[newcomers] = True
    theirs = np.asarray(new[matchings.pair_objects].any(axis=1))
    old, n = np.flatnonzero(~theirs), max(int(theirs.sum()), _LEAST_PAIRS)
    some = old[:: max(len(old) // n, 1)]
    chosen = np.sort(np.append(some, np.flatnonzero(theirs)))
    known, table = (_Part.of(matchings.only_pairs(pairs), d) for pairs in (some, chosen))
    counts, found = block_counts(known, labels), labels
    for _ in range(_ROUNDS):
        before, found = found, _settle(State(table, found.copy(), log_odds(table, counts)), newcomers)
        counts = block_counts(table, found)
        if np.array_equal(before, found):
            break
    right, matched = (
        np.bincount(theirs[chosen], values, minlength=2)
        for values in (counts.right, np.diff(table.matchings.pair_start))
    )
    if right[1] * matched[0] < _FITS * right[0] * matched[1]:
        return None
    found = np.where(new[table.owner], withdraw(table, found), labels)
    found[np.bincount(found + 1, minlength=d + 1)[found + 1] == 1] = -1  # a label of one point says nothing
    return found


def _settle(state: State, objects: Ints) -> Ints:
    """Re-label some objects until none of them changes."""
    for _ in range(_SWEEPS):
        changed = [state.relabel(i) for i in objects.tolist()]
        if not any(changed):
            break
    return state.labels
