"""Symmetric matrices as the layer sees them: a tensor of values and, for sparse ones, where they stand."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stiefelsync.errors import InputError

__all__ = ["Pattern", "batched", "multiply", "sampled", "symmetric"]


@dataclass(frozen=True)
class Pattern:
    """Where the values of a symmetric sparse matrix stand; a batch is one block-diagonal matrix.

    Attributes
    ----------
    rows, cols : (nnz,) int64
        Sorted by row, then column.
    starts : (B·m + 1,) int64
        First entry of every row.
    mirror : (nnz,) int64
        The entry (c, r) of each entry (r, c).
    batch
        Leading dimensions, of product B.
    """

    rows: Tensor
    cols: Tensor
    starts: Tensor
    mirror: Tensor
    batch: tuple[int, ...]

    def product(self, values: Tensor, U: Tensor) -> Tensor:
        """Return the matrix of these values times U, shape (..., m, c), outside of autograd."""
        flat = U.reshape(-1, U.shape[-1])
        with warnings.catch_warnings():  # torch calls its own CSR product a beta feature, once per process
            warnings.simplefilter("ignore", UserWarning)
            matrix = torch.sparse_csr_tensor(
                self.starts, self.cols, values, (len(flat), len(flat)), check_invariants=False
            )
            return (matrix @ flat).reshape(U.shape)


def symmetric(W: Tensor) -> tuple[Tensor, Pattern | None]:
    """Return ½(W + Wᵀ) as values and pattern, differentiably; or say what is wrong with W.

    Parameters
    ----------
    W : (..., m, m)
        float32 or float64; strided, or sparse COO or CSR.

    Returns
    -------
    values
        The dense matrix, or the (nnz,) stored values.
    pattern
        None for a dense matrix.

    Examples
    --------
    >>> symmetric(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))[0].tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if not isinstance(W, Tensor):
        raise InputError(f"W must be a torch.Tensor, got {type(W).__name__}; torch.as_tensor converts arrays")
    if W.dtype not in (torch.float32, torch.float64):
        raise InputError(f"W must be of type float32 or float64, got {W.dtype}")
    if W.ndim < 2 or W.shape[-1] != W.shape[-2]:
        raise InputError(f"W must hold square matrices, shape (..., m, m), got {tuple(W.shape)}")
    if W.shape[-1] < 2 or 0 in W.shape:
        raise InputError(f"W is empty or has a single row; it has shape {tuple(W.shape)}")
    if W.layout == torch.strided:
        return 0.5 * (W + W.mT), None
    if W.layout not in (torch.sparse_coo, torch.sparse_csr):
        raise InputError(f"W must be dense, sparse COO or sparse CSR, got {W.layout}")
    return _symmetric_sparse(W)


def _symmetric_sparse(W: Tensor) -> tuple[Tensor, Pattern]:
    *batch, m, _ = W.shape
    if W.layout == torch.sparse_coo:
        W = W.coalesce()
        if W.dense_dim():
            raise InputError("W has dense dimensions; every dimension of a sparse COO tensor must be sparse")
        *outer, row, col = W.indices()
        values = W.values()
        problem = torch.zeros_like(row)
        for size, index in zip(batch, outer, strict=True):
            problem = problem * size + index
    else:
        starts, cols = W.crow_indices().reshape(-1, m + 1), W.col_indices()
        values = W.values().reshape(-1)
        col = cols.reshape(-1)
        counts = starts.diff(dim=1).reshape(-1)
        at = torch.repeat_interleave(torch.arange(len(counts), device=W.device), counts)
        problem, row = at // m, at % m
    rows, cols = problem * m + row, problem * m + col
    total = m * max(1, int(torch.tensor(batch).prod()) if batch else 1)
    both = torch.cat([rows * total + cols, cols * total + rows])
    keys, to = torch.unique(both, return_inverse=True)
    summed = torch.zeros(len(keys), dtype=values.dtype, device=values.device)
    summed = summed.index_add(0, to, 0.5 * torch.cat([values, values]))
    r, c = keys // total, keys % total
    starts = torch.searchsorted(r, torch.arange(total + 1, device=r.device))
    mirror = torch.searchsorted(keys, c * total + r)
    return summed, Pattern(r, c, starts, mirror, tuple(batch))


def multiply(values: Tensor, U: Tensor, pattern: Pattern | None) -> Tensor:
    """Return A U, differentiable in both to any order; A must be symmetric."""
    return values @ U if pattern is None else _Product.apply(values, U, pattern)


def sampled(Y: Tensor, V: Tensor, pattern: Pattern | None) -> Tensor:
    """Return Y Vᵀ where A has entries: all of it, or the (nnz,) entries of the pattern, in O(nnz·c) time."""
    return Y @ V.mT if pattern is None else _Sampled.apply(Y, V, pattern)


class _Product(torch.autograd.Function):
    """A U for the values of a pattern; the values need not be symmetric."""

    @staticmethod
    def forward(values: Tensor, U: Tensor, pattern: Pattern) -> Tensor:
        return pattern.product(values, U)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        values, U, ctx.pattern = inputs
        ctx.save_for_backward(values, U)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        values, U = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (
            _Sampled.apply(grad, U, ctx.pattern) if wanted[0] else None,
            _Product.apply(values[ctx.pattern.mirror], grad, ctx.pattern) if wanted[1] else None,
            None,
        )


class _Sampled(torch.autograd.Function):
    """Σ_c Y[r, c] V[s, c] for the entries (r, s) of a pattern."""

    @staticmethod
    def forward(Y: Tensor, V: Tensor, pattern: Pattern) -> Tensor:
        Y, V = Y.reshape(-1, Y.shape[-1]), V.reshape(-1, V.shape[-1])
        # As many entries at a time as Y has rows, so that no array is larger than Y.
        parts = zip(pattern.rows.split(len(Y)), pattern.cols.split(len(Y)), strict=True)
        return torch.cat([(Y[r] * V[c]).sum(-1) for r, c in parts])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        Y, V, ctx.pattern = inputs
        ctx.save_for_backward(Y, V)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        Y, V = ctx.saved_tensors
        p = ctx.pattern
        return _Product.apply(grad, V, p), _Product.apply(grad[p.mirror], Y, p), None


def batched(function: Any, info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
    """Apply an autograd function under `vmap` by making the mapped dimension one more leading dimension."""
    moved = []
    for arg, dim in zip(args, in_dims, strict=True):
        if isinstance(arg, Pattern):
            raise NotImplementedError("sparse W cannot be mapped by torch.func.vmap; give a batch, or a dense W")
        if not isinstance(arg, Tensor):
            moved.append(arg)
        elif dim is None:
            moved.append(arg.unsqueeze(0).expand(info.batch_size, *arg.shape))
        else:
            moved.append(arg.movedim(dim, 0))
    return function.apply(*moved), 0
