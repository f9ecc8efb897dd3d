"""Inspection counts what a plain loop over components counts."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks import verdict
from stiefelsync import Matchings, datasets, inspection, score, synchronise
from stiefelsync.inspection import NEAR, inspect
from stiefelsync.matching import Repair
from stiefelsync.matching.graph import components
from stiefelsync.sync.methods import tracks
from tests.positions.test_doubt import views


@pytest.mark.parametrize("seed", range(8))
def test_conflicts_near_and_apart_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    problem, _ = datasets.synthetic(40, 6, 0.5, 0.08, noise="mix", rng=seed)
    # Places so close together that many pairs fall on either side of the limit.
    x = rng.uniform(0, 1.3 * NEAR, (problem.n_points, 2))
    problem = Matchings.from_pairs(problem.pairs(), problem.sizes, coordinates=x)
    found = inspect(problem)
    n, label = components(problem)
    x = problem.coordinates.astype(np.float64)
    conflicted, apart, sizes = 0, 0, []
    for c in range(n):
        members = np.flatnonzero(label == c)
        twins = [(a, b) for a, b in combinations(members, 2) if problem.point_objects[a] == problem.point_objects[b]]
        conflicted += bool(twins)
        apart += any(np.linalg.norm(x[a] - x[b]) > NEAR for a, b in twins)
        sizes.append(len(members))
    assert (found.conflicts, found.conflicts_apart) == (conflicted, apart)
    assert found.components == sum(size > 1 for size in sizes)
    assert found.largest_component == max(sizes)
    assert found.unmatched == sum(size == 1 for size in sizes)


@pytest.mark.parametrize(
    ("places", "apart"),
    [
        ([[0, 0], [NEAR, 0], [0, 0]], 0),  # at the limit
        ([[0, 0], [NEAR + 0.1, 0], [0, 0]], 1),
        ([[0, 0], [0.6 * NEAR, 0.81 * NEAR], [0, 0]], 1),  # across the corners of a narrow box
        ([[0, 0], [0.6 * NEAR, 0.8 * NEAR], [0.7 * NEAR, 0]], 0),  # the same, at the limit
        ([[0, 0], [9, 3], [4, 8]], 0),  # a box longer than the limit across its corners, no two points of it
    ],
)
def test_the_first_group_of_all(places, apart):
    # Three points of object 0 hang together by points of others; objects and component are the first there are.
    pairs = {(0, 1): [[0, 0], [1, 1]], (0, 2): [[1, 0], [2, 1]], (1, 2): [[0, 0], [1, 1]]}
    at = np.concatenate([places, np.zeros((4, 2))])
    found = inspect(Matchings.from_pairs(pairs, [3, 2, 2], coordinates=at))
    assert (found.conflicts, found.conflicts_apart) == (1, apart)
    assert (found.objects, found.points, found.matches, found.pairs, found.possible_pairs) == (3, 7, 6, 3, 3)


def test_consistent_problems():
    clean = inspect(Matchings.from_labels(np.tile(np.arange(10), 3), [10, 10, 10]))
    assert (clean.conflicts, clean.cycle_error, clean.wrong_share, clean.conflicts_apart) == (0, 0, 0, None)
    # Every one of ten cycles is seen from each of its three objects.
    assert (clean.cycles, clean.triplets) == (30, 1)


def test_empty_problems():
    for empty in (Matchings.from_pairs({}, []), Matchings.from_pairs({}, [0, 3], coordinates=np.zeros((3, 2)))):
        found = inspect(empty)
        assert (found.matches, found.components, found.largest_component, found.conflicts) == (0, 0, 0, 0)
        assert (found.cycle_error, found.wrong_share) == (None, None)


def test_what_no_cycle_tells_is_unknown():
    two = inspect(Matchings.from_labels(np.tile(np.arange(50), 2), [50, 50]))
    chain = inspect(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1]))
    # Three objects with matches in every pair, but no two matches meet.
    apart = inspect(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[1, 1]], (0, 2): [[1, 0]]}, [2, 2, 2]))
    for found in (two, chain, apart):
        assert (found.cycle_error, found.cycle_error_uncertainty, found.wrong_share, found.cycles) == (*[None] * 3, 0)
    assert (two.triplets, chain.triplets, apart.triplets) == (0, 0, 1)


def test_few_cycles_say_nothing_about_the_share_of_wrong_matches():
    few = inspect(Matchings.from_labels(np.tile(np.arange(9), 3), [9, 9, 9]))
    assert (few.cycle_error, few.cycles, few.wrong_share) == (0, 27, None)


def test_what_was_dropped_is_told():
    twice = [[0, 0], [0, 0], [0, 1], [1, 1]]
    found = inspect(Matchings.from_pairs({(0, 1): twice}, [2, 2], one_to_many="repair"))
    assert found.repair == Repair(duplicates=1, second_partners=1)
    assert (found.repair.dropped, found.matches) == (2, 2)
    assert inspect(Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1])).repair is None


def test_without_matches_there_is_nothing_to_judge() -> None:
    assert inspect(Matchings.from_pairs({}, [2, 2])).worth == "no: there are no matches, hence nothing to judge"


CLEAN = inspect(datasets.synthetic(10, 6, 1.0, 0.0, rng=0)[0])


@pytest.mark.parametrize(
    ("changed", "adds", "told"),
    [
        ({}, True, "no: the matches are consistent"),
        ({"conflicts": 1}, True, "hardly: few conflicts, few doubtful matches: the answer will hardly differ"),
        ({"wrong_share": 0.0074}, True, "hardly: few"),
        ({"wrong_share": 0.0075}, True, "yes: some 0.8 % of the matches are wrong"),
        ({"conflicts": 9, "conflict_share": 0.019}, True, "hardly: few"),
        ({"conflicts": 1, "conflict_share": 0.02}, True, "yes: 2.0 % of the matched points lie in tracks"),
        ({"wrong_share": 0.3, "conflict_share": 1.0}, True, "yes: some 30.0 % of the matches are wrong; 100.0 %"),
        ({"wrong_share": None, "cycle_error": None, "conflicts": 1, "conflict_share": 1.0}, True, "yes: 100.0 % of"),
        ({"transitivity": 0.981}, True, "hardly: few"),
        ({"transitivity": 0.98}, True, "yes: nothing contradicts, but matches that follow are missing: 2.0 %"),
        ({"transitivity": 0.5, "conflicts": 1}, True, "yes: little contradicts, but matches that follow are missing"),
        ({"transitivity": 0.5}, False, "no: the matches are consistent"),
        ({"transitivity": 0.5, "conflicts": 1}, False, "hardly: few"),
        ({"alone_share": 0.004, "doubtful_share": 0.004, "conflicts": 1}, False, "yes: some 0.8 % of"),
        ({"alone_share": 0.004, "doubtful_share": 0.004}, False, "hardly: few"),  # which nothing contradicts
    ],
)  # fmt: skip
def test_the_verdict_rests_on_matches_points_and_cycles(changed, adds, told) -> None:
    assert replace(CLEAN, **changed).verdict(adds=adds).startswith(told)


def test_one_giant_component_is_no_single_conflict() -> None:
    """That was "hardly" worth while: one conflict among many components, with 30 % of the matches wrong."""
    found = inspect(datasets.scene(20_000, 200, 1_000, 2_000, wrong=0.3)[0])
    assert found.conflicts < 0.01 * found.components
    assert found.conflict_share > 0.99
    assert found.worth.startswith("yes: some 30.0 % of the matches are wrong; 99.7 % of the matched points")


MEASURED = Path(__file__).parents[1] / "docs" / "results" / "verdict.csv"


def measured() -> dict[str, dict[str, str]]:
    """Return the lines of the table of ``python -m benchmarks.verdict`` for seed 0, by problem."""
    with MEASURED.open(encoding="utf-8", newline="") as file:
        return {line["problem"]: line for line in csv.DictReader(file) if line["seed"] == "0"}


@pytest.mark.skipif(not MEASURED.exists(), reason="not measured yet")
def test_the_verdict_is_right_wherever_the_default_changes_the_fscore() -> None:
    """On every shape, by what the default was measured to change: solving them all takes minutes."""
    assert set(measured()) == set(verdict.PROBLEMS)
    told = {name: inspect(draw(rng=0)[0]).worth.partition(":")[0] for name, draw in verdict.PROBLEMS.items()}
    assert not [
        (name, told[name]) for name, line in measured().items() if verdict.is_wrong({**line, "verdict": told[name]})
    ]


@pytest.mark.skipif(not MEASURED.exists(), reason="not measured yet")
@pytest.mark.parametrize("name", ["row 10 0.02", "complete 0.05", "bipartite", "star large"])
def test_what_was_measured_is_what_the_default_does(name) -> None:
    known, line = measured()[name], verdict.measure(name, 0)
    change = float(known["answer"]) - float(known["matches"])
    assert line["matches"] == pytest.approx(float(known["matches"]), abs=1e-4)
    assert (abs(line["answer"] - line["matches"]) > 0.01) == (abs(change) > 0.01)


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (partial(datasets.synthetic, 25, 30, 0.7, 0.0), "no"),
        (partial(datasets.shapes.merging, noise=0.1), "no"),
        (partial(datasets.synthetic, 50, 2, 0.8, 0.2), "no"),  # two objects contradict nothing
        (partial(datasets.synthetic, 25, 30, 0.7, 0.05), "yes"),
        (partial(datasets.scene, 1_000, 40, 200, 400, wrong=0.05), "yes"),
        (datasets.shapes.star, "yes"),  # no cycle, no conflict, and most matches missing
        (partial(datasets.shapes.ring, error=0.0), "yes"),
    ],
)
def test_the_verdict_is_no_where_nothing_changes(draw, told) -> None:
    problem, truth = draw(rng=0)
    change = score(synchronise(problem), truth).fscore - score(problem, truth).fscore
    assert (abs(change) > 0.01) == (told == "yes")
    assert inspect(problem).worth.startswith(told)


@pytest.mark.parametrize("seed", range(4))
def test_ways_without_a_direct_match_by_brute_force(seed, monkeypatch) -> None:
    problem, _ = datasets.shapes.independent(8, 12, observed=0.6, hit=0.6, wrong=0.3, rng=seed)
    joined = {frozenset(ends) for ends in problem.endpoints.tolist()}
    partners = [
        [b if a == x else a for a, b in problem.endpoints.tolist() if x in (a, b)] for x in range(problem.n_points)
    ]
    ways = [frozenset(ends) in joined for own in partners for ends in combinations(own, 2)]
    assert inspect(problem).transitivity == pytest.approx(np.mean(ways))
    monkeypatch.setattr(inspection, "MAX_WAYS", len(ways) - 1)  # drawn, then
    assert inspect(problem).transitivity == pytest.approx(np.mean(ways), abs=4 / len(ways) ** 0.5)


@pytest.mark.parametrize(("moving", "told"), [(10, True), (9, False)])
def test_shares_are_told_if_a_quarter_of_the_matches_move_with_half_of_their_neighbours(moving, told, monkeypatch):
    support = np.append(np.full(moving, 0.5), np.full(40 - moving, 0.1))
    support[-5:] = 0
    monkeypatch.setattr(tracks, "neighbour_support", lambda *_, **__: np.append(support, np.nan))
    labels = np.tile(np.arange(41), 2)
    found = inspect(Matchings.from_labels(labels, [41, 41], coordinates=np.zeros((82, 2))))
    assert found.alone_share == (5 / 41 if told else None)
    assert found.hopeless_pairs == (0 if told else None)


def test_what_is_told_of_doubts_is_what_the_method_by_positions_finds() -> None:
    problem = views(bad=0.2, wrong=0.1)[0]
    found, details = inspect(problem), synchronise(problem, method="tracks").outcome.details
    matches = details.matches_by_rule
    assert min(matches.unsupported, matches.removed, matches.doubtful, len(details.hopeless)) > 0
    assert found.alone_share == matches.unsupported / problem.n_matches
    assert found.doubtful_share == (matches.removed + matches.doubtful) / problem.n_matches
    assert found.hopeless_pairs == len(details.hopeless)
