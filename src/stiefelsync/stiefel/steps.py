"""The matrix Z(U) that each update multiplies from the right: how the iteration turns towards sparsity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stiefelsync.stiefel.orthonormal import orthonormalise, polar
from stiefelsync.stiefel.secondary import secondary

__all__ = ["STEPS", "Step", "gradient", "line_search", "none", "polar_step"]

Step: TypeAlias = Callable[[NDArray[Any], NDArray[Any], int], NDArray[Any] | None]
"""(U, h(U), p) ↦ Z(U), shape (d, d) and full rank; None stands for the identity."""

_SUFFICIENT = 1e-4  # Armijo's constant
_SHORTEST = 2.0**-25  # of the first trial step


def gradient(U: NDArray[Any], h: NDArray[Any], p: int) -> NDArray[Any] | None:
    """Return Z = I + α(h − hᵀ), α = 1 / max|h − hᵀ| (equation 9 and section 4.3 of the paper).

    Full rank for every α, being identity plus skew-symmetric.

    Examples
    --------
    >>> gradient(np.eye(2), np.array([[1.0, 0.5], [0.0, 1.0]]), 3).tolist()
    [[1.0, 1.0], [-1.0, 1.0]]
    """
    S = h - h.T
    largest = abs(S).max()
    return None if largest == 0 else np.eye(len(S), dtype=S.dtype) + S / largest


def line_search(U: NDArray[Any], h: NDArray[Any], p: int) -> NDArray[Any] | None:
    """Return Z = I + α(h − hᵀ) with the first α = 1/max|h − hᵀ| · 2, 1, ½, … that increases g enough.

    "Enough" is Armijo's condition for g(UQ(α)), Q(α) the Q-factor of Z: a QR retraction on O(d),
    along which g first grows at the rate p/2 ‖h − hᵀ‖². The identity where no step helps.

    Examples
    --------
    >>> U = np.array([[0.8, 0.6], [-0.6, 0.8]])
    >>> Z = line_search(U, U.T @ U**2, 3)
    >>> secondary(U @ orthonormalise(Z)[0]) > secondary(U)
    True
    """
    S = h - h.T
    largest = abs(S).max()
    if largest == 0:
        return None
    identity = np.eye(len(S), dtype=S.dtype)
    before, slope = float(np.trace(h)), p / 2 * float(np.vdot(S, S)) / float(largest)
    scale = 2.0
    while scale > _SHORTEST:
        Z: NDArray[Any] = identity + (scale / largest) * S
        if secondary(U @ orthonormalise(Z)[0], p) >= before + _SUFFICIENT * scale * slope:
            return Z
        scale /= 2
    return None


def polar_step(U: NDArray[Any], h: NDArray[Any], p: int) -> NDArray[Any] | None:
    """Return the polar factor of h, the maximiser of the linearised g over O(d): a generalised power step.

    This differs from the paper in: the whole step to the linearisation's maximiser instead of a
    gradient step.

    Examples
    --------
    >>> polar_step(np.eye(2), np.eye(2), 3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return polar(h)


def none(U: NDArray[Any], h: NDArray[Any], p: int) -> NDArray[Any] | None:
    """Return the identity: plain Orthogonal Iteration.

    Examples
    --------
    >>> none(np.eye(2), np.eye(2), 3) is None
    True
    """
    return None


STEPS: dict[str, Step] = {"gradient": gradient, "line-search": line_search, "polar": polar_step, "none": none}
