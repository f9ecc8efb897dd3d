"""The default preset: soft and hard likelihood refinement, block reliabilities, and the likeliest of the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.orthonormal import polar
from stiefelsync.stiefel.rotation import rotate
from stiefelsync.stiefel.subspace import dominant_subspace
from stiefelsync.sync.likelihood.counts import BlockCounts, beta_fit, block_counts
from stiefelsync.sync.likelihood.gauss_seidel import refine, withdraw
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.mean_field import mean_field
from stiefelsync.sync.likelihood.merge_labels import merge
from stiefelsync.sync.likelihood.model import log_odds
from stiefelsync.sync.likelihood.sampling import decide, pair_scores, sample
from stiefelsync.sync.method import Callback, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.options import option
from stiefelsync.sync.rounding import project
from stiefelsync.sync.spectral_start import spectral_start, start_size

__all__ = ["accurate"]

Ints = NDArray[np.int64]

_FEW = 10  # objects up to which the answer is the one of largest expected fscore
_PROMISE = 0.01  # growth of the expected fscore that is worth leaving the likeliest labels for
_DENSE = 1000  # points up to which an m×m matrix is small
_SMALL = 3_000_000  # nnz·d below which everything is tried, and reweighting repeated while it helps
_PASSES = 3
_EVEN = 100  # concentration of the blocks' rates beyond which they are taken to be equal


@dataclass(frozen=True)
class Options:
    """Options of accurate."""

    n_init: int = option(
        1, "Further starts from random rotations of the subspace, for hard problems with few objects.", least=1
    )


@register(
    "accurate",
    summary="spectral start, mean field and Gauss–Seidel on the likelihood, blocks reweighted, the likeliest kept",
    consistent=True,
    cost="O(nnz·d + m·d²) per product, some tens of products",
    reference="this package; the start follows Bernard, Cremers and Thunberg 2021",
    ours=True,
    choose="by default",
    options=Options,
)
def accurate(
    matchings: Matchings,
    universe: int,
    options: Options,
    /,
    *,
    start: Ints | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Return the likeliest labelling found.

    The deterministic start of `fast` is refined hard (Gauss–Seidel) and soft (mean field), and labels that are one
    universe point are joined. From the likeliest result so far every block gets a reliability of its own; with blocks
    weighted by it both the refinement and the start are repeated. With ten objects or fewer the likeliest labels fit
    noise; if samples of the posterior promise a better fscore for others, those are returned, and points without a
    probable partner are left unmatched.

    Parameters
    ----------
    start : (m,) int, optional
        Labels to refine too, -1 = unknown.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> accurate(problem, 2, rng=np.random.default_rng(0)).labels.tolist() in ([0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0])
    True
    """
    search = _Search(matchings, universe, rng)
    report = Reporter(callback)
    watch = Stopwatch()
    with watch("start"):
        A = search.table.matrix(search.table.weights)
        spectral = search.start(search.table.weights, 1.0, start_size(A, matchings.sizes, universe))
    with watch("refinement"):
        for labels in [spectral] if start is None else [spectral, start]:
            search.refine(labels)
            search.soften(labels if search.small else search.labels)
    passes = _PASSES if search.small else int(search.uneven())
    for n in range(passes):
        if report(Progress("reweighting", n + 1, passes)):
            break
        before = search.value
        with watch("reweighting"):
            search.reweight()
        if search.value <= before:
            break
    for n in range(1, options.n_init):
        if report(Progress("restart", n, options.n_init)):
            break
        with watch("restarts"):
            search.restart()
    labels, details = search.labels, {"log_likelihood": search.value}
    if matchings.n_objects <= _FEW and matchings.n_points <= _DENSE and not report.stopped:
        with watch("posterior"):
            labels, details["expected_fscore"] = search.decide()
    labels = withdraw(search.table, labels)
    return Outcome(
        labels=labels, U=search.U, status=report.status, n_iter=search.tried, timings=watch.seconds, details=details
    )


class _Search:
    """The likeliest labels so far, and ways to look for likelier ones."""

    def __init__(self, matchings: Matchings, universe: int, rng: np.random.Generator) -> None:
        self.matchings, self.rng = matchings, rng
        self.table = MatchTable.of(matchings, universe)
        self.small = len(self.table.indices) * universe < _SMALL
        self.value, self.tried = -np.inf, 0
        self.labels: Ints = np.full(matchings.n_points, -1, dtype=np.int64)
        self.blocks: BlockCounts | None = None
        self.refined: set[bytes] = set()
        self.U: NDArray[Any] | None = None

    def start(self, weights: NDArray[np.float64], diagonal: float, d: int) -> Ints:
        """Return the projected spectral start with d labels and the matches so weighted."""
        d = min(d, self.matchings.n_points)
        self.U = spectral_start(self.table.matrix(weights), d, rng=self.rng, diagonal=diagonal, near=self.U)
        return project(self.U, self.matchings.sizes)

    def weigh(self) -> BlockCounts:
        """Take the reliability of every block from the best labels."""
        self.blocks, self.refined = block_counts(self.table, self.labels), set()
        return self.blocks

    def refine(self, labels: Ints) -> None:
        """Refine labels, join what belongs together, and keep the result if it is the likeliest so far."""
        self.tried += 1
        if labels.tobytes() in self.refined:
            return
        self.refined.add(labels.tobytes())
        labels = refine(self.table, labels, blocks=self.blocks)[0]
        labels, value = merge(self.table, labels, blocks=self.blocks)
        self.refined.add(labels.tobytes())
        if value > self.value:
            self.labels, self.value = labels, value

    def soften(self, labels: Ints) -> None:
        """Refine labels by way of soft ones."""
        soft, _ = mean_field(self.table, labels, blocks=self.blocks)
        self.refine(project(soft, self.matchings.sizes))

    def uneven(self) -> bool:
        """Return whether some blocks are clearly more reliable than others under the best labels."""
        return beta_fit(*block_counts(self.table, self.labels).reliability, least=0.5)[1] < _EVEN

    def reweight(self) -> None:
        """Weight every block by its reliability under the best labels, refine these and start again."""
        blocks = self.weigh()
        rates = log_odds(self.table, blocks, blocks)
        used = max(int((blocks.holders > 1).sum()), int(self.matchings.sizes.max(initial=1)))
        if self.small:
            self.soften(self.labels)
        again = self.start(rates.right, float(rates.right.mean()) if len(rates.right) else 1.0, used)
        self.refine(again)
        self.soften(again if self.small else self.labels)
        if self.small and self.table.partial and self.matchings.n_points <= _DENSE:
            # Where matches alone say too little, who is seen by whom can still tell points apart.
            T = pair_scores(self.table, rates)
            self.refine(project(rotate(dominant_subspace(T, used, method="eigh").V), self.matchings.sizes))

    def restart(self) -> None:
        """Start from a random rotation of the subspace."""
        assert self.U is not None
        Q = polar(self.rng.standard_normal((self.U.shape[1],) * 2))
        start = project(rotate(self.U, Q=Q), self.matchings.sizes)
        self.weigh()
        self.refine(start)
        self.soften(start)

    def decide(self) -> tuple[Ints, float]:
        """Return the labels of largest expected fscore, and that fscore."""
        counts = block_counts(self.table, self.labels)
        T = pair_scores(self.table, log_odds(self.table, counts))
        P, _ = sample(T, self.table, self.labels, rng=self.rng)
        labels, promised, expected = decide(P, self.table, self.labels)
        return (labels, promised) if promised > expected + _PROMISE else (self.labels, expected)


def improve(table: MatchTable, labels: Ints) -> Ints:
    return merge(table, refine(table, labels)[0])[0]
