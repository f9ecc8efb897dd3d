"""The default preset: soft and hard likelihood refinement, block reliabilities, and the likeliest of the candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood import Evidence, Tally, odds, tally
from stiefelsync.sync.meanfield import mean_field
from stiefelsync.sync.moves import merge
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
    d = min(universe, matchings.n_points)
    best: tuple[float, Ints] = (-np.inf, np.empty(0, dtype=np.int64))

    def consider(labels: Ints, blocks: Tally | None) -> None:
        nonlocal best
        labels, value = merge(evidence, refine(evidence, labels, blocks=blocks)[0], blocks=blocks)
        if value > best[0]:
            best = value, labels

    def soften(labels: Ints, blocks: Tally | None) -> None:
        soft, _ = mean_field(evidence, evidence.one_hot(labels), blocks=blocks)
        consider(project(soft, matchings.sizes), blocks)

    with watch("start"):
        U = spectral_start(matchings.to_matrix(), d, rng=rng)
        start = project(U, matchings.sizes)
    with watch("refinement"):
        consider(start, None)
        soften(start, None)
    for _ in range(3):
        before = best[0]
        with watch("reweighting"):
            blocks = tally(evidence, best[1])
            W: Any = evidence.matrix(odds(evidence, blocks, blocks).right)
            W.setdiag(W.data.mean() if W.nnz else 1.0)
            used = max(int((blocks.holders > 1).sum()), int(matchings.sizes.max()))
            soften(best[1], blocks)
            again = project(spectral_start(W, min(d, used), rng=rng), matchings.sizes)
            consider(again, blocks)
            soften(again, blocks)
        if best[0] <= before:
            break
    return Outcome(labels=best[1], U=U, timings=watch.seconds)
