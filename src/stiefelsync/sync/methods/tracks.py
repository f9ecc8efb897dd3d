"""Tracks by constrained merging: the method for universes too large for a matrix U."""

from __future__ import annotations

import numpy as np

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.large import solve_large
from stiefelsync.sync.registry import Callback, Outcome, register

__all__ = ["tracks"]


@register(
    "tracks",
    summary="merges points along matches, strongest evidence first, never two points of an object",
    consistent=True,
    cost="O(Σ deg² + (m + M) log m), memory O(m + M)",
    reference="this package",
    choose="thousands of universe points or more, as in structure from motion",
    sized=False,
)
def tracks(
    matchings: Matchings,
    universe: int,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Run :func:`~stiefelsync.sync.large.solve_large`.

    Notes
    -----
    The universe has as many points as tracks are found; the size asked for is not used.
    There is no matrix and no choice of precision: match weights count as float64.

    Examples
    --------
    >>> from stiefelsync import datasets, score, synchronise
    >>> problem, truth = datasets.scene(1000, 40, 250, 500, wrong=0.1, missing=0.3, rng=0)
    >>> score(synchronise(problem, 1000, method="tracks").labels, truth).fscore > 0.98
    True
    """
    return solve_large(matchings, callback=callback)
