"""The rivals agree with their authors' programs on the house sequence, in the authors' order of points."""

from __future__ import annotations

import csv
import inspect
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import eigsh

from benchmarks.house_rivals import AUTHORS, authors_start, solve, thresholded_fscore
from stiefelsync.datasets import house
from stiefelsync.matching.metrics import objective, score
from stiefelsync.stiefel.rotation import rotate
from stiefelsync.stiefel.subspace import dominant_subspace
from stiefelsync.sync.method import METHODS
from stiefelsync.sync.methods.rivals import subgradient

pytestmark = pytest.mark.data

TOLERANCES = {"spectral": 0.003, "matcheig": 0.004, "matchals": 0.004, "nmfsync": 0.006}


def reference(folder: Path, k: int, method: str) -> dict[str, str]:
    with (folder / "house_authors_code.csv").open() as file:
        return next(row for row in csv.DictReader(file) if (row["k"], row["method"]) == (str(k), AUTHORS[method]))


@pytest.mark.parametrize("k", [20, 40])
@pytest.mark.parametrize("method", sorted(TOLERANCES))
def test_fscore_agrees_with_the_authors_program(data_dir: Path, reference_dir: Path, k: int, method: str) -> None:
    matchings, truth = house(k, shuffle=False, path=data_dir)
    given = {"A0": authors_start(matchings.n_points, 60)} if method == "matchals" else {}
    outcome = solve(method, matchings, **given)
    expected = reference(reference_dir, k, method)
    answer = outcome.matchings if outcome.labels is None else outcome.labels
    assert score(answer, truth).fscore == pytest.approx(float(expected["fscore"]), abs=TOLERANCES[method])
    if method in ("spectral", "nmfsync"):
        # The authors' program leaves pruned points out of the objective, which moves it by single matches.
        assert objective(outcome.labels, matchings) / k**2 == pytest.approx(float(expected["objective"]), abs=0.01)
    if method in ("nmfsync", "matchals"):
        assert outcome.n_iter == int(expected["iterations"])
    if method == "matchals":
        assert thresholded_fscore(outcome, matchings, truth) == pytest.approx(float(expected["fscore"]), abs=5e-7)


@pytest.mark.parametrize("k", [20, 40])
def test_input_agrees_with_the_authors_program(data_dir: Path, reference_dir: Path, k: int) -> None:
    matchings, truth = house(k, shuffle=False, path=data_dir)
    assert score(matchings, truth).fscore == pytest.approx(
        float(reference(reference_dir, k, "input")["fscore"]), abs=1e-6
    )


@pytest.mark.parametrize("k", [20, 40])
def test_lanczos_loses_no_copy_of_an_eigenvalue(data_dir: Path, k: int) -> None:
    """Plain ARPACK with its default or even with 4d Lanczos vectors loses one on some of these shuffles."""
    expected = None
    for seed in range(10):
        matchings, _ = house(k, rng=seed, path=data_dir)
        W = matchings.to_matrix()
        if expected is None:
            expected = np.linalg.eigvalsh(W.toarray())[::-1][:30]
        found = dominant_subspace(W, 30, method="eigsh", rng=seed)
        assert found.values == pytest.approx(expected, abs=1e-6)
        assert np.linalg.norm(W @ found.V - found.V * found.values) < 1e-5


@pytest.mark.skipif("rng" not in inspect.signature(eigsh).parameters, reason="SciPy before 1.17 draws for itself")
def test_plain_lanczos_does_lose_one(data_dir: Path) -> None:
    """Why the paper's Eigs+ManOpt is weak: with few Lanczos vectors the d-th eigenvalue is wrong on some shuffles."""
    problems = [house(40, rng=seed, path=data_dir)[0] for seed in range(10)]
    exact = np.linalg.eigvalsh(problems[0].to_matrix().toarray())[-30]
    plain = [METHODS["eigs-manopt"].run(p, 30, rng=np.random.default_rng(s), ncv=61) for s, p in enumerate(problems)]
    wrong = [abs(outcome.details.eigenvalues[-1] - exact) > 0.1 for outcome in plain]
    assert any(wrong)
    checked = [METHODS["eigs-manopt"].run(p, 30, rng=np.random.default_rng(s)) for s, p in enumerate(problems)]
    assert all(abs(outcome.details.eigenvalues[-1] - exact) < 1e-6 for outcome in checked)
    reached = [[objective(o.labels, p) for o, p in zip(some, problems, strict=True)] for some in (plain, checked)]
    assert all(a < b for a, b, bad in zip(*reached, wrong, strict=True) if bad)


@pytest.mark.parametrize("method", ["eig-manopt", "eigs-manopt", "orthit-manopt"])
def test_trust_regions_reach_the_best_known_g(data_dir: Path, method: str) -> None:
    """At least 99 % of the g that the polar fixed point reaches on the exact subspace, from any of three starts."""
    matchings, _ = house(20, path=data_dir)
    best = float((rotate(dominant_subspace(matchings.to_matrix(), 30).V, tol=1e-9, max_iter=500) ** 3).sum())
    assert best == pytest.approx(6.48806, abs=1e-4)
    for seed in range(3):
        outcome = METHODS[method].run(matchings, 30, rng=np.random.default_rng(seed))
        assert outcome.status == "converged"
        assert outcome.details.secondary >= 0.99 * best


def test_subgradient_reaches_the_best_known_l1(data_dir: Path) -> None:
    """Within 1 % of 168.97, the least l1 norm met in any run; eigenvectors themselves have 436.

    The problem has local minima: of thirty starts one ends 2 % above. Which one depends on the signs that the processor
    gives to eigenvectors, so the best of three starts must reach it, and none may end far above.
    """
    matchings, _ = house(20, path=data_dir)
    found = []
    for seed in range(3):
        outcome = subgradient.run(matchings, 30, rng=np.random.default_rng(seed))
        assert outcome.details.l1 == pytest.approx(abs(outcome.U).sum())
        assert np.linalg.norm(outcome.U.T @ outcome.U - np.eye(30)) < 1e-8
        found.append(outcome.details.l1)
    assert min(found) <= 1.01 * 168.97
    assert max(found) <= 1.05 * 168.97


def test_even_power_leaves_signs_mixed(data_dir: Path) -> None:
    """The paper's comparison of powers: p = 4 makes U as sparse as p = 3 does, with entries of either sign."""
    matchings, truth = house(20, path=data_dir)
    odd, even = (solve("sparse-stiefel", matchings, p=p) for p in (3, 4))
    heaviest = [outcome.U[np.arange(600), abs(outcome.U).argmax(axis=1)] for outcome in (odd, even)]
    assert (heaviest[0] > 0).mean() > 0.95
    assert 0.25 < (heaviest[1] > 0).mean() < 0.75
    assert score(even.labels, truth).fscore < score(odd.labels, truth).fscore - 0.1
