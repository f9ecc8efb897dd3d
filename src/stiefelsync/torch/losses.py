"""Losses on soft matches."""

from __future__ import annotations

import torch
from torch import Tensor

from stiefelsync._border import typed
from stiefelsync.torch.objects import Layout, Sizes, to_matrix

__all__ = ["cycle_consistency_loss"]


@typed
def cycle_consistency_loss(W: Tensor, sizes: Sizes = None, *, mask: Tensor | None = None) -> Tensor:
    """Return the share of composed matches that the direct ones contradict, for soft matches.

    A composed match takes a point a of object i over a point of object l to a point b of object j, with the weight
    c_ab = Σ_l (X_il X_lj)_ab. The direct matches confirm c_ab·x_ab of it and contradict c_ab·(1 − x_ab) as far as a or
    b has a partner at all, 1 − (1 − Σ_b x_ab)(1 − Σ_a x_ab). The loss is contradicted / (confirmed + contradicted): for
    hard matches the cycle error of :func:`stiefelsync.matching.metrics.cycle_error`, zero for consistent partial ones.

    Parameters
    ----------
    W : (m, m), (B, m, m) or (..., k, k, n, n)
        Soft matches between 0 and 1; blocks on the diagonal are ignored.
    sizes, mask
        As for :func:`synchronise`.

    Returns
    -------
    loss : (...)
        Between 0 and 1; 0 where nothing is composed.

    Notes
    -----
    One (m, m) product, O(m³) time and O(m²) memory for all triplets of objects.

    Examples
    --------
    >>> X = torch.eye(2).repeat(3, 3, 1, 1)
    >>> X[0, 2] = X[2, 0] = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> cycle_consistency_loss(torch.eye(2).expand(3, 3, 2, 2)).item(), cycle_consistency_loss(X).item()
    (0.0, 1.0)
    """
    layout = Layout.of(W.shape, sizes, mask, W.device)
    X = to_matrix(W) if layout.blocks else W
    owner = layout.owner
    apart = (owner[..., :, None] != owner[..., None, :]) & layout.real[..., :, None] & layout.real[..., None, :]
    X = torch.where(apart, 0.5 * (X + X.mT), 0.0)
    composed = torch.where(apart, X @ X, 0.0)
    k = layout.mask.shape[-2]
    member = (owner[..., :, None] == torch.arange(k, device=W.device)).to(X.dtype)
    partners = (X @ member).clamp(max=1)  # (m, k): whether a has a partner in object j
    lonely = 1 - partners @ member.mT
    judged = 1 - lonely * lonely.mT
    confirmed = (composed * X).sum((-2, -1))
    contradicted = (composed * (1 - X) * judged).sum((-2, -1))
    total = confirmed + contradicted
    # So little counts as nothing, since a gradient divided by it could leave the range of the numbers.
    some = total > torch.finfo(X.dtype).tiny ** 0.5
    return torch.where(some, contradicted / torch.where(some, total, 1.0), 0.0)
