"""Second stages: they raise g or lower the l1 norm, and the optional one says what it needs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from stiefelsync.datasets import synthetic
from stiefelsync.errors import MissingExtraError
from stiefelsync.matching.metrics import score
from stiefelsync.stiefel.result import Status
from stiefelsync.stiefel.secondary import gradient_matrix, secondary
from stiefelsync.stiefel.subspace import dominant_subspace
from stiefelsync.sync.method import METHODS
from stiefelsync.sync.methods._trust_regions import rotate_by_trust_regions
from stiefelsync.sync.methods.rivals import subgradient


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    matchings, _ = synthetic(5, 6, 1.0, 0.1, rng=0)
    for name in list(sys.modules):
        if name.split(".")[0] == "pymanopt":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pymanopt", None)
    for name in ("eig-manopt", "eigs-manopt", "orthit-manopt"):
        assert METHODS[name].extra == "rivals"
        with pytest.raises(MissingExtraError) as caught:
            METHODS[name].run(matchings, 5, rng=np.random.default_rng(0))
        assert str(caught.value) == (
            'the trust-region method needs pymanopt, which is not installed; run: pip install "stiefelsync[rivals]"'
        )


def test_importing_the_package_imports_no_rival() -> None:
    code = "import stiefelsync, stiefelsync.sync.methods, sys; sys.exit('pymanopt' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("p", [3, 4])
def test_trust_regions_end_where_the_gradient_vanishes(p: int) -> None:
    matchings, _ = synthetic(8, 12, 0.8, 0.3, rng=1)
    V = dominant_subspace(matchings.to_matrix(), 8).V
    U, n_iter, status = rotate_by_trust_regions(V, rng=np.random.default_rng(0), p=p)
    h = gradient_matrix(U, p)
    assert (status, n_iter > 1) == ("converged", True)
    assert p * np.linalg.norm(h - h.T) < 1e-5
    assert pytest.approx(np.eye(8)) == U.T @ U
    assert pytest.approx(V @ (V.T @ U)) == U


@pytest.mark.parametrize("seed", [0, 1])
def test_trust_regions_converge_in_float32(seed: int) -> None:
    """With pymanopt's guard against rounding left at float64's, steps are refused for ever on some of these."""
    matchings, _ = synthetic(150, 6, 0.8, 0.2, rng=seed)
    V = dominant_subspace(matchings.to_matrix("float32"), 150).V
    U, _, status = rotate_by_trust_regions(V, rng=np.random.default_rng(0), max_iter=40)
    h = gradient_matrix(U.astype(float))
    assert (status, U.dtype) == ("converged", np.float32)
    assert 3 * np.linalg.norm(h - h.T) < 1e-3


def test_trust_regions_say_when_they_ran_out_of_iterations() -> None:
    matchings, _ = synthetic(8, 12, 0.8, 0.3, rng=1)
    outcome = METHODS["eigs-manopt"].run(matchings, 8, rng=np.random.default_rng(0), max_iter=2)
    assert (outcome.n_iter, outcome.status) == (2, Status.MAX_ITER)


def test_rotation_is_what_makes_the_difference() -> None:
    matchings, truth = synthetic(12, 20, 1.0, 0.4, rng=1)
    plain, fixed, searched = (
        METHODS[name].run(matchings, 12, rng=np.random.default_rng(0))
        for name in ("orthogonal-iteration", "two-stage", "two-stage-bt")
    )
    assert plain.details.secondary < fixed.details.secondary <= searched.details.secondary + 1e-9
    assert searched.details.secondary == pytest.approx(secondary(searched.U))
    assert score(plain.labels, truth).fscore < 0.9 < score(fixed.labels, truth).fscore


def test_second_stage_takes_as_many_iterations_as_the_first() -> None:
    matchings, _ = synthetic(12, 20, 1.0, 0.4, rng=1)
    first = METHODS["orthogonal-iteration"].run(matchings, 12, rng=np.random.default_rng(0))
    both = METHODS["two-stage"].run(matchings, 12, rng=np.random.default_rng(0))
    assert both.n_iter == 2 * first.n_iter
    assert len(both.history.secondary) == first.n_iter


def test_backtracking_never_lowers_g() -> None:
    matchings, _ = synthetic(12, 20, 0.7, 0.4, rng=1)
    outcome = METHODS["two-stage-bt"].run(matchings, 12, rng=np.random.default_rng(0))
    assert (np.diff(outcome.history.secondary) >= -1e-12).all()


def test_penalty_trades_objective_for_sparsity() -> None:
    matchings, truth = synthetic(10, 12, 1.0, 0.3, rng=1)
    W = matchings.to_matrix()
    runs = [subgradient.run(matchings, 10, rng=np.random.default_rng(0), penalty=t) for t in (None, 0.5, 5.0)]
    values = [float(np.vdot(o.U, W @ o.U)) for o in runs]
    assert values[0] >= values[1] > values[2]
    assert runs[0].details.l1 > runs[1].details.l1 > runs[2].details.l1
    for outcome in runs[:2]:
        assert pytest.approx(np.eye(10)) == outcome.U.T @ outcome.U
        assert score(outcome.labels, truth).fscore == 1.0
    diminishing = subgradient.run(matchings, 10, rng=np.random.default_rng(0), decay=1.0, max_iter=300)
    assert diminishing.details.l1 == pytest.approx(runs[0].details.l1, rel=0.03)


def test_a_first_stage_that_ran_out_of_iterations_is_not_done() -> None:
    matchings, _ = synthetic(12, 20, 1.0, 0.4, rng=1)
    for name in ("orthogonal-iteration", "two-stage", "two-stage-bt"):
        outcome = METHODS[name].run(matchings, 12, rng=np.random.default_rng(0), max_iter=1)
        assert outcome.status is Status.MAX_ITER, name
        assert METHODS[name].run(matchings, 12, rng=np.random.default_rng(0)).status is Status.CONVERGED, name
