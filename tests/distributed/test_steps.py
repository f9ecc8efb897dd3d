"""What is done with one part of a problem, match by match, with dictionaries."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from stiefelsync import Matchings, datasets
from stiefelsync.distributed import steps
from stiefelsync.distributed.groups import parts
from stiefelsync.distributed.steps import InMemory, bundle, collect, compare_answers, cross, solve, sum_edges
from stiefelsync.sync.tracks.scale import Scale

GROUPS = np.array([0, 1, 0, 1, 2, 2, 1, 0])


class Setting:
    """A problem in three groups, the first of its parts, and random tracks of its points."""

    def __init__(self, seed: int, *, weighted: bool) -> None:
        rng = np.random.default_rng(seed)
        problem, _ = datasets.synthetic(6, 8, 0.8, 0.4, rng=seed)
        if weighted:
            problem = problem.with_weights(rng.random(problem.n_matches) + 0.1)
        self.problem, self.source, self.numbers = problem, InMemory(problem), Scale.of(problem)
        self.part = parts(GROUPS, problem.pair_objects)[0]
        pairs = np.sort(np.concatenate([self.part.inside, self.part.crossing]))
        self.objects = np.unique(problem.pair_objects[pairs])
        self.points = np.flatnonzero(np.isin(problem.point_objects, self.objects))
        self.place = {int(point): place for place, point in enumerate(self.points)}
        self.track = rng.integers(0, 9, len(self.points))
        self.border, self.wanted = rng.random((2, 9))[:, self.track] < 0.5
        self.other, self.unit = rng.integers(0, 9, len(self.points)), self.track % 3

    def matches(self, pairs):
        """Return places, bounded weight and fullness_weights of every match of some pairs of objects."""
        full = np.diff(self.problem.pair_start)
        found = []
        for t, pair in enumerate(self.problem.match_pairs.tolist()):
            if pair in pairs:
                a, b = (self.place[int(x)] for x in self.problem.endpoints[t])
                weight = 1.0
                if self.numbers.median is not None:
                    weight = min(float(self.problem.weights[t]) / self.numbers.median, 2.0)
                found.append((a, b, weight, weight * full[pair] / full.max()))
        return found

    @property
    def every(self):
        return self.matches({*self.part.inside.tolist(), *self.part.crossing.tolist()})


@pytest.fixture(params=[(0, False), (1, True), (2, True)], ids=["plain", "weighted", "weighted, other"])
def setting(request) -> Setting:
    return Setting(request.param[0], weighted=request.param[1])


def test_numbers_are_the_median_and_the_fullest_pair(setting: Setting) -> None:
    problem, numbers = setting.problem, setting.numbers
    assert (numbers.n_matches, numbers.fullest) == (problem.n_matches, max(map(len, problem.pairs().values())))
    if problem.weights is None:
        assert numbers.median is None
    else:
        assert numbers.median == sorted(problem.weights.tolist())[(problem.n_matches - 1) // 2]
        assert Scale.of(problem.with_weights(np.full(problem.n_matches, 3.0))).median is None


@pytest.mark.parametrize("at_a_time", [4_000_000, 7])
def test_edges_across_a_border_add_up_its_matches(setting: Setting, at_a_time: int, monkeypatch) -> None:
    monkeypatch.setattr(steps, "_MATCHES_AT_A_TIME", at_a_time)
    for by_weight in (False, True):
        count, weight = Counter(), defaultdict(float)
        for a, b, heavy, trusted in setting.matches(set(setting.part.crossing.tolist())):
            edge = tuple(sorted((int(setting.track[a]), int(setting.track[b]))))
            count[edge] += 1
            weight[edge] += heavy if by_weight else trusted
        found = cross(setting.source, setting.part, setting.objects, setting.track, setting.numbers, by_weight)
        again = sum_edges(found.A, found.B, found.count, found.weight)  # in several readings an edge may come again
        edges = list(zip(again.A.tolist(), again.B.tolist(), strict=True))
        assert edges == sorted(count)
        assert again.count.tolist() == [count[edge] for edge in edges]
        np.testing.assert_allclose(again.weight, [weight[edge] for edge in edges], rtol=1e-12)
        if at_a_time > 7:
            assert len(found.A) == len(edges)


def test_bundles_count_matches_between_tracks_at_a_border(setting: Setting) -> None:
    found = bundle(setting.source, setting.part, setting.objects, setting.track, setting.border, 100)
    count = Counter(
        tuple(sorted((int(setting.track[a]), int(setting.track[b])))) for a, b, *_ in setting.every
        if setting.track[a] != setting.track[b] and (setting.border[a] or setting.border[b])
    )  # fmt: skip
    assert found.key.tolist() == [100 * low + high for low, high in sorted(count)]
    assert found.count.tolist() == [count[pair] for pair in sorted(count)]


def test_what_joins_at_borders_depend_on(setting: Setting) -> None:
    kept = collect(
        setting.source, setting.part, setting.objects, setting.track, setting.wanted, setting.border, setting.numbers
    )
    decide, others, decided = [], [], 0
    for a, b, weight, _ in setting.every:
        inside = setting.track[a] == setting.track[b]
        if not (setting.wanted[a] and setting.wanted[b]):
            decided += int(inside)
        elif inside or setting.border[a] or setting.border[b]:
            decide.append(([a, b], weight))
        else:
            others.append([a, b])
    assert kept.ends.tolist() == [ends for ends, _ in decide]
    np.testing.assert_allclose(kept.weights, [weight for _, weight in decide])
    assert (kept.others.tolist(), kept.decided) == (others, decided)
    assert decide
    assert others
    assert decided


def test_what_other_tracks_keep_more(setting: Setting) -> None:
    track, other = setting.track, setting.other
    found = compare_answers(setting.source, setting.part, setting.objects, setting.unit, track, other, setting.numbers)
    more = defaultdict(float)
    for a, b, weight, _ in setting.every:
        more[int(setting.unit[a])] += weight * (float(other[a] == other[b]) - float(track[a] == track[b]))
    np.testing.assert_allclose(found.weight, [more[unit] for unit in found.A.tolist()], atol=1e-12)
    assert set(found.A.tolist()) >= {unit for unit, change in more.items() if abs(change) > 1e-9}


@pytest.mark.parametrize("seed", range(3))
def test_edges_are_added_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.integers(0, 6, (2, 40))
    count, weight = rng.integers(1, 5, 40), rng.random(40)
    total = {}
    for a, b, n, w in zip(A.tolist(), B.tolist(), count.tolist(), weight.tolist(), strict=True):
        one, two = total.get((min(a, b), max(a, b)), (0, 0.0))
        total[min(a, b), max(a, b)] = one + n, two + w
    found = sum_edges(A, B, count, weight)
    assert list(zip(found.A.tolist(), found.B.tolist(), strict=True)) == sorted(total)
    assert found.count.tolist() == [total[edge][0] for edge in sorted(total)]
    np.testing.assert_allclose(found.weight, [total[edge][1] for edge in sorted(total)])
    nothing = sum_edges(A[:0], B[:0], count[:0], weight[:0])
    assert [len(part) for part in (nothing.A, nothing.B, nothing.count, nothing.weight)] == [0, 0, 0, 0]


def test_a_part_can_be_sent_alone() -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]], (0, 2): [[1, 0]], (1, 2): [[1, 0]]}, [2, 2, 1])
    part = InMemory(problem).only(np.array([0, 2]))
    assert part.pair_objects.tolist() == [[0, 1], [1, 2]]
    assert part.counts.tolist() == [2, 1]
    counts, matches, weights = part.read(np.array([1]))
    assert (counts.tolist(), matches.tolist(), weights) == ([1], [[1, 0]], None)


@pytest.mark.parametrize("seed", range(3))
def test_a_group_tells_what_it_dropped_and_left_open(seed: int) -> None:
    problem, _ = datasets.scene(90, 10, 45, 60, 0.35, 0.2, rng=seed)
    (whole,) = parts(np.zeros(10, dtype=np.int64), problem.pair_objects)
    found = solve(InMemory(problem), whole, Scale.of(problem), by_weight=False)
    first, owner = found.first, problem.point_objects
    held = {name: set(owner[first == name].tolist()) for name in set(first.tolist())}
    assert all(len(objects) == np.sum(first == name) for name, objects in held.items())
    apart = [(int(first[a]), int(first[b])) for a, b in problem.endpoints.tolist() if first[a] != first[b]]
    against = [pair for pair in apart if held[pair[0]] & held[pair[1]]]
    assert found.dropped == len(against) > 0
    assert found.count.sum() == len(apart) - len(against)
    np.testing.assert_array_equal(found.lost_edge, np.isin(first, [name for pair in against for name in pair]))
    heavy = solve(InMemory(problem), whole, Scale.of(problem), by_weight=True)
    assert (heavy.dropped, len(heavy.A), heavy.lost_edge.any()) == (0, 0, False)
    assert heavy.n_iter > 1
    left = [(a, b) for a, b in problem.endpoints.tolist() if heavy.first[a] != heavy.first[b]]
    for a, b in left:  # nothing more can be merged
        both = [set(owner[heavy.first == heavy.first[x]].tolist()) for x in (a, b)]
        assert both[0] & both[1]
