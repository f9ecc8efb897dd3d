"""Tracks in groups of objects: the same quality, and labels that depend on the input and the groups alone."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stiefelsync import InputError, Matchings, datasets, score
from stiefelsync.distributed.groups import check_groups, group_by_overlap, parts, regions
from stiefelsync.distributed.solve_in_groups import Answer, solve_in_groups
from stiefelsync.distributed.steps import InMemory
from stiefelsync.matching.graph import components, conflicts
from stiefelsync.sync.tracks.grow import grow_tracks
from stiefelsync.sync.tracks.join import join
from stiefelsync.sync.tracks.scale import Scale


def solve(problem: Matchings, groups: np.ndarray, **options: object) -> Answer:
    return solve_in_groups(InMemory(problem), groups, Scale.of(problem), **options)


def by_overlap(problem: Matchings, size: int) -> np.ndarray:
    return group_by_overlap(problem.pair_objects, np.diff(problem.pair_start), problem.n_objects, size)


@pytest.mark.parametrize("wrong", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_as_good_as_the_whole(wrong: float, weighted: bool) -> None:
    problem, truth = datasets.scene(10_000, 100, 1_000, 2_000, wrong, 0.3, rng=3)
    if weighted:
        a, b = truth[problem.endpoints].T
        rng = np.random.default_rng(0)
        problem = problem.with_weights(np.where(a == b, rng.beta(6, 2, len(a)), rng.beta(2, 4, len(a))) + 0.01)
    whole = score(grow_tracks(problem).labels, truth).fscore
    answer = solve(problem, by_overlap(problem, 50))
    # With weights single matches join tracks, and inside a group they do so before those at its border have a say.
    assert score(answer.labels, truth).fscore > whole - (0.006 if weighted else 0.002)
    Matchings.from_labels(answer.labels, problem.sizes)
    a, b = answer.labels[problem.endpoints].T
    assert answer.kept == np.count_nonzero((a == b) & (a >= 0))


@pytest.mark.parametrize("wrong", [0.3, 0.5])
def test_regions_are_as_good_as_the_whole(wrong: float) -> None:
    problem, truth = datasets.scene(10_000, 100, 1_000, 2_000, wrong, 0.3, rng=3)
    groups = by_overlap(problem, 4)
    found = regions(groups, problem.pair_objects, np.diff(problem.pair_start))
    assert [len(region.objects) for region in found] == [40, 40, 20]
    across = [part.crossing for part in parts(groups, problem.pair_objects)]
    every = [pairs for region in found for pairs in (region.inside, region.crossing)]
    assert sorted(np.concatenate(every).tolist()) == sorted(np.concatenate(across).tolist())
    whole = score(grow_tracks(problem).labels, truth).fscore
    assert score(solve(problem, groups).labels, truth).fscore > whole - 0.002


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_any_groups_give_tracks_inside_components(seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    problem, _ = datasets.scene(90, 10, 45, 60, rng.choice([0, 0.2, 0.5]), 0.3, rng=seed)
    assert problem.n_matches > 150
    if weighted:
        problem = problem.with_weights(rng.random(problem.n_matches) + 0.1)
    with mock.patch("stiefelsync.distributed.groups._GROUPS_PER_REGION", int(rng.integers(1, 4))):
        labels = solve(problem, check_groups(rng.integers(0, 4, 10), 10)).labels
    Matchings.from_labels(labels, problem.sizes)
    assert np.bincount(labels[labels >= 0]).min(initial=2) >= 2
    _, component = components(problem)
    broken = np.isin(component, conflicts(problem, component).which)
    for c in np.unique(component[~broken]):
        assert len(set(labels[component == c].tolist())) == 1  # free of conflict: union-find's track
    for t in range(labels.max(initial=-1) + 1):
        assert len(set(component[labels == t].tolist())) == 1


def test_groups_hold_objects_that_see_the_same() -> None:
    problem, _ = datasets.scene(2_000, 40, 100, 200, 0.1, 0.2, rng=0)
    order = np.random.default_rng(0).permutation(40)
    groups = by_overlap(problem[order], 10)
    assert np.bincount(groups).tolist() == [10, 10, 10, 10]
    first = np.sort(order[groups == groups[np.argmin(order)]])
    assert (np.diff(first) <= 2).sum() >= 8  # a piece of the ring
    shared = parts(groups, problem[order].pair_objects)
    every = np.concatenate([np.concatenate([part.inside, part.crossing]) for part in shared])
    assert sorted(every.tolist()) == list(range(len(problem.pair_objects)))


def test_the_callback_stops_and_hears_of_every_part() -> None:
    problem, _ = datasets.scene(1_000, 40, 100, 200, 0.3, 0.3, rng=0)
    heard = []
    solve(problem, by_overlap(problem, 10), callback=lambda progress: heard.append((progress.stage, progress.step)))
    assert [step for stage, step in heard if stage == "groups"] == [1, 2, 3, 4]
    stopped = solve(problem, by_overlap(problem, 10), callback=lambda _: True)
    assert stopped.stopped
    Matchings.from_labels(stopped.labels, problem.sizes)


@pytest.mark.parametrize("weighted", [False, True])
def test_rounds_of_all_answers_are_counted(weighted: bool) -> None:
    problem, _ = datasets.scene(500, 20, 80, 150, 0.3, 0.3, rng=0)
    if weighted:
        problem = problem.with_weights(np.random.default_rng(0).random(problem.n_matches) + 0.1)
    heard = []
    answer = solve(problem, by_overlap(problem, 5), callback=lambda progress: heard.append(progress.stage))
    rounds = [heard.count(stage) for stage in ("tracks", "heaviest first")]
    assert answer.n_iter == sum(rounds)
    assert (rounds[0] > 0, rounds[1] > 0) == (True, weighted)
    assert {"groups", "crossings", "regions"} <= set(heard)
    assert ("groups by weight" in heard, "crossings by weight" in heard) == (weighted, weighted)


def test_joins_within_groups_and_at_borders_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = datasets.scene(1_000, 40, 200, 400, 0.4, 0.3, rng=0)
    counted = {"steps": 0, "solve_in_groups": 0}
    for place in counted:

        def counting(*given: object, place: str = place, **options: object) -> tuple[np.ndarray, int]:
            track, joins = join(*given, **options)
            counted[place] += joins
            return track, joins

        monkeypatch.setattr(f"stiefelsync.distributed.{place}.join", counting)
    answer = solve(problem, by_overlap(problem, 10))
    assert answer.joins == sum(counted.values())
    assert counted["solve_in_groups"] > 0


def test_too_little_memory_is_said_before_it_is_used() -> None:
    problem, _ = datasets.scene(1_000, 40, 100, 200, 0.3, 0.3, rng=0)
    with pytest.raises(InputError, match="the largest group takes the need to about"):
        solve(problem, by_overlap(problem, 10), memory=1e5)


def test_groups_are_checked() -> None:
    assert check_groups([7, 3, 7], 3).tolist() == [0, 1, 0]
    with pytest.raises(InputError, match="one whole number per object"):
        check_groups([1.5, 2, 3], 3)
    with pytest.raises(InputError, match="at least one object"):
        group_by_overlap(np.empty((0, 2), int), np.empty(0, int), 3, 0)
