"""Problem (1) of the paper as a differentiable function of W."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stiefelsync._border import typed
from stiefelsync.errors import ConvergenceWarning, InputError, unknown_name
from stiefelsync.torch.algebra import lowest_eigenvalue, orthonormalise, polar
from stiefelsync.torch.implicit import stationary, subspace
from stiefelsync.torch.iterate import STEPS, Settings, iterate, pivots, rotate_iterate
from stiefelsync.torch.operators import Pattern, batched, multiply, symmetric
from stiefelsync.torch.threads import alone_if_small

__all__ = ["rotate", "sparse_stiefel", "two_stage"]

_GRADIENTS = ("implicit", "unroll")
_SUBSPACES = ("auto", "eigh", "orthogonal-iteration")
_SENSES = {"max": 1.0, "min": -1.0}
# Rows up to which a dense matrix has all its eigenvectors found at once, as in the NumPy solver.
_MAX_DENSE_ROWS = 2000


@dataclass(frozen=True)
class _Options:
    """What a run is told besides its tensors."""

    step: str
    p: int
    tol: float
    max_iter: int
    extra_iter: int = 0
    method: str = "iterate"
    callback: Callable[[Tensor], object] | None = None


@typed
@alone_if_small
def sparse_stiefel(
    W: Tensor,
    d: int,
    *,
    p: int = 3,
    step: str = "gradient",
    sense: str = "max",
    U0: Tensor | None = None,
    tol: float = 1e-5,
    max_iter: int = 200,
    extra_iter: int = 0,
    rows: Tensor | None = None,
    gradient: str = "implicit",
    rng: np.random.Generator | int | None = 0,
    callback: Callable[[Tensor], object] | None = None,
) -> Tensor:
    """Solve max tr(UᵀWU) subject to UᵀU = I, preferring a sparse U (Algorithm 1), differentiably in W.

    The iterates are those of :func:`stiefelsync.sparse_stiefel` from the same start.

    Parameters
    ----------
    W : (..., m, m)
        float32 or float64 on any device; strided, sparse COO or sparse CSR. Symmetrised.
    d
        Columns of U, 1 ≤ d < m.
    p
        Power of the secondary objective, an integer ≥ 3.
    step : {"gradient", "polar", "none"}
        How U is turned: the paper's step, the polar factor of h(U), or not at all (Orthogonal Iteration).
    sense : {"max", "min"}
    U0 : (..., m, d), optional
        Start, of full rank; standard normal by default, drawn as the NumPy solver draws it.
    tol, max_iter, extra_iter
        As for the NumPy solver.
    rows : (..., m) bool, optional
        Which rows of a padded batch are real. The others must be zero in W, and are zero in U.
    gradient : {"implicit", "unroll"}
        Differentiate the conditions that hold at the solution, with O(m·d) memory whatever the number of iterations;
        or every iteration. The first is the derivative of the ideal solution, the sparsest basis of the dominant
        subspace: exact for functions of U Uᵀ. Where Algorithm 1 comes to rest otherwise, since its QR also pulls
        towards eigenvectors unless the leading eigenvalues coincide, losses on U itself want :func:`two_stage`, whose
        answer is the ideal one, or "unroll".
    rng
        Seed or generator of the start; equal seeds give equal answers on every device.
    callback
        Called with every iterate U; a true answer stops the run.

    Returns
    -------
    U : (..., m, d)

    Warns
    -----
    ConvergenceWarning
        If a problem of the batch has not converged within `max_iter`.

    Notes
    -----
    Forward O(nnz·d + m·d²) per iteration. Backward (implicit): two conjugate gradient solves of the same cost per step.
    A W of zeros is allowed, and its gradient is finite.

    Examples
    --------
    >>> W = torch.diag(torch.tensor([3.0, 2.0, 1.0, 0.5], dtype=torch.float64)).requires_grad_()
    >>> U = sparse_stiefel(W, 2, step="polar", tol=1e-12)
    >>> (U @ U.T).diagonal().sum().backward()
    >>> W.grad.abs().max().item() < 1e-9
    True
    """
    values, pattern = _problem(W, d, sense)
    options = _options(p, step, tol, max_iter, extra_iter, gradient, callback)
    x, U = _start(W, d, U0, rows, rng)
    if gradient == "implicit":
        found = _Run.apply(values.detach(), U, x, pattern, options)
        V = subspace(values, found, pattern)
        return V if step == "none" else stationary(V, found, p)
    return _run(values, U, x, pattern, options)


@typed
@alone_if_small
def two_stage(
    W: Tensor,
    d: int,
    *,
    subspace_by: str = "auto",
    rotation: str = "polar",
    p: int = 3,
    sense: str = "max",
    U0: Tensor | None = None,
    tol: float = 1e-5,
    max_iter: int = 200,
    rotation_iter: int | None = None,
    rows: Tensor | None = None,
    gradient: str = "implicit",
    rng: np.random.Generator | int | None = 0,
) -> Tensor:
    """Find the dominant subspace first and turn its basis towards sparsity afterwards, differentiably in W.

    Parameters
    ----------
    W, d, p, sense, rows, rng
        As for :func:`sparse_stiefel`.
    subspace_by : {"auto", "eigh", "orthogonal-iteration"}
        Stage one. "auto": eigh for dense matrices of up to 2000 rows.
    rotation : {"polar", "gradient", "none"}
        Stage two's step.
    U0 : (..., m, d), optional
        Stage two starts at the basis nearest to it. By default at the basis nearest to d rows that differ most
        (column-pivoted QR), which depends on the subspace alone: the answer is then a function of W without chance.
    tol, max_iter
        Stage two ends when g grows by no more than `tol`, relatively. Orthogonal Iteration goes on until f no longer
        grows, or for ten times `max_iter` steps.
    rotation_iter
        Exactly so many rotations instead of testing g.
    gradient : {"implicit", "unroll"}
        How stage two is differentiated; stage one is always differentiated implicitly, since single eigenvectors have
        no derivative where eigenvalues coincide.

    Returns
    -------
    U : (..., m, d)

    Notes
    -----
    Forward O(m³) by eigh, O(nnz·d + m·d²) per step by iteration; stage two O(m·d²) per step.

    Examples
    --------
    >>> two_stage(torch.diag(torch.tensor([3.0, 2.0, 1.0, 0.5])), 2).abs().round(decimals=4)[:2].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    values, pattern = _problem(W, d, sense)
    options = _options(p, rotation, tol, max_iter, 0, gradient, None, rotation_iter)
    if subspace_by not in _SUBSPACES:
        raise unknown_name("subspace method", subspace_by, _SUBSPACES)
    if subspace_by == "eigh" and pattern is not None:
        raise InputError("eigh needs a dense W; use subspace_by='orthogonal-iteration', or W.to_dense()")
    dense = subspace_by == "eigh" or (subspace_by == "auto" and pattern is None and W.shape[-1] <= _MAX_DENSE_ROWS)
    x, start = _start(W, d, None, rows, rng)
    # f is flat at the solution: where it has stopped growing the subspace is good to half the digits, and the extra
    # iterations add some.
    settled = 10 * torch.finfo(W.dtype).eps
    stage_one = _Options("none", p, settled, 10 * max_iter, extra_iter=20, method="eigh" if dense else "iterate")
    found = _Run.apply(values.detach(), start, x, pattern, stage_one)
    return _turn(subspace(values, found, pattern), U0, options, gradient)


@typed
@alone_if_small
def rotate(
    V: Tensor,
    *,
    p: int = 3,
    U0: Tensor | None = None,
    tol: float = 1e-5,
    max_iter: int = 200,
    gradient: str = "implicit",
) -> Tensor:
    """Return V Q with Q orthogonal and g(VQ) = Σ (VQ)^p at a fixed point of ``Q ← polar(Vᵀ(VQ).^(p−1))``.

    Parameters
    ----------
    V : (..., m, d)
        Orthonormal columns.
    U0, tol, max_iter, gradient
        As for :func:`two_stage`, of which this is stage two.

    Examples
    --------
    >>> c, s = np.cos(0.5), np.sin(0.5)
    >>> rotate(torch.tensor([[c, -s], [s, c], [0.0, 0.0]])).abs().round(decimals=4).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    if not isinstance(V, Tensor) or V.ndim < 2 or V.shape[-2] < V.shape[-1] or not V.is_floating_point():
        raise InputError("V must be a floating-point tensor of shape (..., m, d) with m ≥ d")
    return _turn(V, U0, _options(p, "polar", tol, max_iter, 0, gradient, None), gradient)


def _turn(V: Tensor, U0: Tensor | None, options: _Options, gradient: str) -> Tensor:
    if options.step == "none":
        return V
    if U0 is not None and U0.shape[-2:] != V.shape[-2:]:
        raise InputError(f"U0 must have shape (..., {V.shape[-2]}, {V.shape[-1]}), got {tuple(U0.shape)}")
    near = None if U0 is None else U0.to(V).expand(V.shape)
    aligned = _Align.apply(V.detach(), near)
    if gradient == "implicit":
        return stationary(V, _Turn.apply(aligned, options), options.p)
    Q = V.detach().mT @ aligned
    U, state = rotate_iterate(V @ Q, step=options.step, p=options.p, tol=options.tol, max_iter=options.max_iter)
    _warn(state, options)
    return U


class _Run(torch.autograd.Function):
    """The iterations alone, for whole batches; not differentiated."""

    @staticmethod
    def forward(values: Tensor, U: Tensor, x: Tensor, pattern: Pattern | None, options: _Options) -> Tensor:
        if not bool(values.isfinite().all()):
            raise InputError("W holds NaN or infinite entries; remove or replace them first")
        if options.method == "eigh":
            padding = x[..., 0] == 0
            below = torch.diag_embed(padding * (1 + values.abs().sum(-1).amax(-1, keepdim=True)))
            V = torch.linalg.eigh(values - below)[1][..., -U.shape[-1] :].flip(-1)
            return torch.where(padding[..., None], 0.0, V)
        return _run(values, U, x, pattern, options)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Run, info, in_dims, *args)


class _Turn(torch.autograd.Function):
    """Stage two alone; not differentiated."""

    @staticmethod
    def forward(U: Tensor, options: _Options) -> Tensor:
        U, state = rotate_iterate(U, step=options.step, p=options.p, tol=options.tol, max_iter=options.max_iter)
        _warn(state, options)
        return U

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        return batched(_Turn, info, in_dims, *args)


class _Align(torch.autograd.Function):
    """The basis of im(V) nearest to `near`, or to unit vectors at d rows; not differentiated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(V: Tensor, near: Tensor | None) -> Tensor:
        target = V.mT @ near if near is not None else torch.take_along_dim(V, pivots(V)[..., None], -2).mT
        return V @ polar(target)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None


def _run(values: Tensor, U: Tensor, x: Tensor, pattern: Pattern | None, options: _Options) -> Tensor:
    def product(X: Tensor) -> Tensor:
        return multiply(values, X, pattern)

    with torch.no_grad():
        lowest, residual = lowest_eigenvalue(product, x)
        shift = (residual - lowest).clamp(min=0)[..., None, None]
    U, state = iterate(
        product, U, shift, step=options.step, p=options.p, tol=options.tol, max_iter=options.max_iter,
        extra_iter=options.extra_iter, callback=options.callback,
    )  # fmt: skip
    if bool(state.broken.any()):  # a problem of rank zero keeps its start, made orthonormal
        U = torch.where(state.broken[..., None, None], orthonormalise(U), U)
    _warn(state, options)
    return U


def _warn(state: Settings, options: _Options) -> None:
    late = int((~(state.converged | state.broken)).sum())
    if late and options.callback is None and options.tol > 0:
        warnings.warn(
            f"{late} of {state.converged.numel()} problems reached the iteration limit before the criterion was met;"
            " raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=4,
        )


def _problem(W: Tensor, d: int, sense: str) -> tuple[Tensor, Pattern | None]:
    values, pattern = symmetric(W)
    if isinstance(d, bool) or not isinstance(d, int | np.integer):
        raise InputError(f"d must be a whole number, got {d!r}")
    if not 1 <= d < W.shape[-1]:
        raise InputError(f"d must be between 1 and m - 1 = {W.shape[-1] - 1}, got {d}")
    if sense not in _SENSES:
        raise unknown_name("sense", sense, _SENSES)
    return (values if sense == "max" else -values), pattern


def _options(
    p: int,
    step: str,
    tol: float,
    max_iter: int,
    extra_iter: int,
    gradient: str,
    callback: Any,
    count: int | None = None,
) -> _Options:
    if step not in STEPS:
        raise unknown_name("step", step, STEPS)
    if gradient not in _GRADIENTS:
        raise unknown_name("gradient", gradient, _GRADIENTS)
    if isinstance(p, bool) or not isinstance(p, int | np.integer) or p < 3:
        raise InputError(f"p must be a whole number of at least 3, got {p!r}")
    if not tol > 0:
        raise InputError(f"tol must be positive, got {tol}")
    if not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise InputError(f"max_iter must be a whole number of at least 1, got {max_iter!r}")
    if not isinstance(extra_iter, int | np.integer) or extra_iter < 0:
        raise InputError(f"extra_iter must be a whole number of at least 0, got {extra_iter!r}")
    if count is None:
        return _Options(step, int(p), float(tol), int(max_iter), int(extra_iter), callback=callback)
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"rotation_iter must be a positive whole number or None, got {count!r}")
    return _Options(step, int(p), -math.inf, int(count))


def _start(
    W: Tensor, d: int, U0: Tensor | None, rows: Tensor | None, rng: np.random.Generator | int | None
) -> tuple[Tensor, Tensor]:
    """Return the vector that Lanczos starts from and U_0, drawn in the order in which the NumPy solver draws them.

    Both are zero in padding; a problem with padding below it gets the numbers that it would get alone.
    """
    *batch, m, _ = W.shape
    real = np.ones((1, m), dtype=bool)
    if rows is not None:
        if rows.dtype != torch.bool or rows.shape[-1:] != (m,):
            raise InputError(f"rows must be boolean and of shape (..., {m}), got {tuple(rows.shape)}")
        real = rows.detach().cpu().numpy().reshape(-1, m)
        if real.sum(1).min() <= d:
            raise InputError(f"d = {d} columns need more than {d} real rows in every problem of the batch")
    seed = rng.integers(2**63) if isinstance(rng, np.random.Generator) and rows is not None else rng
    x, U = np.zeros((len(real), m, 1)), np.zeros((len(real), m, d))
    for b, at in enumerate(real):
        generator = np.random.default_rng(seed)
        x[b, at], U[b, at] = generator.standard_normal((at.sum(), 1)), generator.standard_normal((at.sum(), d))
    shape = () if rows is None else tuple(rows.shape[:-1])
    start = torch.as_tensor(x, dtype=W.dtype, device=W.device).reshape(*shape, m, 1).expand(*batch, m, 1)
    if U0 is None:
        U1 = torch.as_tensor(U, dtype=W.dtype, device=W.device).reshape(*shape, m, d)
    else:
        if not isinstance(U0, Tensor) or U0.shape[-2:] != (m, d):
            raise InputError(f"U0 must be a tensor of shape (..., {m}, {d}), got {tuple(getattr(U0, 'shape', ()))}")
        U1 = U0.to(dtype=W.dtype, device=W.device).detach()
        U1 = U1 if rows is None else U1 * rows[..., None]
    return start, U1.expand(*batch, m, d)
