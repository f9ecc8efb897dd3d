"""The rules of tracks, written out edge by edge as their documentation states them, on small random quotients."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from stiefelsync import Matchings, datasets
from stiefelsync.distributed.contracted import _conflicted
from stiefelsync.sync.changes import carry_over
from stiefelsync.sync.method import Progress
from stiefelsync.sync.tracks import rules
from stiefelsync.sync.tracks.clusters import Quotient
from stiefelsync.sync.tracks.grow import _clusters, grow_by_weight
from stiefelsync.sync.tracks.join import join


def quotient(seed: int, n: int = 9, share: float = 0.45) -> Quotient:
    """Return n clusters of one to three points of different objects, with random edges, counts and weights."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=n)
    objects = np.concatenate([np.sort(rng.permutation(20)[:size]) for size in sizes])
    pairs = [pair for pair in combinations(range(n), 2) if rng.random() < share]
    A, B = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    count = rng.integers(1, 4, size=len(A))
    return Quotient(
        points=np.arange(len(objects)), objects=objects, start=np.append(0, np.cumsum(sizes)), A=A, B=B, count=count,
        weight=count * rng.uniform(0.3, 1.0, size=len(A)), untested=np.zeros(n, dtype=bool),
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
    gain = rules.rule_gain(q, lambda q: np.zeros(q.n_edges))
    np.testing.assert_allclose(gain, [1 + p if p else 0.0 for p in Literal(q).parallel()])


def test_triangles(q: Quotient) -> None:
    np.testing.assert_allclose(rules.triangles(q), Literal(q).triangles())


@pytest.mark.parametrize("hub", [64, 4])
def test_squares(q: Quotient, hub: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_MAX_NEIGHBOURS_OF_SQUARES", hub)
    np.testing.assert_allclose(rules.squares(q), Literal(q).squares(hub))
    np.testing.assert_allclose(rules.triangles(q), Literal(q).triangles())


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_few_choices(q: Quotient, most: int) -> None:
    np.testing.assert_allclose(rules.few_choices(q, most), Literal(q).few_choices(most))
    np.testing.assert_allclose(rules.few_choices(q), Literal(q).few_choices(1))


def test_parallel_matches_come_before_any_rule(q: Quotient) -> None:
    gain = rules.rule_gain(q, rules.triangles)
    expected = [1 + p if p else t for p, t in zip(Literal(q).parallel(), Literal(q).triangles(), strict=True)]
    np.testing.assert_allclose(gain, expected)


@pytest.mark.parametrize("seed", range(5))
def test_components_in_conflict_or_that_lost_an_edge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    component, owner = rng.integers(0, 8, size=12), rng.integers(0, 6, size=12)
    lost_edge = rng.random(12) < 0.1
    expected = []
    for c in component:
        members = [p for p in range(12) if component[p] == c]
        owners = [owner[p] for p in members]
        expected.append(len(set(owners)) < len(owners) or any(lost_edge[p] for p in members))
    assert _conflicted(component, owner, lost_edge).tolist() == expected


def test_rounds_of_the_heaviest_first_are_told_one_by_one() -> None:
    problem, _ = datasets.synthetic(6, 8, 0.7, 0.4, rng=1)
    points, weights = np.arange(problem.n_points), np.random.default_rng(0).random(problem.n_matches) + 0.1
    told: list[Progress] = []
    q = _clusters(points, problem.point_objects, problem.endpoints, weights)
    _, n_iter, stopped = grow_by_weight(q, points, told.append)
    assert n_iter == len(told) > 2
    assert not stopped
    steps = [progress.step for progress in told]
    assert {progress.total for progress in told} == {problem.n_points}
    assert steps == sorted(steps)
    assert 0 < steps[-1] <= problem.n_points
    once = grow_by_weight(q, points, lambda progress: True)
    assert once[1:] == (1, True)


def test_objects_that_grow_and_shrink_keep_the_labels_of_what_stays() -> None:
    before = Matchings.from_pairs({(0, 1): [[0, 0]]}, [3, 2, 2])
    after = Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 4, 2, 1])
    carried = carry_over(before, np.array([5, 6, 7, 8, 9, 1, 2]), after)
    assert carried.labels.tolist() == [5, 6, 8, 9, -1, -1, 1, 2, -1]
    assert carried.place.tolist() == [0, 1, 2]
    assert not carried.bereft.any()


@pytest.mark.parametrize(("apart", "together"), [(0.0, True), (0.99, True), (1.0, False), (3.0, False)])
def test_points_less_than_one_apart_are_one_found_twice(apart: float, together: bool) -> None:
    track, objects = np.array([0, 0, 0, 3, 3, 3]), np.array([0, 1, 2, 2, 3, 4])
    ends = np.array([[0, 1], [0, 2], [3, 4], [4, 5], [0, 4]])
    places = np.zeros((6, 2))
    places[3] = [0.6 * apart, 0.8 * apart]
    found, joined = join(track, objects, ends, np.ones(5), places)
    assert (found.tolist(), joined) == (([0, 0, 0, 3, 0, 0], 1) if together else (track.tolist(), 0))


def test_a_point_without_matches_may_be_the_last_of_its_track() -> None:
    ends = np.array([[0, 1], [0, 2], [3, 4], [4, 5], [0, 4], [0, 5], [1, 4], [1, 5]])
    objects = np.array([0, 1, 2, 2, 3, 4, 5])
    track, joined = join(np.array([0, 0, 0, 3, 3, 3, 3]), objects, ends, np.ones(8))
    assert (track.tolist(), joined) == ([0, 0, 0, 3, 0, 0, 6], 1)
