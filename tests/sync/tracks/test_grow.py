"""What growing tracks notes on the way: which rule, what was dropped, which clusters lost an edge, how many rounds."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import Matchings, datasets
from stiefelsync.sync.tracks.clusters import Quotient
from stiefelsync.sync.tracks.grow import (
    RULES,
    Grown,
    _clusters,
    _heavier,
    connected_parts,
    grow_by_rules,
    grow_tracks,
    number_tracks,
    split,
)


def problem_of(seed: int) -> Matchings:
    return datasets.scene(90, 10, 45, 60, 0.35, 0.2, rng=seed)[0]


def grown_of(problem: Matchings, **options: object) -> tuple[Grown, np.ndarray]:
    points, fullness_weights = np.arange(problem.n_points), np.ones(problem.n_matches)
    track = points.copy()
    q = _clusters(points, problem.point_objects, problem.endpoints, fullness_weights)
    return grow_by_rules(q, track, problem.n_matches, **options), track


@pytest.mark.parametrize("seed", range(6))
def test_what_is_dropped_lies_between_tracks_in_conflict_and_tears_them(seed: int) -> None:
    problem = problem_of(seed)
    found, track = grown_of(problem, dropped=5)
    owner = problem.point_objects
    held = {name: {int(owner[p]) for p in np.flatnonzero(track == name)} for name in set(track.tolist())}
    assert all(len(objects) == np.sum(track == name) for name, objects in held.items())
    assert all(name == np.flatnonzero(track == name)[0] for name in held)
    against = [
        (int(track[a]), int(track[b])) for a, b in problem.endpoints.tolist()
        if track[a] != track[b] and held[track[a]] & held[track[b]]
    ]  # fmt: skip
    apart = int((track[problem.endpoints[:, 0]] != track[problem.endpoints[:, 1]]).sum())
    assert found.dropped == 5 + len(against)
    assert found.q.count.sum() == apart - len(against)  # what is left contradicts nothing
    lost_edge = set(track[found.lost_edge].tolist())
    assert lost_edge == {name for pair in against for name in pair}
    assert against


@pytest.mark.parametrize("seed", range(4))
def test_a_point_is_ascribed_to_the_rule_under_which_it_ceased_to_be_alone(seed: int) -> None:
    problem = problem_of(seed)
    whole, track = grown_of(problem)
    alone = np.bincount(track, minlength=len(track))[track] == 1
    np.testing.assert_array_equal(whole.rule_of < 0, alone)
    for number in range(len(RULES)):
        some, reached = grown_of(problem, rules=list(RULES)[: number + 1])
        np.testing.assert_array_equal(some.rule_of, np.where(whole.rule_of <= number, whole.rule_of, -1))
        together = np.bincount(reached, minlength=len(reached))[reached] > 1
        np.testing.assert_array_equal(some.rule_of >= 0, together)
    assert len(set(whole.rule_of.tolist())) > 3


def test_rounds_are_told_and_a_stopped_run_reports_those_it_made() -> None:
    problem = problem_of(0)
    told = []
    found, _ = grown_of(problem, callback=told.append)
    assert found.n_iter == len(told) > 3
    assert [progress.stage for progress in told] == ["tracks"] * len(told)
    steps = [progress.step for progress in told]
    assert steps == sorted(steps)
    assert steps[-1] == problem.n_points - len(found.q.points)
    assert {progress.total for progress in told} == {problem.n_points}
    for most in (1, 3):
        rounds = iter(range(1, 99))
        short, _ = grown_of(problem, callback=lambda _, rounds=rounds, most=most: next(rounds) == most)
        assert (short.n_iter, short.stopped) == (most, True)
    assert not found.stopped


def test_a_rule_that_merges_nothing_makes_no_round() -> None:
    two = Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 1])  # no point in common
    told = []
    found, track = grown_of(two, rules=["triangles", "squares"], callback=told.append)
    assert (found.n_iter, told, track.tolist()) == (0, [], [0, 1, 2, 3])
    found, track = grown_of(two, rules=["only choice"], callback=told.append)
    assert (found.n_iter, len(told), track.tolist()) == (1, 1, [0, 1, 0, 1])


def test_clusters_that_are_shut_stay_as_they_are() -> None:
    problem = problem_of(1)

    def left_alone(q: Quotient) -> np.ndarray:
        return np.logical_or.reduceat(q.points < 40, q.start[:-1])

    _, track = grown_of(problem, left_alone=left_alone)
    assert (np.bincount(track, minlength=len(track))[track[:40]] == 1).all()
    assert np.bincount(track[40:]).max() > 2


@pytest.mark.parametrize("seed", range(4))
def test_the_heavier_of_two_answers_component_by_component(seed: int) -> None:
    rng = np.random.default_rng(seed)
    component = np.repeat(np.arange(0, 30, 5), 5)
    track, other = (component + rng.integers(0, 3, 30) for _ in range(2))
    ends = np.array([[a, b] for a in range(30) for b in range(a + 1, 30) if component[a] == component[b]])
    weights = rng.random(len(ends))
    kept = {name: [0.0, 0.0] for name in component.tolist()}
    for (a, b), w in zip(ends.tolist(), weights.tolist(), strict=True):
        kept[component[a]][0] += w * (track[a] == track[b])
        kept[component[a]][1] += w * (other[a] == other[b])
    expected = [kept[c][1] > kept[c][0] for c in component.tolist()]
    assert _heavier(other, track, component, ends, weights).tolist() == expected
    assert not _heavier(track, track, component, ends, weights).any()


def test_pieces_of_labels_are_what_matches_connect() -> None:
    start = np.array([0, 0, 0, 7, 7, -1, -1, 0])
    ends = np.array([[0, 1], [1, 3], [3, 4], [5, 6], [2, 7], [0, 5]])
    assert connected_parts(start, ends).tolist() == [0, 0, 2, 3, 3, 5, 6, 2]


def test_components_and_their_conflicts() -> None:
    objects = np.array([0, 0, 1, 1, 2, 2, 3])
    component, conflicted = split(objects, np.array([[0, 2], [2, 4], [1, 3], [1, 4]])[:3])
    assert component.tolist() == [0, 1, 0, 1, 0, 5, 6]
    assert not conflicted.any()
    component, conflicted = split(objects, np.array([[0, 2], [2, 4], [1, 3], [1, 4]]))
    assert component.tolist() == [0, 0, 0, 0, 0, 5, 6]
    assert conflicted.tolist() == [True] * 5 + [False] * 2
    # Points that are one cluster already hang together without a match.
    component, conflicted = split(objects, np.array([[0, 2]]), np.array([0, 1, 2, 3, 4, 3, 2]))
    assert component.tolist() == [0, 1, 0, 3, 4, 3, 0]
    assert not conflicted.any()


def test_tracks_are_numbered_by_their_first_points() -> None:
    assert number_tracks(np.array([0, 1, 0, 3, 1, 5, 3])).tolist() == [0, 1, 0, 2, 1, -1, 2]


def test_heavy_matches_win_components_of_their_own() -> None:
    # Two triangles that light matches make, against heavy ones that pair off their points otherwise.
    problem = problem_of(2)
    light = grow_tracks(problem)
    rng = np.random.default_rng(0)
    weighted = problem.with_weights(rng.random(problem.n_matches) ** 4 + 0.01)
    found = grow_tracks(weighted)
    assert light.details.points_by_rule["heaviest first"] == 0
    assert found.details.points_by_rule["heaviest first"] > 0
    assert found.n_iter > light.n_iter


@pytest.mark.parametrize("wrong", [0.1, 0.3, 0.5, 0.7])
def test_matches_hold_every_track_together(wrong: float) -> None:
    # So nothing falls apart where no match is doubted.
    rng = np.random.default_rng(0)
    for seed in range(3):
        problem, _ = datasets.scene(100, 10, 20, 40, wrong=wrong, missing=0.3, rng=seed)
        places, start = rng.uniform(0, 6, (problem.n_points, 2)), rng.integers(-1, 12, problem.n_points)
        for weights in (None, rng.uniform(0.1, 1, problem.n_matches)):
            for where, begin in ((None, None), (places, None), (None, start), (places, start)):
                labels = grow_tracks(problem.with_weights(weights), start=begin, places=where).labels
                np.testing.assert_array_equal(number_tracks(connected_parts(labels, problem.endpoints)), labels)
