"""The quick preset: a deterministic start, rounded and refined object by object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.choose import has_large_objects
from stiefelsync.sync.likelihood.gauss_seidel import settle
from stiefelsync.sync.likelihood.large_objects import refine_large
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.methods._spectral_start import spectral_start, start_matrix, start_size
from stiefelsync.sync.rounding import nearest
from stiefelsync.sync.tracks.grow import grow_tracks

__all__ = ["FastDetails", "fast"]

# At most for all but small problems, where refinement has more matches to repair the start with.
_PRODUCTS = 8


@dataclass(frozen=True, eq=False, repr=False)
class FastDetails(Details):
    """What `fast` tells.

    Attributes
    ----------
    route
        "sparse" if objects were so large that tracks were refined with sparse scores, else "dense".
    """

    route: Literal["dense", "sparse"]


@register(
    "fast",
    summary="spectral start, sparse rotation, Gauss–Seidel on the likelihood",
    consistent=True,
    cost="O(nnz·d + m·d²) per product, about ten products",
    reference="this package; the start follows Bernard, Cremers and Thunberg 2021",
    ours=True,
    choose="interactive use, and problems where accurate takes too long",
)
def fast(
    matchings: Matchings,
    universe: int,
    /,
    *,
    start: NDArray[np.int64] | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Label by the rotated dominant subspace of the normalised W, then re-label objects until nothing changes.

    Points that no match supports and the likelihood speaks against are left unmatched. Given a
    `start`, (m,) labels with -1 for unknown, that is refined instead. Objects so large that dense
    scores cost too much go another way: the tracks that matches form are refined with sparse
    scores. :class:`FastDetails` says which.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> fast(problem, 2, rng=np.random.default_rng(0)).labels.tolist() in ([0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0])
    True
    """
    watch = Stopwatch()
    report, sweeps = Reporter(callback), 0
    if has_large_objects(matchings, universe):
        with watch("large objects"):
            refined, _ = refine_large(matchings, np.asarray(grow_tracks(matchings).labels) if start is None else start)
        return Outcome(labels=refined, status=report.status, timings=watch.seconds, details=FastDetails("sparse"))
    table, U, labels = MatchTable.of(matchings, universe), None, start
    if labels is None:
        with watch("start"):
            A = start_matrix(table)
            d = start_size(A, matchings.sizes, universe)
            U = spectral_start(A, d, rng=rng, max_products=_PRODUCTS)
        report(Progress("start", 1, 3))
        with watch("projection"):
            labels = nearest(U, matchings.sizes)
    if not report(Progress("projection", 2, 3)):
        with watch("refinement"):
            labels, sweeps = settle(table, labels)
    return Outcome(
        labels=labels, U=U, status=report.status, n_iter=sweeps, timings=watch.seconds, details=FastDetails("dense")
    )
