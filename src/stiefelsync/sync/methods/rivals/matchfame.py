"""MatchFAME (Li, Shi and Lerman 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.methods.rivals._cycles import corruption, three_cycles
from stiefelsync.sync.methods.rivals._tree import along_tree
from stiefelsync.sync.methods.rivals.spectral import largest_clusters
from stiefelsync.sync.options import option
from stiefelsync.sync.rounding import assign_sparse

__all__ = ["MatchFameDetails", "Options", "run"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# β doubles from step to step, as message passing wants it
_SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_TREE = 1e-9  # added to the lengths of the tree's edges: a sparse graph takes 0 for no edge


@dataclass(frozen=True)
class Options:
    """Options of matchfame."""

    weight: float = option(1.0, "Pairs of objects count by exp(−weight · corruption) in the power steps.", least=0)
    max_iter: int = option(50, "Most power steps; they end when the labels settle.", least=1)


@dataclass(frozen=True, eq=False, repr=False)
class MatchFameDetails(Details):
    """What MatchFAME tells.

    Attributes
    ----------
    corruption : (P,) float64
        Estimate for every pair of objects with matches, from 0 to 1.
    cycles
        Three-cycles it was estimated from.
    """

    corruption: Floats
    cycles: int


@register(
    "matchfame",
    summary="cycle-consistency weights for pairs of objects, a spanning tree as start, weighted projected power steps",
    consistent=True,
    cost="O(Σ deg² + k·m), then O(M) and one sparse assignment per object in every iteration",
    reference="Li, Shi, Lerman: Fast, accurate and memory-efficient partial permutation synchronization, CVPR 2022",
    choose="when whole pairs of objects are good or bad; everything in it is sparse",
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
    """Climb ``max tr(Pᵀ (S∘W) P)``, S the reliability of each pair of objects, over stacked partial permutations.

    1. *CEMP-Partial*: the corruption s_ij of every pair of objects from cycles of three
       (:func:`~stiefelsync.sync.methods.rivals._cycles.corruption`), β = 1, 2, …, 32.
    2. A minimum spanning tree of the objects with lengths s_ij; labels are handed on along its
       matches, and a point without one opens a universe point.
    3. ``P ← project((S∘W) P)``, ``S_ij = exp(−weight · s_ij)``, by a sparse assignment in every
       object, until the labels settle. Then the `universe` largest labels are kept and the steps
       repeated.

    Notes
    -----
    Cycle-consistent. A point none of whose partners has a label is unmatched. All objects are
    updated at once, so labels may swing between two states; the better one is returned. Nothing of
    size m×d is dense. Random numbers play no part. Stopped by the callback it goes on with the
    cycles it has, without further power steps.

    Not confirmed from the paper are: the inconsistency of a cycle of partial matchings, for which
    the share of unclosed paths is taken; the schedule of β; what opens universe points where the
    tree leaves a point without a label; and the weight function. `weight` was chosen on
    ``synthetic(25, …)``, seeds 100 to 102: larger values did no better where whole pairs are wrong
    and worse where all are equally noisy, since the differences of s are noise there.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 1, 0, 0, 1]
    """
    watch, report = Stopwatch(), Reporter(callback)
    with watch("cycles"):
        cycles = three_cycles(matchings, stop=lambda done: report(Progress("cycles", done, matchings.n_objects)))
        s = corruption(cycles, len(matchings.pair_objects), _SHARPNESS)
    with watch("spanning tree"):
        labels = along_tree(matchings, s + _TREE)
    with watch("iterations"):
        weights = np.exp(-options.weight * (s - s.min(initial=1.0)))[matchings.match_pairs] * matchings.match_weights
        labels, n_iter, status = _power_steps(matchings, weights, labels, options.max_iter, report)
        if len(np.unique(labels[labels >= 0])) > universe:
            labels, more, status = _power_steps(
                matchings, weights, largest_clusters(labels, universe), options.max_iter, report
            )
            n_iter += more
    return Outcome(
        labels=labels,
        status=status,
        n_iter=n_iter,
        timings=watch.seconds,
        details=MatchFameDetails(s, len(cycles.pairs)),
    )


def _power_steps(
    matchings: Matchings, weights: Floats, labels: Ints, max_iter: int, report: Reporter
) -> tuple[Ints, int, Status]:
    """Repeat ``P ← project((S∘W) P)``.

    Return the best labels, the number of steps and how they ended.
    """
    m = matchings.n_points
    a, b = matchings.endpoints.T
    A: Any = sparse.csr_array((weights, (a, b)), shape=(m, m))
    A = sparse.csr_array(A + A.T)

    def value(labels: Ints) -> float:
        return float(weights[matchings.agreeing(labels)].sum())

    best, reached, before = labels, value(labels), labels
    for step in range(1, max_iter + 1):
        if report(Progress("iterations", step, max_iter)):
            return best, step - 1, Status.STOPPED
        (rows,) = np.nonzero(labels >= 0)
        P: Any = sparse.csr_array((np.ones(len(rows)), (rows, labels[rows])), shape=(m, int(labels.max(initial=0)) + 1))
        last, before, labels = before, labels, assign_sparse(sparse.csr_array(A @ P), matchings.sizes)
        if value(labels) >= reached:
            best, reached = labels, value(labels)
        if np.array_equal(labels, before) or (step > 1 and np.array_equal(labels, last)):
            return best, step, Status.CONVERGED
    return best, max_iter, Status.MAX_ITER
