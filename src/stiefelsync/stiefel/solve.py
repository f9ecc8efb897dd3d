"""max (or min) tr(UᵀWU) over UᵀU = I with a sparse U: the paper's Problem (1)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import ConvergenceWarning, InputError, unknown_name
from stiefelsync.stiefel.checks import check_count, check_power, check_tolerance, generator, is_count, is_integer
from stiefelsync.stiefel.flags import ignoring_kernel_flags
from stiefelsync.stiefel.iterate import WeightedUpdate, iterate, settled
from stiefelsync.stiefel.operators import MatrixLike, SymmetricOperator, as_operator
from stiefelsync.stiefel.result import State, Status, StiefelResult
from stiefelsync.stiefel.rotation import turn
from stiefelsync.stiefel.steps import STEPS, Step, gradient, line_search
from stiefelsync.stiefel.subspace import SUBSPACES, dominant_subspace, next_eigenvalue

__all__ = ["CRITERIA", "sparse_stiefel", "two_stage"]

_QUANTITIES = {"primary": ("objective",), "both": ("objective", "secondary")}
CRITERIA = tuple(_QUANTITIES)
_SENSES = {"max": 1, "min": -1}
# Eigenvalues closer than this, relative to the largest, count as equal.
_EQUAL_VALUES = 1e-6
# Updates after convergence, of which ten mend what they are there for, and rotations without a
# criterion.
_MAX_EXTRA = 100_000


@typed
@ignoring_kernel_flags
def sparse_stiefel(
    W: MatrixLike,
    d: int,
    *,
    p: int = 3,
    step: str = "gradient",
    criterion: str = "primary",
    sense: str = "max",
    U0: ArrayLike | None = None,
    pivoting: bool = False,
    tol: float = 1e-5,
    max_iter: int = 200,
    extra_iter: int = 0,
    rng: np.random.Generator | int | None = 0,
    callback: Callable[[State], object] | None = None,
) -> StiefelResult:
    """Solve max tr(UᵀWU) subject to UᵀU = I, preferring a sparse U among the solutions (Algorithm 1).

    The update is ``U_{t+1} R_{t+1} = W̃ U_t Z(U_t)`` by the unique thin QR factorisation, W̃ the
    symmetric positive semidefinite form of W (Lemma 1). The subspace follows Orthogonal Iteration
    whatever the full-rank Z is (Lemma 3); Z turns the basis within it towards a large g(U) = Σ
    U_ij^p.

    Parameters
    ----------
    W : (m, m)
        Real array, SciPy sparse matrix or array, or `LinearOperator`. float32 stays float32.
    d
        Columns of U, 1 ≤ d < m.
    p
        Power of the secondary objective, an integer ≥ 3.
    step : {"gradient", "line-search", "polar", "none"}
        How Z is chosen: the paper's gradient step of fixed length; the same with backtracking; the
        polar factor of h(U); none, which is plain Orthogonal Iteration.
    criterion : {"primary", "both"}
        Stop when f settles, or when f and g do. "both" needs steps that increase g, so the gradient
        step is then taken with backtracking.
    sense : {"max", "min"}
    U0 : (m, d), optional
        Start, of full rank; standard normal by default, as the authors' program has it.
    pivoting
        Column-pivoted QR as in the authors' program instead of the paper's unique QR.
    tol
        ε: stop when f(U_t)/f(U_{t+1}) ≥ 1 − ε.
    max_iter
        Most updates before the criterion is met.
    extra_iter
        Updates after it is met. On noise-free input f settles before U has turned; ten more mend
        that.
    rng
        Seed or generator of the start and of the estimate of λ_min; equal seeds give equal answers,
        None is different every time.
    callback
        Called with a :class:`State` after each update; a true return value stops the run.

    Returns
    -------
    StiefelResult

    Warns
    -----
    ConvergenceWarning
        Without convergence (the result is returned all the same), and where λ_d and λ_{d+1}
        coincide, so that the dominant subspace is not unique.

    Notes
    -----
    One product with W, O(nnz·d), and O(m·d²) for the rest in each iteration. Memory: a few m×d
    arrays.

    Is U sparse? The published criterion looks at f alone, which often settles before the basis has
    turned: for diag(3, 2, 1, ½) and d = 2 the sparsest basis has g = 2, and runs from eight seeds
    end with g between 0.84 and 1.96. A larger `max_iter` does not change that. ``criterion="both"``
    and `extra_iter` do, and :func:`two_stage` turns any basis to the end by rotations that need no
    product with W: use it where sparsity is what you are after, and
    :func:`rotate` where you have a basis already.

    Examples
    --------
    >>> result = sparse_stiefel(np.diag([3.0, 3.0, 1.0, 0.5]), 2, criterion="both", rng=0)
    >>> round(result.objective, 4), str(result.status.value)
    (6.0, 'converged')
    """
    A, d, rng = _problem(W, d, sense, rng)
    p, tol = check_power(p), check_tolerance(tol)
    max_iter, extra_iter = check_count("max_iter", max_iter), check_count("extra_iter", extra_iter, 0, _MAX_EXTRA)
    if step not in STEPS:
        raise unknown_name("step", step, STEPS)
    if criterion not in CRITERIA:
        raise unknown_name("criterion", criterion, CRITERIA)
    shift = A.positive_shift(rng)
    start = _start(U0, A, d, rng)
    run = iterate(
        start,
        WeightedUpdate(A, shift, start, pivoting),
        step=_step(step, criterion),
        p=p,
        criterion=settled(*_QUANTITIES[criterion], tol=tol),
        max_iter=max_iter,
        extra_iter=extra_iter,
        callback=callback,
    )
    _warn(run, A, rng)
    return _in_sense(run, sense)


@typed
@ignoring_kernel_flags
def two_stage(
    W: MatrixLike,
    d: int,
    *,
    subspace: str = "auto",
    rotation: str = "polar",
    p: int = 3,
    sense: str = "max",
    tol: float = 1e-5,
    max_iter: int = 200,
    rotation_iter: int | str | None = None,
    rng: np.random.Generator | int | None = 0,
    callback: Callable[[State], object] | None = None,
) -> StiefelResult:
    """Find the dominant subspace first and turn its basis towards sparsity afterwards (the paper's appendix).

    Stage one gives V with tr(VᵀWV) maximal; stage two repeats ``QR = Z(U_t), U_{t+1} = U_t Q``
    (equations 2 and 3), an ascent of g over O(d) that needs no product with W.

    Parameters
    ----------
    W, d, p, sense, rng, callback
        As in :func:`sparse_stiefel`; the callback sees stage two.
    subspace : {"auto", "eigh", "eigsh", "orthogonal-iteration", "block-power"}
        Stage one, see :func:`dominant_subspace`.
    rotation : {"polar", "gradient", "line-search", "none"}
        Stage two's step.
    tol
        Relative growth at which each stage stops: f in the first, g in the second.
    rotation_iter : int, "same" or None
        Exactly so many rotations instead of testing g; "same" means as many as stage one took.

    Returns
    -------
    StiefelResult
        Its history and `n_iter` are stage two's.

    Notes
    -----
    Stage two costs O(m·d²) per iteration.

    Examples
    --------
    >>> result = two_stage(np.diag([3.0, 2.0, 1.0, 0.5]), 2, rng=0)
    >>> round(result.objective, 6), round(result.secondary, 6)
    (5.0, 2.0)
    """
    A, d, rng = _problem(W, d, sense, rng)
    p, tol, max_iter = check_power(p), check_tolerance(tol), check_count("max_iter", max_iter)
    if rotation not in STEPS:
        raise unknown_name("rotation", rotation, STEPS)
    if subspace not in ("auto", *SUBSPACES):
        raise unknown_name("subspace method", subspace, ["auto", *SUBSPACES])
    if not (rotation_iter is None or rotation_iter == "same" or is_count(rotation_iter)):
        raise InputError(f'rotation_iter must be a positive whole number, "same" or None, got {rotation_iter!r}')
    if is_count(rotation_iter):
        rotation_iter = check_count("rotation_iter", rotation_iter, 1, _MAX_EXTRA)
    found = dominant_subspace(A, d, method=subspace, tol=tol, max_iter=max_iter, rng=rng)
    count = max(found.n_iter, 1) if rotation_iter == "same" else None if rotation_iter is None else int(rotation_iter)
    run = turn(
        found.V,
        step=STEPS[rotation],
        p=p,
        tol=tol,
        max_iter=max_iter,
        count=count,
        objective=float(found.values.sum()),
        callback=callback,
    )
    if not found.status.converged and run.status.converged:
        run = replace(run, status=found.status)
    _warn(run, A, rng)
    return _in_sense(run, sense)


def _problem(
    W: MatrixLike, d: int, sense: str, rng: np.random.Generator | int | None
) -> tuple[SymmetricOperator, int, np.random.Generator]:
    """Validate what every solver takes and return the operator to maximise."""
    A = as_operator(W)
    if not is_integer(d):
        raise InputError(f"d must be a whole number, got {d!r}")
    if d < 1:
        raise InputError(f"d must be at least 1, got {d}")
    if d > A.size:
        raise InputError(f"d = {d} columns cannot be orthonormal in {A.size} dimensions; d must be below {A.size}")
    if d == A.size:
        raise InputError(f"d = m = {d}: every orthogonal U has the same objective tr(W); choose d below {A.size}")
    if sense not in _SENSES:
        raise unknown_name("sense", sense, _SENSES)
    return (A if sense == "max" else -A), int(d), generator(rng)


def _start(U0: ArrayLike | None, A: SymmetricOperator, d: int, rng: np.random.Generator) -> NDArray[Any]:
    if U0 is None:
        return rng.standard_normal((A.size, d)).astype(A.dtype)
    try:
        given = np.asarray(U0)
    except ValueError:
        raise InputError("U0 must be a matrix of numbers; its rows differ in length") from None
    if not np.issubdtype(given.dtype, np.number) or np.iscomplexobj(given):
        raise InputError(f"U0 must hold real numbers, got {given.dtype}")
    start = np.array(given, dtype=A.dtype, order="C")
    if start.shape != (A.size, d):
        raise InputError(f"U0 must have shape ({A.size}, {d}), got {start.shape}")
    if not np.isfinite(start).all():
        raise InputError("U0 holds NaN or infinite entries")
    rank = int(np.linalg.matrix_rank(start))
    if rank < d:
        raise InputError(f"U0 has rank {rank}, but its {d} columns must be linearly independent")
    return start


def _step(step: str, criterion: str) -> Step:
    chosen = STEPS[step]
    return line_search if criterion == "both" and chosen is gradient else chosen


def _in_sense(run: StiefelResult, sense: str) -> StiefelResult:
    if sense == "max":
        return run
    history = replace(run.history, objective=-run.history.objective)
    return replace(run, objective=-run.objective, history=history)


def _warn(run: StiefelResult, A: SymmetricOperator, rng: np.random.Generator) -> None:
    if run.status in (Status.BREAKDOWN, Status.MAX_ITER):
        warnings.warn(str(run.status), ConvergenceWarning, stacklevel=3)
    if run.status is Status.BREAKDOWN:
        return
    inside = np.linalg.eigvalsh(run.U.T @ (A @ run.U))
    outside, _ = next_eigenvalue(A, run.U, rng)
    if abs(inside[0] - outside) <= _EQUAL_VALUES * abs(inside).max():
        d = run.U.shape[1]
        warnings.warn(
            f"no separated eigenspace: eigenvalue {d} is {A.sign * float(inside[0]):.6g} and eigenvalue {d + 1} is"
            f" {A.sign * outside:.6g}; the dominant subspace is not unique, choose another d",
            ConvergenceWarning,
            stacklevel=3,
        )
