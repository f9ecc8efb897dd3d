"""How strongly an answer supports each input match."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from stiefelsync.matching.matchings import Matchings

__all__ = ["match_confidence", "track_confidence", "witnesses"]

# Columns of the (object × universe point) table that are held at once.
_MAX_TABLE_ENTRIES = 20_000_000


def match_confidence(matchings: Matchings, labels: ArrayLike) -> NDArray[np.float64]:
    """Return, for every input match (a, b), Laplace's estimate (s + 1) / (n + 2) of the chance that it is right.

    The n witnesses are the other points of the two universe points concerned, as far as their objects were matched
    with the object on the other side at all; the s of them that the input matches to a (or to b) speak for it.
    A match that nothing else speaks for or against has confidence ½.

    Parameters
    ----------
    labels : (m,) int
        Universe point of every point, -1 = unmatched.

    Returns
    -------
    confidence : (M,) float64

    Examples
    --------
    >>> triangle = Matchings.from_labels([0, 0, 0], [1, 1, 1])
    >>> match_confidence(triangle, [0, 0, 0]).tolist()
    [0.75, 0.75, 0.75]
    """
    labels = np.asarray(labels).astype(np.int64)
    if not matchings.n_matches:
        return np.empty(0)
    # Unmatched points are universe points of their own.
    alone = labels < 0
    labels = np.where(alone, labels.max(initial=-1) + np.cumsum(alone), labels)
    a, b = matchings.endpoints.T
    # Every match leads from a point to a universe point, in either direction: how many take the same way?
    way = np.concatenate([a, b]) * (labels.max() + 1) + labels[np.concatenate([b, a])]
    _, which, votes = np.unique(way, return_inverse=True, return_counts=True)
    # The match itself, counted in both directions, is no witness.
    speaking = votes[which].reshape(2, -1).sum(axis=0) - 2
    possible = witnesses(matchings, labels, a, labels[b]) + witnesses(matchings, labels, b, labels[a]) - 2
    return np.asarray((speaking + 1) / (possible + 2))


def track_confidence(
    matchings: Matchings, labels: NDArray[np.int64], confidence: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean confidence of the input matches inside every universe point, NaN where there is none.

    Parameters
    ----------
    labels : (m,) int
        Universe point of every point, -1 = unmatched.
    confidence : (M,)
        Of every match, as :func:`match_confidence` returns it.

    Returns
    -------
    (d,) float64
        By label.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 0, 0, 1], [1, 1, 2])
    >>> labels = np.array([0, 0, 0, 1])
    >>> track_confidence(problem, labels, match_confidence(problem, labels)).tolist()
    [0.75, nan]
    """
    a, b = labels[matchings.endpoints].T
    inside = np.flatnonzero((a == b) & (a >= 0))
    d = int(labels.max(initial=-1)) + 1
    count, total = np.bincount(a[inside], minlength=d), np.bincount(a[inside], confidence[inside], d)
    return np.asarray(np.divide(total, count, out=np.full(d, np.nan), where=count > 0))


def witnesses(
    matchings: Matchings, labels: NDArray[np.int64], points: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return how many members of each universe point lie in objects that the point's object was matched with."""
    k, d = matchings.n_objects, int(labels.max()) + 1
    i, j = matchings.pair_objects.T
    met = sparse.coo_array((np.ones(2 * len(i)), (np.r_[i, j], np.r_[j, i])), shape=(k, k)).tocsr()
    seen = sparse.coo_array((np.ones(len(labels)), (matchings.point_objects, labels)), shape=(k, d)).tocsc()
    # Objects without points may be many, and none of them is asked about.
    asking, owner = np.unique(matchings.point_objects[points], return_inverse=True)
    met = met[asking]
    out = np.empty(len(points))
    width = max(1, _MAX_TABLE_ENTRIES // max(len(asking), 1))
    for start in range(0, d, width):
        table = (met @ seen[:, start : start + width]).toarray()
        here = (columns >= start) & (columns < start + width)
        out[here] = table[owner[here], columns[here] - start]
    return out
