"""What the methods share that find the dominant subspace first and turn its basis afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import History, Status
from stiefelsync.stiefel.secondary import secondary
from stiefelsync.stiefel.subspace import Subspace, dominant_subspace
from stiefelsync.sync.method import Outcome, Stopwatch
from stiefelsync.sync.methods._eigen import pad_columns
from stiefelsync.sync.rounding import project

__all__ = ["finish", "stage_one"]


def stage_one(
    matchings: Matchings,
    universe: int,
    watch: Stopwatch,
    *,
    method: str,
    rng: np.random.Generator,
    tol: float = 1e-5,
    max_iter: int = 200,
    dtype: DTypeLike,
) -> Subspace:
    """Return a basis, shape (m, min(d, m)) and of type `dtype`, of the dominant subspace of W, found by `method`."""
    with watch("subspace"):
        d = min(universe, matchings.n_points)
        return dominant_subspace(matchings.to_matrix(dtype), d, method=method, tol=tol, max_iter=max_iter, rng=rng)


def finish(
    U: NDArray[Any],
    matchings: Matchings,
    universe: int,
    watch: Stopwatch,
    *,
    p: int = 3,
    status: Status = Status.DONE,
    n_iter: int = 0,
    history: History | None = None,
    **details: Any,
) -> Outcome:
    """Project U, shape (m, min(d, m)), and wrap it up with g(U) among the details."""
    with watch("projection"):
        full = pad_columns(U, universe)
        labels = project(full, matchings.sizes)
    details = {"secondary": secondary(U, p), **details}
    return Outcome(
        labels, U=full, status=status, n_iter=n_iter, history=history, timings=watch.seconds, details=details
    )
