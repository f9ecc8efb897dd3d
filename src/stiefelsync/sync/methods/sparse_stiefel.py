"""The paper's method, exactly as published."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.solve import CRITERIA, sparse_stiefel
from stiefelsync.stiefel.steps import STEPS
from stiefelsync.sync.method import Callback, Outcome, Stopwatch, register
from stiefelsync.sync.methods._stages import relay
from stiefelsync.sync.options import dtype_option, option
from stiefelsync.sync.rounding import project

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options:
    """Options of sparse-stiefel."""

    p: int = option(3, "Power of the secondary objective, an integer of at least 3.", least=3)
    step: str = option("gradient", "How U is turned within its subspace.", choices=tuple(STEPS))
    criterion: str = option(
        "primary", "Stop when the primary objective settles, or when the secondary does, too.", choices=CRITERIA
    )
    U0: ArrayLike | None = option(None, "Start, shape (m, d); standard normal by default.")
    pivoting: bool = option(False, "Column-pivoted QR as in the authors' program instead of the paper's unique QR.")
    tol: float = option(1e-5, "Relative growth of the objective at which to stop.", above=0)
    max_iter: int = option(200, "Most updates before that.", least=1)
    extra_iter: int = option(0, "Updates after that.", least=0)
    dtype: DTypeLike = dtype_option()


@register(
    "sparse-stiefel",
    summary="sparse quadratic optimisation over the Stiefel manifold, then projection",
    consistent=True,
    cost="O(nnz·d + m·d²) per iteration",
    reference="Bernard, Cremers, Thunberg: Sparse Quadratic Optimisation over the Stiefel Manifold, NeurIPS 2021",
    ours=True,
    choose="to compare with the paper; for results use accurate or fast",
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
    """Run Algorithm 1 on the matching matrix W and project every object's block of U (section 4.2 of the paper).

    All options but one are those of :func:`stiefelsync.sparse_stiefel`.

    Notes
    -----
    The answer is cycle-consistent and labels every point. Two properties of the published method
    are kept on purpose. It starts at random, so one seed means little. And it stops when the
    primary objective settles: on noise-free input that is after two updates, before the secondary
    objective has turned U, and the projection is then far from perfect (mean fscore 0.794 over five
    seeds, from 0.760 to 0.838, at k = 30, d = 25, ρ = 0.6, σ = 0; the setting "row 30 25 .6 0" of
    `python -m benchmarks.accuracy --methods sparse-stiefel`). ``extra_iter=10`` mends it.

    Examples
    --------
    >>> from stiefelsync import datasets, score, synchronise
    >>> problem, truth = datasets.synthetic(10, 20, observed=1.0, error=0.0, rng=0)
    >>> result = synchronise(problem, 10, method="sparse-stiefel", extra_iter=10)
    >>> score(result.labels, truth).fscore
    1.0
    """
    watch = Stopwatch()
    given = asdict(options)
    W = matchings.to_matrix(given.pop("dtype"))
    with watch("solve"):
        solved = sparse_stiefel(
            W, min(universe, matchings.n_points - 1), rng=rng, callback=relay(callback, "solving"), **given
        )
    with watch("project"):
        labels = project(solved.U, matchings.sizes)
    return Outcome(
        labels, U=solved.U, status=solved.status, n_iter=solved.n_iter, history=solved.history,
        timings=watch.seconds,
    )  # fmt: skip
