"""Turning a given orthonormal basis until it is sparse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.stiefel.checks import check_count, check_power, check_tolerance
from stiefelsync.stiefel.flags import ignoring_kernel_flags
from stiefelsync.stiefel.iterate import Rotation, iterate, settled
from stiefelsync.stiefel.orthonormal import polar
from stiefelsync.stiefel.result import State, Status, StiefelResult
from stiefelsync.stiefel.secondary import power
from stiefelsync.stiefel.sizes import some_rows
from stiefelsync.stiefel.steps import Step

__all__ = ["rotate", "sparsest", "turn"]

_ROWS_PER_COLUMN = 12  # rows per column that settle the rotation before all rows finish it
# How far from orthonormal a basis may be: rounding in float32 is far below, a mistake far above.
_ORTHONORMAL = 1e-3


@typed
@ignoring_kernel_flags
def rotate(
    V: ArrayLike, *, p: int = 3, Q: ArrayLike | None = None, tol: float = 1e-4, max_iter: int = 50
) -> NDArray[Any]:
    """Turn an orthonormal basis V until it is sparse: return V Q, Q orthogonal, with g(VQ) = Σ (VQ)_ij^p maximal.

    The fixed point of ``Q ← polar(Vᵀ (VQ).^(p−1))``, a generalised power method for g: a local
    maximum. Odd p also prefers non-negative entries; even p leaves signs open.

    Parameters
    ----------
    V : (m, d)
        Orthonormal columns, m ≥ d: eigenvectors, principal components, any basis of a subspace.
        float32 stays float32.
    p
        Power of the secondary objective, an integer ≥ 3.
    Q : (d, d), optional
        Orthogonal start. By default the axes are aligned with d rows of V that are as different as
        column-pivoted QR of Vᵀ finds.
    tol, max_iter
        Relative growth of g at which to stop, and the most iterations before that.

    Returns
    -------
    U : (m, d)
        Spans what V spans.

    Notes
    -----
    O(m·d²) per iteration; where m is much larger than d, evenly spaced rows settle Q first.

    Examples
    --------
    >>> c, s = np.cos(0.5), np.sin(0.5)
    >>> abs(rotate([[c, -s], [s, c], [0.0, 0.0]])).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    V, p, tol = _basis(V), check_power(p), check_tolerance(tol)
    max_iter = check_count("max_iter", max_iter)
    return sparsest(V, None if Q is None else _orthogonal(Q, V.shape[1], V.dtype), p=p, tol=tol, max_iter=max_iter)


def sparsest(
    V: NDArray[Any], Q: NDArray[Any] | None = None, *, p: int = 3, tol: float = 1e-4, max_iter: int = 50
) -> NDArray[Any]:
    """Do what :func:`rotate` does, for a V and a Q that are known to be orthonormal.

    Examples
    --------
    >>> sparsest(np.eye(3)[:, :2]).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    m, d = V.shape
    few = (
        V
        if m <= 2 * _ROWS_PER_COLUMN * d
        else np.ascontiguousarray(V[np.linspace(0, m - 1, _ROWS_PER_COLUMN * d).astype(np.int64)])
    )
    found, pace = _fixed_point(few, _aligned(few) if Q is None else Q, p, tol, max_iter)
    if few is not V:
        found, _ = _fixed_point(V, found, p, tol, max_iter, pace=pace)
    return np.asarray(V @ found)


def _fixed_point(
    V: NDArray[Any], Q: NDArray[Any], p: int, tol: float, max_iter: int, *, pace: float | None = None
) -> tuple[NDArray[Any], float]:
    """Repeat ``Q ← polar(Vᵀ (VQ).^(p−1))`` until g grew by no more than `tol`.

    Some rows of VQ at a time.

    The gradient of g, p H, promises how much g grows by a step. There is no other look where twice
    as much would be no more than `tol`, or, at the pace at which promises shrank from look to look
    on some of the rows, will be after this step. Return Q, and that pace. Without any, growth over
    the start tells nothing.
    """
    before, promised, least = np.nan, np.nan, 1 if pace is None else 0
    eps = np.finfo(V.dtype).eps
    first, *rest = (V[rows] for rows in some_rows(len(V)))
    for n in range(max_iter):
        H: Any = first.T @ power(first @ Q, p - 1)
        for rows in rest:
            H += rows.T @ power(rows @ Q, p - 1)
        g = float(np.vdot(Q, H))
        if n > least and g - before <= tol * abs(g):
            break
        before, Q = g, polar(H)
        past, promised = promised, 2 * p * max(float(np.vdot(Q, H)) - g, eps * abs(g))
        if n >= least and promised * (1 if pace is None else pace) <= tol * abs(g):
            break
    return Q, promised / past


def turn(
    V: NDArray[Any],
    *,
    step: Step,
    p: int,
    tol: float,
    max_iter: int,
    count: int | None = None,
    objective: float = np.nan,
    callback: Callable[[State], object] | None = None,
) -> StiefelResult:
    """Turn V, shape (m, d), by ``QR = Z(U_t), U_{t+1} = U_t Q`` (equations 2 and 3 of the paper).

    Parameters
    ----------
    step
        What Z is.
    tol, max_iter
        Ends when g grew by no more than `tol`, relatively, or after so many updates.
    count
        Makes exactly so many updates instead.
    objective
        f of the subspace, which no rotation changes.
    """
    rotation = Rotation(V.shape[1], V.dtype, objective)
    criterion = settled("secondary", tol=tol) if count is None else lambda _, now: now.iteration == count
    run = iterate(
        V, rotation, step=step, p=p, criterion=criterion, max_iter=max_iter if count is None else count,
        callback=callback,
    )  # fmt: skip
    # That it ran for a given number of steps is no failure to converge.
    ended = count is not None and run.status in (Status.CONVERGED, Status.MAX_ITER)
    return replace(run, status=Status.DONE) if ended else run


def _basis(V: ArrayLike) -> NDArray[Any]:
    """Return V as an array of float32 or float64, or say what is wrong with it."""
    try:
        basis = np.asarray(V)
    except ValueError:
        raise InputError("V must be a matrix of numbers; its rows differ in length") from None
    if basis.ndim != 2 or basis.shape[1] < 1 or len(basis) < basis.shape[1]:
        raise InputError(f"V must have shape (m, d) with m ≥ d ≥ 1, got {basis.shape}")
    if not (np.issubdtype(basis.dtype, np.floating) or np.issubdtype(basis.dtype, np.integer)):
        raise InputError(f"V must hold real numbers, got {basis.dtype}")
    basis = basis.astype(np.float32 if basis.dtype in (np.float16, np.float32) else np.float64, copy=False)
    if not np.isfinite(basis).all():
        raise InputError("V holds NaN or infinite entries")
    error = float(abs(basis.T @ basis - np.eye(basis.shape[1], dtype=basis.dtype)).max())
    if error > _ORTHONORMAL:
        raise InputError(f"V must have orthonormal columns, but VᵀV differs from I by {error:.2g}; take its QR factor")
    return basis


def _aligned(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rotation that turns d rows, as different as pivoted QR finds, towards the axes; shape (d, d)."""
    geqp3 = linalg.lapack.sgeqp3 if rows.dtype == np.float32 else linalg.lapack.dgeqp3
    pivots = geqp3(rows.T)[1] - 1  # the order alone: neither Q nor R is made
    # In order, so that columns do not change places where rows are about as long as each other.
    return polar(rows[np.sort(pivots[: rows.shape[1]])].T)


def _orthogonal(Q: ArrayLike, d: int, dtype: Any) -> NDArray[Any]:
    start = np.asarray(Q)
    if np.iscomplexobj(start):
        raise InputError("Q must be real")
    start = start.astype(dtype)
    if start.shape != (d, d) or not abs(start.T @ start - np.eye(d)).max() <= _ORTHONORMAL:
        raise InputError(f"Q must be an orthogonal matrix of shape ({d}, {d})")
    return start
