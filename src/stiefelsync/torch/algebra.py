"""Unique QR, polar factor, conjugate gradients and Lanczos for batches of small problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["conjugate_gradients", "lowest_eigenvalue", "orthonormalise", "polar"]

_CHECKED = 10  # Lanczos steps between two looks at the Ritz value, as in the NumPy solver


def orthonormalise(A: Tensor) -> Tensor:
    """Return Q of the unique thin QR factorisation A = QR with a positive diagonal of R, differentiably.

    Parameters
    ----------
    A : (..., m, d)

    Notes
    -----
    Cholesky-QR twice, O(m·d²); Householder reflections for those of a batch that are too ill-conditioned for it.

    Examples
    --------
    >>> orthonormalise(torch.tensor([[3.0, 1.0], [0.0, -2.0]])).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    first, sound = _cholesky_pass(A)
    second, sound_again = _cholesky_pass(first)
    sound = sound & sound_again
    if bool(sound.all()):
        return second
    Q, R = torch.linalg.qr(torch.nan_to_num(A))
    sign = torch.where(R.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(Q.dtype)
    return torch.where(sound[..., None, None], second, Q * sign[..., None, :])


def _cholesky_pass(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return A R⁻¹ with RᵀR = AᵀA, and for which of the batch the Gram matrix can be trusted."""
    L, info = torch.linalg.cholesky_ex(A.mT @ A)
    diagonal = L.diagonal(dim1=-2, dim2=-1)
    limit = 10 * torch.finfo(A.dtype).eps ** 0.5
    sound = (info == 0) & (diagonal.amin(-1) > limit * diagonal.amax(-1)) & L.isfinite().all(-1).all(-1)
    L = torch.where(sound[..., None, None], L, torch.eye(L.shape[-1], dtype=L.dtype, device=L.device))
    return torch.linalg.solve_triangular(L, A.mT, upper=False).mT, sound


class _Polar(torch.autograd.Function):
    """The polar factor Q of A = Q H; dQ = QΩ with HΩ + ΩH = QᵀdA − dAᵀQ for square A.

    Only sums of singular values are divided by, so equal ones do no harm.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        X, s, Yt = torch.linalg.svd(A, full_matrices=False)
        return X @ Yt, s, Yt.mT

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*output)
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Tensor:
        Q, s, Y = ctx.saved_tensors
        sums = s[..., :, None] + s[..., None, :]
        floor = torch.finfo(s.dtype).eps * s.amax(-1)[..., None, None] + torch.finfo(s.dtype).tiny
        skew = Y.mT @ (Q.mT @ grad - grad.mT @ Q) @ Y / torch.maximum(sums, floor)
        return Q @ (Y @ skew @ Y.mT)


def polar(A: Tensor) -> Tensor:
    """Return the orthogonal polar factor of A, shape (..., d, d); differentiable once.

    Examples
    --------
    >>> polar(torch.tensor([[0.0, 2.0], [-3.0, 0.0]])).round(decimals=6).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    # LAPACK refuses what is not finite; a broken-down iterate is noticed and dropped by the caller.
    return _Polar.apply(torch.nan_to_num(A))[0]


def conjugate_gradients(
    apply: Callable[[Tensor], Tensor],
    B: Tensor,
    *,
    dims: tuple[int, ...],
    scale: Tensor | float = 1.0,
    flat: float,
    tol: float,
    max_iter: int,
) -> Tensor:
    """Solve apply(X) = B for symmetric positive semidefinite operators, many systems at once.

    Parameters
    ----------
    B : (..., …)
    dims
        Dimensions that belong to one system; every index of the others is a system of its own.
    scale
        Diagonal preconditioner: an estimate of the operator's diagonal, positive.
    flat
        Curvature at which a direction counts as singular.
    tol
        Residual relative to B at which a system is solved.

    Notes
    -----
    A system that meets a direction without curvature, as a singular or indefinite one does, keeps what it has found:
    the answer is finite whatever the operator.

    Examples
    --------
    >>> A = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    >>> B = torch.tensor([[3.0], [4.0]])
    >>> conjugate_gradients(lambda x: A @ x, B, dims=(0,), flat=1e-9, tol=1e-6, max_iter=9).T
    tensor([[1.0000, 1.0000]])
    """

    def dot(x: Tensor, y: Tensor) -> Tensor:
        return (x * y).sum(dims, keepdim=True)

    tiny = torch.finfo(B.dtype).tiny
    # Squares of very small or large entries would leave the range of the numbers.
    size = B.abs().amax(dims, keepdim=True)
    size = torch.where(size > 0, size, torch.ones_like(size))
    X, R = torch.zeros_like(B), B / size
    Z = R / scale
    P, rz = Z, dot(R, Z)
    enough = tol**2 * dot(R, R)
    for _ in range(max_iter):
        active = (dot(R, R) > enough) & (rz > tiny)
        if not bool(active.any()):
            break
        AP = apply(P)
        curvature = dot(P, AP)
        sound = active & (curvature > flat * dot(P, P)) & curvature.isfinite()
        step = torch.where(sound, rz / torch.where(sound, curvature, torch.ones_like(rz)), torch.zeros_like(rz))
        X = X + step * P
        # A system that cannot go on has its residual cleared, which ends it.
        R = torch.where(sound, R - step * AP, torch.zeros_like(R))
        Z = R / scale
        before, rz = rz, dot(R, Z)
        P = Z + torch.where(sound, rz / torch.where(sound, before, torch.ones_like(rz)), torch.zeros_like(rz)) * P
    return torch.nan_to_num(X) * size


def lowest_eigenvalue(
    product: Callable[[Tensor], Tensor], start: Tensor, *, tol: float = 1e-6, max_steps: int = 100
) -> tuple[Tensor, Tensor]:
    """Return the smallest eigenvalue and its residual for a batch of symmetric operators, by Lanczos.

    The steps, their order and their ends are those of the NumPy solver, for each of the batch on its own.

    Parameters
    ----------
    product
        x ↦ A x for (..., m, 1) tensors.
    start : (..., m, 1)
        Random.

    Returns
    -------
    value, residual : (...)

    Examples
    --------
    >>> A = torch.diag(torch.tensor([4.0, 1.0, -3.0]))
    >>> lowest_eigenvalue(lambda x: A @ x, torch.ones(3, 1))[0].round(decimals=4).item()
    -3.0
    """
    m = start.shape[-2]
    steps = min(max_steps, m)
    norm = torch.linalg.vector_norm
    x = start / norm(start, dim=-2, keepdim=True)
    basis = x.mT
    alpha, beta = x.new_empty(0), x.new_empty(0)
    done = torch.zeros(start.shape[:-2], dtype=torch.bool, device=start.device)
    value, residual = torch.zeros_like(start[..., 0, 0]), torch.zeros_like(start[..., 0, 0])
    for t in range(1, steps + 1):
        w = product(x)
        alpha = torch.cat([alpha, (x * w).sum(-2)], -1) if t > 1 else (x * w).sum(-2)
        for _ in range(2):  # once is not enough against rounding
            w = w - basis.mT @ (basis @ w)
        length = norm(w, dim=-2)
        beta = torch.cat([beta, length], -1) if t > 1 else length
        scale = alpha.abs().amax(-1) + beta.amax(-1)
        exhausted = ~(length[..., 0] > 100 * torch.finfo(start.dtype).eps * scale)
        if t == steps or t % _CHECKED == 0 or bool((exhausted & ~done).any()):
            T = torch.diag_embed(alpha) + torch.diag_embed(beta[..., :-1], 1) + torch.diag_embed(beta[..., :-1], -1)
            # Those done may hold anything by now.
            ritz, Y = torch.linalg.eigh(torch.where(done[..., None, None], torch.zeros_like(T), T).nan_to_num())
            left = torch.where(exhausted, 0.0, (length[..., 0] * Y[..., -1, 0]).abs())
            new = ~done & (exhausted | (t == steps) | ((t % _CHECKED == 0) & (left <= tol * ritz.abs().amax(-1))))
            value, residual = torch.where(new, ritz[..., 0], value), torch.where(new, left, residual)
            done = done | new
            if bool(done.all()):
                break
        x = w / torch.where(length > 0, length, torch.ones_like(length))[..., None, :]
        basis = torch.cat([basis, x.mT], -2)
    return value, residual
