"""What the methods share that round a relaxed solution U."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import History, State, Status
from stiefelsync.stiefel.secondary import sparsity
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Stopwatch
from stiefelsync.sync.methods._eigen import pad_columns
from stiefelsync.sync.rounding import project

__all__ = ["finish", "relay"]


def relay(callback: Callback | None, stage: str) -> Any:
    """Return the solver's callback that hands its states on as :class:`Progress`, or None."""
    if callback is None:
        return None

    def tell(state: State) -> object:
        return callback(Progress(stage, state.iteration, state.max_iter, state.objective, sparsity(state.U)))

    return tell


def finish(
    U: NDArray[Any],
    matchings: Matchings,
    universe: int,
    watch: Stopwatch,
    *,
    status: Status = Status.DONE,
    n_iter: int = 0,
    history: History | None = None,
    details: Details,
) -> Outcome:
    """Project U, shape (m, min(d, m)), and wrap it up."""
    with watch("projection"):
        full = pad_columns(U, universe)
        labels = project(full, matchings.sizes)
    return Outcome(
        labels, U=full, status=status, n_iter=n_iter, history=history, timings=watch.seconds, details=details
    )
