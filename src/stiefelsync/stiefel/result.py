"""What the solver returns: a result that can be verified without the solver."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import counted
from stiefelsync.stiefel.flags import ignoring_kernel_flags

if TYPE_CHECKING:
    from stiefelsync.stiefel.operators import MatrixLike

__all__ = ["History", "State", "Status", "StiefelResult", "Subspace"]


class Status(StrEnum):
    """How a run ended, of the solver and of the synchroniser. It is a text, and the text is advice.

    Examples
    --------
    >>> print(Status.MAX_ITER)
    iteration limit reached before the criterion was met; raise max_iter
    >>> Status.MAX_ITER.converged
    False
    """

    DONE = "done"  # nothing was iterated, or a given number of times
    CONVERGED = "converged"
    MAX_ITER = "iteration limit reached before the criterion was met; raise max_iter"
    STOPPED = "stopped by the callback"
    INTERRUPTED = "interrupted; this is the best answer so far"
    BREAKDOWN = (
        "the iteration lost rank and could not be repaired; the last sound iterate is returned, lower d or check W"
    )

    @property
    def converged(self) -> bool:
        """Whether the run came to its own end, not to that of a limit, a callback or the precision."""
        return self in (Status.DONE, Status.CONVERGED)


@dataclass(frozen=True)
class State:
    """One iterate, as handed to a callback.

    Attributes
    ----------
    iteration
        Number of updates made so far.
    U : (m, d)
        The iterate; read-only, copy it to keep it.
    objective
        f(U) = tr(UᵀWU) for the symmetrised W.
    secondary
        g(U) = Σ U_ij^p.
    seconds
        Since the start of the run.
    """

    iteration: int
    max_iter: int
    U: NDArray[Any]
    objective: float
    secondary: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """What each iteration reached; the arrays have one entry per update, none padded.

    Attributes
    ----------
    objective, secondary : (n_iter,) float64
        f and g of each iterate.
    seconds : (n_iter,) float64
        When it was reached, from the start of the run.
    """

    objective: NDArray[np.float64]
    secondary: NDArray[np.float64]
    seconds: NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        """Return whether two runs went the same way, however long they took."""
        if not isinstance(other, History):
            return NotImplemented
        return np.array_equal(self.objective, other.objective) and np.array_equal(self.secondary, other.secondary)

    def __repr__(self) -> str:
        return f"History({counted(len(self.objective), 'iteration')})"


@dataclass(frozen=True, eq=False, repr=False)
class StiefelResult:
    """A point of the Stiefel manifold, what it reaches and how the run went.

    Attributes
    ----------
    U : (m, d)
        Orthonormal columns.
    objective
        tr(UᵀWU).
    secondary
        g(U) = Σ U_ij^p.
    status
        How the run ended; it is a text, and the text is advice.
    n_iter
        Updates made.
    history
        What each update reached.

    Examples
    --------
    >>> from stiefelsync import sparse_stiefel
    >>> sparse_stiefel(np.diag([3.0, 2.0, 1.0]), 2, rng=0)
    StiefelResult(U of shape (3, 2), objective=4.9..., secondary=..., n_iter=..., 'converged')
    """

    U: NDArray[Any]
    objective: float
    secondary: float
    status: Status
    n_iter: int
    history: History

    @property
    def converged(self) -> bool:
        """Whether the run came to its own end, not to that of a limit, a callback or the precision."""
        return self.status.converged

    def __eq__(self, other: object) -> bool:
        """Return whether two results are the same to the last digit, however long they took."""
        if not isinstance(other, StiefelResult):
            return NotImplemented
        mine, theirs = ((r.objective, r.secondary, r.status, r.n_iter, r.history) for r in (self, other))
        return mine == theirs and np.array_equal(self.U, other.U)

    def __repr__(self) -> str:
        return (
            f"StiefelResult(U of shape {self.U.shape}, objective={self.objective:.6g}, secondary={self.secondary:.6g},"
            f" n_iter={self.n_iter}, {str(self.status)!r})"
        )

    @typed
    @ignoring_kernel_flags
    def orthogonality_error(self) -> float:
        """Return ``max |UᵀU − I|``.

        Examples
        --------
        >>> from stiefelsync import sparse_stiefel
        >>> sparse_stiefel(np.diag([3.0, 2.0, 1.0]), 2, rng=0).orthogonality_error() < 1e-12
        True
        """
        gram = self.U.T @ self.U
        return float(abs(gram - np.eye(len(gram), dtype=gram.dtype)).max())

    @typed
    @ignoring_kernel_flags
    def residual(self, W: MatrixLike) -> float:
        """Return the relative invariance residual ‖WU − U(UᵀWU)‖_F / ‖WU‖_F, zero on an invariant subspace of W.

        Examples
        --------
        >>> from stiefelsync import sparse_stiefel
        >>> W = np.diag([3.0, 2.0, 1.0])
        >>> sparse_stiefel(W, 2, tol=1e-14, rng=0).residual(W) < 1e-6
        True
        """
        from stiefelsync.stiefel.operators import as_operator

        WU = as_operator(W) @ self.U
        return float(
            np.linalg.norm(WU - self.U @ (self.U.T @ WU)) / max(float(np.linalg.norm(WU)), np.finfo(float).tiny)
        )


@dataclass(frozen=True)
class Subspace:
    """An orthonormal basis of a dominant subspace.

    Attributes
    ----------
    V : (m, d)
        Eigenvectors, or for Orthogonal Iteration any basis.
    values : (d,)
        Rayleigh–Ritz values of V, descending.
    n_iter
        Products with W of d columns, where that is the cost.
    status
        How the search ended; done where it did not iterate.
    """

    V: NDArray[Any]
    values: NDArray[Any]
    n_iter: int = 0
    status: Status = Status.DONE
