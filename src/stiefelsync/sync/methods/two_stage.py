"""The paper's two-stage variant: the rotation follows the subspace instead of accompanying it."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.rotation import turn
from stiefelsync.stiefel.steps import gradient
from stiefelsync.sync.method import Callback, Outcome, Stopwatch, register
from stiefelsync.sync.methods._stages import finish, stage_one
from stiefelsync.sync.methods.sparse_stiefel import relay

__all__ = ["run"]


@register(
    "two-stage",
    summary="Orthogonal Iteration, then as many of the paper's rotation steps",
    consistent=True,
    cost="O(nnz·d + m·d²) per iteration of stage one, O(m·d²) per iteration of stage two",
    reference="Bernard, Cremers, Thunberg: Sparse Quadratic Optimisation over the Stiefel Manifold, NeurIPS 2021,"
    " appendix B.1 (Ours/2-stage)",
    choose="for comparison with sparse-stiefel, which it resembles in cost and answer",
)
def run(
    matchings: Matchings,
    universe: int,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
    tol: float = 1e-5,
    max_iter: int = 200,
    p: int = 3,
    dtype: DTypeLike = np.float64,
) -> Outcome:
    """Find the dominant subspace, then turn its basis by ``QR = Z(U_t), U_{t+1} = U_t Q`` (equations 2 and 3).

    Stage one is Orthogonal Iteration until f settles; stage two takes the paper's gradient step of fixed length exactly
    as often as stage one iterated.

    Parameters
    ----------
    tol, max_iter
        Relative growth of f at which stage one stops, and its most iterations.
    p
        Power of the secondary objective g(U) = Σ U_ij^p.
    dtype
        float32 or float64: the precision of W and all that is computed from it.

    Notes
    -----
    Cycle-consistent. No m×m array is made.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> sorted(run(problem, 2, rng=np.random.default_rng(0)).labels[:2].tolist())
    [0, 1]
    """
    watch = Stopwatch()
    found = stage_one(
        matchings, universe, watch, method="orthogonal-iteration", rng=rng, tol=tol, max_iter=max_iter, dtype=dtype
    )
    with watch("rotation"):
        turned = turn(
            found.V, step=gradient, p=p, tol=tol, max_iter=max_iter, count=found.n_iter,
            objective=float(found.values.sum()), callback=relay(callback, "rotation"),
        )  # fmt: skip
    status = found.status if turned.status.converged else turned.status
    return finish(
        turned.U, matchings, universe, watch, p=p, status=status, n_iter=found.n_iter + turned.n_iter,
        history=turned.history,
    )  # fmt: skip
