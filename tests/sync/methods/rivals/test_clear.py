"""What only CLEAR promises: a spectrum of zeros and ones, the universe size from it, and orthogonal pivots."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.datasets import synthetic
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import score
from stiefelsync.sync.method import METHODS, Outcome
from stiefelsync.sync.synchronise import synchronise


def clear(problem: Matchings, universe: int, **options: str) -> Outcome:
    return METHODS["clear"].run(problem, universe, rng=np.random.default_rng(0), **options)


@pytest.mark.parametrize("seed", range(3))
def test_consistent_matches_have_a_laplacian_of_zeros_and_ones(seed: int) -> None:
    problem, truth = synthetic(12, 9, 0.5, 0.0, rng=seed)
    n = len(np.unique(truth))
    outcome = clear(problem, n + 2)
    np.testing.assert_allclose(outcome.details.eigenvalues, [0] * n + [1] * 2, atol=1e-12)


def test_pivots_of_consistent_matches_are_one_of_each_universe_point() -> None:
    problem, truth = synthetic(12, 9, 0.5, 0.0, rng=0)
    outcome = clear(problem, len(np.unique(truth)))
    assert sorted(truth[outcome.details.pivots]) == sorted(set(truth.tolist()))


@pytest.mark.parametrize(("size", "observed", "error"), [(25, 0.6, 0.0), (25, 0.6, 0.3), (20, 1.0, 0.4)])
def test_the_spectrum_tells_the_universe_size(size: int, observed: float, error: float) -> None:
    problem, truth = synthetic(size, 30, observed, error, rng=0)
    outcome = clear(problem, 3 * size, size="spectrum")
    assert len(outcome.details.pivots) == size
    assert score(outcome.labels, truth).fscore == 1


def test_the_spectrum_gives_every_point_of_the_largest_object_a_label() -> None:
    """The spectrum shows one universe point where most matches are wrong; objects still have 14 points."""
    problem, _ = synthetic(14, 30, 1.0, 0.7, rng=0)
    assert np.count_nonzero(clear(problem, 20).details.eigenvalues < 0.5) < 14
    assert len(clear(problem, 20, size="spectrum").details.pivots) == 14


def test_stops_when_asked() -> None:
    problem, _ = synthetic(8, 6, 0.6, 0.3, rng=3)
    result = synchronise(problem, 8, method="clear", callback=lambda _: True)
    assert result.status == "stopped by the callback"
