"""Every wrong input has a typed error that says what is wrong and what to do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from stiefelsync import InputError, rotate, sparse_stiefel, two_stage
from stiefelsync.stiefel.subspace import dominant_subspace

GOOD = np.diag([3.0, 2.0, 1.0, 0.5])
NAN = np.where(np.eye(4) > 0, np.nan, 0.0)
ONE_SIDED = LinearOperator((3, 3), matvec=lambda x: np.triu(np.ones((3, 3))) @ x, dtype=float)

MATRICES = {
    "not square": (np.ones((3, 4)), r"W must be a square matrix, got shape \(3, 4\)"),
    "not a matrix": (np.ones(3), r"W must be a square matrix, got shape \(3,\)"),
    "NaN": (NAN, "W holds NaN or infinite entries; remove or replace them first"),
    "infinite": (np.full((3, 3), np.inf), "W holds NaN or infinite entries"),
    "sparse NaN": (sparse.csr_array(NAN), "W holds NaN or infinite entries"),
    "operator NaN": (LinearOperator((4, 4), matvec=lambda x: x * np.nan, dtype=float), "W holds NaN or infinite"),
    "ragged": ([[1.0, 2.0], [3.0]], "W must be a square matrix of numbers; its rows differ in length"),
    "complex operator": (LinearOperator((4, 4), matvec=lambda x: x * 1j), "W is complex"),
    "complex": (np.eye(4) * 1j, r"W is complex; only real matrices are supported \(take .real"),
    "empty": (np.empty((0, 0)), "W is empty; it needs at least two rows"),
    "zero": (np.zeros((3, 3)), "W is zero: every U with orthonormal columns is optimal"),
    "sparse zero": (sparse.csr_array((3, 3)), "W is zero"),
    "text": (np.array([["a", "b"], ["c", "d"]]), "W must hold numbers, got <U1"),
    "one-sided operator": (ONE_SIDED, "not symmetric and has no rmatvec; define rmatvec"),
}


@pytest.mark.parametrize("case", MATRICES)
def test_matrix(case):
    W, message = MATRICES[case]
    with pytest.raises(InputError, match=message):
        sparse_stiefel(W, 2)


OPTIONS = {
    "d zero": ({"d": 0}, "d must be at least 1, got 0"),
    "d too large": ({"d": 5}, "d = 5 columns cannot be orthonormal in 4 dimensions; d must be below 4"),
    "d equals m": ({"d": 4}, r"d = m = 4: every orthogonal U has the same objective tr\(W\); choose d below 4"),
    "d fraction": ({"d": 1.5}, "d must be a whole number, got 1.5"),
    "p too small": ({"p": 2}, "p must be a whole number of at least 3, got 2"),
    "p fraction": ({"p": 3.5}, "p must be a whole number of at least 3, got 3.5"),
    "U0 shape": ({"U0": np.ones((4, 3))}, r"U0 must have shape \(4, 2\), got \(4, 3\)"),
    "U0 rank": ({"U0": np.ones((4, 2))}, "U0 has rank 1, but its 2 columns must be linearly independent"),
    "U0 NaN": ({"U0": np.full((4, 2), np.nan)}, "U0 holds NaN or infinite entries"),
    "tol": ({"tol": 0.0}, "tol must be a positive number, got 0.0"),
    "tol NaN": ({"tol": float("nan")}, "tol must be a positive number, got nan"),
    "tol none": ({"tol": None}, "tol must be a positive number, got None"),
    "tol word": ({"tol": "small"}, "tol must be a positive number, got 'small'"),
    "seed": ({"rng": -1}, r"rng must be a seed \(a whole number of at least 0\) or a generator, got -1"),
    "seed word": ({"rng": "x"}, "rng must be a seed .* got 'x'"),
    "U0 complex": ({"U0": np.eye(4, 2) * 1j}, "U0 must hold real numbers, got complex128"),
    "U0 ragged": ({"U0": [[1.0], [1.0, 2.0]]}, "U0 must be a matrix of numbers; its rows differ in length"),
    "max_iter": ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
    "extra_iter": ({"extra_iter": -1}, "extra_iter must be a whole number of at least 0, got -1"),
    "step": ({"step": "gradeint"}, "unknown step 'gradeint'; did you mean 'gradient'?"),
    "criterion": ({"criterion": "bth"}, "unknown criterion 'bth'; did you mean 'both'?"),
    "sense": ({"sense": "maximum"}, "unknown sense 'maximum'"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_option(case):
    options, message = OPTIONS[case]
    d = options.pop("d", 2)
    try:
        with pytest.raises(InputError, match=message):
            sparse_stiefel(GOOD, d, **options)
    finally:
        options["d"] = d


def test_two_stage_options():
    with pytest.raises(InputError, match="unknown subspace method 'eig'; did you mean 'eigh'"):
        two_stage(GOOD, 2, subspace="eig")
    with pytest.raises(InputError, match="unknown rotation 'poler'; did you mean 'polar'"):
        two_stage(GOOD, 2, rotation="poler")
    with pytest.raises(InputError, match='rotation_iter must be a positive whole number, "same" or None, got 0'):
        two_stage(GOOD, 2, rotation_iter=0)


def test_subspace_options():
    for options, message in (
        ({"d": 0}, "d must be a whole number from 1 to 4, got 0"),
        ({"d": 5}, "d must be a whole number from 1 to 4, got 5"),
        ({"tol": None}, "tol must be a positive number, got None"),
        ({"max_iter": 1.5}, "max_iter must be a whole number of at least 1, got 1.5"),
        ({"rng": -1}, "rng must be a seed"),
    ):
        with pytest.raises(InputError, match=message):
            dominant_subspace(GOOD, **{"d": 2, **options})


def test_the_usual_seed_is_0_and_none_is_a_new_one_every_time():
    for solve in (sparse_stiefel, two_stage):
        assert solve(GOOD, 2) == solve(GOOD, 2, rng=0)
    usual, zero, *fresh = (
        dominant_subspace(GOOD, 2, method="orthogonal-iteration", max_iter=1, **given).V
        for given in ({}, {"rng": 0}, {"rng": None}, {"rng": None})
    )
    np.testing.assert_array_equal(usual, zero)
    assert not np.array_equal(*fresh)


ROTATE = {
    "vector": (np.ones(3), {}, r"V must have shape \(m, d\) with m ≥ d ≥ 1, got \(3,\)"),
    "wide": (np.eye(2, 3), {}, r"got \(2, 3\)"),
    "ragged": ([[1.0], [1.0, 2.0]], {}, "V must be a matrix of numbers; its rows differ in length"),
    "complex": (np.eye(3, 2) * 1j, {}, "V must hold real numbers, got complex128"),
    "NaN": (np.full((3, 2), np.nan), {}, "V holds NaN or infinite entries"),
    "not orthonormal": (np.ones((4, 2)), {}, "V must have orthonormal columns, but VᵀV differs from I by 4"),
    "p": (np.eye(3, 2), {"p": 2}, "p must be a whole number of at least 3, got 2"),
    "tol": (np.eye(3, 2), {"tol": 0}, "tol must be a positive number, got 0"),
    "Q": (np.eye(3, 2), {"Q": np.ones((2, 2))}, r"Q must be an orthogonal matrix of shape \(2, 2\)"),
    "half Q": (np.eye(3, 2), {"Q": [[1, 1], [0, 1]]}, r"Q must be an orthogonal matrix of shape \(2, 2\)"),
}


@pytest.mark.parametrize("case", ROTATE)
def test_rotate(case):
    V, options, message = ROTATE[case]
    with pytest.raises(InputError, match=message):
        rotate(V, **options)


def test_numbers_of_steps_and_powers_without_end():
    """2⁶² of them never end, whatever the matrix."""
    for options, message in (
        ({"p": 2**62}, "p must be at most 1,000, got 4611686018427387904"),
        ({"extra_iter": 2**62}, "extra_iter must be at most 100,000"),
    ):
        with pytest.raises(InputError, match=message):
            sparse_stiefel(GOOD, 2, **options)
    with pytest.raises(InputError, match="p must be at most 1,000"):
        rotate(np.eye(4)[:, :2], p=1001)
    with pytest.raises(InputError, match="rotation_iter must be at most 100,000"):
        two_stage(GOOD, 2, rotation_iter=100_001)
