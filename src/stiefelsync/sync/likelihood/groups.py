"""A start for sequences: groups of neighbouring objects are solved on their own and joined afterwards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stiefelsync.matching.matchings import Matchings

__all__ = ["grouped_start", "neighbouring_groups"]

Ints = NDArray[np.int64]

_SIZE = 12  # objects of a group: enough to be solved well, few enough that most of them were compared
_LEAST = 2  # matches between two labels of different groups that join them


def neighbouring_groups(matchings: Matchings, size: int = _SIZE) -> list[Ints]:
    """Cut the objects into groups of at most `size` that share many matches.

    A group begins with the object, of those left, with the fewest matches to others left, so that it begins at an
    end, and takes up the object with most matches to the group until it is full or nobody is left who shares any.

    Returns
    -------
    groups
        Arrays of objects, in the order in which they were taken up.

    Notes
    -----
    O(k² + P).

    Examples
    --------
    >>> chain = Matchings.from_pairs({(i, i + 1): [[0, 0]] for i in range(5)}, [1] * 6)
    >>> [group.tolist() for group in neighbouring_groups(chain, 3)]
    [[0, 1, 2], [3, 4, 5]]
    """
    k = matchings.n_objects
    i, j = matchings.pair_objects.T
    strength = np.zeros((k, k))
    strength[i, j] = strength[j, i] = np.diff(matchings.pair_start)
    left = matchings.sizes > 0
    groups = []
    while left.any():
        among = np.where(left, strength @ left, np.inf)
        group = [int(among.argmin())]
        left[group[0]] = False
        link = strength[group[0]].copy()
        while len(group) < size and (shared := np.where(left, link, 0)).any():
            group.append(int(shared.argmax()))
            left[group[-1]] = False
            link += strength[group[-1]]
        groups.append(np.array(group))
    return groups


def grouped_start(matchings: Matchings, d: int, solve: Callable[[Matchings, int], Ints]) -> Ints:
    """Return labels, shape (m,), below d: those that `solve` gives groups of neighbouring objects, made to agree.

    The groups are taken up one after another, the one with most matches to those before first. Its labels are matched
    with theirs by assignment, so that as many matches as possible join equal labels; labels with fewer than two such
    matches become new ones as long as there is room.

    Parameters
    ----------
    solve
        From a problem and a number of labels to its labels.

    Examples
    --------
    >>> chain = Matchings.from_pairs({(i, j): [[0, 0], [1, 1]] for i in range(5) for j in range(i + 1, 6)}, [2] * 6)
    >>> alternating = lambda problem, d: np.tile([0, 1], problem.n_objects)
    >>> grouped_start(chain, 2, alternating).tolist()
    [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    """
    parts = neighbouring_groups(matchings)
    group_of = np.full(matchings.n_objects, -1)
    own = np.full(matchings.n_points, -1, dtype=np.int64)
    for n, objects in enumerate(parts):
        group_of[objects] = n
        points, part = _part(matchings, objects)
        if part.n_matches:
            own[points] = solve(part, d)
    labels = np.full(matchings.n_points, -1, dtype=np.int64)
    point_group = group_of[matchings.point_objects]
    a, b = matchings.endpoints.T
    ends = np.concatenate([np.stack([a, b]), np.stack([b, a])], axis=1)
    links = np.zeros((len(parts), len(parts)))
    np.add.at(links, (point_group[ends[0]], point_group[ends[1]]), 1)
    placed = np.zeros(len(parts), dtype=bool)
    for _ in parts:
        reach = np.where(placed, -1.0, links @ placed + (0 if placed.any() else links.diagonal()))
        n = int(reach.argmax())
        mine = np.flatnonzero((point_group == n) & (own >= 0))
        votes = np.zeros((d, d))
        across = (point_group[ends[0]] == n) & (own[ends[0]] >= 0) & (labels[ends[1]] >= 0)
        np.add.at(votes, (own[ends[0, across]], labels[ends[1, across]]), 1)
        labels[mine] = _agree(votes, np.unique(own[mine]), np.bincount(labels[labels >= 0], minlength=d))[own[mine]]
        placed[n] = True
    return labels


def _agree(votes: NDArray[np.float64], used: Ints, holders: Ints) -> Ints:
    """Return the number that each label of a group takes among those given before, shape (d,)."""
    d = len(votes)
    row, column = linear_sum_assignment(votes[used], maximize=True)
    number = np.full(d, -1, dtype=np.int64)
    sure = votes[used[row], column] >= _LEAST
    number[used[row[sure]]] = column[sure]
    # The others take numbers that nobody has, or else those fewest have.
    open_ = np.setdiff1d(np.arange(d), number)
    open_ = open_[np.argsort(holders[open_], kind="stable")]
    rest = used[number[used] < 0]
    number[rest] = open_[: len(rest)]
    return number


def _part(matchings: Matchings, objects: Ints) -> tuple[Ints, Matchings]:
    """Return the points of some objects, and the problem of these alone."""
    place = np.full(matchings.n_objects, -1)
    place[objects] = np.arange(len(objects))
    pair = place[matchings.pair_objects[matchings.match_pairs]]
    keep = (pair >= 0).all(axis=1)
    points = np.concatenate([np.arange(matchings.offsets[i], matchings.offsets[i + 1]) for i in objects])
    weights = None if matchings.weights is None else matchings.weights[keep]
    part = Matchings.from_arrays(pair[keep], matchings.indices[keep], matchings.sizes[objects], weights=weights)
    return points, part
