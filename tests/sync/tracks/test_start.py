"""Going on from clusters that are there already."""

from __future__ import annotations

import numpy as np

from stiefelsync import Matchings, datasets, score
from stiefelsync.sync.tracks.clusters import contract, singletons
from stiefelsync.sync.tracks.grow import grow_tracks


def test_single_points_contract_to_themselves() -> None:
    problem, _ = datasets.scene(200, 12, 50, 100, 0.3, 0.3, rng=0)
    points, objects = np.arange(problem.n_points), problem.point_objects.astype(np.int64)
    weights = np.random.default_rng(0).random(problem.n_matches)
    alone = singletons(points, objects, problem.endpoints, weights)
    a, b = problem.endpoints.T
    same = contract(points, objects, points, a, b, np.ones(len(a), dtype=np.int64), weights)
    for name in ("points", "objects", "start", "A", "B", "count", "weight"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(same, name))


def test_a_start_without_labels_is_no_start() -> None:
    problem, _ = datasets.scene(300, 20, 100, 200, 0.3, 0.3, rng=1)
    nothing = np.full(problem.n_points, -1)
    np.testing.assert_array_equal(grow_tracks(problem, start=nothing).labels, grow_tracks(problem).labels)


def test_the_truth_as_a_start_stays() -> None:
    problem, truth = datasets.scene(1_000, 40, 250, 500, 0.5, 0.3, rng=2)
    told = score(grow_tracks(problem, start=truth).labels, truth).fscore
    assert told > score(grow_tracks(problem).labels, truth).fscore + 0.05


def test_an_answer_as_a_start_is_hardly_changed() -> None:
    problem, truth = datasets.scene(1_000, 40, 250, 500, 0.3, 0.3, rng=3)
    once = grow_tracks(problem).labels
    twice = grow_tracks(problem, start=once).labels
    assert score(twice, once).fscore > 0.995
    assert score(twice, truth).fscore > score(once, truth).fscore - 0.002
    Matchings.from_labels(twice, problem.sizes)


def test_pieces_of_a_label_without_a_match_between_them_start_apart() -> None:
    pairs = {(0, 1): [[0, 0]], (2, 3): [[0, 0]], (0, 2): [[1, 1]]}
    labels = grow_tracks(Matchings.from_pairs(pairs, [2, 2, 2, 2]), start=np.zeros(8, dtype=np.int64)).labels
    assert labels.tolist() == [0, 1, 0, -1, 2, 1, 2, -1]
