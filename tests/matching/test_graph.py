"""Components, conflicts and triangle support against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from stiefelsync import InputError
from stiefelsync.datasets import scene
from stiefelsync.matching import Matchings, components, conflicts, score, triangle_support
from tests.matching.strategies import labellings, problems


def brute_components(problem: Matchings) -> np.ndarray:
    labels = np.arange(problem.n_points)
    while True:
        before = labels.copy()
        for a, b in problem.endpoints:
            labels[a] = labels[b] = min(labels[a], labels[b])
        if (before == labels).all():
            return np.unique(labels, return_inverse=True)[1]


@given(problems())
def test_components_and_conflicts(problem: Matchings) -> None:
    n, labels = components(problem)
    np.testing.assert_array_equal(labels, brute_components(problem))
    assert n == len(np.unique(labels))
    found = conflicts(problem, labels)
    conflicted = [c for c in range(n) if len(set(problem.point_objects[labels == c])) < np.count_nonzero(labels == c)]
    assert found.which.tolist() == conflicted
    assert found.sizes.tolist() == [np.count_nonzero(labels == c) for c in conflicted]
    assert (found.count, found.n_components) == (len(conflicted), n)
    assert found.largest == max(found.sizes.tolist(), default=0)
    assert found.n_points == sum(found.sizes.tolist())


@given(labellings())
def test_consistent_matchings_have_no_conflict(drawn: tuple[np.ndarray, list[int]]) -> None:
    problem = Matchings.from_labels(*drawn)
    assert conflicts(problem).count == 0
    assert score(components(problem)[1], drawn[0]).fscore == 1.0


@pytest.mark.parametrize("chunk", [20_000_000, 1, 7])
def test_triangle_support(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stiefelsync.matching.graph._PATHS_PER_CHUNK", chunk)

    @given(problems())
    def check(problem: Matchings) -> None:
        A = (problem.to_matrix().toarray() > 0) & ~np.eye(problem.n_points, dtype=bool)
        a, b = problem.endpoints.T
        np.testing.assert_array_equal(triangle_support(problem), (A.astype(int) @ A)[a, b])

    check()


def test_triangles_break_the_giant_component() -> None:
    # The scores are known from an independent implementation of the same scene model.
    noisy, truth = scene(20_000, 200, 1_000, 2_000, 0.3, 0.3, rng=0)
    _, joined = components(noisy)
    assert conflicts(noisy, joined).largest > 0.9 * noisy.n_points
    assert score(joined, truth).fscore < 0.0005
    _, tracks = components(noisy.keep(triangle_support(noisy) > 0))
    assert np.bincount(tracks).max() <= 60
    assert score(tracks, truth).fscore == pytest.approx(0.897, abs=0.01)


def test_conflicts_refuse_labels_that_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"^2 points need as many component labels, got shape \(1,\)$"):
        conflicts(Matchings.from_labels([0, 0], [1, 1]), [0])
