"""No method makes an m×m array unless its `cost` says so."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import stiefelsync.sync.methods  # noqa: F401
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import METHODS

DENSE = {"eig-manopt", "matchals"}
K, D = 300, 20


@pytest.fixture(scope="module")
def problem() -> Matchings:
    """6000 points; every object matched with about ten others, one match in ten wrong."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([rng.permutation(D) for _ in range(K)]).reshape(K, D)
    place = labels.argsort(axis=1)
    pairs = {}
    for i in range(K):
        for j in rng.choice(K, 6, replace=False):
            if i < j:
                target = place[j][labels[i]]
                some = rng.permutation(D)[:2]
                target[some] = target[some[::-1]]
                pairs[i, int(j)] = np.stack([np.arange(D), target], axis=1)
    return Matchings.from_pairs(pairs, [D] * K)


def test_dense_methods_say_so() -> None:
    for name in DENSE:
        assert "dense m×m" in METHODS[name].cost


# The answer of matcheig alone is larger, because it matches all pairs of objects.
@pytest.mark.filterwarnings("ignore::stiefelsync.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "name", ["eigs-manopt", "nmfsync", "projected-power", "spectral", "subgradient", "two-stage-bt"]
)
def test_memory_stays_below_one_dense_matrix_of_bytes(problem: Matchings, name: str) -> None:
    options = {"max_iter": 5} if "max_iter" in METHODS[name].options else {}
    tracemalloc.start()
    try:
        METHODS[name].run(problem, D, rng=np.random.default_rng(0), **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < problem.n_points**2
