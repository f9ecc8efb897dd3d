"""The secondary objective g that promotes sparsity, and the matrix h its gradient is made of (section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["gradient_matrix", "power", "secondary", "sparsity"]


def power(U: NDArray[Any], exponent: int) -> NDArray[Any]:
    """Raise elementwise to a small positive integer power by products, which is much faster than `**`.

    Examples
    --------
    >>> power(np.array([2.0]), 3).tolist()
    [8.0]
    """
    out = U * U if exponent > 1 else U.copy()
    for _ in range(exponent - 2):
        out *= U
    return out


def secondary(U: NDArray[Any], p: int = 3) -> float:
    """Return g(U) = Σ U_ij^p (equation 4); large when a few entries are near 1 and the rest near 0.

    Parameters
    ----------
    U : (m, d)
    p
        Integer ≥ 3; odd p also promotes non-negativity.

    Examples
    --------
    >>> secondary(np.eye(3)), round(secondary(np.full((4, 1), 0.5)), 3)
    (3.0, 0.5)
    """
    return float(np.vdot(U, power(U, p - 1)))


def gradient_matrix(U: NDArray[Any], p: int = 3) -> NDArray[Any]:
    """Return h(U) = Uᵀ(U.^(p−1)), shape (d, d).

    Tr h = g and the gradient of Q ↦ g(UQ) at I is p(h − hᵀ).

    Parameters
    ----------
    U : (m, d)
    p
        Integer ≥ 3.

    Notes
    -----
    O(m·d²), one matrix product.

    Examples
    --------
    >>> gradient_matrix(np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return np.asarray(U.T @ power(U, p - 1))


def sparsity(U: NDArray[Any], threshold: float = 0.01) -> float:
    """Return the share of entries of U whose magnitude is below `threshold` times the largest.

    Examples
    --------
    >>> sparsity(np.eye(4))
    0.75
    """
    magnitude = abs(U)
    return float((magnitude < threshold * magnitude.max()).mean())
