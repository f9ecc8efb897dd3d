"""Soft assignments of objects to the universe: rows sum to one, columns to at most one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.torch.algebra import conjugate_gradients
from stiefelsync.torch.operators import batched
from stiefelsync.torch.threads import alone_if_small

__all__ = ["sinkhorn"]

_LEAST = 1e-30  # below this the sum of a column counts as this, within the range of single precision
# Newton's step, and shorter ones for where the first is too long.
_LENGTHS = (1.0, 0.5, 0.125, 0.015625)
_MAX_NEWTON_COLUMNS = 256
_RIDGE = {torch.float32: 1e-6, torch.float64: 1e-12}


@typed
@alone_if_small
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
    O(n·d) per iteration, and O(k·d³) up to 256 columns, where a few steps of Newton's take the place of many. The
    backward pass solves the linearised conditions, a d × d system for each object, by
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
        return torch.softmax(S + _balanced(S, b, there, free, max_iter, tol), -1) * there

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output, inputs[1])

    @staticmethod
    @alone_if_small
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


def _balanced(S: Tensor, b: Tensor, there: Tensor, free: Tensor, max_iter: int, tol: float) -> Tensor:
    """Return the column factors b, shape (..., 1, d), that bring all column sums to one.

    The sums c(b) of the columns are the gradient of the convex Σ log Σ exp(S + b) − Σ b plus one,
    and I − PᵀP − s sᵀ/free of `_balance`, with c(b) for I, is its Hessian. Every step tries those
    of Newton at several lengths, and that of Sinkhorn, b − log c, after which the sums are never
    further from one than before; the best of them is taken, for each problem of a batch.
    """
    d = S.shape[-1]
    # Where a Hessian takes too long to be factorised, steps are those of Sinkhorn alone.
    lengths = S.new_tensor(_LENGTHS if d <= _MAX_NEWTON_COLUMNS else ())
    lengths = lengths.reshape(-1, *[1] * S.ndim)
    columns, P, slack = _column_sums(S, b, there, free)
    for _ in range(max_iter):
        if bool((columns - 1).abs().amax() <= tol):
            break
        tries = (b - columns.clamp(min=_LEAST).log())[None]
        if len(lengths):
            H = torch.diag_embed(columns[..., 0, :]) - P.mT @ P - slack.mT @ slack / free.clamp(min=1)
            # A factor common to all columns changes nothing; with this the matrix has an inverse.
            H = H + 1 / d + torch.eye(d, dtype=S.dtype, device=S.device) * _RIDGE[S.dtype]
            step = torch.linalg.solve_ex(H, (1 - columns).mT)[0].mT
            tries = torch.cat([tries, b + lengths * torch.nan_to_num(step, posinf=0.0, neginf=0.0)])
        tried = _column_sums(S, tries, there, free)
        off = (tried[0] - 1).abs().sum((-2, -1), keepdim=True).nan_to_num(nan=torch.inf)
        best = off.argmin(0, keepdim=True)
        b, columns, P, slack = (torch.take_along_dim(x, best, 0)[0] for x in (tries, *tried))
    return b


def _column_sums(S: Tensor, b: Tensor, there: Tensor, free: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sums of columns, P, whose rows sum to one, and the slack rows together."""
    P = torch.softmax(S + b, -1) * there
    slack = free * torch.softmax(b, -1)
    return P.sum(-2, keepdim=True) + slack, P, slack


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
    @alone_if_small
    def backward(ctx: Any, grad: Tensor) -> Any:
        P, free, beta = ctx.saved_tensors
        # The constant vector is in the kernel: factors common to all columns change nothing.
        Z = _Balance.apply(P, free, grad - grad.mean(-1, keepdim=True))
        _, pull = torch.func.vjp(lambda P: _balance(P, free, beta), P)
        return pull(-Z)[0], None, Z

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Balance, info, in_dims, *args)
