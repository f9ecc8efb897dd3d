"""The rules of tracks, written out edge by edge as their documentation states them, on small random quotients."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from stiefelsync.sync.tracks import rules
from stiefelsync.sync.tracks.clusters import Quotient, _broken


def quotient(seed: int, n: int = 9, share: float = 0.45) -> Quotient:
    """Return n clusters of one to three points of different objects, with random edges, counts and weights."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=n)
    objects = np.concatenate([np.sort(rng.permutation(20)[:size]) for size in sizes])
    pairs = [pair for pair in combinations(range(n), 2) if rng.random() < share]
    A, B = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    count = rng.integers(1, 4, size=len(A))
    return Quotient(
        points=np.arange(len(objects)), objects=objects, start=np.append(0, np.cumsum(sizes)), A=A, B=B, count=count,
        weight=count * rng.uniform(0.3, 1.0, size=len(A)), fresh=np.zeros(n, dtype=bool),
    )  # fmt: skip


class Literal:
    """The same quotient as dictionaries."""

    def __init__(self, q: Quotient) -> None:
        self.edges = list(zip(q.A.tolist(), q.B.tolist(), strict=True))
        self.weight = dict(zip(self.edges, q.weight.tolist(), strict=True))
        self.count = dict(zip(self.edges, q.count.tolist(), strict=True))
        self.members = [set(q.objects[a:b].tolist()) for a, b in zip(q.start[:-1], q.start[1:], strict=True)]
        self.neighbours = [{a + b - c for a, b in self.edges if c in (a, b)} for c in range(q.n)]

    def density(self, edge: tuple[int, int]) -> float:
        return self.weight[edge] / (len(self.members[edge[0]]) * len(self.members[edge[1]]))

    def graded(self, support: dict[tuple[int, int], int]) -> list[float]:
        """x / (1 + x) of the support times the mean weight of a match."""
        value = {edge: support[edge] * self.weight[edge] / self.count[edge] for edge in self.edges}
        return [value[edge] / (1 + value[edge]) for edge in self.edges]

    def parallel(self) -> list[float]:
        return [self.density(edge) if self.count[edge] >= 2 else 0.0 for edge in self.edges]

    def triangles(self) -> list[float]:
        return self.graded({(a, b): len(self.neighbours[a] & self.neighbours[b]) for a, b in self.edges})

    def squares(self, hub: int) -> list[float]:
        """Count the cycles a, b, c, d through every edge; a corner with too many neighbours is no corner."""
        support = dict.fromkeys(self.edges, 0)
        n = len(self.members)
        small = [len(self.neighbours[c]) <= hub for c in range(n)]
        for x, y in combinations(range(n), 2):
            if self.members[x] & self.members[y]:
                continue  # opposite corners in conflict can never be one
            between = [c for c in self.neighbours[x] & self.neighbours[y] if small[c]]
            for c in between:
                for edge in ((x, c), (c, y)):
                    support[min(edge), max(edge)] += len(between) - 1
        return self.graded(support)

    def few_choices(self, most: int) -> list[float]:
        found = []
        for a, b in self.edges:
            one, two = len(self.members[a]), len(self.members[b])
            degrees = len(self.neighbours[a]), len(self.neighbours[b])
            choices = degrees[0] if one < two else degrees[1] if two < one else max(degrees)
            found.append(self.density((a, b)) / choices if choices <= most else 0.0)
        return found


@pytest.fixture(params=range(8))
def q(request: pytest.FixtureRequest) -> Quotient:
    return quotient(request.param, share=(0.15, 0.3, 0.6, 0.9)[request.param % 4])


def test_parallel(q: Quotient) -> None:
    np.testing.assert_allclose(rules.parallel(q), Literal(q).parallel())


def test_triangles(q: Quotient) -> None:
    np.testing.assert_allclose(rules.triangles(q), Literal(q).triangles())


@pytest.mark.parametrize(("hub", "chunk"), [(64, 65_536), (4, 65_536), (64, 3)])
def test_squares(q: Quotient, hub: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_HUB", hub)
    monkeypatch.setattr(rules, "_PATHS_PER_CHUNK", chunk)
    np.testing.assert_allclose(rules.squares(q), Literal(q).squares(hub))
    np.testing.assert_allclose(rules.triangles(q), Literal(q).triangles())


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_few_choices(q: Quotient, most: int) -> None:
    np.testing.assert_allclose(rules.few_choices(q, most), Literal(q).few_choices(most))


def test_parallel_matches_come_before_any_rule(q: Quotient) -> None:
    gain = rules.rule_gain(q, rules.triangles)
    expected = [1 + p if p else t for p, t in zip(Literal(q).parallel(), Literal(q).triangles(), strict=True)]
    np.testing.assert_allclose(gain, expected)


def test_trees_are_broken_that_hold_two_points_of_an_object(q: Quotient) -> None:
    rng = np.random.default_rng(q.n_edges)
    members = Literal(q).members
    for _ in range(5):
        tree = rng.integers(0, 4, size=q.n)
        chosen = np.flatnonzero(rng.random(q.n) < 0.7)
        expected = np.zeros(q.n, dtype=bool)
        for name in range(4):
            inside = [members[c] for c in chosen.tolist() if tree[c] == name]
            expected[name] = len(set().union(*inside)) < sum(map(len, inside))
        np.testing.assert_array_equal(_broken(q, tree, chosen), expected)
