"""Clusters of scored records where every source holds everything once: at most one record of a source in each."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.graph import connected, numbered

__all__ = ["exclusive_clusters"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Row = dict[int, float]

# What two clusters are worth to each other: so much of the largest value between them and the rest
# of the mean. Scores of a record err together, so many poor ones prove little against a good one;
# on simulated records (seeds 10 to 13) 1/2 to 3/4 were equally good, 0 and 1 worse by .002 to .003.
_STRONGEST = 2 / 3
_STRANGERS = -5.0  # value of a record in a cluster none of whose others it was compared with
_GAIN = 1e-9  # a move must win more than what rounding may pretend


def exclusive_clusters(
    n: int,
    ends: Ints,
    values: Floats,
    source: Ints,
    *,
    sweeps: int = 20,
    stop: Callable[[int, int], bool] = lambda done, total: False,
) -> tuple[Ints, int, Floats]:
    """Return a cluster for each of n records, (n,), how many moves were made, and what the best other one would gain.

    The last, (n,), is at most 0 where the work came to its end, and -inf for a record that has no
    other place.

    Parameters
    ----------
    ends : (M, 2) int64
        Different pairs of different records.
    values : (M,) float64
        What it is worth to have both in one cluster; negative values speak against it.
    source : (n,) int64
        Records of one source are never in one cluster.
    sweeps
        Most rounds of moves.
    stop
        Called with the number of records done and n; a true value ends the work, what is done
        stays.

    Notes
    -----
    Clusters are joined, those first that are worth most to each other, as long as that is positive.
    Then single records move to where they are worth more, or out; where the place of their source
    is taken, who is there goes to its next best place, if both together gain. Deterministic; components
    of the positive values are solved one by one, each in O(M log M) and M per round.

    Examples
    --------
    >>> ends, values = np.array([[0, 1], [1, 2], [0, 2]]), np.array([2.0, 1.0, -3.0])
    >>> exclusive_clusters(3, ends, values, np.array([0, 1, 0]))[0].tolist()
    [0, 0, 1]
    """
    labels, moves, gains = np.arange(n), 0, np.full(n, -np.inf)
    # Records of one source never meet, so what was said of such a pair does not matter.
    apart = source[ends[:, 0]] != source[ends[:, 1]]
    ends, values = ends[apart], values[apart]
    part = connected(n, ends[values > 0])
    inside = part[ends[:, 0]] == part[ends[:, 1]]
    ends, values = ends[inside], values[inside]
    # In order of their components, so that each is one stretch of rows.
    order = np.argsort(part[ends[:, 0]], kind="stable")
    cuts = np.flatnonzero(np.diff(part[ends[order, 0]], prepend=-1, append=-1))
    done = 0
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        rows = order[first:last]
        records, compact = np.unique(ends[rows], return_inverse=True)
        graph: list[Row] = [{} for _ in records]
        for (a, b), value in zip(compact.reshape(-1, 2).tolist(), values[rows].tolist(), strict=True):
            graph[a][b] = graph[b][a] = value
        sources = source[records].tolist()
        owner = _join(graph, sources)
        found = _Clusters(graph, sources, owner)
        moves += found.improve(sweeps)
        labels[records] = records[np.array(owner)]
        gains[records] = [found.best_move(v)[0] for v in range(len(records))]
        done += len(records)
        if stop(done, n):
            break
    return numbered(labels), moves, gains


def _worth(values: list[float]) -> float:
    """Return what a record is worth to a cluster by the values of the pairs that were compared."""
    return _STRONGEST * max(values) + (1 - _STRONGEST) * sum(values) / len(values)


def _join(graph: list[Row], sources: list[int]) -> list[int]:
    """Join clusters, those first that are worth most to each other; return the cluster of each record."""
    n = len(graph)
    members = [[v] for v in range(n)]
    held = [{s} for s in sources]
    # Of every two clusters with a pair between them: the largest value, the sum, and the count.
    between = [{other: (value, value, 1) for other, value in row.items()} for row in graph]

    def worth(a: int, b: int) -> float:
        largest, total, count = between[a][b]
        return _STRONGEST * largest + (1 - _STRONGEST) * total / count

    heap = [(-worth(a, b), a, b) for a, row in enumerate(between) for b in row if a < b and worth(a, b) > 0]
    heapq.heapify(heap)
    while heap:
        negative, a, b = heapq.heappop(heap)
        if b not in between[a]:
            continue
        now = worth(a, b)
        if now != -negative:
            # Those that grew were entered again when they did, those that shrank are entered now.
            if 0 < now < -negative:
                heapq.heappush(heap, (-now, a, b))
            continue
        if not held[a].isdisjoint(held[b]):
            del between[a][b], between[b][a]
            continue
        if len(between[a]) > len(between[b]):
            a, b = b, a
        # From here on b stands for both.
        members[b] += members[a]
        held[b] |= held[a]
        del between[b][a]
        for other, mine in between[a].items():
            if other == b:
                continue
            del between[other][a]
            theirs = between[b].get(other)
            if theirs is not None:
                mine = max(mine[0], theirs[0]), mine[1] + theirs[1], mine[2] + theirs[2]
            between[b][other] = between[other][b] = mine
            now = worth(b, other)
            if now > 0:
                heapq.heappush(heap, (-now, *((b, other) if b < other else (other, b))))
        members[a], between[a] = [], {}
    owner = [0] * n
    for cluster, inside in enumerate(members):
        for v in inside:
            owner[v] = cluster
    return owner


class _Clusters:
    """Clusters whose records move one by one, or change places; `owner` is changed in place."""

    def __init__(self, graph: list[Row], sources: list[int], owner: list[int]) -> None:
        self.graph, self.sources, self.owner = graph, sources, owner
        # Who is there of every source, by cluster.
        self.places: list[dict[int, int]] = [{} for _ in graph]
        for v, c in enumerate(owner):
            self.places[c][sources[v]] = v
        self.empty = [c for c, places in enumerate(self.places) if not places]

    def value(self, v: int, cluster: int, without: int = -1) -> float:
        """Return what a record is worth to a cluster of others, one of them perhaps left out; 0 to nobody."""
        others = [other for other in self.places[cluster].values() if other not in (v, without)]
        known = [self.graph[v][other] for other in others if other in self.graph[v]]
        return _worth(known) if known else _STRANGERS if others else 0.0

    def improve(self, sweeps: int) -> int:
        """Move records until none gains, at most so many rounds; return how many moved."""
        moves = 0
        for _ in range(sweeps):
            moved = sum(self.moved(v) for v in range(len(self.graph)))
            moves += moved
            if not moved:
                break
        return moves

    def best_move(self, v: int) -> tuple[float, int]:
        """Return what the best move of a record would gain, and the cluster it leads to, -1 for one of its own."""
        source, here = self.sources[v], self.owner[v]
        own = self.value(v, here)
        # Alone it is worth nothing.
        best, there = (-own, -1) if len(self.places[here]) > 1 else (-np.inf, here)
        near = {self.owner[other]: None for other, value in self.graph[v].items() if value > 0}
        for cluster in near:
            if cluster == here:
                continue
            taken = self.places[cluster].get(source, -1)
            gain = self.value(v, cluster, taken) - own
            if taken >= 0:
                gain += self.refuge(taken, v)[0] - self.value(taken, cluster)
            if gain > best:
                best, there = gain, cluster
        return best, there

    def moved(self, v: int) -> bool:
        """Move a record to where that gains most, if anything does."""
        source, here = self.sources[v], self.owner[v]
        gain, there = self.best_move(v)
        if there == here or gain <= _GAIN:
            return False
        if there < 0:
            self.put(v, self.empty.pop())
            return True
        taken = self.places[there].get(source, -1)
        refuge = self.refuge(taken, v)[1] if taken >= 0 else -1
        self.put(v, there)
        if taken >= 0:
            self.put(taken, refuge if refuge >= 0 else self.empty.pop())
        return True

    def refuge(self, v: int, guest: int) -> tuple[float, int]:
        """Return what a record is worth at best where a guest of its source takes its place, and where, -1 for out.

        It may go where nobody of its source is, or where the guest came from.
        """
        source, best, there = self.sources[v], 0.0, -1
        near = {self.owner[other]: None for other, value in self.graph[v].items() if value > 0}
        for cluster in near:
            if cluster != self.owner[v] and self.places[cluster].get(source, guest) == guest:
                value = self.value(v, cluster, guest)
                if value > best:
                    best, there = value, cluster
        return best, there

    def put(self, v: int, cluster: int) -> None:
        """Put a record into a cluster, in the place of its source."""
        source, before = self.sources[v], self.owner[v]
        if self.places[before].get(source) == v:
            del self.places[before][source]
            if not self.places[before]:
                self.empty.append(before)
        self.places[cluster][source] = v
        self.owner[v] = cluster
