"""MatchEig against its description, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from stiefelsync.datasets import synthetic
from stiefelsync.sync.methods._eigen import eigenpairs
from stiefelsync.sync.methods.rivals.matcheig import run


@pytest.mark.parametrize(("observed", "threshold"), [(0.6, 0.25), (1.0, 0.0)])
def test_greedy_choice_as_described(observed: float, threshold: float) -> None:
    matchings, _ = synthetic(8, 7, observed, 0.5, rng=4)
    outcome = run(matchings, 8, rng=np.random.default_rng(0))
    assert outcome.details.threshold == threshold
    offsets = matchings.offsets
    pairs = outcome.matchings.pairs()
    for i in range(7):
        for j in range(i + 1, 7):
            block = outcome.U[offsets[i] : offsets[i + 1]] @ outcome.U[offsets[j] : offsets[j + 1]].T
            rows, columns = range(block.shape[0]), range(block.shape[1])
            candidates = {(a, block[a].argmax()) for a in rows} | {(block[:, b].argmax(), b) for b in columns}
            chosen: list[tuple[int, int]] = []
            for a, b in sorted(candidates, key=lambda entry: -block[entry]):
                free = all(a != c and b != e for c, e in chosen)
                if free and block[a, b] > 0 and block[a, b] >= threshold:
                    chosen.append((int(a), int(b)))
            assert sorted(chosen) == [tuple(row) for row in pairs.get((i, j), np.empty((0, 2), int)).tolist()]


@pytest.mark.parametrize("n", [2, 5, 8])
def test_eigenvalues_largest_in_magnitude(n: int) -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((8, 8))
    A += A.T
    V, values = eigenpairs(csr_array(A), n, rng=rng, magnitude=True)
    spectrum = np.linalg.eigvalsh(A)
    assert values == pytest.approx(spectrum[np.argsort(-abs(spectrum))][:n])
    assert pytest.approx(V * values) == A @ V
    assert pytest.approx(np.eye(n)) == V.T @ V
