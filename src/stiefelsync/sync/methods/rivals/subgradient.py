"""Riemannian subgradient method for an l1 penalty (Li, Chen, Deng, Qu, Zhu and So 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.orthonormal import orthonormalise
from stiefelsync.stiefel.result import Status
from stiefelsync.stiefel.secondary import secondary
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Stopwatch, register
from stiefelsync.sync.methods._eigen import eigenpairs, signs
from stiefelsync.sync.methods._stages import finish
from stiefelsync.sync.options import dtype_option, option

__all__ = ["Options", "SubgradientDetails", "run"]


@dataclass(frozen=True)
class Options:
    """Options of subgradient."""

    penalty: float | None = option(
        None, "Weight λ of the l1 norm; by default U stays within the dominant subspace.", kind=float, least=0
    )
    step: float = option(0.5, "First step length, per √d.", above=0)
    decay: float = option(0.98, "Factor from one step to the next; 1 lets lengths diminish as 1/√t instead.", above=0)
    max_iter: int = option(500, "Most steps.", least=1)
    tol: float = option(1e-4, "Step length per √d below which it ends before that.", above=0)
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True, eq=False, repr=False)
class SubgradientDetails(Details):
    """What the subgradient methods tell.

    Attributes
    ----------
    secondary
        g(U) = Σ U_ij³, after the signs.
    l1
        ‖U‖₁.
    cost
        What was minimised: ‖U‖₁, or the penalised objective.
    signs : (d,)
        By which the columns were multiplied before the projection.
    """

    secondary: float
    l1: float
    cost: float
    signs: NDArray[Any]


@register(
    "subgradient",
    summary="Riemannian subgradient steps with QR retraction on the l1 norm",
    consistent=True,
    cost="one eigendecomposition, then O(m·d²) per step (plus O(nnz·d) with a penalty)",
    reference="Li, Chen, Deng, Qu, Zhu, So: Weakly convex optimization over Stiefel manifold using Riemannian"
    " subgradient-type methods, SIAM J. Optim. 2021",
    choose="to compare the l1 norm with the paper's secondary objective",
    options=Options,
)
def run(
    matchings: Matchings,
    universe: int,
    options: Options,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Minimise ``‖VQ‖₁`` over orthogonal Q, V the leading eigenvectors of W, and project U = VQ.

    With `penalty` λ: minimise ``−tr(UᵀWU) + λ‖U‖₁`` over UᵀU = I instead, starting from a random
    basis of im(V). One step is ``U ← qf(U − γ_t ξ/‖ξ‖_F)``, ξ the subgradient projected to the
    tangent space, qf the Q-factor, and ``γ_t = step·√d·decay^t``; over O(d) the step is taken in Q,
    where ξ is the skew part of ``Uᵀ sign(U)``.

    Notes
    -----
    Cycle-consistent. Returns the iterate of least cost. The l1 norm leaves signs open, as p = 4
    does: before the projection every column whose cubes sum to less than zero is negated.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> labels = run(problem, 2, rng=np.random.default_rng(0)).labels
    >>> Matchings.from_labels(labels, [2, 2]) == problem
    True
    """
    penalty, max_iter = options.penalty, options.max_iter
    watch = Stopwatch()
    W = matchings.to_matrix(options.dtype)
    with watch("eigenvectors"):
        V, _ = eigenpairs(W, universe, rng=rng)
    d = V.shape[1]
    best = U = V @ orthonormalise(rng.standard_normal((d, d)).astype(V.dtype))[0]
    identity = np.eye(d, dtype=V.dtype)
    least, n_iter, status = np.inf, 0, Status.MAX_ITER
    with watch("iterations"):
        for n_iter in range(1, max_iter + 1):
            cost, direction = _l1_in_subspace(U) if penalty is None else _penalised(U, W, penalty)
            if cost < least:
                best, least = U, cost
            length = options.step * (options.decay ** (n_iter - 1) if options.decay < 1 else n_iter**-0.5)
            norm = float(np.linalg.norm(direction))
            if length < options.tol or norm == 0:
                status = Status.CONVERGED
                break
            if callback is not None and callback(Progress("iterations", n_iter, max_iter)):
                status = Status.STOPPED
                break
            move = length * d**0.5 / norm * direction
            U = U @ orthonormalise(identity - move)[0] if penalty is None else orthonormalise(U - move)[0]
    flips = signs((best**3).sum(axis=0))
    details = SubgradientDetails(secondary(best * flips), float(abs(best).sum()), least, flips)
    return finish(best * flips, matchings, universe, watch, status=status, n_iter=n_iter, details=details)


def _l1_in_subspace(U: NDArray[Any]) -> tuple[float, NDArray[Any]]:
    """Return ‖U‖₁ and the skew matrix S for which ``U(I − γS)`` leaves along a negative subgradient; (d, d)."""
    sign = np.sign(U)
    h = U.T @ sign
    return float(np.vdot(U, sign)), (h - h.T) / 2


def _penalised(U: NDArray[Any], W: Any, penalty: float) -> tuple[float, NDArray[Any]]:
    """Return −tr(UᵀWU) + λ‖U‖₁ and its Riemannian subgradient; (m, d)."""
    WU, sign = W @ U, np.sign(U)
    G = penalty * sign - 2 * WU
    h = U.T @ G
    return penalty * float(np.vdot(U, sign)) - float(np.vdot(U, WU)), G - U @ ((h + h.T) / 2)
