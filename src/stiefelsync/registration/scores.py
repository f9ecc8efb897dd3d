"""One matrix of probabilities over the units of all recordings, as programs for spike sorting write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.registration.candidates import Candidates

__all__ = ["candidates_of_matrix"]

LEAST = 0.01  # pairs less probable than this are forgotten
EDGE = 1e-3  # probabilities nearer to 0 and 1 count as this near


@typed
def candidates_of_matrix(
    p: ArrayLike, session: ArrayLike, names: Sequence[str] | None = None
) -> tuple[Candidates, NDArray[np.int64]]:
    """Return the pairs of units of different sessions, each with one probability from its two.

    The log-odds of the two are averaged: where one direction excludes a pair, the other does not make it likely.

    Parameters
    ----------
    p : (m, m)
        Probability that unit i and unit j are one, 0 to 1; symmetric or not. Within a session it is ignored.
    session : (m,)
        Session of every unit. Sessions that are numbers come in their order, others as they are first named.
    names : sequence of k str, optional
        Names of the sessions.

    Returns
    -------
    candidates
        With units sorted by session.
    order : (m,) int
        Row of the matrix of every unit in this order.

    Examples
    --------
    >>> found, order = candidates_of_matrix([[1, 0.9, 0.2], [0.7, 1, 0], [0.2, 0, 1]], [1, 0, 1])
    >>> found.p.round(2).tolist(), order.tolist()
    ([0.82], [1, 0, 2])
    """
    table, owners = np.asarray(p), np.asarray(session).ravel()
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.dtype.kind not in "fiub":
        raise InputError(f"the scores must be a square matrix of numbers, got shape {table.shape}")
    if len(owners) != len(table):
        raise InputError(f"{len(owners)} sessions do not fit a matrix of {len(table)} units")
    different, of = _sessions(owners)
    if len(different) < 2:
        raise InputError("units of a single session cannot be followed; at least two are needed")
    order = np.argsort(of, kind="stable")
    sizes = np.bincount(of)
    starts = np.cumsum(sizes) - sizes
    ends, values = [], []
    rows = np.split(order, starts[1:])
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            # One block at a time, so that nothing of the size of the matrix is made.
            there = table[np.ix_(rows[i], rows[j])].astype(np.float64)
            back = table[np.ix_(rows[j], rows[i])].T.astype(np.float64)
            for half in (there, back):
                if np.isnan(half).any():
                    raise InputError("some scores are NaN; write 0 where two units were not compared")
                if half.min(initial=0) < 0 or half.max(initial=0) > 1:
                    low, high = min(half.min(), 0.0), max(half.max(), 1.0)
                    raise InputError(
                        f"scores from {low:g} to {high:g} are no probabilities, which go from 0 to 1; turn them into"
                        " such first"
                    )
            block = special.expit((_log_odds(there) + _log_odds(back)) / 2)
            a, b = np.nonzero(block > LEAST)
            ends.append(np.stack([a + starts[i], b + starts[j]], axis=1))
            values.append(block[a, b])
    called = tuple(map(str, different.tolist())) if names is None else tuple(names)
    return Candidates(sizes, np.concatenate(ends), np.concatenate(values), called), order


def _sessions(owners: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the different sessions and the number of each unit's."""
    if owners.dtype.kind == "f" and (owners == np.rint(owners)).all():
        owners = owners.astype(np.int64)
    different, first, of = np.unique(owners, return_index=True, return_inverse=True)
    if owners.dtype.kind in "iufb":
        return different, of.astype(np.int64)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return different[order], place[of]


def _log_odds(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(special.logit(np.clip(p, EDGE, 1 - EDGE)))
