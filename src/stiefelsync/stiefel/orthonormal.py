"""Unique thin QR factorisation and polar factor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from stiefelsync.stiefel.sizes import some_rows

__all__ = ["orthonormal_basis", "orthonormalise", "polar", "turned", "whitening"]


def orthonormalise(A: NDArray[Any], *, pivoting: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the unique thin QR factorisation A = QR, R upper triangular with positive diagonal.

    Parameters
    ----------
    A : (m, d)
        m ≥ d, float32 or float64, finite. Rank deficiency is allowed: Q is orthonormal all the
        same.
    pivoting
        Order columns by column-pivoted QR first, as the authors' program does; R is then triangular
        up to a permutation of its columns.

    Returns
    -------
    Q : (m, d)
    R : (d, d)

    Notes
    -----
    Cholesky-QR twice, O(m·d²) in matrix products only; Householder reflections where A is too
    ill-conditioned for its Gram matrix.

    Examples
    --------
    >>> Q, R = orthonormalise(np.array([[3.0, 1.0], [4.0, 2.0], [0.0, 2.0]]))
    >>> bool(np.allclose(Q @ R, [[3, 1], [4, 2], [0, 2]])), bool((np.diag(R) > 0).all())
    (True, True)
    """
    if pivoting:
        return _householder(A, pivoting=True)
    first = _cholesky_pass(A)
    if first is None:
        return _householder(A)
    Q, R = first
    # One pass leaves an error of about eps·cond(A)²; a second removes it if the first was any good.
    second = _cholesky_pass(Q, nearly_orthonormal=True)
    return _householder(A) if second is None else (second[0], second[1] @ R)


def orthonormal_basis(A: NDArray[Any]) -> NDArray[Any]:
    """Return an orthonormal basis of what A, shape (m, d), spans, in the memory of A unless that is ill-conditioned.

    Examples
    --------
    >>> A = np.array([[3.0, 1.0], [4.0, 2.0], [0.0, 2.0]])
    >>> Q = orthonormal_basis(A)
    >>> Q is A, bool(np.allclose(Q.T @ Q, np.eye(2)))
    (True, True)
    """
    for again in (False, True):
        R = _cholesky_factor(A, again)
        if R is None:
            return _householder(A)[0]
        turned(A, np.triu(np.linalg.inv(R)))
    return A


def whitening(A: NDArray[Any]) -> NDArray[Any] | None:
    """Return T, upper triangular, with A T orthonormal to within about eps^⅗; None where A, (m, d), is worse than that.

    Notes
    -----
    One Gram matrix, O(m·d²), of columns scaled to length 1. If its Cholesky factor R has no
    diagonal entry below eps^⅕, A R⁻¹ is orthonormal but for eps·cond(A)².

    Examples
    --------
    >>> A = np.array([[3.0, 1.0], [4.0, 2.0], [0.0, 2.0]])
    >>> Q = A @ whitening(A)
    >>> bool(np.allclose(Q.T @ Q, np.eye(2))), whitening(np.ones((3, 2)))
    (True, None)
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        G = A.T @ A
    length = np.sqrt(np.diag(G))
    if not (np.isfinite(G).all() and length.min(initial=1) > np.finfo(G.dtype).tiny):
        return None
    G /= length
    G /= length[:, None]
    try:
        R = np.linalg.cholesky(G).T
    except np.linalg.LinAlgError:
        return None
    if not np.diag(R).min(initial=1) > np.finfo(R.dtype).eps ** 0.2:
        return None
    return np.asarray(np.triu(np.linalg.inv(R)) / length[:, None])


def turned(A: NDArray[Any], Y: NDArray[Any]) -> NDArray[Any]:
    """Return A Y in the memory of A; shapes (m, d) and (d, d).

    Examples
    --------
    >>> turned(np.ones((1, 2)), np.array([[1.0, 2.0], [0.0, 1.0]])).tolist()
    [[1.0, 3.0]]
    """
    for rows in some_rows(len(A)):
        A[rows] = A[rows] @ Y
    return A


def _cholesky_pass(A: NDArray[Any], nearly_orthonormal: bool = False) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return (A R⁻¹, R) with RᵀR = AᵀA, or None where the Gram matrix is too ill-conditioned to trust."""
    R = _cholesky_factor(A, nearly_orthonormal)
    # A product with R⁻¹ runs many times faster than the triangular solve; R is well-conditioned
    # here.
    return None if R is None else (A @ np.triu(np.linalg.inv(R)), R)


def _cholesky_factor(A: NDArray[Any], nearly_orthonormal: bool) -> NDArray[Any] | None:
    """Return R with RᵀR = AᵀA, or None where the Gram matrix is too ill-conditioned to trust."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        G = A.T @ A
    if nearly_orthonormal and not abs(G - np.eye(len(G), dtype=G.dtype)).max() < 0.1:
        return None
    if not np.isfinite(G).all():
        return None
    try:
        # NumPy throughout: SciPy brings a BLAS of its own, and two pools of waiting threads slow
        # each other down.
        R = np.linalg.cholesky(G).T
    except np.linalg.LinAlgError:
        return None
    diagonal = np.diag(R)
    if not diagonal.min() > 10 * np.sqrt(np.finfo(R.dtype).eps) * diagonal.max():
        return None
    return np.asarray(R)


def _householder(A: NDArray[Any], pivoting: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    if pivoting:
        Q, R, order = linalg.qr(A, mode="economic", pivoting=True, check_finite=False)
    else:
        Q, R = np.linalg.qr(A)
        order = None
    sign = np.where(np.diag(R) < 0, -1, 1).astype(R.dtype)
    Q *= sign
    R *= sign[:, None]
    if order is not None:
        unpermuted = np.empty_like(R)
        unpermuted[:, order] = R
        R = unpermuted
    return np.ascontiguousarray(Q), R


def polar(A: NDArray[Any]) -> NDArray[Any]:
    """Return the orthonormal polar factor of A, the maximiser of tr(QᵀA) over QᵀQ = I.

    Parameters
    ----------
    A : (m, d), m ≥ d

    Returns
    -------
    Q : (m, d)

    Notes
    -----
    From the singular value decomposition, O(m·d²).

    Examples
    --------
    >>> polar(np.array([[0.0, 2.0], [-3.0, 0.0]])).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    try:
        X, _, Yt = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        # Divide and conquer fails on rare matrices where plain QR iteration does not.
        X, _, Yt = linalg.svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return np.asarray(X @ Yt)
