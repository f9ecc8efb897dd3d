"""The iteration, written once: Algorithm 1, Orthogonal Iteration and the rotation alone are the same loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stiefelsync.stiefel.operators import SymmetricOperator
from stiefelsync.stiefel.orthonormal import orthonormalise
from stiefelsync.stiefel.result import History, State, Status, StiefelResult
from stiefelsync.stiefel.secondary import gradient_matrix, secondary
from stiefelsync.stiefel.steps import Step, none

__all__ = ["Criterion", "Rotation", "Update", "WeightedUpdate", "iterate", "settled"]

Criterion: TypeAlias = Callable[[State, State], bool]
"""(previous, current) ↦ whether to stop."""


class Update(Protocol):
    """One kind of update U_{t+1} = update(U_t, Z_t), with the objective of its latest iterate."""

    objective: float

    def __call__(self, U: NDArray[Any], Z: NDArray[Any] | None, /) -> NDArray[Any]:
        """Return U_{t+1}, or an array with non-finite entries where that is impossible."""
        ...


class WeightedUpdate:
    """The update U_{t+1} R_{t+1} = W̃ U_t Z(U_t) of Algorithm 1, W̃ = W + shift·I.

    The product W U that the objective of one iterate needs is kept for the next update, so that
    each update costs one product with W.
    """

    def __init__(self, W: SymmetricOperator, shift: float, U0: NDArray[Any], pivoting: bool = False) -> None:
        self._W, self._shift, self._pivoting = W, W.dtype.type(shift), pivoting
        self._measure(U0)

    def _measure(self, U: NDArray[Any]) -> None:
        self._WU = self._W @ U
        self.objective = float(np.vdot(U, self._WU))

    def __call__(self, U: NDArray[Any], Z: NDArray[Any] | None, /) -> NDArray[Any]:
        """Return U_{t+1}."""
        A = self._WU
        if self._shift:
            A += self._shift * U
        if Z is not None:
            A = A @ Z
        if not np.isfinite(A).all():
            return A
        U, _ = orthonormalise(A, pivoting=self._pivoting)
        self._measure(U)
        return U


class Rotation:
    """The update of Lemma 4 within a fixed subspace: QR = Z(U_t), U_{t+1} = U_t Q (equations 2 and 3)."""

    def __init__(self, d: int, dtype: Any, objective: float = np.nan) -> None:
        self.objective = objective
        self.Q: NDArray[Any] = np.eye(d, dtype=dtype)
        """All rotations so far, shape (d, d): U_t = U_0 Q."""

    def __call__(self, U: NDArray[Any], Z: NDArray[Any] | None, /) -> NDArray[Any]:
        """Return U_{t+1}."""
        if Z is None:
            return U
        Q = orthonormalise(Z)[0]
        self.Q = self.Q @ Q
        return np.asarray(U @ Q)


def settled(*names: str, tol: float) -> Criterion:
    """Return the criterion that the named quantities of a :class:`State` grew by at most `tol`, relatively.

    For a positive f this is the paper's f(U_t)/f(U_{t+1}) ≥ 1 − ε; written so that a negative f
    works too.
    """

    def criterion(previous: State, current: State) -> bool:
        pairs = [(getattr(previous, name), getattr(current, name)) for name in names]
        return all(new - old <= tol * abs(new) for old, new in pairs)

    return criterion


def iterate(
    U: NDArray[Any],
    update: Update,
    *,
    step: Step,
    p: int,
    criterion: Criterion,
    max_iter: int,
    extra_iter: int = 0,
    callback: Callable[[State], object] | None = None,
) -> StiefelResult:
    """Repeat ``U ← update(U, Z(U))`` until the criterion holds between two orthonormal iterates.

    Parameters
    ----------
    U : (m, d)
        The start; it need not be orthonormal, so it is never compared with.
    extra_iter
        Updates made after the criterion is met.
    callback
        Called with the :class:`State` after each update; a true return value stops the run.
    """
    started = time.perf_counter()
    states: list[tuple[float, float, float]] = []
    status, remaining, previous = Status.MAX_ITER, extra_iter, None
    rotating = step is not none
    h = gradient_matrix(U, p) if rotating else np.empty((0, 0), dtype=U.dtype)
    n_iter = 0
    while n_iter < max_iter + (extra_iter if status is Status.CONVERGED else 0):
        following = update(U, step(U, h, p))
        if not np.isfinite(following).all():
            status = Status.BREAKDOWN
            U = U if n_iter else orthonormalise(U)[0]
            break
        U = following
        n_iter += 1
        if rotating:
            h = gradient_matrix(U, p)
            g = float(np.trace(h))
        else:
            g = secondary(U, p)
        state = State(n_iter, max_iter, U, update.objective, g, time.perf_counter() - started)
        states.append((state.objective, state.secondary, state.seconds))
        if callback is not None and callback(state):
            status = Status.STOPPED
            break
        if status is Status.CONVERGED:
            remaining -= 1
        elif previous is not None and criterion(previous, state):
            status = Status.CONVERGED
        if status is Status.CONVERGED and remaining <= 0:
            break
        previous = state
    history = History(*np.array(states, dtype=np.float64).reshape(-1, 3).T.copy())
    objective = update.objective if np.isfinite(update.objective) else -np.inf
    return StiefelResult(U, objective, secondary(U, p), status, n_iter, history)
