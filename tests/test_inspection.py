"""Inspection counts what a plain loop over components counts."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from stiefelsync import Matchings, datasets, synchronise
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


def test_few_conflicts_with_many_doubtful_matches_are_worth_while() -> None:
    clean = inspect(datasets.synthetic(10, 6, 1.0, 0.0, rng=0)[0])
    some = replace(clean, conflicts=1, components=1000)
    assert some.worth.startswith("hardly")
    assert replace(some, alone_share=0.5, doubtful_share=0.0).worth.startswith("yes")
    assert replace(some, conflicts=1000).worth.startswith("yes")


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
