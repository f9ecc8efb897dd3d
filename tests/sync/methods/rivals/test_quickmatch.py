"""QuickMatch against a dense, literal form of the same steps."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.datasets import synthetic
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import score
from stiefelsync.sync.method import METHODS
from stiefelsync.sync.outcome import by_first_appearance


def by_hand(problem: Matchings, edge: float, density: float) -> np.ndarray:
    """Follow the three steps with all distances in one dense matrix."""
    X, owner = problem.to_matrix().toarray(), problem.point_objects
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    m = len(X)
    own = (owner[:, None] == owner) & ~np.eye(m, dtype=bool)
    sigma = np.where(own, D, np.sqrt(2)).min(axis=1)
    h = np.exp(-((D / (density * sigma)) ** 2) / 2).sum(axis=1)
    h = np.round(h, 8) - 1e-12 * np.arange(m)  # two points matched with nothing but each other are equally dense
    tree = []
    for a in range(m):
        up = [b for b in range(m) if h[b] > h[a] and owner[b] != owner[a] and X[a] @ X[b] > 0]
        if up:
            b = min(up, key=lambda b: D[a, b])
            tree.append((D[a, b], a, b))
    label = np.arange(m)
    for length, a, b in sorted(tree):
        A, B = label == label[a], label == label[b]
        if not set(owner[A]) & set(owner[B]) and length <= edge * sigma[A | B].min():
            label[B] = label[a]
    return np.where(np.bincount(label, minlength=m)[label] > 1, label, -1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("edge", "density"), [(0.9, 0.25), (0.7, 0.6)])
def test_sparse_steps_are_the_literal_ones(seed: int, edge: float, density: float) -> None:
    problem, _ = synthetic(8, 7, 0.7, 0.4, rng=seed)
    problem = problem.with_weights(np.random.default_rng(seed).random(problem.n_matches) + 0.5)
    run = METHODS["quickmatch"].run
    labels = run(problem, 8, rng=np.random.default_rng(0), edge=edge, density=density).labels
    np.testing.assert_array_equal(by_first_appearance(labels), by_first_appearance(by_hand(problem, edge, density)))


def test_short_edges_trade_recall_for_precision() -> None:
    problem, truth = synthetic(25, 12, 0.6, 0.5, rng=0)
    run = METHODS["quickmatch"].run
    short, usual = (score(run(problem, 25, rng=np.random.default_rng(0), edge=e).labels, truth) for e in (0.7, 0.9))
    assert short.precision > usual.precision
    assert short.recall < usual.recall
