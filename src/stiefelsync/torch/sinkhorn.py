"""Soft assignments of objects to the universe: rows sum to one, columns to at most one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from stiefelsync.errors import InputError
from stiefelsync.torch.algebra import conjugate_gradients
from stiefelsync.torch.operators import batched

__all__ = ["sinkhorn"]

_INNER = 20  # cheap iterations between two that go through logarithms and look at the column sums
_LEAST = 1e-30  # below this a sum of the cheap iterations counts as this, within the range of single precision


def sinkhorn(S: Tensor, mask: Tensor | None = None, *, max_iter: int = 1000, tol: float = 1e-4) -> Tensor:
    """Return exp(S) scaled so that every row sums to one and every column to at most one.

    An object with n < d points has d − n slack rows of equal scores that take what the columns have left: with them the
    matrix is square, and scaled to be doubly stochastic: P_ic = exp(S_ic + a_i + b_c).

    Parameters
    ----------
    S : (..., n, d)
        Scores divided by the temperature, n ≤ d.
    mask : (..., n) bool, optional
        Which rows are points; the others are zero in the result.
    max_iter, tol
        Iterations end when no column sum, slack included, is further than `tol` from one.

    Returns
    -------
    P : (..., n, d)
        Rows sum to one exactly, columns to at most one up to `tol`, unless `max_iter` comes first.

    Notes
    -----
    O(n·d) per iteration. The backward pass solves the linearised conditions, a d × d system for each object, by
    conjugate gradients, with O(n·d) memory.

    Examples
    --------
    >>> sinkhorn(torch.tensor([[1.0, 0.0], [3.0, 0.0]])).round(decimals=2).tolist()
    [[0.27..., 0.73...], [0.73..., 0.27...]]
    """
    if S.ndim < 2 or S.shape[-2] > S.shape[-1]:
        raise InputError(f"S must have shape (..., n, d) with n ≤ d, got {tuple(S.shape)}; enlarge the universe")
    real = torch.ones(S.shape[:-1], dtype=torch.bool, device=S.device) if mask is None else mask.expand(S.shape[:-1])
    return _Sinkhorn.apply(S, real, max_iter, tol)


class _Sinkhorn(torch.autograd.Function):
    """P = exp(S + a + b); dP = P ∘ (dS + da + db) with da, db such that row and column sums stay."""

    @staticmethod
    def forward(S: Tensor, mask: Tensor, max_iter: int, tol: float) -> Tensor:
        there = mask[..., None]
        free = _free(S, mask)
        S = torch.where(there, S, 0.0)
        b = torch.zeros_like(S[..., :1, :])
        for _ in range(-(-max_iter // _INNER)):
            K = torch.softmax(S + b, -1) * there
            slack = free * torch.softmax(b, -1)
            if bool((K.sum(-2, keepdim=True) + slack - 1).abs().amax() <= tol):
                break
            v = _scale(K, slack, free)
            b = b + v.log()
        return torch.softmax(S + b, -1) * there

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output, inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        P, mask = ctx.saved_tensors
        M = P * grad
        of_row, of_column = M.sum(-1, keepdim=True), M.sum(-2, keepdim=True)
        beta = _Balance.apply(P, _free(P, mask), of_column - of_row.mT @ P)
        alpha = of_row - P @ beta.mT
        return M - P * (alpha + beta), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Sinkhorn, info, in_dims, *args)


def _free(S: Tensor, mask: Tensor) -> Tensor:
    """Return the number of slack rows, shape (..., 1, 1)."""
    return (S.shape[-1] - mask.sum(-1))[..., None, None].to(S.dtype)


def _scale(K: Tensor, slack: Tensor, free: Tensor) -> Tensor:
    """Return the column factors, shape (..., 1, d), after some iterations on the kernel K with unit row sums."""
    u, w = torch.ones_like(K[..., :1]), torch.ones_like(free)
    for _ in range(_INNER):
        v = 1 / (u.mT @ K + w * slack).clamp(min=_LEAST)
        u = 1 / (K @ v.mT).clamp(min=_LEAST)
        w = free / (slack * v).sum(-1, keepdim=True).clamp(min=_LEAST)
    return v.clamp(min=_LEAST, max=1 / _LEAST)


def _balance(P: Tensor, free: Tensor, beta: Tensor) -> Tensor:
    """Return (I − PᵀP − s sᵀ/free) β as a row, s the slack row: how column sums answer to column factors."""
    slack = 1 - P.sum(-2, keepdim=True)
    rest = (slack * beta).sum(-1, keepdim=True) / free.clamp(min=1)
    return beta - (P @ beta.mT).mT @ P - torch.where(free > 0, rest * slack, 0.0)


class _Balance(torch.autograd.Function):
    """The solution β, shape (..., 1, d), of ``(I − PᵀP − s sᵀ/free) β = B``."""

    @staticmethod
    def forward(P: Tensor, free: Tensor, B: Tensor) -> Tensor:
        tol = 1e-6 if P.dtype == torch.float32 else 1e-11
        # In exact arithmetic d steps are enough; rounding may take a few more.
        return conjugate_gradients(
            lambda x: _balance(P, free, x), B, dims=(-2, -1), flat=tol, tol=tol, max_iter=2 * P.shape[-1] + 10
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:2], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        P, free, beta = ctx.saved_tensors
        # The constant vector is in the kernel: factors common to all columns change nothing.
        Z = _Balance.apply(P, free, grad - grad.mean(-1, keepdim=True))
        _, pull = torch.func.vjp(lambda P: _balance(P, free, beta), P)
        return pull(-Z)[0], None, Z

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Balance, info, in_dims, *args)
