"""Groups, parts and regions, against slow ways."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.distributed import groups as module
from stiefelsync.distributed.groups import group_by_overlap, parts, regions


def scattered(seed: int, k: int = 14) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of objects and how many matches they have; some objects have none, some numbers are equal."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(k - 1) for j in range(i + 1, k - 1) if rng.random() < 0.25 and 5 not in (i, j)]
    return np.array(pairs), rng.integers(1, 6, len(pairs))


def literal_groups(pairs: np.ndarray, counts: np.ndarray, k: int, size: int) -> list[int]:
    """From the first object left, whoever has most matches into the group is added, the first left if none has any."""
    shared = {tuple(pair): int(n) for pair, n in zip(pairs.tolist(), counts, strict=True)}
    group, number = [-1] * k, 0
    while -1 in group:
        members: list[int] = []
        while len(members) < size and -1 in group:
            into = {
                i: sum(shared.get((min(i, j), max(i, j)), 0) for j in members) for i in range(k) if group[i] < 0
            }  # fmt: skip
            chosen = max(into, key=lambda i: (into[i], -i))
            group[chosen] = number
            members.append(chosen)
        number += 1
    return group


@pytest.mark.parametrize("size", [1, 3, 5, 20])
@pytest.mark.parametrize("seed", range(4))
def test_groups_grow_by_most_matches(seed: int, size: int) -> None:
    pairs, counts = scattered(seed)
    assert group_by_overlap(pairs, counts, 14, size).tolist() == literal_groups(pairs, counts, 14, size)


@pytest.mark.parametrize("seed", range(4))
def test_regions_are_groups_of_groups(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GROUPS_PER_REGION", 2)
    pairs, counts = scattered(seed)
    groups = np.array(literal_groups(pairs, counts, 14, 3))
    between: dict[tuple[int, int], int] = {}
    for (i, j), n in zip(pairs.tolist(), counts.tolist(), strict=True):
        low, high = sorted((int(groups[i]), int(groups[j])))
        if low != high:
            between[low, high] = between.get((low, high), 0) + n
    n = int(groups.max()) + 1
    of = np.array(literal_groups(np.array(list(between)), np.array(list(between.values())), n, 2))[groups]
    found = regions(groups, pairs, counts)
    assert len(found) == of.max() + 1
    for number, region in enumerate(found):
        assert region.objects.tolist() == np.flatnonzero(of == number).tolist()
        inside = [t for t, (i, j) in enumerate(pairs) if of[i] == of[j] == number and groups[i] != groups[j]]
        crossing = [t for t, (i, j) in enumerate(pairs) if of[i] != of[j] and min(of[i], of[j]) == number]
        assert (region.inside.tolist(), region.crossing.tolist()) == (inside, crossing)


def test_ten_groups_are_a_region_and_nothing_has_none() -> None:
    chain = np.stack([np.arange(24), np.arange(1, 25)], axis=1)
    found = regions(np.arange(25), chain, np.ones(24, dtype=np.int64))
    assert [len(region.objects) for region in found] == [10, 10, 5]
    assert parts(np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.int64)) == []
