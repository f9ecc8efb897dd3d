"""What was observed: matches by point, and who was compared with whom, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.special import ndtri

from stiefelsync.matching.matchings import Matchings

__all__ = ["Observations", "observe"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Small = NDArray[np.int32]

_MAX_FAR = 64  # objects far away that are asked who holds a label: those whose absence says most
_UNIT = 1024  # of the weights of near objects, which are whole numbers so that sums are exact
_NEARNESS = 2.0  # power of the overlap that near objects are weighted by
_LEAST_OVERLAP = 0.02  # for distances
_TIES = np.random.SeedSequence(2021)


@dataclass(frozen=True)
class Observations:
    """Matches by point, and the graph of comparisons.

    Attributes
    ----------
    offsets : (k + 1,)
        First point of every object.
    owner : (m,)
        Object of every point.
    pairs : (P, 2)
        Compared objects, i < j.
    matched : (P,)
        Matches of every pair.
    ends : (2, M)
        Points of every match.
    near_start, near_object, near_pair, near_back
        Of every object those it was compared with, in order, the number of the pair, and the place
        of the object itself in the list of the other.
    partner_start, partner
        ``partner[partner_start[i] + (a - offsets[i]) * degree + s]`` is the point of compared object
        s of i that is matched with point a, or -1.
    entries : (2, M)
        Where either end of every match is in `partner`.
    later_start, later_object, later_weight
        Compared objects that come later in the order of the prior, and their weights.
    far_start, far_object
        Objects that come later, were not compared, and are near enough to be asked.
    total : (k,)
        Weights of all earlier compared objects and a little more.
    earlier : (k,)
        About how many earlier compared objects there are.
    distance : (k, k) float32
        Along comparisons, short where objects overlap much.
    ranks : (M,) or None
        Normal scores of the ranks of the matches' weights within their pair; None where all weigh
        the same.
    """

    offsets: Ints
    owner: Small
    pairs: Ints
    matched: Ints
    ends: Ints
    near_start: Ints
    near_object: Small
    near_pair: Small
    near_back: Small
    partner_start: Ints
    partner: Small
    entries: Ints
    later_start: Ints
    later_object: Small
    later_weight: Small
    far_start: Ints
    far_object: Small
    total: Small
    earlier: Floats
    distance: NDArray[np.float32]
    ranks: Floats | None

    @property
    def acyclic(self) -> bool:
        """Whether comparisons close no cycle, so that nothing contradicts a match."""
        k, (i, j) = len(self.sizes), self.pairs.T
        graph = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(k, k))
        return len(i) + int(connected_components(graph, directed=False)[0]) == k

    @property
    def sizes(self) -> Ints:
        """Points of every object."""
        return np.diff(self.offsets)


def observe(matchings: Matchings) -> Observations:
    """Arrange what was observed."""
    k, offsets = matchings.n_objects, np.asarray(matchings.offsets, dtype=np.int64)
    sizes = np.diff(offsets)
    pairs = np.asarray(matchings.pair_objects, dtype=np.int64)
    matched = np.diff(matchings.pair_start).astype(np.int64)
    i, j = pairs.T
    numbers = np.repeat(np.arange(len(pairs)), matched)
    a = offsets[i[numbers]] + matchings.indices[:, 0]
    b = offsets[j[numbers]] + matchings.indices[:, 1]
    # The graph of comparisons, twice: by either object of a pair.
    tail, head, pair = np.append(i, j), np.append(j, i), np.tile(np.arange(len(pairs)), 2)
    order = np.lexsort((head, tail))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    degree = np.bincount(tail, minlength=k)
    near_start = np.append(0, np.cumsum(degree))
    slot = place - near_start[tail]
    back = np.append(slot[len(pairs) :], slot[: len(pairs)])
    partner_start = np.append(0, np.cumsum(sizes * degree))
    partner = np.full(partner_start[-1], -1, dtype=np.int32)
    at = partner_start[i[numbers]] + (a - offsets[i[numbers]]) * degree[i[numbers]] + slot[numbers]
    other = slot[len(pairs) + numbers]
    at_other = partner_start[j[numbers]] + (b - offsets[j[numbers]]) * degree[j[numbers]] + other
    partner[at], partner[at_other] = b, a
    overlap = np.minimum(1.0, matched / np.maximum(1, np.minimum(sizes[i], sizes[j])))
    weight = np.maximum(1, np.round(_UNIT * overlap**_NEARNESS)).astype(np.int64)
    rank = _order(k, i, j, weight)
    distance = _distances(k, i, j, overlap)
    # The prior of an object depends on those that come before it: each is told who comes after.
    first, second = np.where(rank[tail] < rank[head], tail, head), np.where(rank[tail] < rank[head], head, tail)
    once = np.flatnonzero(first == tail)
    once = once[np.lexsort((second[once], first[once]))]
    earlier = np.bincount(second[once], np.tile(weight, 2)[once], minlength=k)
    unit = float(np.median(weight)) if len(weight) else 1.0
    far_tail, far_head = _far(k, i, j, rank, distance)
    return Observations(
        offsets=offsets,
        owner=np.repeat(np.arange(k, dtype=np.int32), sizes),
        pairs=pairs,
        matched=matched,
        ends=np.stack([a, b]).astype(np.int64),
        near_start=near_start,
        near_object=head[order].astype(np.int32),
        near_pair=pair[order].astype(np.int32),
        near_back=back[order].astype(np.int32),
        partner_start=partner_start,
        partner=partner,
        entries=np.stack([at, at_other]),
        later_start=np.append(0, np.cumsum(np.bincount(first[once], minlength=k))),
        later_object=second[once].astype(np.int32),
        later_weight=np.tile(weight, 2)[once].astype(np.int32),
        far_start=np.append(0, np.cumsum(np.bincount(far_tail, minlength=k))),
        far_object=far_head.astype(np.int32),
        total=np.maximum(1, np.ceil(earlier + 0.3 * unit)).astype(np.int32),
        earlier=earlier / unit,
        distance=distance.astype(np.float32),
        ranks=_ranks(matchings, numbers),
    )


def _ranks(matchings: Matchings, numbers: Ints) -> Floats | None:
    """Return normal scores of the ranks of weights within each pair, of mean 0; ties share theirs."""
    w = matchings.weights
    if w is None or not len(w) or w.min() == w.max():
        return None
    order = np.lexsort((w, numbers))
    start = np.searchsorted(numbers, numbers)
    n = np.bincount(numbers)[numbers]
    rank = np.empty(len(w))
    rank[order] = np.arange(len(w)) - start[order] + 0.5
    # Ties: the mean rank of all matches of a pair that weigh the same.
    _, tie = np.unique(np.stack([numbers, w]), axis=1, return_inverse=True)
    rank = (np.bincount(tie, rank) / np.bincount(tie))[tie]
    z = ndtri(rank / n)
    return np.asarray(z)


def _order(k: int, i: Ints, j: Ints, weight: Ints) -> Ints:
    """Return the rank of every object: next comes the one that overlaps most with all before."""
    W = np.zeros((k, k), dtype=np.int64)
    W[i, j] = W[j, i] = weight
    rank, sums, left = np.empty(k, dtype=np.int64), np.zeros(k, dtype=np.int64), np.ones(k, dtype=bool)
    overall = W.sum(axis=1)
    for r in range(k):
        score = np.where(left, sums, -1)
        n = int(np.argmax(score))
        if score[n] <= 0:
            n = int(np.argmax(np.where(left, overall, -1)))
        left[n], rank[n] = False, r
        sums += W[n]
    return rank


def _distances(k: int, i: Ints, j: Ints, overlap: Floats) -> Floats:
    """Return lengths of shortest paths, (k, k), ties broken at random."""
    length = 1 / np.maximum(overlap, _LEAST_OVERLAP)
    D = dijkstra(sparse.csr_array((length, (i, j)), shape=(k, k)), directed=False)
    D[~np.isfinite(D)] = 1e9
    D += 0.3 * np.random.default_rng(_TIES).random((k, k))
    np.fill_diagonal(D, 0)
    return np.asarray(D)


def _far(k: int, i: Ints, j: Ints, rank: Ints, distance: Floats) -> tuple[Ints, Ints]:
    """Return pairs of objects that were not compared, the earlier first."""
    D = distance.copy()
    D[i, j] = D[j, i] = np.inf
    np.fill_diagonal(D, np.inf)
    D[rank[:, None] <= rank] = np.inf  # of an object, those that come before
    width = min(k, _MAX_FAR)
    chosen = np.argpartition(D, width - 1, axis=1)[:, :width] if width else np.empty((k, 0), dtype=np.int64)
    known = np.take_along_axis(D, chosen, axis=1) < np.inf
    later, earlier = np.nonzero(known)[0], chosen[known]
    order = np.lexsort((later, earlier))
    return earlier[order], later[order]
