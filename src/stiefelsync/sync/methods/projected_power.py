"""Projected power method (Chen and Candès 2016)."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import objective
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.method import Callback, Outcome, Progress, Stopwatch, register
from stiefelsync.sync.methods._eigen import eigenpairs
from stiefelsync.sync.methods.spectral import largest_clusters, spectral_labels
from stiefelsync.sync.rounding import project

__all__ = ["run"]


@register(
    "projected-power",
    summary="power steps with a projection onto partial permutations after each",
    consistent=True,
    cost="spectral, then O(nnz + Σ m_i²·d) per iteration",
    reference="Chen, Candès: The projected power method: an efficient algorithm for joint alignment from pairwise"
    " differences, 2016",
    choose="to polish a spectral start cheaply; it stops at the nearest fixed point",
)
def run(
    matchings: Matchings,
    universe: int,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
    max_iter: int = 100,
    dtype: DTypeLike = np.float64,
) -> Outcome:
    """Climb ``max tr(PᵀWP)`` over stacked partial permutations by ``P ← project(W P)`` from the spectral labels.

    Where the spectral rounding opens more than `universe` universe points, the largest of them are kept.

    Parameters
    ----------
    max_iter
        Most iterations; it ends when the labels settle.
    dtype
        float32 or float64: the precision of W and all that is computed from it.

    Notes
    -----
    Cycle-consistent. All objects are updated at once, so the objective may fall and the iteration may cycle; the best
    iterate is returned. Memory O(nnz + m·d).

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 1, 0]
    """
    watch = Stopwatch()
    W, m = matchings.to_matrix(dtype), matchings.n_points
    with watch("eigenvectors"):
        V, _ = eigenpairs(W, universe, rng=rng)
    with watch("rounding"):
        labels = largest_clusters(spectral_labels(V, matchings, universe), universe)
    best, value = labels, objective(labels, matchings)
    n_iter, status = 0, Status.MAX_ITER
    with watch("iterations"):
        for n_iter in range(1, max_iter + 1):
            (rows,) = np.nonzero(labels >= 0)
            P = csr_array((np.ones(len(rows), dtype=W.dtype), (rows, labels[rows])), shape=(m, universe))
            before, labels = labels, project((W @ P).toarray(), matchings.sizes)
            reached = objective(labels, matchings)
            if reached >= value:
                best, value = labels, reached
            if np.array_equal(before, labels):
                status = Status.CONVERGED
                break
            if callback is not None and callback(Progress("iterations", n_iter, max_iter, reached)):
                status = Status.STOPPED
                break
    return Outcome(labels=best, status=status, n_iter=n_iter, timings=watch.seconds)
