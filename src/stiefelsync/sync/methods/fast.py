"""The quick preset: a deterministic start, rounded, and moved to likelier labels object by object."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.decision import largest, shared
from stiefelsync.sync.likelihood.observations import observe
from stiefelsync.sync.likelihood.search import affordable, improve
from stiefelsync.sync.method import Callback, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.methods._spectral_start import MAX_WORK, spectral_start, start_matrix, start_size
from stiefelsync.sync.methods.accurate import tracks_labels
from stiefelsync.sync.rounding import nearest

__all__ = ["fast"]

# At most for all but small problems, where refinement has more matches to repair the start with.
_PRODUCTS = 8


@register(
    "fast",
    summary="spectral start, sparse rotation, and moves to likelier labels",
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
    sure: bool = True,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Label by the rotated dominant subspace of the normalised W, then re-label objects until nothing changes.

    Labels are those of the model of `accurate`, at temperature zero: every object in turn gets the assignment that is
    likeliest given all others. Points that are likelier alone stay without a label. Given a `start`, (m,) labels with
    -1 for unknown, that is improved instead. Problems that are too large for that get the tracks that matches form.

    Parameters
    ----------
    sure
        Whether no more than `universe` labels may be used.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> fast(problem, 2, rng=np.random.default_rng(0)).labels.tolist() in ([0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0])
    True
    """
    watch, report, most = Stopwatch(), Reporter(callback), universe if sure else None
    U: NDArray[Any] | None = None
    if not affordable(matchings, sampled=False):
        with watch("tracks"):
            tracks = tracks_labels(matchings) if start is None else start
        tracks = largest(tracks, matchings.n_points if most is None else most)
        return Outcome(labels=tracks, status=report.status, timings=watch.seconds)
    labels = start
    if labels is None:
        with watch("start"):
            A = start_matrix(matchings)
            d = start_size(A, matchings.sizes, universe)
            if matchings.n_points * d**2 > MAX_WORK:
                labels = tracks_labels(matchings)
            else:
                U = spectral_start(A, d, rng=rng, max_products=_PRODUCTS)
        report(Progress("start", 1, 3))
    if U is not None:
        with watch("projection"):
            labels = nearest(U, matchings.sizes)
    assert labels is not None
    if not report(Progress("projection", 2, 3)):
        with watch("refinement"):
            state = improve(observe(matchings), labels, seed=int(rng.integers(2**62)), most=most, exchange=False)
            labels = shared(state.labels)
            if most is not None:
                labels = largest(labels, most)
    return Outcome(labels=labels, U=U, status=report.status, timings=watch.seconds)
