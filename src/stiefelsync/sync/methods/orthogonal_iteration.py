"""Plain Orthogonal Iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Outcome, Stopwatch, register
from stiefelsync.sync.methods._stages import finish, stage_one

__all__ = ["run"]


@register(
    "orthogonal-iteration",
    summary="plain Orthogonal Iteration and projection, without any rotation",
    consistent=True,
    cost="O(nnz·d + m·d²) per iteration",
    reference="Golub, Van Loan: Matrix computations, 2013, section 8.2.4",
    choose="only to see what sparsity is worth: an arbitrary basis of the subspace has nothing to project",
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
    dtype: DTypeLike = np.float64,
) -> Outcome:
    """Solve ``max tr(UᵀWU), UᵀU = I`` by ``U_{t+1} R_{t+1} = W U_t`` from a random start, and project U.

    Parameters
    ----------
    tol, max_iter
        Relative growth of the objective at which to stop, and the most iterations before that.
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
    return finish(found.V, matchings, universe, watch, n_iter=found.n_iter)
