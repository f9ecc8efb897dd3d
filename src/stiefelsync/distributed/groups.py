"""Cut the objects of a problem, and its pairs, into groups that are solved apart."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import InputError
from stiefelsync.sync.tracks.integer_arrays import ordered, runs

__all__ = ["Part", "check_groups", "group_by_overlap", "parts", "regions"]

Ints = NDArray[np.int64]

# With a hundred cameras along a way to each group, one cluster in thirty has matches with other
# regions.
_GROUPS_PER_REGION = 10


def group_by_overlap(pair_objects: NDArray[np.integer], counts: Ints, k: int, size: int) -> Ints:
    """Group objects that have many matches with each other.

    From the first object that has no group yet, the one with most matches into the group is added
    until it has `size` objects, the first on a tie, or if none has a match with it. So groups
    depend on the numbers of matches and `size`.

    Parameters
    ----------
    pair_objects : (P, 2) int
        Pairs of objects with matches.
    counts : (P,) int64
        How many.

    Returns
    -------
    group : (k,) int64
        Numbered from 0.

    Notes
    -----
    O((k + P) log P), in Python.

    Examples
    --------
    >>> group_by_overlap(np.array([[0, 2], [1, 2], [1, 3]]), np.array([9, 1, 5]), 4, 2).tolist()
    [0, 1, 0, 1]
    """
    if size < 1:
        raise InputError(f"a group must have at least one object, got {size}")
    ends = pair_objects.reshape(-1, 2).T.ravel()
    order, start = ordered(ends), np.append(0, np.cumsum(np.bincount(ends, minlength=k))).tolist()
    others, shared = np.roll(ends, len(counts))[order], np.tile(counts, 2)[order]
    group, number, alone = [-1] * k, 0, 0
    while True:
        into: dict[int, int] = {}
        queue: list[tuple[int, int]] = []
        for _ in range(size):
            while queue and (group[queue[0][1]] >= 0 or into[queue[0][1]] != -queue[0][0]):
                heapq.heappop(queue)
            while alone < k and group[alone] >= 0:
                alone += 1
            if not queue and alone == k:
                return np.array(group, dtype=np.int64)
            chosen = heapq.heappop(queue)[1] if queue else alone
            group[chosen] = number
            near = slice(start[chosen], start[chosen + 1])
            for other, count in zip(others[near].tolist(), shared[near].tolist(), strict=True):
                if group[other] < 0:
                    into[other] = into.get(other, 0) + count
                    heapq.heappush(queue, (-into[other], other))
        number += 1


def check_groups(groups: ArrayLike, k: int) -> Ints:
    """Return given groups, one number per object, renumbered from 0 by their first objects."""
    given = np.asarray(groups)
    if given.shape != (k,) or not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"groups must be one whole number per object, shape ({k},), got {given.dtype} {given.shape}")
    _, first, number = np.unique(given, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[number]


@dataclass(frozen=True)
class Part:
    """One group, and the pairs of objects that are its own.

    Attributes
    ----------
    objects : (o,) int64
        Objects of the group, ascending.
    inside : (p,) int64
        Numbers of the pairs of these objects.
    crossing : (c,) int64
        Numbers of the pairs with one object here and the other in a later group.
    """

    objects: Ints
    inside: Ints
    crossing: Ints


def parts(groups: Ints, pair_objects: NDArray[np.integer]) -> list[Part]:
    """Share the pairs of objects out among the groups.

    Examples
    --------
    >>> [(p.inside.tolist(), p.crossing.tolist()) for p in parts(np.array([0, 0, 1]), np.array([[0, 1], [1, 2]]))]
    [([0], [1]), ([], [])]
    """
    n = int(groups.max(initial=-1)) + 1
    one, two = groups[pair_objects].T.reshape(2, -1)
    same, owner = one == two, np.minimum(one, two)
    shares = []
    for chosen, group in (
        (np.arange(len(groups)), groups),
        (np.flatnonzero(same), owner),
        (np.flatnonzero(~same), owner),
    ):
        counts = np.bincount(group[chosen], minlength=n)
        shares.append(np.split(chosen[np.argsort(group[chosen], kind="stable")], np.cumsum(counts)[:-1]))
    return [Part(*three) for three in zip(*shares, strict=True)] if n else []


def regions(groups: Ints, pair_objects: NDArray[np.integer], counts: Ints) -> list[Part]:
    """Put groups that have many matches with each other together, ten at a time.

    Returns
    -------
    list of Part
        Inside them are the pairs of objects of different groups.

    Examples
    --------
    >>> found = regions(np.array([0, 0, 1]), np.array([[0, 1], [1, 2]]), np.array([5, 5]))
    >>> [(region.objects.tolist(), region.inside.tolist()) for region in found]
    [([0, 1, 2], [1])]
    """
    n = int(groups.max(initial=-1)) + 1
    both = np.sort(groups[pair_objects].reshape(-1, 2), axis=1)
    different = both[:, 0] != both[:, 1]
    across = np.flatnonzero(different)
    order = ordered(*both[across].T)
    key, first, _ = runs(both[across[order]] @ np.array([n, 1]))
    shared = np.add.reduceat(counts[across[order]], first) if len(key) else key
    region = group_by_overlap(np.stack(np.divmod(key, max(n, 1)), axis=1), shared, n, _GROUPS_PER_REGION)
    found = parts(region[groups], pair_objects)
    return [Part(part.objects, part.inside[different[part.inside]], part.crossing) for part in found]
