"""What only Kruskal's rule promises: it takes matches strictly by weight."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.datasets import synthetic
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import score
from stiefelsync.sync.method import METHODS
from stiefelsync.sync.outcome import by_first_appearance


def by_hand(problem: Matchings) -> np.ndarray:
    """Join by descending weight, looking through all points each time."""
    label, owner = np.arange(problem.n_points), problem.point_objects
    for t in np.argsort(-problem.match_weights):
        a, b = label[problem.endpoints[t]]
        if a != b and not set(owner[label == a]) & set(owner[label == b]):
            label[label == b] = a
    return np.where(np.bincount(label, minlength=len(label))[label] > 1, label, -1)


@pytest.mark.parametrize("seed", range(5))
def test_matches_come_by_weight(seed: int) -> None:
    problem, _ = synthetic(8, 7, 0.6, 0.4, rng=seed)
    problem = problem.with_weights(np.random.default_rng(seed).random(problem.n_matches) + 0.1)
    labels = METHODS["kruskal"].run(problem, 8, rng=np.random.default_rng(0)).labels
    np.testing.assert_array_equal(by_first_appearance(labels), by_first_appearance(by_hand(problem)))


def test_weights_that_know_mend_what_chance_cannot() -> None:
    problem, truth = synthetic(25, 10, 0.6, 0.5, rng=0)
    rng = np.random.default_rng(0)
    right = problem.agreeing(truth)
    knowing = problem.with_weights(np.where(right, rng.beta(5, 2, len(right)), rng.beta(2, 5, len(right))))
    plain, weighed = (
        score(METHODS["kruskal"].run(p, 25, rng=np.random.default_rng(1)).labels, truth).fscore
        for p in (problem, knowing)
    )
    assert weighed > 0.8 > 0.4 > plain


def test_stops_when_asked() -> None:
    problem, _ = synthetic(8, 6, 0.6, 0.3, rng=3)
    outcome = METHODS["kruskal"].run(problem, 8, rng=np.random.default_rng(0), callback=lambda _: True)
    assert str(outcome.status) == "stopped by the callback"
    assert (outcome.labels == -1).all()
