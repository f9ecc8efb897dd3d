"""The yardstick of every speed benchmark: Algorithm 1 of the paper in plain, single-threaded NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

__all__ = ["algorithm1"]


def algorithm1(
    W: Any, d: int, rng: np.random.Generator, *, max_iter: int = 200, tol: float = 1e-5
) -> tuple[NDArray[np.float64], int]:
    """Return (U, number of updates) of Algorithm 1: ``U R ← W U Z(U)`` until ``f(U_t)/f(U_{t+1}) ≥ 1 − tol``.

    Written as one would from the paper: W (m, m) CSR shifted by its smallest eigenvalue (Lemma 1) and applied twice
    per update (once to update, once for f), Householder QR with positive diagonal, float64, p = 3.

    Examples
    --------
    >>> from scipy import sparse
    >>> U, n_iter = algorithm1(sparse.diags_array([3.0, 2.0, 1.0]).tocsr(), 2, np.random.default_rng(0))
    >>> U.shape
    (3, 2)
    """
    m = W.shape[0]
    W = W.astype(np.float64)
    lowest = eigsh(W, k=1, which="SA", return_eigenvectors=False, tol=1e-3, v0=rng.standard_normal(m))[0]
    shift = min(float(lowest), 0.0)
    U = rng.standard_normal((m, d))
    f = float(np.sum(U * (W @ U)))
    for n_iter in range(1, max_iter + 1):
        h = U.T @ U**2
        skew = h - h.T
        Z = np.eye(d) + skew / max(float(abs(skew).max()), np.finfo(float).tiny)
        U, R = np.linalg.qr(W @ U @ Z - shift * (U @ Z))
        U = U * np.where(np.diag(R) < 0, -1.0, 1.0)
        f_old, f = f, float(np.sum(U * (W @ U)))
        if n_iter > 1 and f_old / f >= 1 - tol:
            return U, n_iter
    return U, max_iter
