"""What only MatchFAME promises: it knows which pairs of objects are corrupted, and uses that."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from stiefelsync.datasets import synthetic
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import score
from stiefelsync.sync.method import METHODS, Outcome
from stiefelsync.sync.methods.rivals._cycles import corruption, three_cycles


def matchfame(problem: Matchings, universe: int, **options: float) -> Outcome:
    return METHODS["matchfame"].run(problem, universe, rng=np.random.default_rng(0), **options)


def with_corrupted_pairs(share: float, seed: int) -> tuple[Matchings, np.ndarray, np.ndarray]:
    """Return 15 objects of 12 points, the truth, and which of their pairs have all matches shuffled."""
    problem, truth = synthetic(12, 15, 1.0, 0.0, rng=seed)
    rng = np.random.default_rng(seed)
    bad = rng.random(len(problem.pair_objects)) < share
    pairs = {
        key: np.stack([block[:, 0], rng.permutation(block[:, 1])], axis=1) if wrong else block
        for wrong, (key, block) in zip(bad, problem.pairs().items(), strict=True)
    }
    return Matchings.from_pairs(pairs, problem.sizes), truth, bad


@pytest.mark.parametrize("seed", range(3))
def test_inconsistency_is_the_share_of_open_paths(seed: int) -> None:
    problem, _ = synthetic(6, 5, 0.6, 0.4, rng=seed)
    W, o = problem.to_matrix().toarray(), problem.offsets
    X = {(i, j): W[o[i] : o[i + 1], o[j] : o[j + 1]] for i in range(5) for j in range(5) if i != j}
    expected = {}
    for i, j, k in combinations(range(5), 3):
        turns = [(i, j, k), (i, k, j), (j, i, k)]  # first, middle, last
        paths = sum((X[a, b] @ X[b, c]).sum() for a, b, c in turns)
        closed = sum(((X[a, b] @ X[b, c]) * X[a, c]).sum() for a, b, c in turns)
        if paths and all(X[a, b].any() for a, b in combinations((i, j, k), 2)):
            expected[i, j, k] = 1 - closed / paths
    found = three_cycles(problem)
    corners = [tuple(np.unique(problem.pair_objects[rows]).tolist()) for rows in found.pairs]
    assert corners == sorted(expected)
    np.testing.assert_allclose(found.inconsistency, [expected[c] for c in corners], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_message_passing_finds_the_share_of_wrong_matches_where_averages_do_not(seed: int) -> None:
    problem, truth, bad = with_corrupted_pairs(0.4, seed)
    right = np.bincount(problem.match_pairs, problem.agreeing(truth)) / np.diff(problem.pair_start)
    cycles = three_cycles(problem)
    passed = corruption(cycles, len(bad), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    np.testing.assert_allclose(passed, 1 - right, atol=1e-3)
    assert corruption(cycles, len(bad), [])[~bad].min() > 0.3


def test_corrupted_pairs_do_no_harm() -> None:
    problem, truth, _ = with_corrupted_pairs(0.5, 0)
    assert score(matchfame(problem, 12).labels, truth).fscore == 1


def test_no_more_labels_than_asked_for() -> None:
    problem, _ = synthetic(25, 10, 0.6, 0.6, rng=1)
    assert len(np.unique(matchfame(problem, 40).labels)) > 26
    labels = matchfame(problem, 25).labels
    assert len(np.unique(labels[labels >= 0])) <= 25


def test_stops_when_asked() -> None:
    problem, _ = synthetic(8, 6, 0.6, 0.3, rng=3)
    outcome = METHODS["matchfame"].run(problem, 8, rng=np.random.default_rng(0), callback=lambda _: True)
    assert str(outcome.status) == "stopped by the callback"
    assert outcome.details.cycles == 0
