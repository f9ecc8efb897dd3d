"""The parts of the universe estimate, counted in loops as its documentation states them, on small problems."""

from __future__ import annotations

from itertools import combinations
from math import ceil

import numpy as np
import pytest
from scipy.stats import beta

from stiefelsync import datasets
from stiefelsync.matching import Matchings, estimate_universe, universe


def near_by(seed, *, wrong=0.4, window=False):
    """Return a problem in which each object was compared with the next three only; all see all, or what is near."""
    if not window:
        problem = datasets.synthetic(12, 12, 0.6, wrong, rng=seed)[0]
    else:
        rng = np.random.default_rng(seed)
        labels = [3 * i + rng.permutation(14)[:10] for i in range(12)]
        clean = Matchings.from_labels(np.concatenate(labels), [10] * 12)
        blocks = {pair: np.stack([x[:, 0], rng.permutation(x[:, 1])], 1) if sum(pair) % 2 == 0 else x
                  for pair, x in clean.pairs().items()}  # fmt: skip
        problem = Matchings.from_pairs(blocks, clean.sizes)
    i, j = problem.pair_objects[problem.match_pairs].T
    return problem.keep((j - i) <= 3)


PROBLEMS = {
    "all compared": lambda: datasets.synthetic(15, 8, 0.6, 0.5, rng=100)[0],
    "uneven": lambda: datasets.shapes.uneven(12, 14, error=0.5, rng=100)[0],
    "uneven, other": lambda: datasets.shapes.uneven(12, 14, error=0.5, rng=101)[0],
    "compared with three": lambda: near_by(102),
    "compared with three, clean": lambda: near_by(105, wrong=0.1),
    "a window": lambda: near_by(103, window=True),
}


@pytest.fixture(params=sorted(PROBLEMS))
def problem(request):
    return PROBLEMS[request.param]()


class Literal:
    """A problem as sets of points and objects."""

    def __init__(self, problem):
        self.k, self.of = problem.n_objects, problem.point_objects.tolist()
        self.sizes = problem.sizes.tolist()
        self.beside = {a: set() for a in range(len(self.of))}
        for a, b in problem.endpoints.tolist():
            self.beside[a].add(b)
            self.beside[b].add(a)
        self.met = {
            i: {self.of[b] for a in self.beside if self.of[a] == i for b in self.beside[a]} for i in range(self.k)
        }
        self.matches = [len(self.beside[a]) for a in self.beside]

    def distances(self):
        """Return how many comparisons lie between objects that comparisons connect."""
        far = {}
        for i in range(self.k):
            found, t = {i}, 0
            while new := {l for j in found for l in self.met[j]} - found:
                t += 1
                far |= {(i, l): t for l in new}
                found |= new
        return far

    def beyond(self):
        """s: objects expected to see a point, per compared one, those at distance t counting r^(t-1)."""
        far, rate = self.distances(), {}
        for t in (1, 2):
            pairs = [pair for pair, distance in far.items() if distance == t]
            seen = [{self.of[b] for b in self.beside[a]} for a in self.beside]
            both = sum(i in s and l in s for i, l in pairs for s in seen)
            rate[t] = both / sum(self.sizes[j] for i, l in pairs for j in self.met[i] & self.met[l])
        r = min(rate[2] / rate[1], 1.0)
        fall = 1.0 if r > 0.9 else r**2  # "falls about half as fast as sight does"
        return sum(fall ** (t - 1) for t in far.values()) / sum(t == 1 for t in far.values())

    def shares(self, s):
        """1 / D_aa, D_aa = 1 + s·matches; with s > 1 corrected for the chance in few comparisons."""
        rows = sum(len(self.met[i]) for i in self.of)
        missed = rows / sum(self.matches) - 1
        correction = 1 + missed * len(self.of) / rows * (1 - 1 / s)
        return [1 / (1 + s * n) / correction for n in self.matches]

    def closure(self):
        """Share of two matches in a row, between objects all compared, that a third one closes."""
        wedges = [
            (x, y)
            for a in self.beside
            for x, y in combinations(self.beside[a], 2)
            if self.of[y] in self.met[self.of[x]]
        ]
        return sum(y in self.beside[x] for x, y in wedges) / len(wedges)

    def spread(self):
        """By how much the mean of 1 / degree grows as wrong matches are allowed for in the spread of degrees."""
        seen = [
            (n / len(self.met[i]), len(self.met[i]))
            for n, i in zip(self.matches, self.of, strict=True)
            if len(self.met[i]) > 1
        ]
        x = sum(s for s, _ in seen) / len(seen)
        chance = [x * (1 - x) / n for _, n in seen]
        excess = sum((s - x) ** 2 - c for (s, _), c in zip(seen, chance, strict=True)) / len(seen)
        if excess <= 4 * (2 * sum(c**2 for c in chance) / len(seen)) ** 0.5 / len(seen) ** 0.5:
            return 1.0
        right, size = self.closure() ** (1 / 3), sum(n for _, n in seen) / len(seen) + 1

        def inverse(variance):
            kappa = max(x * (1 - x) / variance - 1, 1 / x)
            draws = [beta.ppf((t + 0.5) / 400, kappa * x, kappa * (1 - x)) for t in range(400)]
            return sum((1 - (1 - y) ** size) / (size * y) for y in draws) / 400

        return max(inverse(excess / right**2) / inverse(excess), 1.0)


def arguments(problem):
    compared = universe._compared(problem)
    matches = np.bincount(problem.endpoints.ravel(), minlength=problem.n_points)
    return compared, matches, np.diff(compared.indptr)


def test_objects_that_see_a_point_beyond_comparisons(problem):
    it, (compared, matches, partners) = Literal(problem), arguments(problem)
    assert compared.toarray().tolist() == [[float(j in it.met[i]) for j in range(it.k)] for i in range(it.k)]
    if 2 not in it.distances().values():
        assert universe._beyond(problem, compared) == 1.0
    else:
        assert universe._beyond(problem, compared) == pytest.approx(it.beyond(), rel=1e-12)
    for s in (1.0, 1.7):
        np.testing.assert_allclose(universe._shares(problem, matches, partners, s), it.shares(s), rtol=1e-12)


def test_the_spread_of_degrees(problem):
    it, (_, matches, partners) = Literal(problem), arguments(problem)
    assert universe._closure(problem) == pytest.approx(it.closure(), rel=1e-12)
    assert universe._spread(problem, matches, partners) == pytest.approx(it.spread(), rel=1e-9)


def test_the_problems_ask_what_they_should():
    found = {name: Literal(make()) for name, make in PROBLEMS.items()}
    assert found["uneven"].spread() > 1.05
    assert found["all compared"].spread() == 1
    everywhere, some, window = (
        found[name].beyond() for name in ("compared with three, clean", "compared with three", "a window")
    )
    assert everywhere == 66 / 30  # everybody may see everything: 66 pairs of objects, 30 of which were compared
    assert 1.01 < window < 1.5 < some < 2


def test_without_a_clear_gap_the_sum_of_the_eigenvalues_and_a_tenth(problem):
    it, estimate = Literal(problem), estimate_universe(problem)
    assert not estimate.sure
    parts, left = [], set(it.beside)
    while left:
        part = {left.pop()}
        while new := {b for a in part for b in it.beside[a]} - part:
            part |= new
        left -= part
        parts.append(part)
    in_conflict = [part for part in parts if len({it.of[a] for a in part}) < len(part)]
    s = it.beyond() if 2 in it.distances().values() else 1.0
    share = it.shares(s)
    vague = 0.0
    for part in in_conflict:
        of = [it.of[a] for a in part]
        vague += max(it.spread() * sum(share[a] for a in part), max(of.count(i) for i in of))
    assert estimate.size == len(parts) - len(in_conflict) + ceil(1.1 * vague)
    assert estimate.reason.startswith(f"{len(in_conflict)} of {len(parts)} connected components have conflicts")
    assert estimate.floor == max(it.sizes)
