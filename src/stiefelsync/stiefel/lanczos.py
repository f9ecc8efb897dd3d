"""One extreme eigenpair by Lanczos with full reorthogonalisation from a random start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from stiefelsync.stiefel.flags import ignoring_kernel_flags

__all__ = ["extreme_pair"]


@ignoring_kernel_flags
def extreme_pair(
    product: Callable[[NDArray[Any]], NDArray[Any]],
    start: NDArray[Any],
    *,
    largest: bool,
    tol: float = 1e-6,
    max_steps: int = 100,
) -> tuple[float, NDArray[Any], float]:
    """Return an extreme eigenvalue of a symmetric operator, its vector and the residual norm ‖Ax − λx‖.

    Parameters
    ----------
    product
        x ↦ Ax for (m, 1) arrays.
    start : (m, 1)
        Random, so that it has a part in every eigenspace.
    largest
        Which end of the spectrum.
    tol
        Residual at which to stop, relative to the largest eigenvalue in magnitude.

    Returns
    -------
    value : float
    vector : (m, 1)
    residual : float

    Notes
    -----
    ARPACK can report an interior eigenvalue when few distinct ones exist (a noise-free matching
    matrix has two: its Krylov space is exhausted after two steps and the restart goes astray). Here
    exhaustion is the good case: all distinct eigenvalues have then been found. Costs at most
    `max_steps` products and m × `max_steps` memory.

    Examples
    --------
    >>> A = np.diag([4.0, 1.0, -3.0])
    >>> value, _, _ = extreme_pair(lambda x: A @ x, np.ones((3, 1)), largest=False)
    >>> round(value, 6)
    -3.0
    """
    m = len(start)
    steps = min(max_steps, m)
    basis = np.empty((steps, m), dtype=start.dtype)
    alpha, beta = np.zeros(steps), np.zeros(steps)
    basis[0] = (start / np.linalg.norm(start))[:, 0]
    at = -1 if largest else 0
    value, y, residual, used = 0.0, np.ones(1), np.inf, 0
    for t in range(steps):
        w = product(basis[t][:, None])[:, 0]
        alpha[t] = float(basis[t] @ w)
        known = basis[: t + 1]
        for _ in range(2):  # once is not enough against rounding
            w = w - known.T @ (known @ w)
        beta[t] = float(np.linalg.norm(w))
        used = t + 1
        last = used == steps or used % 10 == 0
        scale = float(abs(alpha[:used]).max() + beta[:used].max())
        exhausted = not beta[t] > 100 * np.finfo(start.dtype).eps * scale
        if last or exhausted:
            values, vectors = eigh_tridiagonal(alpha[:used], beta[: used - 1])
            value, y = float(values[at]), vectors[:, at]
            residual = 0.0 if exhausted else float(beta[t] * abs(y[-1]))
            if exhausted or residual <= tol * abs(values).max():
                break
        if used < steps:
            basis[used] = w / beta[t]
    x = (y.astype(start.dtype) @ basis[:used])[:, None]
    return value, x / np.linalg.norm(x), residual
