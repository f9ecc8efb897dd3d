"""Contradictions between copies of a keypoint, against a plain loop over the members of tracks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stiefelsync import Matchings, synchronise
from stiefelsync.positions import same_keypoint
from stiefelsync.positions.same_keypoint import lead_to_copies
from tests.matching.strategies import problems
from tests.positions.test_doubt import views


def slow(problem: Matchings, labels: list[int], at: np.ndarray) -> list[bool]:
    track = [label if label >= 0 else -1 - point for point, label in enumerate(labels)]
    members: dict[int, dict[int, int]] = {}
    for point, t in enumerate(track):
        members.setdefault(t, {})[int(problem.point_objects[point])] = point
    found = []
    for x, y in problem.endpoints.tolist():
        one, two = members[track[x]], members[track[y]]
        common = [] if one is two else sorted(one.keys() & two.keys())
        apart = np.array([np.hypot(*(at[one[i]] - at[two[i]])) for i in common])
        found.append(bool((apart < 1).sum() > (apart >= 1).sum()))
    return found


@given(problems(), st.integers(0, 1000))
def test_matches_between_copies_are_those_of_the_slow_way(problem: Matchings, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = rng.uniform(0, 1.5, (problem.n_points, 2))
    at[rng.random(problem.n_points) < 0.1] = np.nan
    labels = np.concatenate([rng.permutation(size) for size in problem.sizes] or [np.empty(0, int)])
    labels[rng.random(problem.n_points) < 0.3] = -1
    expected = slow(problem, labels.tolist(), at)
    for size in (1, 1_000_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(same_keypoint, "_MEMBERS_PER_CHUNK", size)
            assert lead_to_copies(problem, labels, at).tolist() == expected
    asked = rng.random(problem.n_matches) < 0.5
    assert lead_to_copies(problem, labels, at, asked).tolist() == (asked & np.array(expected, dtype=bool)).tolist()


@pytest.mark.parametrize("cell", [8.0, 16.0])
def test_what_a_grid_costs_leads_to_other_cells_of_the_same_points(cell: float) -> None:
    # Forty photographs of a relief, whose keypoints are rounded to cells and merged: no match is wrong by more.
    rng = np.random.default_rng(0)
    relief, k = np.column_stack([rng.uniform(0, 400, (900, 2)), rng.uniform(0, 40, 900)]), 10
    places, ends, sizes = [], [], []
    for i in range(k):
        place = relief[:, :2] * (1 + 0.01 * i) + np.outer(relief[:, 2], [0.1 * i, 0.05 * i])
        cells, own = np.unique(place // cell, axis=0, return_inverse=True)
        places.append(cells * cell + cell / 2)
        ends.append(own.ravel() + sum(sizes))
        sizes.append(len(cells))
    pairs = [np.stack([ends[i], ends[j]], axis=1) for i in range(k) for j in range(i + 1, k)]
    rows = np.unique(np.concatenate(pairs), axis=0)
    problem = Matchings.from_endpoints(rows, sizes, coordinates=np.concatenate(places), one_to_many="repair")
    found = synchronise(problem, method="tracks").outcome.details
    matches = found.matches_by_rule
    lost = problem.n_matches - matches.consistent - matches.kept
    assert lost > 0.03 * problem.n_matches
    assert matches.copies > 0.8 * lost
    assert found.hopeless == ()


def test_every_match_is_counted_once() -> None:
    found = synchronise(views(bad=0.2, wrong=0.1)[0], method="tracks")
    matches = vars(found.outcome.details.matches_by_rule)
    assert min(matches.values()) >= 0
    assert sum(matches.values()) == found.input.n_matches
