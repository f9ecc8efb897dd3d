"""Parts of NmfSync: block rotation, multiplicative factorisation, pruning."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group

from stiefelsync.datasets import synthetic
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.methods.rivals.nmfsync import factorise, rotate_blocks, run


def test_rotation_recovers_unit_vectors_from_partial_objects() -> None:
    """No object sees the whole universe, so that one alignment cannot fill all columns."""
    labels = np.array([0, 1, 2, 2, 3, 4, 4, 5, 0, 1, 3, 5])
    offsets = np.array([0, 3, 6, 9, 12])
    P = np.eye(6)[labels]
    V = P @ ortho_group.rvs(6, random_state=1)
    U = rotate_blocks(V, offsets)
    assert U.max(axis=1) == pytest.approx(np.ones(12))
    same = labels[:, None] == labels
    found = U.argmax(axis=1)
    assert np.array_equal(found[:, None] == found, same)


def test_factorisation_lowers_the_error_it_reports() -> None:
    matchings, _ = synthetic(6, 8, 0.7, 0.3, rng=0)
    W = matchings.to_matrix()
    start = np.random.default_rng(1).random((matchings.n_points, 6))
    errors = []
    for rounds in (1, 5, 40):
        U, n_iter, _ = factorise(W, start, max_iter=rounds, tol=1e-12)
        assert n_iter == rounds
        assert U.min() >= 0
        errors.append(np.linalg.norm(W.toarray() - U @ U.T))
    assert errors[0] > errors[1] > errors[2]


def test_threshold_prunes() -> None:
    matchings, _ = synthetic(8, 10, 0.6, 0.6, rng=0)
    kept = [
        int((run(matchings, 8, rng=np.random.default_rng(0), threshold=t).labels >= 0).sum()) for t in (0, 0.3, 0.6, 2)
    ]
    assert kept[0] > kept[1] > kept[2] > kept[3] == 0


def test_isolated_points_stay_unmatched_or_alone() -> None:
    matchings = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 0]], (0, 2): [[0, 0]]}, [3, 3, 3])
    labels = run(matchings, 4, rng=np.random.default_rng(0)).labels
    assert labels[0] == labels[3] == labels[6] >= 0
