"""Clusters of large total value: contraction of a signed graph by means, then moves of single vertices."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.graph import connected, numbered

__all__ = ["clusters", "total_value"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_GAIN = 1e-9  # a move must win more than what rounding may pretend


def clusters(
    n: int,
    ends: Ints,
    values: Floats,
    *,
    apart: Sequence[Ints] = (),
    missing: float = 0.0,
    sweeps: int = 20,
    stop: Callable[[int, int], bool] = lambda done, total: False,
) -> tuple[Ints, int]:
    """Return a cluster for each of n vertices, (n,), and how many single moves were made.

    Parameters
    ----------
    ends : (M, 2) int64
        Different pairs of different vertices.
    values : (M,) float64
        What it is worth to have both ends in one cluster; negative values speak against it.
    apart
        Arrays, (n,) int64: vertices with the same number of at least 0 in one of them are never in
        one cluster.
    missing
        Value, at most 0, of every pair in one cluster that `ends` does not have.
    sweeps
        Most rounds of single moves.
    stop
        Called with the number of vertices done and n; a true value ends the work, what is done
        stays.

    Notes
    -----
    Two clusters can gain by being joined only where some pair between them has a positive value, so
    the components of the positive pairs are solved one by one; those of two vertices at once.
    Inside one every contraction takes the pair of clusters of largest mean value from a heap and
    adds the smaller list of neighbours to the larger: O(M log² M) in all. The mean, over all pairs
    of vertices, and not the sum: large clusters would swallow others.
    """
    labels = np.arange(n)
    if not len(ends):
        return labels, 0
    part = connected(n, ends[values > 0])
    inside = part[ends[:, 0]] == part[ends[:, 1]]
    ends, values = ends[inside], values[inside]
    size = np.bincount(part, minlength=n)
    a, b = ends.T
    # A component of two vertices is one pair of positive value: joined, unless it must not be.
    two = np.flatnonzero(size[part[a]] == 2)
    allowed = np.ones(len(two), dtype=bool)
    for key in apart:
        allowed &= (key[a[two]] != key[b[two]]) | (key[a[two]] < 0)
    labels[b[two[allowed]]] = a[two[allowed]]
    # The others in order of their components, so that each is one stretch of rows.
    rest = np.flatnonzero(size[part[a]] > 2)
    rest = rest[np.argsort(part[a[rest]], kind="stable")]
    cuts = np.flatnonzero(np.diff(part[a[rest]], prepend=-1, append=-1))
    moves, done = 0, n - int(size[size > 2].sum())
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        rows = rest[first:last]
        vertices, compact = np.unique(ends[rows], return_inverse=True)
        keys = [key[vertices] for key in apart]
        found, moved = _component(len(vertices), compact.reshape(-1, 2), values[rows], keys, missing, sweeps)
        labels[vertices] = vertices[found]
        moves, done = moves + moved, done + len(vertices)
        if stop(done, n):
            break
    return numbered(labels), moves


def _component(
    n: int, ends: Ints, values: Floats, keys: Sequence[Ints], missing: float, sweeps: int
) -> tuple[Ints, int]:
    """Solve one component; the cluster of every vertex is named by one of its members."""
    graph: list[dict[int, float]] = [{} for _ in range(n)]
    for (a, b), value in zip(ends.tolist(), values.tolist(), strict=True):
        graph[a][b] = graph[b][a] = value
    # What a cluster holds of every group whose members must stay apart.
    rows = zip(*_lists(keys, n), strict=True)
    marks = [tuple((group, key) for group, key in enumerate(row) if key >= 0) for row in rows]
    owner = _contract(graph, marks, missing)
    moves = _move(graph, owner, marks, missing, sweeps)
    return np.array(owner, dtype=np.int64), moves


def _lists(keys: Sequence[Ints], n: int) -> list[list[int]]:
    return [key.tolist() for key in keys] or [[-1] * n]


def _contract(graph: list[dict[int, float]], marks: list[tuple[tuple[int, int], ...]], missing: float) -> list[int]:
    """Join clusters, those of largest mean value first, as long as some mean is positive.

    Return each vertex' one.
    """
    n = len(graph)
    # Sums over scored pairs count each from the value of one that was not scored, which every pair
    # has at least.
    sums = [{other: value - missing for other, value in neighbours.items()} for neighbours in graph]
    held = [set(own) for own in marks]
    members: list[list[int]] = [[v] for v in range(n)]

    def worth(a: int, b: int) -> float:
        """Return the mean value of the pairs between two clusters, those that were never scored included."""
        return sums[a][b] / (len(members[a]) * len(members[b])) + missing

    heap = [(-worth(a, b), a, b) for a, row in enumerate(graph) for b, value in row.items() if a < b and value > 0]
    heapq.heapify(heap)
    while heap:
        negative, a, b = heapq.heappop(heap)
        if not members[a] or not members[b] or b not in sums[a]:
            continue
        now = worth(a, b)
        if now != -negative:
            # Means that grew were entered again when they did; those that shrank meanwhile are
            # entered now.
            if 0 < now < -negative:
                heapq.heappush(heap, (-now, a, b))
            continue
        if not held[a].isdisjoint(held[b]):
            del sums[a][b], sums[b][a]
            continue
        if len(sums[a]) > len(sums[b]):
            a, b = b, a
        # From here on b stands for both, and what was between a and others is between b and them.
        members[b] += members[a]
        members[a] = []
        held[b] |= held[a]
        del sums[a][b], sums[b][a]
        for other, value in sums[a].items():
            del sums[other][a]
            sums[b][other] = sums[other][b] = sums[b].get(other, 0.0) + value
            now = worth(b, other)
            if now > 0:
                heapq.heappush(heap, (-now, *((b, other) if b < other else (other, b))))
        sums[a] = {}
    owner = [0] * n
    for cluster, inside in enumerate(members):
        for v in inside:
            owner[v] = cluster
    return owner


def _move(
    graph: list[dict[int, float]],
    owner: list[int],
    marks: list[tuple[tuple[int, int], ...]],
    missing: float,
    sweeps: int,
) -> int:
    """Move single vertices to where they are worth most, or out, until none gains.

    Changes `owner`, counts moves.
    """
    inside: list[set[int]] = [set() for _ in graph]
    for v, c in enumerate(owner):
        inside[c].add(v)
    held = Counter((owner[v], mark) for v, own in enumerate(marks) for mark in own)
    # Names of clusters that nobody has.
    free = [c for c, members in enumerate(inside) if not members]
    waiting = set(range(len(graph)))
    moves = 0
    for _ in range(sweeps):
        asked, waiting = sorted(waiting), set()
        for v in asked:
            here = owner[v]
            sums: dict[int, float] = {}
            counts: dict[int, int] = {}
            for other, value in graph[v].items():
                c = owner[other]
                sums[c] = sums.get(c, 0.0) + value
                counts[c] = counts.get(c, 0) + 1
            if missing:
                sums = {c: value + missing * (len(inside[c]) - (c == here) - counts[c]) for c, value in sums.items()}
            own = sums.get(here, missing * (len(inside[here]) - 1))
            best, there = (0.0, -1) if len(inside[here]) > 1 else (own, here)
            for c, value in sums.items():
                if c != here and value > best and not any(held[c, mark] for mark in marks[v]):
                    best, there = value, c
            if there == here or best <= own + _GAIN:
                continue
            if there < 0:
                there = free.pop()
            inside[here].remove(v)
            inside[there].add(v)
            if not inside[here]:
                free.append(here)
            for mark in marks[v]:
                held[here, mark] -= 1
                held[there, mark] += 1
            owner[v] = there
            moves += 1
            # What others are worth where they are changes with their neighbours, and with how many
            # are there at all.
            waiting.update(graph[v], *((inside[here], inside[there]) if missing else ()))
        if not waiting:
            break
    return moves


def total_value(ends: Ints, values: Floats, labels: Ints, missing: float = 0.0) -> float:
    """Return the value of all pairs inside clusters.

    Examples
    --------
    >>> total_value(np.array([[0, 1], [1, 2]]), np.array([2.0, -1.0]), np.array([0, 0, 1]))
    2.0
    """
    inside = labels[ends[:, 0]] == labels[ends[:, 1]]
    size = np.bincount(labels)
    unscored = int((size * (size - 1) // 2).sum()) - int(inside.sum())
    return float(values[inside].sum() + missing * unscored)
