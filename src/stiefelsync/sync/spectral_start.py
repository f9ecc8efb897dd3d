"""The deterministic start: a dominant subspace of the degree-normalised matrix, rotated until it is sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from stiefelsync.stiefel.orthonormal import orthonormalise, polar
from stiefelsync.stiefel.product import sparse_product
from stiefelsync.stiefel.subspace import dominant_subspace

__all__ = ["dominant", "rotate", "spectral_start", "start_size"]

_DENSE = 700  # rows up to which all eigenvectors at once are quickest
_DEGREE = 4  # of the Chebyshev filter between two Rayleigh–Ritz steps
_ROWS = 12  # rows per universe point that settle the rotation before all rows finish it


def start_size(A: Any, sizes: NDArray[Any], d: int) -> int:
    """Return how many labels to start with, at most d: ten per cent more than the trace of ``D^-½ (A + I) D^-½``.

    Without wrong or missing matches the eigenvalues are ones and zeros and the trace is the number of universe points;
    wrong matches hardly move it and missing ones enlarge it. More columns than that would be noise, and so would any
    beyond the size of the largest object if the trace does not exceed that, as for full permutations.

    Parameters
    ----------
    A : (m, m) CSR
        Zero diagonal.
    sizes : (k,) int
        Points per object; the largest is a lower bound.

    Examples
    --------
    >>> A = sparse.csr_array(np.kron(np.ones((3, 3)) - np.eye(3), np.eye(2)))
    >>> start_size(A, np.array([2, 2, 2]), 5)
    2
    """
    trace = float(np.sum(1 / (A @ np.ones(A.shape[0]) + 1)))
    largest = int(np.max(sizes, initial=1))
    enough = largest if trace <= largest + 0.5 else max(largest, int(np.ceil(1.1 * trace)))
    return min(d, int(A.shape[0]), enough)


def spectral_start(
    A: Any,
    d: int,
    *,
    rng: np.random.Generator,
    diagonal: float = 1.0,
    near: NDArray[Any] | None = None,
    tol: float = 2e-3,
    max_products: int = 30,
) -> NDArray[Any]:
    """Return U, shape (m, d): the d leading eigenvectors of ``D^-½ W D^-½``, rotated to maximise g(U) = Σ U³.

    W is A with `diagonal` on its diagonal. Dividing by its row sums D restores what the rotation relies on, equal
    eigenvalues for all universe points, where some are seen more often than others. This differs from the paper in: the
    matrix, the subspace (found by a filtered block iteration in single precision) and the rotation (fixed point instead
    of gradient steps).

    Parameters
    ----------
    A : (m, m) CSR
        Symmetric, non-negative, zero diagonal, sorted indices.
    d
        Number of columns, at most m.
    rng
        Draws the block that the iteration starts from.
    near : (m, c), optional
        Orthonormal columns, such as a U of other weights, that take the place of c of the columns drawn.
    tol, max_products
        The subspace is good enough when the sum of its Ritz values has no more than `tol`, relatively, to gain from
        another look, and after at most so many products with A in any case.

    Notes
    -----
    O(nnz·d + m·d²) per product. Small problems, and any breakdown in single precision, take the exact route.

    Examples
    --------
    >>> A = sparse.csr_array(np.kron(np.ones((3, 3)) - np.eye(3), np.eye(2)))
    >>> U = spectral_start(A, 2, rng=np.random.default_rng(0))
    >>> np.abs(U.round(3)).max(axis=1).tolist()
    [0.577, 0.577, 0.577, 0.577, 0.577, 0.577]
    """
    m = A.shape[0]
    s = 1 / np.sqrt(A @ np.ones(m) + diagonal)
    if m <= max(_DENSE, 4 * d):
        N = A.toarray() * np.outer(s, s)
        N[np.diag_indices(m)] += diagonal * s**2
        return rotate(dominant_subspace(N, d, method="eigh").V)
    width = min(m, d + max(4, d // 8))
    product = sparse_product(sparse.csr_array((A.data.astype(np.float32), A.indices, A.indptr), shape=(m, m)))
    left, own = s[:, None].astype(np.float32), (diagonal * s[:, None] ** 2).astype(np.float32)

    def multiply(V: NDArray[Any]) -> NDArray[Any]:
        out = product(left * V)
        out *= left
        out += own * V
        return out

    V = rng.standard_normal((m, width), dtype=np.float32)
    if near is not None:
        V[:, : near.shape[1]] = np.sqrt(m) * near[:, :width]
    try:
        U = rotate(dominant(multiply, V, d, tol=tol, max_products=max_products))
    except (np.linalg.LinAlgError, ValueError):
        U = np.full((m, d), np.nan)
    if not np.isfinite(U).all():
        scale = sparse.diags_array(s)
        U = rotate(dominant_subspace(scale @ (A + sparse.diags_array(np.full(m, diagonal))) @ scale, d, rng=rng).V)
    return U


def dominant(
    multiply: Callable[[NDArray[Any]], NDArray[Any]], V: NDArray[Any], d: int, *, tol: float, max_products: int
) -> NDArray[Any]:
    """Return the Ritz vectors, shape (m, d), of the d largest eigenvalues, to the few digits that labels need.

    Between two Rayleigh–Ritz steps a Chebyshev polynomial of N damps the part of the spectrum, assumed symmetric about
    zero, that lies below the smallest Ritz value of a slightly wider block. It ends when the sum of the d Ritz values
    grew less than `tol`, relatively, or promises to: what it still lacks is about Σ ‖N v − θ v‖² / (θ − θ_last).

    Parameters
    ----------
    multiply
        U ↦ N U.
    V : (m, width)
        The block to start from, width ≥ d.

    Examples
    --------
    >>> N = np.diag([1.0, 0.9, 0.2, 0.1, -0.1, 0.0])
    >>> V = np.random.default_rng(0).standard_normal((6, 4))
    >>> V = dominant(lambda U: N @ U, V, 2, tol=1e-6, max_products=40)
    >>> np.abs(V).round(3)[:3].tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    V = orthonormalise(multiply(V))[0]
    before, products = -np.inf, 1
    while True:
        NV = multiply(V)
        values, Y = np.linalg.eigh(V.T @ NV)
        values, Y = values[::-1], np.ascontiguousarray(Y[:, ::-1])
        # Ritz vectors keep the columns of very different eigenvalues apart, so that single precision suffices.
        V, NV = V @ Y, NV @ Y
        total, products = float(values[:d].sum()), products + 1
        R = NV[:, :d] - values[:d] * V[:, :d]
        promised = float(np.sum(np.sum(R**2, axis=0) / np.maximum(values[:d] - values[-1], np.finfo(V.dtype).eps)))
        # Unfiltered, a basis that suited other weights promises less than it would gain.
        grown, before = min(total - before, promised if np.isfinite(before) else np.inf), total
        if products + _DEGREE > max_products or grown <= tol * abs(total):
            return np.ascontiguousarray(V[:, :d])
        edge = V.dtype.type(max(float(values[-1]), 0.3 * float(values[0]), 1e-3))
        previous, current = V, NV / edge
        for _ in range(_DEGREE - 1):
            following = multiply(current)
            following *= 2 / edge
            following -= previous
            previous, current = current, following
        products += _DEGREE - 1
        V = orthonormalise(current / np.maximum(np.linalg.norm(current, axis=0), np.finfo(V.dtype).tiny))[0]


def rotate(V: NDArray[Any], *, Q: NDArray[Any] | None = None, tol: float = 1e-4, max_iter: int = 50) -> NDArray[Any]:
    """Return V Q with Q orthogonal and g(VQ) = Σ (VQ)³ at a fixed point of ``Q ← polar(Vᵀ (VQ)²)``.

    The start Q, unless given, aligns the axes with d rows of V that are as different as column-pivoted QR of Vᵀ finds.

    Parameters
    ----------
    V : (m, d)
        Orthonormal columns.
    Q : (d, d), optional
        Orthogonal start.

    Notes
    -----
    O(m·d²) per iteration; when m is much larger than d, evenly spaced rows settle Q first.

    Examples
    --------
    >>> c, s = np.cos(0.5), np.sin(0.5)
    >>> np.abs(rotate(np.array([[c, -s], [s, c], [0.0, 0.0]]))).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    m, d = V.shape
    few = V if m <= 2 * _ROWS * d else np.ascontiguousarray(V[np.linspace(0, m - 1, _ROWS * d).astype(np.int64)])
    if Q is None:
        _, _, pivots = linalg.qr(few.T, pivoting=True, mode="economic", check_finite=False)
        Q = polar(few[pivots[:d]].T)
    for rows in (few,) if few is V else (few, V):
        g = -np.inf
        for _ in range(max_iter):
            U = rows @ Q
            squares = U**2
            grown = float(np.vdot(U, squares))
            if grown - g <= tol * abs(grown):
                break
            g = grown
            Q = polar(rows.T @ squares)
    return np.asarray(V @ Q)
