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
from stiefelsync.sync.registry import Callback, Outcome, Progress, Stopwatch, register
from stiefelsync.sync.start import spectral_start

__all__ = ["accurate"]

Ints = NDArray[np.int64]

_SMALL = 3_000_000  # nnz·d below which everything is tried, and reweighting repeated while it helps
_PASSES = 3


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

    The deterministic start of `fast` is refined hard (Gauss–Seidel) and soft (mean field), and labels that are one
    universe point are joined. From the likeliest result so far every block gets a reliability of its own; with blocks
    weighted by it both the refinement and the start are repeated.

    Parameters
    ----------
    n_init
        Further starts from random rotations of the subspace, for hard problems with few objects.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> accurate(problem, 2, rng=np.random.default_rng(0)).labels.tolist() in ([0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0])
    True
    """
    search = _Search(matchings, universe, rng)
    report: Any = callback or (lambda _: False)
    watch = Stopwatch()
    with watch("start"):
        start = search.start(search.evidence.weights, 1.0, universe)
    with watch("refinement"):
        search.refine(start)
        search.soften(start if search.small else search.labels)
    passes = _PASSES if search.small else 1
    for n in range(passes):
        if report(Progress("reweighting", n + 1, passes)):
            break
        before = search.value
        with watch("reweighting"):
            search.reweight()
        if search.value <= before:
            break
    return Outcome(labels=search.labels, U=search.U, n_iter=search.tried, timings=watch.seconds)


class _Search:
    """The likeliest labels so far, and ways to look for likelier ones."""

    def __init__(self, matchings: Matchings, universe: int, rng: np.random.Generator) -> None:
        self.matchings, self.rng = matchings, rng
        self.evidence = Evidence.of(matchings, universe)
        self.small = len(self.evidence.indices) * universe < _SMALL
        self.value, self.tried = -np.inf, 0
        self.labels: Ints = np.full(matchings.n_points, -1, dtype=np.int64)
        self.U: NDArray[Any] | None = None

    def start(self, weights: NDArray[np.float64], diagonal: float, d: int) -> Ints:
        """Return the projected spectral start with d labels and the matches so weighted."""
        d = min(d, self.matchings.n_points)
        A = self.evidence.matrix(weights)
        self.U = spectral_start(A, d, rng=self.rng, diagonal=diagonal, offsets=self.matchings.offsets)
        return project(self.U, self.matchings.sizes)

    def refine(self, labels: Ints, blocks: Tally | None = None) -> None:
        """Refine labels, join what belongs together, and keep the result if it is the likeliest so far."""
        self.tried += 1
        labels = refine(self.evidence, labels, blocks=blocks)[0]
        labels, value = merge(self.evidence, labels, blocks=blocks)
        if value > self.value:
            self.labels, self.value = labels, value

    def soften(self, labels: Ints, blocks: Tally | None = None) -> None:
        """Refine labels by way of soft ones."""
        soft, _ = mean_field(self.evidence, self.evidence.one_hot(labels), blocks=blocks)
        self.refine(project(soft, self.matchings.sizes), blocks)

    def reweight(self) -> None:
        """Weight every block by its reliability under the best labels, refine these and start again."""
        blocks = tally(self.evidence, self.labels)
        rates = odds(self.evidence, blocks, blocks)
        used = max(int((blocks.holders > 1).sum()), int(self.matchings.sizes.max(initial=1)))
        if self.small:
            self.soften(self.labels, blocks)
        again = self.start(rates.right, float(rates.right.mean()) if len(rates.right) else 1.0, used)
        self.refine(again, blocks)
        self.soften(again if self.small else self.labels, blocks)
