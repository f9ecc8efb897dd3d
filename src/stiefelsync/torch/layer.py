"""The synchroniser as a layer: soft matches in, a soft assignment to the universe out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from stiefelsync._border import typed
from stiefelsync.errors import InputError, unknown_name
from stiefelsync.torch.objects import Layout, Sizes, to_matrix
from stiefelsync.torch.sinkhorn import sinkhorn
from stiefelsync.torch.solve import sparse_stiefel, two_stage
from stiefelsync.torch.threads import alone_if_small

__all__ = ["Synchronise", "synchronise", "universe_basis"]

# g has settled well below what labels or gradients notice, at a few more of the cheap rotations.
_DEFAULTS: dict[str, dict[str, Any]] = {"two-stage": {"tol": 1e-8}, "sparse-stiefel": {}}


@typed
@alone_if_small
def universe_basis(
    W: Tensor,
    sizes: Sizes,
    d: int,
    *,
    mask: Tensor | None = None,
    solver: str = "two-stage",
    normalise: bool = True,
    **options: Any,
) -> Tensor:
    """Return the sparse basis U whose rows score every point against the d universe points.

    Parameters
    ----------
    W, sizes, d, mask, solver, normalise, options
        As for :func:`synchronise`.

    Returns
    -------
    U : (..., m, d)
        Orthonormal columns, for blocks m = k·n; rows of padding are zero.

    Examples
    --------
    >>> universe_basis(torch.eye(2).expand(3, 3, 2, 2), None, 2).abs().amax(-1).round(decimals=3).tolist()[0]
    0.577...
    """
    layout = Layout.of(W.shape, sizes, mask, W.device)
    _check(W, layout, d, solver)
    A = _weights(W, layout, normalise)
    options = {**_DEFAULTS[solver], **options}
    rows = None if bool(layout.real.all()) else layout.real
    solve = two_stage if solver == "two-stage" else sparse_stiefel
    return solve(A, d, rows=rows, **options)


@typed
@alone_if_small
def synchronise(
    W: Tensor,
    sizes: Sizes,
    d: int,
    *,
    tau: float = 0.1,
    mask: Tensor | None = None,
    solver: str = "two-stage",
    normalise: bool = True,
    sinkhorn_iter: int = 1000,
    **options: Any,
) -> Tensor:
    """Assign the points of many objects softly to a common universe, differentiably in their soft matches.

    Finds the sparse basis U of the dominant subspace of W, max tr(UᵀWU) subject to UᵀU = I, and scales
    exp(U·√(m/d)/τ) object by object (Sinkhorn).

    Parameters
    ----------
    W : (m, m), (B, m, m) or (..., k, k, n, n)
        Soft matches, non-negative: block (i, j) says how far points of object i match points of object j. Symmetrised;
        blocks on the diagonal are taken as the identity whatever they hold. A matrix (m, m) may be sparse COO or CSR.
    sizes : (k,) int, or one row per problem of the batch, or None
        Points per object. In a matrix objects stand one after another and rows that remain are padding; in blocks the
        first `sizes[i]` rows are points, all for None.
    d
        Universe points.
    tau
        Temperature, relative to the score 1 that a point of an average universe point has without noise.
    mask : bool, (..., k, n) for blocks or (..., m), optional
        Points to take, of those that sizes allow.
    solver : {"two-stage", "sparse-stiefel"}
        Subspace, then polar rotations from a start without chance; or the paper's Algorithm 1.
    normalise
        Divide W by the roots of its row sums on both sides, which partial matchings want; False: as published.
    sinkhorn_iter
        Most Sinkhorn iterations.
    options
        For :func:`two_stage` or :func:`sparse_stiefel`.

    Returns
    -------
    P : (m, d), (B, m, d) or (..., k, n, d)
        Rows sum to one (zero for padding), columns to at most one in every object.

    Notes
    -----
    :func:`hard_labels` rounds the answer. With ``solver="sparse-stiefel", normalise=False`` and the same seed the
    labels are those of ``stiefelsync.synchronise(..., method="sparse-stiefel")``; by default those of the start of the
    methods "fast" and "accurate", before refinement.

    Examples
    --------
    >>> X = torch.eye(2).repeat(3, 3, 1, 1)
    >>> P = synchronise(X, None, 2)
    >>> bool((P[0] @ P[1].T).round().equal(torch.eye(2)))
    True
    """
    if not tau > 0:
        raise InputError(f"tau must be positive, got {tau}")
    layout = Layout.of(W.shape, sizes, mask, W.device)
    U = universe_basis(W, sizes, d, mask=mask, solver=solver, normalise=normalise, **options)
    m = layout.real.sum(-1).to(U.dtype)
    scores = layout.gather(U * (m[..., None, None] / d) ** 0.5 / tau)
    return layout.scatter(sinkhorn(scores, layout.mask, max_iter=sinkhorn_iter))


class Synchronise(nn.Module):
    """:func:`synchronise` as a module without parameters of its own.

    Parameters
    ----------
    d
        Universe points.
    options
        Keyword arguments of :func:`synchronise`.

    Examples
    --------
    >>> Synchronise(2)(torch.eye(2).expand(3, 3, 2, 2)).shape
    torch.Size([3, 2, 2])
    """

    @typed
    def __init__(self, d: int, **options: Any) -> None:
        super().__init__()
        self.d, self.options = d, options

    @typed
    def forward(self, W: Tensor, sizes: Sizes = None, mask: Tensor | None = None) -> Tensor:
        """Return the soft assignment of the points that W, shape (..., k, k, n, n) or (m, m), matches."""
        return synchronise(W, sizes, self.d, mask=mask, **self.options)

    @typed
    def extra_repr(self) -> str:
        """Name the options in the module's text."""
        return ", ".join([str(self.d), *(f"{name}={value!r}" for name, value in self.options.items())])


def _check(W: Tensor, layout: Layout, d: int, solver: str) -> None:
    if solver not in _DEFAULTS:
        raise unknown_name("solver", solver, _DEFAULTS)
    largest, fewest = int(layout.mask.sum(-1).max()), int(layout.real.sum(-1).min())
    if d < largest:
        raise InputError(f"a universe of {d} points is smaller than an object with {largest}; give at least {largest}")
    if d >= fewest:
        raise InputError(f"a universe of {d} points needs more than {d} points in every problem, but one has {fewest}")


def _weights(W: Tensor, layout: Layout, normalise: bool) -> Tensor:
    """Return W with identity blocks on its diagonal, symmetric, normalised if asked for; zero in padding."""
    if W.layout != torch.strided:
        return _sparse_weights(W, layout, normalise)
    X = to_matrix(W) if layout.blocks else W
    owner, real = layout.owner, layout.real
    apart = (owner[..., :, None] != owner[..., None, :]) & real[..., :, None] & real[..., None, :]
    X = torch.where(apart, 0.5 * (X + X.mT), 0.0) + torch.diag_embed(real.to(X.dtype))
    if not normalise:
        return X
    s = _inverse_root(X.sum(-1))
    return s[..., :, None] * X * s[..., None, :]


def _inverse_root(degree: Tensor) -> Tensor:
    # The diagonal gives every point a degree of 1; negative matches could take it away.
    return degree.clamp(min=1e-3).rsqrt()


def _sparse_weights(W: Tensor, layout: Layout, normalise: bool) -> Tensor:
    if W.ndim != 2:
        raise InputError("sparse matches must be one matrix (m, m); convert a batch by .to_dense()")
    W = W.to_sparse_coo().coalesce() if W.layout != torch.sparse_coo else W.coalesce()
    owner, m = layout.owner, W.shape[-1]
    row, col = W.indices()
    keep = (owner[row] != owner[col]) & (owner[row] >= 0) & (owner[col] >= 0)
    row, col, values = row[keep], col[keep], 0.5 * W.values()[keep]
    own = torch.nonzero(layout.real)[:, 0]
    row, col = torch.cat([row, col, own]), torch.cat([col, row, own])
    values = torch.cat([values, values, torch.ones(len(own), dtype=W.dtype, device=W.device)])
    if normalise:
        s = _inverse_root(torch.zeros(m, dtype=W.dtype, device=W.device).index_add(0, row, values))
        values = values * s[row] * s[col]
    return torch.sparse_coo_tensor(torch.stack([row, col]), values, (m, m), check_invariants=False)
