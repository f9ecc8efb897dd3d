"""The deterministic start: a dominant subspace of the degree-normalised matrix, rotated until it is sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from stiefelsync.stiefel.operators import SymmetricOperator, as_operator
from stiefelsync.stiefel.orthonormal import orthonormalise, polar

__all__ = ["dominant", "normalised", "rotate", "spectral_start"]

_DENSE = 700  # rows up to which all eigenvectors at once are quickest
_DEGREE = 4  # of the Chebyshev filter between two Rayleigh–Ritz steps
_ROWS = 12  # rows per universe point that settle the rotation before all rows finish it


def spectral_start(W: Any, d: int, *, tol: float = 1e-3, max_products: int = 30, rng: np.random.Generator) -> Any:
    """Return U, shape (m, d): the d leading eigenvectors of ``D^-½ W D^-½``, rotated to maximise g(U) = Σ U³.

    Dividing by the degrees D = diag(W 1) restores what the rotation relies on, equal eigenvalues for all universe
    points, where some are seen more often than others. This differs from the paper in: the matrix, the subspace (found
    by a filtered block iteration in single precision) and the rotation (fixed point instead of gradient steps).

    Parameters
    ----------
    W : (m, m) CSR
        Symmetric, non-negative, with positive diagonal.
    d
        Number of columns, at most m.
    tol, max_products
        The subspace is good enough when the sum of its Ritz values grows less than `tol`, relatively, between two
        looks, and after at most so many products with W in any case.
    rng
        Draws the block that the iteration starts from.

    Notes
    -----
    O(nnz·d + m·d²) per product. Any breakdown in single precision falls back to LAPACK in double precision.

    Examples
    --------
    >>> W = sparse.csr_array(np.kron(np.ones((3, 3)), np.eye(2)))
    >>> U = spectral_start(W, 2, rng=np.random.default_rng(0))
    >>> np.abs(U.round(3)).max(axis=1).tolist()
    [0.577, 0.577, 0.577, 0.577, 0.577, 0.577]
    """
    N = normalised(W)
    m = N.shape[0]
    if m <= max(_DENSE, 4 * d):
        V = _dense(N, d)
    else:
        V = dominant(as_operator(N.astype(np.float32)), d, tol=tol, max_products=max_products, rng=rng)
        if not np.isfinite(V).all():
            V = _dense(N, d)
    return rotate(V)


def normalised(W: Any) -> Any:
    """Return ``D^-½ W D^-½``, D the diagonal matrix of row sums; O(nnz).

    Examples
    --------
    >>> normalised(sparse.csr_array([[1.0, 1.0], [1.0, 3.0]])).toarray().round(3).tolist()
    [[0.5, 0.354], [0.354, 0.75]]
    """
    s = 1 / np.sqrt(W @ np.ones(W.shape[1]))
    scale = sparse.diags_array(s)
    return (scale @ W @ scale).tocsr()


def _dense(N: Any, d: int) -> NDArray[np.float64]:
    m = N.shape[0]
    _, V = linalg.eigh(N.toarray(), subset_by_index=(m - d, m - 1), overwrite_a=True, check_finite=False)
    return np.ascontiguousarray(V[:, ::-1])


def dominant(N: SymmetricOperator, d: int, *, tol: float, max_products: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return the Ritz vectors, shape (m, d), of the d largest eigenvalues, to the few digits that labels need.

    Between two Rayleigh–Ritz steps a Chebyshev polynomial of N damps the part of the spectrum, assumed symmetric about
    zero, that lies below the smallest Ritz value of a slightly wider block.

    Examples
    --------
    >>> N = as_operator(np.diag([1.0, 0.9, 0.2, 0.1, -0.1, 0.0]))
    >>> V = dominant(N, 2, tol=1e-6, max_products=40, rng=np.random.default_rng(0))
    >>> np.abs(V).round(3)[:3].tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    width = min(N.size, d + max(4, d // 8))
    V = orthonormalise(N @ rng.standard_normal((N.size, width)).astype(N.dtype))[0]
    before, products = -np.inf, 1
    while True:
        NV = N @ V
        values, Y = np.linalg.eigh(V.T @ NV)
        total, products = float(values[-d:].sum()), products + 1
        if products + _DEGREE > max_products or total - before <= tol * abs(total):
            return np.ascontiguousarray(V @ Y[:, : -d - 1 : -1])
        before = total
        # Ritz vectors keep the columns of very different eigenvalues apart, so that single precision suffices.
        edge = N.dtype.type(max(float(values[0]), 0.3 * float(values[-1]), 1e-3))
        Y = np.ascontiguousarray(Y[:, ::-1])
        previous, current = V @ Y, (NV @ Y) / edge
        for _ in range(_DEGREE - 1):
            following = N @ current
            following *= 2 / edge
            following -= previous
            previous, current = current, following
        products += _DEGREE - 1
        V = orthonormalise(current / np.linalg.norm(current, axis=0))[0]


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
            grown = float(np.sum(U**3))
            if grown - g <= tol * abs(grown):
                break
            g = grown
            Q = polar(rows.T @ U**2)
    return np.asarray(V @ Q)
