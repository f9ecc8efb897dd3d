"""Projected power method (Chen and Candès 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import objective
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.method import Callback, Outcome, Progress, Stopwatch, register
from stiefelsync.sync.methods._eigen import eigenpairs
from stiefelsync.sync.methods.rivals.spectral import largest_clusters, spectral_labels
from stiefelsync.sync.options import dtype_option, option
from stiefelsync.sync.rounding import project

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options:
    """Options of projected-power."""

    max_iter: int = option(100, "Most iterations; it ends when the labels settle.", least=1)
    dtype: DTypeLike = dtype_option()


@register(
    "projected-power",
    summary="power steps with a projection onto partial permutations after each",
    consistent=True,
    cost="spectral, then O(nnz + Σ m_i²·d) per iteration",
    reference="Chen, Candès: The projected power method: an efficient algorithm for joint alignment from pairwise"
    " differences, 2016",
    choose="to polish a spectral start cheaply; it stops at the nearest fixed point",
    options=Options,
)
def run(
    matchings: Matchings,
    universe: int,
    options: Options,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Climb ``max tr(PᵀWP)`` over stacked partial permutations by ``P ← project(W P)`` from the spectral labels.

    Where the spectral rounding opens more than `universe` universe points, the largest of them are
    kept.

    Notes
    -----
    Cycle-consistent. All objects are updated at once, so the objective may fall and the iteration
    may cycle; the best iterate is returned. Memory O(nnz + m·d).

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 1, 0]
    """
    watch = Stopwatch()
    W, m = matchings.to_matrix(options.dtype), matchings.n_points
    with watch("eigenvectors"):
        V, _ = eigenpairs(W, universe, rng=rng)
    with watch("rounding"):
        labels = largest_clusters(spectral_labels(V, matchings, universe), universe)
    best, value = labels, objective(labels, matchings)
    n_iter, status = 0, Status.MAX_ITER
    with watch("iterations"):
        for n_iter in range(1, options.max_iter + 1):
            (rows,) = np.nonzero(labels >= 0)
            P = csr_array((np.ones(len(rows), dtype=W.dtype), (rows, labels[rows])), shape=(m, universe))
            before, labels = labels, project((W @ P).toarray(), matchings.sizes)
            reached = objective(labels, matchings)
            if reached >= value:
                best, value = labels, reached
            if np.array_equal(before, labels):
                status = Status.CONVERGED
                break
            if callback is not None and callback(Progress("iterations", n_iter, options.max_iter, reached)):
                status = Status.STOPPED
                break
    return Outcome(labels=best, status=status, n_iter=n_iter, timings=watch.seconds)
