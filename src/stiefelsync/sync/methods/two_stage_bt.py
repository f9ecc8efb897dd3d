"""The paper's two-stage variant with backtracking until the secondary objective settles."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.rotation import turn
from stiefelsync.stiefel.steps import line_search
from stiefelsync.sync.method import Callback, Outcome, Stopwatch, register
from stiefelsync.sync.methods._stages import finish, stage_one
from stiefelsync.sync.methods.sparse_stiefel import relay

__all__ = ["run"]


@register(
    "two-stage-bt",
    summary="Orthogonal Iteration, then the paper's rotation with backtracking until g settles",
    consistent=True,
    cost="as two-stage, with a few evaluations of g, O(m·d²) each, per rotation step",
    reference="Bernard, Cremers, Thunberg: Sparse Quadratic Optimisation over the Stiefel Manifold, NeurIPS 2021,"
    " appendix B.1 (Ours/2-stage/bt)",
    choose="when g should be climbed to the end by gradient steps; slower than two-stage",
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
    max_rotations: int = 1000,
    p: int = 3,
    dtype: DTypeLike = np.float64,
) -> Outcome:
    """Find the dominant subspace, then climb ``g(U) = Σ U_ij^p`` over its bases by gradient steps with backtracking.

    Parameters
    ----------
    tol
        Relative growth of f at which stage one stops, and of g for stage two.
    max_iter, max_rotations
        Most iterations of stage one, and of stage two.
    p
        Power of the secondary objective.
    dtype
        float32 or float64: the precision of W and all that is computed from it.

    Notes
    -----
    Cycle-consistent. No m×m array is made.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> str(run(problem, 2, rng=np.random.default_rng(0)).status)
    'converged'
    """
    watch = Stopwatch()
    found = stage_one(
        matchings, universe, watch, method="orthogonal-iteration", rng=rng, tol=tol, max_iter=max_iter, dtype=dtype
    )
    with watch("rotation"):
        turned = turn(
            found.V, step=line_search, p=p, tol=tol, max_iter=max_rotations, objective=float(found.values.sum()),
            callback=relay(callback, "rotation"),
        )  # fmt: skip
    return finish(
        turned.U, matchings, universe, watch, p=p, status=turned.status, n_iter=found.n_iter + turned.n_iter,
        history=turned.history,
    )  # fmt: skip
