"""What else may be true: what third objects say of matches, counted by hand, and where tracks fall apart."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from stiefelsync import Matchings, datasets, score, synchronise
from stiefelsync.sync import plausible as room
from stiefelsync.sync.outcome import Outcome
from stiefelsync.sync.plausible import match_probability, plausible


def thirds(problem: Matchings) -> tuple[list[list[int]], list[float]]:
    """What third objects say of every match, by looking at each."""
    partner: dict[tuple[int, int], int] = {}
    owner = problem.point_objects.tolist()
    for a, b in problem.endpoints.tolist():
        partner[a, owner[b]], partner[b, owner[a]] = b, a
    compared = {frozenset(pair) for pair in problem.pair_objects.tolist()}
    seen, present, asked = [], [0, 0], 0
    for a, b in problem.endpoints.tolist():
        i, j = owner[a], owner[b]
        told = [0, 0, 0]
        for o in range(problem.n_objects):
            if frozenset((i, o)) not in compared or frozenset((j, o)) not in compared or o in (i, j):
                continue
            x, y = partner.get((a, o)), partner.get((b, o))
            asked += 1
            present = [present[0] + (x is not None), present[1] + (y is not None)]
            if x is not None and y is not None:
                told[int(x != y)] += 1
            elif x is not None or y is not None:
                told[2] += 1
        seen.append(told)
    return seen, [n / asked for n in present]


@pytest.mark.parametrize("seed", range(3))
def test_third_objects_by_looking_at_each(seed: int, monkeypatch: pytest.MonkeyPatch):
    problem, _ = datasets.shapes.window_detected(18, 60, rng=seed)
    seen, present = thirds(problem)
    for chunk in (1 << 18, 7):
        monkeypatch.setattr(room, "_CHUNK", chunk)
        found = room._thirds(problem)
        np.testing.assert_array_equal(found[0], seen)
        np.testing.assert_allclose(found[1], present)


def test_where_nothing_was_compared_in_a_cycle():
    star, _ = datasets.shapes.star(rng=0)
    np.testing.assert_allclose(match_probability(star), 0.9)
    assert match_probability(Matchings.from_pairs({}, [1, 1, 1])).shape == (0,)


@pytest.mark.parametrize(
    ("name", "within"),
    [("window detected", 0.08), ("queries", 0.08), ("photos", 0.08), ("unequal", 0.08), ("ring", 0.08),
     ("drive", 0.12)],
)  # fmt: skip
def test_the_share_of_right_matches(name: str, within: float):
    """By third objects alone, with seeds that nothing was chosen on; of the last shape few of them see a match."""
    problem, truth = datasets.shapes.SHAPES[name](rng=200)
    right = match_probability(problem)
    a, b = problem.endpoints.T
    true = (truth[a] == truth[b]) & (truth[a] >= 0)
    assert right.mean() == pytest.approx(true.mean(), abs=within)
    assert right[true].mean() > right[~true].mean() + 0.3


@pytest.mark.parametrize("name", ["drive", "window detected"])
def test_tracks_that_were_taken_for_one_fall_apart(name: str):
    """Tracks of a sequence that few wrong matches join: no vote is missing, but these matches are improbable."""
    problem, truth = datasets.shapes.SHAPES[name](rng=200)
    ours = synchronise(problem, method="tracks")
    true = score(ours, truth).precision
    drawn, kept = (
        np.mean([score(ours.labels, one).precision for one in labels])
        for labels in (
            plausible(ours, rng=np.random.default_rng(0), draws=10).labels,
            room._leaving(problem, ours.labels, np.random.default_rng(0), 10).labels,
        )
    )
    assert drawn == pytest.approx(true, abs=0.2)
    assert kept > true + 0.4


def test_points_that_are_matched_wherever_their_track_goes():
    problem, truth = datasets.synthetic(25, 20, 0.7, 0.5, rng=0)
    assert room._matched_along_tracks(problem, truth) > room._EVERYWHERE
    drawn = plausible(
        SimpleNamespace(input=problem, outcome=Outcome(labels=truth), labels=truth), rng=np.random.default_rng(0)
    )
    assert drawn.basis.startswith("the votes")
    joined = truth % 12  # every two things for one, where they do not meet
    owner = problem.point_objects
    _, first = np.unique(np.stack([joined, owner]), axis=1, return_index=True)
    merged = np.full(len(truth), -1)
    merged[first] = joined[first]
    assert room._matched_along_tracks(problem, merged) < room._matched_along_tracks(problem, truth)
    assert room._matched_along_tracks(problem, np.full(len(truth), -1)) == 1


@pytest.mark.parametrize("observed", [0.7, 1.0])
def test_samples_of_the_method_come_first(observed: float):
    """They put together what belongs together in the share that they promise."""
    problem, truth = datasets.synthetic(20, 12, observed, 0.4, rng=3)
    ours = synchronise(problem)
    drawn = plausible(ours, rng=np.random.default_rng(0))
    assert drawn.basis.startswith("samples")
    said = np.mean([score(ours.labels, one).precision for one in drawn.labels])
    assert said == pytest.approx(score(ours.labels, truth).precision, abs=0.05)
    for one in drawn.labels:
        assert len({(o, c) for o, c in zip(problem.point_objects.tolist(), one.tolist(), strict=True)}) == len(one)


def test_few_objects_of_many_points_are_judged_by_both():
    problem, truth = datasets.shapes.large(250, rng=5)
    drawn = plausible(
        SimpleNamespace(input=problem, outcome=Outcome(labels=truth), labels=truth), rng=np.random.default_rng(0)
    )
    assert drawn.basis.endswith("of every match of our answer")
    assert drawn.basis.startswith("the votes")
    assert len(drawn.labels) == room.DRAWS
