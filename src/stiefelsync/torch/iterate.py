"""The iteration for batches: Algorithm 1, Orthogonal Iteration and the rotation alone are the same loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from stiefelsync.torch.algebra import orthonormalise, polar

__all__ = ["STEPS", "Settings", "gradient_matrix", "iterate", "pivots", "rotate_iterate"]

Step: TypeAlias = Callable[[Tensor], Tensor]
"""h(U) ↦ Z(U), both (..., d, d)."""


def gradient_matrix(U: Tensor, p: int) -> Tensor:
    """Return h(U) = Uᵀ(U.^(p−1)), shape (..., d, d)."""
    return U.mT @ U ** (p - 1)


def _gradient(h: Tensor) -> Tensor:
    """Return Z = I + α(h − hᵀ), α = 1 / max|h − hᵀ| (equation 9 and section 4.3 of the paper)."""
    S = h - h.mT
    largest = S.abs().amax((-2, -1), keepdim=True)
    return torch.eye(S.shape[-1], dtype=S.dtype, device=S.device) + S / torch.where(largest > 0, largest, 1.0)


_TIE = 1e-5
STEPS: dict[str, Step | None] = {"gradient": _gradient, "polar": polar, "none": None}


class Settings:
    """Which of a batch goes on: the criterion of each problem, its extra updates, and how all ended."""

    def __init__(self, batch: torch.Size, device: torch.device, tol: float, extra_iter: int) -> None:
        self.tol = tol
        self.before: Tensor | None = None
        self.converged = torch.zeros(batch, dtype=torch.bool, device=device)
        self.broken, self.expired = torch.zeros_like(self.converged), torch.zeros_like(self.converged)
        self.remaining = torch.full(batch, extra_iter, device=device)

    def expire(self) -> None:
        """Give up on those that have not converged."""
        self.expired = ~self.converged

    @property
    def active(self) -> Tensor:
        """Which still take updates."""
        return ~self.expired & ~self.broken & ~(self.converged & (self.remaining <= 0))

    def judge(self, measure: Tensor) -> None:
        """Note the quantity that should settle, after an update."""
        measure, active = measure.detach(), self.active
        self.remaining = torch.where(active & self.converged, self.remaining - 1, self.remaining)
        if self.before is not None:
            settled = measure - self.before <= self.tol * measure.abs()
            self.converged = self.converged | (active & settled)
        self.before = measure


def iterate(
    multiply: Callable[[Tensor], Tensor],
    U: Tensor,
    shift: Tensor,
    *,
    step: str,
    p: int,
    tol: float,
    max_iter: int,
    extra_iter: int = 0,
    callback: Callable[[Tensor], object] | None = None,
) -> tuple[Tensor, Settings]:
    """Repeat ``U_{t+1} R_{t+1} = (A + shift·I) U_t Z(U_t)`` until f(U) = tr(UᵀAU) settles (Algorithm 1).

    Parameters
    ----------
    multiply
        U ↦ A U.
    U : (..., m, d)
        The start; it need not be orthonormal.
    shift : (..., 1, 1)
    callback
        Sees every iterate; a true answer stops the run.

    Notes
    -----
    Of a batch, a problem that has settled keeps its U while the others go on: each ends as it would alone.
    Differentiable by unrolling, with memory for every iterate; O(m·d) under ``no_grad``.
    """
    turn = STEPS[step]
    state = Settings(U.shape[:-2], U.device, tol, extra_iter)
    AU = multiply(U)
    for t in range(max_iter + extra_iter):
        if t == max_iter:
            state.expire()
            if not bool(state.active.any()):
                break
        following = AU + shift * U
        if turn is not None:
            following = following @ turn(gradient_matrix(U, p))
        following = orthonormalise(following)
        keep = ~state.active | ~following.isfinite().all(-1).all(-1)
        state.broken = state.broken | (keep & state.active)
        U = torch.where(keep[..., None, None], U, following)
        AU = multiply(U)
        state.judge((U * AU).sum((-2, -1)))
        if (callback is not None and callback(U)) or not bool(state.active.any()):
            break
    return U, state


def rotate_iterate(
    U: Tensor, *, step: str, p: int, tol: float, max_iter: int, callback: Callable[[Tensor], object] | None = None
) -> tuple[Tensor, Settings]:
    """Repeat ``QR = Z(U_t), U_{t+1} = U_t Q`` until g settles (equations 2 and 3 of the paper).

    Parameters
    ----------
    U : (..., m, d)
        Orthonormal columns.
    """
    turn = STEPS[step]
    state = Settings(U.shape[:-2], U.device, tol, 0)
    for _ in range(max_iter if turn is not None else 0):
        assert turn is not None
        Z = turn(gradient_matrix(U, p))
        following = U @ (Z if step == "polar" else orthonormalise(Z))
        U = torch.where(state.active[..., None, None], following, U)
        state.judge((U**p).sum((-2, -1)))
        if (callback is not None and callback(U)) or not bool(state.active.any()):
            break
    return U, state


def pivots(V: Tensor) -> Tensor:
    """Return d rows of V that differ most, as column-pivoted QR of Vᵀ finds them, shape (..., d).

    Examples
    --------
    >>> pivots(torch.tensor([[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]])).tolist()
    [2, 1]
    """
    left, chosen = V, []
    for _ in range(V.shape[-1]):
        size = (left * left).sum(-1)
        # Rows that tie but for rounding: the first of them, so that rounding decides nothing.
        row = (size >= (1 - _TIE) * size.amax(-1, keepdim=True)).int().argmax(-1)
        chosen.append(row)
        x = torch.take_along_dim(left, row[..., None, None], -2)
        x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=torch.finfo(V.dtype).tiny)
        left = left - (left @ x.mT) @ x
    return torch.stack(chosen, -1)
