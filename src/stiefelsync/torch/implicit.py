"""Derivatives of the dominant subspace and of its sparse basis, from what holds at the solution.

With A symmetric, U orthonormal and S = UᵀAU, a solution satisfies

(1) A U = U S, the columns span the dominant subspace;
(2) h(U) = Uᵀ(U.^(p−1)) is symmetric, g(U) = Σ U_ij^p is stationary within it.

A perturbation dA moves U by dU = X + UΩ with UᵀX = 0 and Ωᵀ = −Ω, where

(3) X S − P⊥AX = P⊥ dA U              (Sylvester; P⊥ = I − UUᵀ)
(4) H(Ω) = N(X), N the skew part of Xᵀ(U.^(p−1)) + (p−1) Uᵀ(U.^(p−2) ∘ X), H = −Hess g on O(d).

(3) divides by λ_i − λ_j with i ≤ d < j only: equal leading eigenvalues do no harm.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from stiefelsync.torch.algebra import conjugate_gradients
from stiefelsync.torch.operators import Pattern, batched, multiply, sampled
from stiefelsync.torch.threads import alone_if_small

__all__ = ["stationary", "subspace"]

# Both systems are solved this far; the error of a gradient is of this order times the condition number.
_TOL = {torch.float32: 1e-6, torch.float64: 1e-11}
# As many steps as a condition number of about a thousand takes. Beyond it, where there is hardly a gap, conjugate
# gradients stop at the part of the solution that is well determined.
_MAX_ITER = 200
# Curvature, relative to the operator's size, below which a direction is undetermined and its part of the gradient zero.
_FLAT = {torch.float32: 1e-5, torch.float64: 1e-11}


def subspace(values: Tensor, V: Tensor, pattern: Pattern | None) -> Tensor:
    """Return V as a function of A: a basis of a dominant subspace with the derivative dV = X of (3).

    Parameters
    ----------
    values
        A, as :func:`~stiefelsync.torch.operators.symmetric` has it.
    V : (..., m, d)
        Orthonormal columns that solve (1).

    Notes
    -----
    The derivative of a loss that depends on V Vᵀ only is exact. The backward pass costs one conjugate gradient solve,
    O(nnz·d + m·d²) per step, and O(m·d) memory.
    """
    return _Subspace.apply(values, V, pattern)


def stationary(V: Tensor, U: Tensor, p: int) -> Tensor:
    """Return U = V Q as a function of V, the derivative of Q being that of a stationary point of g (4).

    Parameters
    ----------
    V, U : (..., m, d)
        Orthonormal bases of one subspace, U solving (2).
    """
    return _Stationary.apply(V, U, p)


class _Subspace(torch.autograd.Function):
    @staticmethod
    def forward(values: Tensor, V: Tensor, pattern: Pattern | None) -> Tensor:
        return V.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        values, _, ctx.pattern = inputs
        ctx.save_for_backward(values, output)

    @staticmethod
    @alone_if_small
    def backward(ctx: Any, grad: Tensor) -> Any:
        values, V = ctx.saved_tensors
        Y = _Sylvester.apply(values, V, grad, ctx.pattern)
        return sampled(Y, V, ctx.pattern), None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Subspace, info, in_dims, *args)


class _Sylvester(torch.autograd.Function):
    """The solution Y of ``P⊥(Y S) − P⊥AP⊥Y + P Y = P⊥B``, a symmetric system on all (m, d) matrices."""

    @staticmethod
    def forward(values: Tensor, V: Tensor, B: Tensor, pattern: Pattern | None) -> Tensor:
        AV = multiply(values, V, pattern)
        S = V.mT @ AV
        inside, E = torch.linalg.eigh(0.5 * (S + S.mT))
        # A matrix this small counts as zero, where the gradient would leave the range of the numbers.
        size = inside.abs().amax(-1, keepdim=True)[..., None, :].clamp(min=torch.finfo(S.dtype).tiny ** 0.5)
        level = inside[..., None, :] / size

        def apply(X: Tensor) -> Tensor:
            AX = multiply(values, X, pattern) / size
            return level * X - (AX - V @ (V.mT @ AX))

        B = B - V @ (V.mT @ B)
        Y = conjugate_gradients(apply, B @ E, dims=(-2,), flat=_FLAT[S.dtype], tol=_TOL[S.dtype], max_iter=_MAX_ITER)
        Y = (Y / size) @ E.mT
        return Y - V @ (V.mT @ Y)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.pattern = inputs
        ctx.save_for_backward(*tensors, output)

    @staticmethod
    @alone_if_small
    def backward(ctx: Any, grad: Tensor) -> Any:
        values, V, B, Y = ctx.saved_tensors
        pattern = ctx.pattern

        def residual(values: Tensor, V: Tensor, B: Tensor) -> Tensor:
            def complement(X: Tensor) -> Tensor:
                return X - V @ (V.mT @ X)

            S = V.mT @ multiply(values, V, pattern)
            AY = multiply(values, complement(Y), pattern)
            return complement(B - Y @ S + AY) - V @ (V.mT @ Y)

        Z = _Sylvester.apply(values, V, grad, pattern) + V @ (V.mT @ grad)
        _, pull = torch.func.vjp(residual, values, V, B)
        return (*pull(Z), None)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Sylvester, info, in_dims, *args)


def _skew(M: Tensor) -> Tensor:
    return 0.5 * (M - M.mT)


class _Stationary(torch.autograd.Function):
    @staticmethod
    def forward(V: Tensor, U: Tensor, p: int) -> Tensor:
        return U.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        V, _, ctx.p = inputs
        ctx.save_for_backward(V, output)

    @staticmethod
    @alone_if_small
    def backward(ctx: Any, grad: Tensor) -> Any:
        V, U = ctx.saved_tensors
        p = ctx.p
        K = _Curvature.apply(U, _skew(U.mT @ grad), p)
        X = grad - U ** (p - 1) @ K + (p - 1) * U ** (p - 2) * (U @ K)
        X = X - U @ (U.mT @ X)
        return X @ (U.mT @ V), None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Stationary, info, in_dims, *args)


def _curvature(U: Tensor, K: Tensor, p: int) -> Tensor:
    """Return H(K), the negative Hessian of Q ↦ g(UQ)/p over O(d) applied to a skew K; symmetric where h is."""
    h = U.mT @ U ** (p - 1)
    h = 0.5 * (h + h.mT)
    return _skew(K @ h - (p - 1) * (U.mT @ (U ** (p - 2) * (U @ K))))


class _Curvature(torch.autograd.Function):
    """The skew solution K of H(K) = B, where g curves; zero along directions in which it does not."""

    @staticmethod
    def forward(U: Tensor, B: Tensor, p: int) -> Tensor:
        powers, inner = U ** (p - 1), U ** (p - 2)
        h = U.mT @ powers
        h = 0.5 * (h + h.mT)
        diagonal = h.diagonal(dim1=-2, dim2=-1)
        size = diagonal.abs().amax(-1)[..., None, None].clamp(min=torch.finfo(U.dtype).tiny ** 0.5)

        def apply(K: Tensor) -> Tensor:
            K = _skew(K)
            return _skew(K @ h - (p - 1) * (U.mT @ (inner * (U @ K)))) / size

        # For a sparse U the operator is K_ab ↦ ½(h_aa + h_bb) K_ab.
        scale = 0.5 * (diagonal[..., :, None] + diagonal[..., None, :]) / size
        scale = scale.clamp(min=1e-2)
        K = conjugate_gradients(
            apply, _skew(B), dims=(-2, -1), scale=scale, flat=_FLAT[U.dtype], tol=_TOL[U.dtype], max_iter=_MAX_ITER
        )
        return _skew(K) / size

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        U, _, ctx.p = inputs
        ctx.save_for_backward(U, output)

    @staticmethod
    @alone_if_small
    def backward(ctx: Any, grad: Tensor) -> Any:
        U, K = ctx.saved_tensors
        Z = _Curvature.apply(U, _skew(grad), ctx.p)
        _, pull = torch.func.vjp(lambda U: _curvature(U, K, ctx.p), U)
        return pull(-Z)[0], Z, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Curvature, info, in_dims, *args)
