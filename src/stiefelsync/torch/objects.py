"""Which row of a matrix is which point of which object: matrices with sizes, and padded (k, k, n, n) tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.sync.rounding import project

__all__ = ["Layout", "Sizes", "hard_labels", "pairwise", "to_blocks", "to_matrix"]

Sizes: TypeAlias = "Tensor | Sequence[int] | NDArray[np.integer] | None"


@dataclass(frozen=True)
class Layout:
    """Where the points of every object stand.

    Attributes
    ----------
    rows : (..., k, n) int64
        Row of each point in the matrix, 0 where there is no point.
    mask : (..., k, n) bool
        Whether there is a point.
    owner : (..., m) int64
        Object of every row, -1 for padding.
    blocks
        Whether the caller thinks in (k, k, n, n) blocks.
    """

    rows: Tensor
    mask: Tensor
    owner: Tensor
    blocks: bool

    @property
    def real(self) -> Tensor:
        """Which rows are points, shape (..., m)."""
        return self.owner >= 0

    @classmethod
    def of(cls, shape: Sequence[int], sizes: Sizes, mask: Tensor | None, device: torch.device) -> Layout:
        """Return the layout of a matrix, shape (m, m) or (B, m, m), or of blocks, shape (..., k, k, n, n)."""
        if len(shape) < 4:
            return cls._of_matrix(shape, sizes, mask, device)
        *batch, k, k2, n, n2 = shape
        if k != k2 or n != n2:
            raise InputError(f"blocks must have shape (..., k, k, n, n), got {tuple(shape)}")
        real = torch.ones(k, n, dtype=torch.bool, device=device)
        if sizes is not None:
            counts = _counts(sizes, device)
            if counts.shape[-1:] != (k,) or counts.shape[:-1] not in ((), tuple(batch)) or int(counts.max()) > n:
                raise InputError(f"sizes must be {k} numbers between 0 and {n} per problem, got {counts.tolist()}")
            real = torch.arange(n, device=device) < counts[..., None]
        if mask is not None:
            if mask.dtype != torch.bool or mask.shape[-2:] != (k, n):
                raise InputError(f"mask must be boolean and of shape (..., {k}, {n}), got {tuple(mask.shape)}")
            real = real & mask
        owner = torch.where(real, torch.arange(k, device=device)[:, None], -1).flatten(-2)
        rows = torch.arange(k * n, device=device).reshape(k, n)
        real = real.expand(*batch, k, n)
        return cls(rows.expand(real.shape), real, owner.expand(*batch, k * n), True)

    @classmethod
    def _of_matrix(cls, shape: Sequence[int], sizes: Sizes, mask: Tensor | None, device: torch.device) -> Layout:
        *batch, m, _ = shape
        if sizes is None:
            raise InputError("a matrix needs sizes, the number of points of every object")
        counts = _counts(sizes, device)
        if counts.ndim == 0 or counts.shape[:-1] not in ((), tuple(batch)) or not counts.numel():
            raise InputError(f"sizes must have shape (k,) or ({', '.join(map(str, [*batch, 'k']))})")
        if (counts.sum(-1) > m).any() or (not batch and int(counts.sum()) != m):
            raise InputError(f"sizes add up to {counts.sum(-1).tolist()}, but W has {m} rows")
        counts = counts.expand(*batch, counts.shape[-1])
        ends = counts.cumsum(-1)
        at = torch.arange(m, device=device)
        owner = (at[:, None] >= ends[..., None, :]).sum(-1)
        owner = torch.where(owner < counts.shape[-1], owner, -1)
        slot = torch.arange(int(counts.max()), device=device)
        rows, real = (ends - counts)[..., None] + slot, slot < counts[..., None]
        rows = torch.where(real, rows, 0)
        if mask is not None:
            if mask.dtype != torch.bool or mask.shape[-1:] != (m,):
                raise InputError(f"mask must be boolean and of shape (..., {m}), got {tuple(mask.shape)}")
            mask = mask.expand(*batch, m)
            owner = torch.where(mask, owner, -1)
            real = real & torch.take_along_dim(mask, rows.flatten(-2), -1).reshape(rows.shape)
        return cls(rows, real, owner, False)

    def gather(self, U: Tensor) -> Tensor:
        """Return the (..., m, d) rows as (..., k, n, d), zeros where there is no point."""
        if self.blocks:
            out = U.reshape(*U.shape[:-2], *self.rows.shape[-2:], U.shape[-1])
        else:
            out = torch.take_along_dim(U, self.rows.flatten(-2)[..., None], -2)
            out = out.reshape(*out.shape[:-2], *self.rows.shape[-2:], U.shape[-1])
        return torch.where(self.mask[..., None], out, 0.0)

    def scatter(self, P: Tensor) -> Tensor:
        """Return (..., k, n, d) in the caller's form: the same, or (..., m, d)."""
        if self.blocks:
            return P
        flat = (P * self.mask[..., None]).flatten(-3, -2)
        at = self.rows.flatten(-2)[..., None].expand(flat.shape)
        out = torch.zeros(*flat.shape[:-2], self.owner.shape[-1], P.shape[-1], dtype=P.dtype, device=P.device)
        return out.scatter_add(-2, at, flat)


def _counts(sizes: Sizes, device: torch.device) -> Tensor:
    counts = torch.as_tensor(sizes if isinstance(sizes, Tensor) else np.array(sizes), device=device)
    if counts.is_floating_point() or counts.is_complex() or (counts < 0).any():
        raise InputError(f"sizes must be whole numbers of at least 0, got {counts.tolist()}")
    return counts.to(torch.int64)


@typed
def to_matrix(X: Tensor) -> Tensor:
    """Return a (..., k, k, n, n) tensor of blocks, as pygmtools has it, as one (..., k·n, k·n) matrix.

    Examples
    --------
    >>> to_matrix(torch.eye(2).expand(3, 3, 2, 2)).shape
    torch.Size([6, 6])
    """
    if X.ndim < 4 or X.shape[-4] != X.shape[-3] or X.shape[-2] != X.shape[-1]:
        raise InputError(f"blocks must have shape (..., k, k, n, n), got {tuple(X.shape)}")
    return X.transpose(-3, -2).flatten(-4, -3).flatten(-2, -1)


@typed
def to_blocks(W: Tensor, k: int) -> Tensor:
    """Return a (..., k·n, k·n) matrix as (..., k, k, n, n) blocks.

    Examples
    --------
    >>> to_blocks(torch.eye(6), 3).shape
    torch.Size([3, 3, 2, 2])
    """
    m = W.shape[-1]
    if W.ndim < 2 or W.shape[-2] != m or k < 1 or m % k:
        raise InputError(f"W must have shape (..., k·n, k·n) with k = {k}, got {tuple(W.shape)}")
    return W.unflatten(-1, (k, m // k)).unflatten(-3, (k, m // k)).transpose(-3, -2)


@typed
def pairwise(P: Tensor) -> Tensor:
    """Return the matches that an assignment implies, P_i P_jᵀ, as blocks (..., k, k, n, n).

    Blocks on the diagonal are the identity on the points there are, as in :func:`stiefelsync.io.to_tensor`.

    Parameters
    ----------
    P : (..., k, n, d)
        Soft or hard assignment; zero rows are padding.

    Examples
    --------
    >>> pairwise(torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]))[0, 1].tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    k = P.shape[-3]
    flat = P.flatten(-3, -2)
    X = to_blocks(flat @ flat.mT, k)
    there = (P != 0).any(-1).to(P.dtype)
    own = torch.eye(k, dtype=torch.bool, device=P.device)[:, :, None, None]
    return torch.where(own, torch.diag_embed(there)[..., None, :, :], X)


@typed
def hard_labels(P: Tensor, sizes: Sizes = None) -> NDArray[np.int64]:
    """Round a soft assignment to labels: one universe point for every point, none twice in an object.

    P comes from scores S by Sinkhorn scaling, log P_ic = S_ic/τ + a_i + b_c, so that the linear assignment that
    maximises Σ log P_ic − log(1 − Σ_i P_ic) is the one that maximises ΣS_ic: rounding P is rounding U.

    Parameters
    ----------
    P : (..., k, n, d) or, with sizes, (m, d) or (B, m, d)
        As :func:`synchronise` returns it; zero rows are padding.
    sizes
        Points per object as given to :func:`synchronise`, None for the form (k, n, d).

    Returns
    -------
    labels : (..., k, n) or (m,) or (B, m) int64
        -1 where there is no point.

    Examples
    --------
    >>> hard_labels(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]), [2, 1]).tolist()
    [0, 1, 1]
    """
    P = P.detach().double().cpu()
    there = (P != 0).any(-1)
    if sizes is None:
        if P.ndim < 3:
            raise InputError(f"P must have shape (..., k, n, d) unless sizes are given, got {tuple(P.shape)}")
        k, n = P.shape[-3:-1]
        layout = Layout.of((*P.shape[:-3], k, k, n, n), None, there, P.device)
    else:
        layout = Layout.of((*P.shape[:-1], P.shape[-2]), sizes, there, P.device)
    blocks, real = layout.gather(P.flatten(-3, -2) if layout.blocks else P), layout.mask
    # Zero is where the numbers of single precision end, not impossible.
    free = (1 - blocks.sum(-2)).clamp(min=1e-7)
    scores = (blocks.clamp(min=1e-38).log() - free.log()[..., None, :])[real]
    labels = torch.full(real.shape, -1, dtype=torch.int64)
    labels[real] = torch.from_numpy(project(scores.numpy(), real.sum(-1).flatten().numpy()))
    if not layout.blocks:
        labels = layout.scatter(labels[..., None] + 1)[..., 0] - 1
    return labels.numpy()
