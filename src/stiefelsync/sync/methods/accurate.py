"""The default preset: soft and hard likelihood refinement, block reliabilities, and the likeliest of the candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.orthonormal import polar
from stiefelsync.stiefel.rotation import rotate
from stiefelsync.stiefel.subspace import dominant_subspace
from stiefelsync.sync.choose import has_large_objects
from stiefelsync.sync.likelihood.annealing import anneal
from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts
from stiefelsync.sync.likelihood.exchange import exchange
from stiefelsync.sync.likelihood.gauss_seidel import leave_out, refine, withdraw
from stiefelsync.sync.likelihood.groups import grouped_start
from stiefelsync.sync.likelihood.improve import improve, improve_tree
from stiefelsync.sync.likelihood.large_objects import refinements
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.mean_field import mean_field
from stiefelsync.sync.likelihood.merge_labels import merge
from stiefelsync.sync.likelihood.model import log_odds
from stiefelsync.sync.likelihood.posterior import sample_posterior
from stiefelsync.sync.likelihood.reliability import beta_fit
from stiefelsync.sync.likelihood.sampling import break_ties, decide, expected_fscore, optimism, pair_scores
from stiefelsync.sync.likelihood.splice import splice
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.methods._spectral_start import nudges, spectral_start, start_size
from stiefelsync.sync.options import option
from stiefelsync.sync.outcome import by_first_appearance
from stiefelsync.sync.rounding import project
from stiefelsync.sync.tracks.grow import grow_tracks

__all__ = ["AccurateDetails", "Start", "accurate", "improve"]

Ints = NDArray[np.int64]

_FEW = 10  # objects up to which the answer is the one of largest expected fscore
_DENSE = 1000  # points up to which an m×m matrix is small
_SMALL = 3_000_000  # nnz·d below which everything is tried, and reweighting repeated while it helps
_PASSES = 3  # of weighing the blocks again; each begins only if the one before helped
_GROUPS = 500  # objects up to which groups of neighbours are looked for
_CYCLES = 5  # times that the labels of a sequence are annealed
_BRIEF = 100_000  # m·d below which this takes a second each
_EVEN = 100  # concentration of the blocks' rates beyond which they are taken to be equal


@dataclass(frozen=True)
class Options:
    """Options of accurate."""

    n_init: int = option(
        1, "Further starts from random rotations of the subspace, for hard problems with few objects.", least=1
    )
    full: bool = option(False, "Label every point, as full permutations do: no point and no object stays out.")


@dataclass(frozen=True, eq=False, repr=False)
class AccurateDetails(Details):
    """What `accurate` tells.

    Attributes
    ----------
    route
        "sparse" if objects were so large that tracks were refined with sparse scores, else "dense".
    log_likelihood
        Of the likeliest labels found.
    starts
        Those tried, in order.
    expected_fscore
        With ten objects or fewer: the fscore that samples of the posterior promise for the labels; None if not sampled.
    """

    route: Literal["dense", "sparse"]
    log_likelihood: float
    starts: tuple[Start, ...]
    expected_fscore: float | None = None

    def figures(self, problem: Matchings) -> dict[str, Any]:
        """Return the fscore to expect, where it is known."""
        return {} if self.expected_fscore is None else {"expected_fscore": self.expected_fscore}


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

    Where not all objects were compared (sequences, crowds), tracks and groups of neighbouring objects solved on their
    own are starts too, and two labels may be exchanged in a whole group of objects. Objects so large that dense scores
    cost too much go another way: the tracks that matches form are refined with sparse scores. :class:`AccurateDetails`
    says which, which starts were tried and how likely they became; the likeliest won.

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
    if has_large_objects(matchings, universe):
        return _sparse(matchings, start, callback)
    search = _Search(matchings, universe, rng)
    watch, report, decided = Stopwatch(), Reporter(callback), None
    try:
        for n, (stage, run) in enumerate(stages := search.stages(start, options.n_init)):
            if n and report(Progress(stage, n, len(stages))):
                break
            with watch(stage):
                run()
        few = matchings.n_objects <= _FEW and matchings.n_points <= _DENSE and (search.labels >= 0).all()
        if few and not (report.stopped or options.full or report(Progress("posterior", len(stages), len(stages) + 1))):
            with watch("posterior"):
                decided = search.decide()
    except KeyboardInterrupt:
        if not np.isfinite(search.value):
            raise
        report.interrupted = True
    labels, expected = decided or (search.labels if options.full else search.supported(search.labels), None)
    details = AccurateDetails("dense", search.value, tuple(search.starts), expected)
    return Outcome(
        labels=labels, U=search.U, status=report.status, n_iter=search.tried, timings=watch.seconds, details=details
    )


def _sparse(matchings: Matchings, start: Ints | None, callback: Callback | None) -> Outcome:
    """Take the way of large objects: the tracks that matches form, and the given start, refined with sparse scores."""
    watch, report = Stopwatch(), Reporter(callback)
    best, value = np.full(matchings.n_points, -1, dtype=np.int64), -np.inf
    tried = [("tracks", np.asarray(grow_tracks(matchings).labels))] + ([] if start is None else [("given", start)])
    reached: dict[str, float] = {}
    try:
        for n, (name, first) in enumerate(tried):
            if n and report(Progress(f"{name} start", n, len(tried))):
                break
            with watch(f"{name} start"):
                for labels, reached[name] in refinements(matchings, first):
                    if reached[name] > value:
                        best, value = labels, reached[name]
    except KeyboardInterrupt:
        if not reached:
            raise
        report.interrupted = True
    details = AccurateDetails("sparse", value, tuple(Start(*one) for one in reached.items()))
    return Outcome(labels=best, status=report.status, n_iter=len(reached), timings=watch.seconds, details=details)


@dataclass(frozen=True)
class Start:
    """A start that was tried, and the log-likelihood its labels reached by local moves.

    Attributes
    ----------
    name
        "spectral", "tracks", "groups", "tree", "given" or "restart".
    log_likelihood
        Of its refined labels.
    """

    name: str
    log_likelihood: float


class _Search:
    """The likeliest labels so far, and ways to look for likelier ones.

    Steps break ties by number, and pair labels off by it. Numbered as the eigensolver has them labels would differ
    between processors, so they are numbered by first appearance wherever they enter a step.
    """

    def __init__(self, matchings: Matchings, universe: int, rng: np.random.Generator) -> None:
        self.matchings, self.rng = matchings, rng
        self.table = MatchTable.of(matchings, universe)
        self.small = len(self.table.indices) * universe < _SMALL
        self.value, self.tried, self.settled = -np.inf, 0, False
        self.labels: Ints = np.full(matchings.n_points, -1, dtype=np.int64)
        self.blocks: BlockCounts | None = None
        self.refined: set[bytes] = set()
        self.starts: list[Start] = []
        self.others: list[Ints] = []
        # In a sequence errors are local: runs of objects are relabelled as a whole, and taken from other labellings.
        self.runs = not self.table.complete and self.small and matchings.n_objects <= _GROUPS
        self.brief = matchings.n_points * universe < _BRIEF
        self.U: NDArray[Any] | None = None

    def stages(self, start: Ints | None, n_init: int) -> list[tuple[str, Callable[[], None]]]:
        """Return what to do, in order, by name. A sequence of comparisons needs starts and moves of its own."""
        spread = not self.table.complete
        todo: list[tuple[str, Callable[[], None]]] = [("spectral start", self.spectral)]
        if start is not None:
            todo.append(("given start", partial(self.begin, "given", start)))
        if spread:
            todo.append(("tracks start", self.grown))
        if spread and self.matchings.n_objects <= _GROUPS and (self.brief or not self.runs):
            todo.append(("groups start", self.grouped))
        if self.runs:
            todo += [("crossing", self.cross)] + [("annealing", self.anneal)] * (_CYCLES if self.brief else 1)
        todo += [("reweighting", self.reweight)] * (_PASSES if self.small and (self.brief or not self.runs) else 1)
        todo += [("restarts", self.restart)] * (n_init - 1)
        return [*todo, ("exchange", self.settle)]

    def begin(self, name: str, labels: Ints) -> None:
        """Refine a start, hard and soft, and remember how likely it became."""
        kept, before, self.value = self.labels, self.value, -np.inf
        try:
            self.refine(labels)
            if self.table.complete:
                self.soften(labels if self.small else self.labels)
            elif self.runs:
                self.keep(*splice(self.table, self.labels, max_rounds=6))
            if not self.table.complete and (self.brief or not self.runs):
                self.exchange()
            self.starts.append(Start(name, self.value))
            self.others.append(self.labels)
        finally:  # an interruption loses no likelier labels
            if before >= self.value:
                self.labels, self.value = kept, before

    def spectral(self) -> None:
        """Start from the dominant subspace."""
        A = self.table.matrix(self.table.weights)
        d = start_size(A, self.matchings.sizes, self.table.d)
        self.begin("spectral", self.rotated(A, 1.0, d))

    def grown(self) -> None:
        """Start from the largest tracks."""
        self.begin("tracks", self.table.largest(np.asarray(grow_tracks(self.matchings).labels)))

    def grouped(self) -> None:
        """Start from groups of neighbouring objects, each solved from its own spectral start."""

        def solve(part: Matchings, d: int) -> Ints:
            table = MatchTable.of(part, d)
            A = table.matrix(table.weights)
            U = spectral_start(A, start_size(A, part.sizes, d), rng=self.rng)
            return merge(table, refine(table, project(U, part.sizes))[0])[0]

        self.begin("groups", grouped_start(self.matchings, self.table.d, solve))

    def rotated(self, A: Any, diagonal: float, d: int) -> Ints:
        """Return the projected spectral start of a matrix of matches, (m, m), with d labels."""
        d = min(d, self.matchings.n_points)
        self.U = spectral_start(A, d, rng=self.rng, diagonal=diagonal, near=self.U)
        return project(self.U, self.matchings.sizes)

    def weigh(self) -> BlockCounts:
        """Take the reliability of every block from the best labels."""
        self.blocks, self.refined = block_counts(self.table, self.labels), set()
        return self.blocks

    def keep(self, labels: Ints, value: float) -> Ints:
        """Keep labels if they are the likeliest so far; return them, numbered by first appearance."""
        labels = by_first_appearance(labels)
        self.refined.add(labels.tobytes())
        if value > self.value:
            self.labels, self.value = labels, value
        return labels

    def refine(self, labels: Ints) -> Ints:
        """Refine labels, join what belongs together, and keep the result if it is the likeliest so far; return it."""
        self.tried += 1
        labels = by_first_appearance(labels)
        if labels.tobytes() in self.refined:
            return labels
        self.refined.add(labels.tobytes())
        labels = refine(self.table, labels, blocks=self.blocks)[0]
        return self.keep(*merge(self.table, labels, blocks=self.blocks))

    def exchange(self) -> None:
        """Exchange labels in groups of objects."""
        self.keep(*exchange(self.table, self.labels, blocks=self.blocks))

    def settle(self) -> None:
        """Exchange labels in groups of objects, weighing the blocks again, as long as that helps.

        Blocks that differ much can keep spectral starts from the answer: then a tree of good ones is a second start.
        """
        for _ in range(_PASSES):
            before = self.value
            self.exchange()
            if self.value <= before or not ((self.small and not self.runs) or self.uneven()):
                break
            self.weigh()
            self.refine(self.labels)
        if self.table.complete and not self.table.partial and self.uneven():
            labels, value = improve_tree(self.table, self.labels, self.value)
            self.starts.append(Start("tree", value))
            self.keep(labels, value)

    def cross(self) -> None:
        """Take runs of objects from the labels that the other starts have led to."""
        for other in self.others:
            if other is not self.labels:
                self.keep(*splice(self.table, self.labels, other))
        self.others = []

    def anneal(self) -> None:
        """Leave the best labels at random, improve what is found, and take the better runs of both.

        Blocks that differ much are weighted by their reliability, unless rows, not whole blocks, are what errs.
        """
        best = self.labels
        blocks = block_counts(self.table, best) if self.uneven() and not self.table.sided else None
        hot = refine(self.table, anneal(self.table, best, rng=self.rng, blocks=blocks), blocks=blocks)[0]
        found, value = splice(self.table, merge(self.table, hot)[0])
        if self.brief:
            found, value = exchange(self.table, found, blocks=blocks)
        one, two = (found, best) if value > self.value else (best, found)
        self.keep(*splice(self.table, one, two))

    def soften(self, labels: Ints) -> None:
        """Refine labels by way of soft ones."""
        soft, _ = mean_field(self.table, by_first_appearance(labels), blocks=self.blocks)
        self.refine(project(soft, self.matchings.sizes))

    def uneven(self) -> bool:
        """Return whether some blocks are clearly more reliable than others under the best labels."""
        return beta_fit(*block_counts(self.table, self.labels).reliability, least=0.5)[1] < _EVEN

    def reweight(self) -> None:
        """Weight every block by its reliability under the best labels, refine these and start again."""
        if self.settled or not ((self.small and not self.runs) or self.uneven()):
            return
        before, blocks = self.value, self.weigh()
        if self.small and not self.runs:
            self.soften(self.labels)
        if self.table.complete:
            self.again(blocks)
        else:
            self.refine(self.labels)
            self.exchange()
        self.settled = self.value <= before

    def again(self, blocks: BlockCounts) -> None:
        """Start again with the blocks so weighted."""
        rates = log_odds(self.table, blocks, blocks)
        used = max(int((blocks.holders > 1).sum()), int(self.matchings.sizes.max(initial=1)))
        diagonal = float(rates.right.mean()) if len(rates.right) else 1.0
        labels = self.rotated(self.table.matrix(rates.right), diagonal, used)
        agreed = np.array_equal(self.labels, self.refine(labels))  # with what was best before
        self.soften(labels if self.small else self.labels)
        if self.small and self.table.partial and self.matchings.n_points <= _DENSE and not agreed:
            # Where matches alone say too little, who is seen by whom can still tell points apart.
            nudged = nudges(self.matchings.n_points)
            T = pair_scores(self.table, rates) * np.outer(nudged, nudged)
            self.refine(project(rotate(dominant_subspace(T, used, method="eigh").V), self.matchings.sizes))

    def restart(self) -> None:
        """Start from a random rotation of the subspace."""
        assert self.U is not None
        Q = polar(self.rng.standard_normal((self.U.shape[1],) * 2))
        self.weigh()
        self.begin("restart", project(rotate(self.U, Q=Q), self.matchings.sizes))

    def decide(self) -> tuple[Ints, float]:
        """Return the labels of largest expected fscore, and that fscore."""
        table = self.table
        # Full permutations without weights tell nothing but who agrees with whom: nobody is known to be missing.
        told = table.partial or table.weight_scores is not None
        start = self.labels if told else break_ties(table, self.labels)
        halves = sample_posterior(table, start, rng=self.rng)
        P = halves.mean(axis=0)
        labels = decide(P, table, start) if told else self.supported(start)
        return labels, expected_fscore(P, table, labels) - (optimism(halves, table, start) if told else 0.0)

    def supported(self, labels: Ints) -> Ints:
        """Return the labels without points and objects that the matches speak against."""
        return leave_out(self.table, withdraw(self.table, labels))
