"""Flags that a processor raises for numbers beyond the end of a row are not warnings of ours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

from stiefelsync import Matchings, rotate, sparse_stiefel, two_stage
from stiefelsync.stiefel import rotation
from stiefelsync.stiefel.lanczos import extreme_pair
from stiefelsync.stiefel.subspace import dominant_subspace
from stiefelsync.sync.method import METHODS, Outcome, register

W = np.diag([3.0, 2.0, 1.0, 0.5])


def raise_flag() -> None:
    """Compute a number that is invalid and throw it away, as kernels do with what lies beyond a row."""
    np.array([np.inf]) - np.inf


def product(x: np.ndarray) -> np.ndarray:
    raise_flag()
    return W @ x


def test_the_flag_is_an_error_in_these_tests() -> None:
    with pytest.raises(RuntimeWarning, match="invalid value"):
        raise_flag()


@pytest.mark.parametrize("function", [sparse_stiefel, two_stage, dominant_subspace])
def test_solvers_ignore_it(function) -> None:
    operator = LinearOperator(W.shape, matvec=product, matmat=product, rmatvec=product, dtype=W.dtype)
    found = function(operator, 2, rng=0)
    basis = found.V if function is dominant_subspace else found.U
    assert np.isfinite(basis).all()


def test_extreme_eigenvalues_ignore_it() -> None:
    assert extreme_pair(product, np.ones((4, 1)), largest=True)[0] == pytest.approx(3)


def test_rotation_ignores_it(monkeypatch) -> None:
    true_polar = rotation.polar

    def polar(A: np.ndarray) -> np.ndarray:
        raise_flag()
        return true_polar(A)

    monkeypatch.setattr(rotation, "polar", polar)
    assert np.isfinite(rotate(np.linalg.qr(np.arange(12.0).reshape(4, 3) ** 2)[0])).all()


def test_methods_ignore_it() -> None:
    @dataclass(frozen=True)
    class Options:
        pass

    about = dict.fromkeys(["summary", "cost", "reference", "choose"], "an example")

    @register("flagged", consistent=True, options=Options, **about)
    def flagged(matchings, universe, options, /, *, rng, callback=None):
        raise_flag()
        return Outcome(labels=np.arange(matchings.n_points))

    try:
        found = METHODS["flagged"].run(Matchings.from_labels([0, 0], [1, 1]), 2, rng=np.random.default_rng(0))
    finally:
        METHODS.pop("flagged")
    assert found.labels.tolist() == [0, 1]
