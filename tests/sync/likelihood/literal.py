"""The model in slow Python, sum by sum, as `sync/likelihood/model.py` describes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from stiefelsync.datasets import synthetic
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.observations import Observations

BINS, REACHES = 12, 3


def matched_points(seen: Observations) -> list[dict[int, int]]:
    """Return of every point its matches: object ↦ point."""
    found: list[dict[int, int]] = [{} for _ in seen.owner]
    for a, b in seen.ends.T.tolist():
        found[a][int(seen.owner[b])] = b
        found[b][int(seen.owner[a])] = a
    return found


def holders(seen: Observations, labels: Any) -> dict[int, dict[int, int]]:
    """Return label ↦ object ↦ point."""
    held: dict[int, dict[int, int]] = {}
    for a, c in enumerate(np.asarray(labels).tolist()):
        assert int(seen.owner[a]) not in held.setdefault(c, {}), "two points of an object share a label"
        held[c][int(seen.owner[a])] = a
    return held


def earlier(seen: Observations) -> tuple[list[dict[int, int]], list[set[int]]]:
    """Return of every object the earlier compared ones and their weights, and the earlier ones far away."""
    k = len(seen.sizes)
    near: list[dict[int, int]] = [{} for _ in range(k)]
    far: list[set[int]] = [set() for _ in range(k)]
    for i in range(k):
        for x in range(seen.later_start[i], seen.later_start[i + 1]):
            near[seen.later_object[x]][i] = int(seen.later_weight[x])
        for x in range(seen.far_start[i], seen.far_start[i + 1]):
            far[seen.far_object[x]].add(i)
    return near, far


def cells(seen: Observations, labels: Any) -> dict[tuple[int, int], tuple[int, int]]:
    """Return (object, label) ↦ the weights of earlier near holders, and how many earlier far ones there are."""
    near, far = earlier(seen)
    found = {}
    for c, of in holders(seen, labels).items():
        for i in range(len(seen.sizes)):
            found[i, c] = sum(w for j, w in near[i].items() if j in of), sum(j in of for j in far[i])
    return found


def bin_of(seen: Observations, i: int, near: int, far: int) -> int:
    """Return the number of a cell's rate."""
    return min(far, REACHES - 1) * BINS + min(BINS * near // int(seen.total[i]), BINS - 1)


def log_probability(seen: Observations, labels: Any, rates: Any, weight: Any = None) -> float:
    """Return the log-probability of labels and matches at fixed rates, but for a constant."""
    held, partner, value = holders(seen, labels), matched_points(seen), 0.0
    for p, (i, j) in enumerate(seen.pairs.tolist()):
        for of in held.values():
            if i in of and j in of:
                a, b = of[i], of[j]
                if partner[a].get(j) == b:
                    value += rates.worth[p, 0] + (0.0 if weight is None else weight[a, b])
                else:
                    value += rates.worth[p, 1 + (j in partner[a])] + rates.worth[p, 3 + (i in partner[b])]
    begun: Counter[int] = Counter()
    for (i, c), (near, far) in cells(seen, labels).items():
        if near:
            value += (rates.held if i in held[c] else rates.absent)[bin_of(seen, i, near, far)]
        elif i in held[c]:
            value += rates.birth[i]
            begun[c] += 1
    return float(value + rates.back * sum(n - 1 for n in begun.values()))


def labellings(sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield all labellings without two equal labels in an object, each once, numbered in order of appearance."""
    owner = [i for i, n in enumerate(sizes) for _ in range(n)]

    def go(labels: list[int]) -> Iterator[tuple[int, ...]]:
        a = len(labels)
        if a == len(owner):
            yield tuple(labels)
            return
        for c in range(max(labels, default=-1) + 2):
            if not any(labels[b] == c and owner[b] == owner[a] for b in range(a)):
                yield from go([*labels, c])

    yield from go([])


def numbered(labels: Any) -> tuple[int, ...]:
    """Return labels numbered in order of appearance."""
    number: dict[int, int] = {}
    return tuple(number.setdefault(c, len(number)) for c in np.asarray(labels).tolist())


def problem(kind: str) -> tuple[Matchings, Any]:
    """Return a problem of some twenty to a hundred points, and its truth."""
    matchings, truth = synthetic(7, 9, 1.0 if kind == "full" else 0.7, 0.4, noise="mix", rng=3)
    i, j = matchings.pair_objects[matchings.match_pairs].T
    if kind == "nearby":  # some were not compared, one with nobody
        matchings = matchings.keep((j - i <= 2) & (j < 8))
    if kind == "weighted":
        matchings = matchings.with_weights(np.random.default_rng(0).random(matchings.n_matches).round(1) + 0.1)
    return matchings, truth


KINDS = ("full", "compared", "nearby", "weighted")
