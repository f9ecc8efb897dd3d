"""The default preset: soft and hard likelihood refinement, block reliabilities, and the likeliest of the candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood import Evidence, Tally, log_likelihood, odds, tally
from stiefelsync.sync.meanfield import mean_field
from stiefelsync.sync.projection import project
from stiefelsync.sync.refine import refine
from stiefelsync.sync.registry import Callback, Outcome, Stopwatch, register
from stiefelsync.sync.start import spectral_start

__all__ = ["accurate"]

Ints = NDArray[np.int64]


@register(
    "accurate",
    summary="spectral start, mean field and Gauss–Seidel on the likelihood, blocks reweighted, the likeliest kept",
    consistent=True,
    cost="O(nnz·d + m·d²) per product, some tens of products",
    reference="this package; the start follows Bernard, Cremers and Thunberg 2021",
    choose="by default",
)
def accurate(
    matchings: Matchings,
    universe: int,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
    n_init: int = 1,
) -> Outcome:
    """Return the likeliest labelling found.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> accurate(problem, 2, rng=np.random.default_rng(0)).labels.tolist() in ([0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0])
    True
    """
    watch = Stopwatch()
    evidence = Evidence.of(matchings, universe)
    candidates: list[Ints] = []
    d = min(universe, matchings.n_points)

    def soften(labels: Ints, blocks: Tally | None) -> Ints:
        soft, _ = mean_field(evidence, evidence.one_hot(labels), blocks=blocks)
        return refine(evidence, project(soft, matchings.sizes), blocks=blocks)[0]

    with watch("start"):
        U = spectral_start(matchings.to_matrix(), d, rng=rng)
        start = project(U, matchings.sizes)
    with watch("refinement"):
        candidates += [refine(evidence, start)[0], soften(start, None)]
    for _ in range(2):
        best = max(candidates, key=lambda labels: log_likelihood(evidence, labels))
        with watch("reweighting"):
            blocks = tally(evidence, best)
            W: Any = evidence.matrix(odds(evidence, blocks, blocks).right)
            W.setdiag(W.data.mean() if W.nnz else 1.0)
            again = project(spectral_start(W, d, rng=rng), matchings.sizes)
            candidates += [soften(again, blocks), soften(best, blocks)]
    best = max(candidates, key=lambda labels: log_likelihood(evidence, labels))
    return Outcome(labels=best, U=U, timings=watch.seconds)
