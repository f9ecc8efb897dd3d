"""The two-stage family: find the dominant subspace, then turn its basis.

One table of subspace × rotation.

==================== ====================== ===========================================
method               subspace               rotation
==================== ====================== ===========================================
orthogonal-iteration Orthogonal Iteration   none
two-stage            Orthogonal Iteration   as many of the paper's fixed steps
two-stage-bt         Orthogonal Iteration   the paper's step with backtracking, to the end
orthit-manopt        Orthogonal Iteration   trust regions on O(d), by pymanopt
eig-manopt           dense ``eigh``         trust regions
eigs-manopt          Lanczos                trust regions
==================== ====================== ===========================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import History, Status, Subspace
from stiefelsync.stiefel.rotation import turn
from stiefelsync.stiefel.secondary import secondary
from stiefelsync.stiefel.steps import gradient, line_search
from stiefelsync.stiefel.subspace import arpack, dominant_subspace
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Run, Stopwatch, register
from stiefelsync.sync.methods._stages import finish, relay
from stiefelsync.sync.methods._trust_regions import rotate_by_trust_regions
from stiefelsync.sync.options import dtype_option, option

__all__ = ["FAMILY", "Member", "TwoStageDetails"]

_PAPER = (
    "Bernard, Cremers, Thunberg: Sparse Quadratic Optimisation over the Stiefel Manifold, NeurIPS 2021, appendix B.1"
)
_MANOPT = "; Absil, Baker, Gallivan 2007; Townsend, Koep, Weichwald 2016 (pymanopt)"
_ITERATION = "O(nnz·d + m·d²) per iteration"
_INNER = "then O(m·d²) per inner iteration"
_TOL = "Relative growth of the primary objective at which Orthogonal Iteration stops."
_MAX_ITER = "Most iterations of Orthogonal Iteration."
_TRUST_MAX_ITER = "Most outer iterations of the trust-region method."
_P = "Power of the secondary objective g(U) = Σ U_ij^p, an integer of at least 3."


@dataclass(frozen=True)
class IterationOptions:
    """Options of Orthogonal Iteration alone."""

    tol: float = option(1e-5, _TOL, above=0)
    max_iter: int = option(200, _MAX_ITER, least=1)
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True)
class FixedOptions:
    """Options of two-stage."""

    tol: float = option(1e-5, _TOL, above=0)
    max_iter: int = option(200, _MAX_ITER, least=1)
    p: int = option(3, _P, least=3)
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True)
class BacktrackingOptions:
    """Options of two-stage-bt."""

    tol: float = option(1e-5, "Relative growth of f at which stage one stops, and of g for stage two.", above=0)
    max_iter: int = option(200, _MAX_ITER, least=1)
    max_rotations: int = option(1000, "Most rotations of stage two.", least=1)
    p: int = option(3, _P, least=3)
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True)
class EigOptions:
    """Options of eig-manopt."""

    p: int = option(3, _P, least=3)
    max_iter: int = option(500, _TRUST_MAX_ITER, least=1)
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True)
class EigsOptions:
    """Options of eigs-manopt."""

    p: int = option(3, _P, least=3)
    max_iter: int = option(500, _TRUST_MAX_ITER, least=1)
    ncv: int | None = option(
        None,
        "Given: plain ARPACK with so many Lanczos vectors (more than the universe size) and no check of what it"
        " returns, for experiments with copies of multiple eigenvalues that it loses.",
        kind=int,
        least=1,
    )
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True)
class OrthItOptions:
    """Options of orthit-manopt."""

    p: int = option(3, _P, least=3)
    max_iter: int = option(500, _TRUST_MAX_ITER, least=1)
    tol: float = option(1e-5, _TOL, above=0)
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True)
class Turned:
    """What a rotation of stage two returns: U, shape (m, d), how often it turned, how it ended."""

    U: NDArray[Any]
    n_iter: int = 0
    status: Status = Status.DONE
    history: History | None = None


FindSubspace = Callable[[Any, int, Any, np.random.Generator], Subspace]
"""(W, d, options, rng) ↦ the dominant subspace."""
TurnBasis = Callable[[Subspace, Any, np.random.Generator, Callback | None], Turned]
"""(subspace, options, rng, callback) ↦ its basis, turned."""


def _orthogonal_iteration(W: Any, d: int, options: Any, rng: np.random.Generator) -> Subspace:
    # For the trust-region methods `max_iter` is stage two's.
    limit = options.max_iter if isinstance(options, IterationOptions | FixedOptions | BacktrackingOptions) else 200
    return dominant_subspace(W, d, method="orthogonal-iteration", tol=options.tol, max_iter=limit, rng=rng)


def _eigh(W: Any, d: int, options: Any, rng: np.random.Generator) -> Subspace:
    return dominant_subspace(W, d, method="eigh", rng=rng)


def _eigsh(W: Any, d: int, options: Any, rng: np.random.Generator) -> Subspace:
    if options.ncv is None:
        return dominant_subspace(W, d, method="eigsh", rng=rng)
    if not d < options.ncv <= W.shape[0]:
        raise InputError(f"ncv must lie above the universe size, {d}, and be at most {W.shape[0]}; got {options.ncv}")
    return Subspace(*arpack(W, d, ncv=options.ncv, rng=rng))


def _no_rotation(found: Subspace, options: Any, rng: np.random.Generator, callback: Callback | None) -> Turned:
    return Turned(found.V)


def _fixed_steps(found: Subspace, options: Any, rng: np.random.Generator, callback: Callback | None) -> Turned:
    run = turn(
        found.V, step=gradient, p=options.p, tol=options.tol, max_iter=found.n_iter, count=found.n_iter,
        objective=float(found.values.sum()), callback=relay(callback, "rotation"),
    )  # fmt: skip
    return Turned(run.U, run.n_iter, run.status, run.history)


def _backtracking(found: Subspace, options: Any, rng: np.random.Generator, callback: Callback | None) -> Turned:
    run = turn(
        found.V, step=line_search, p=options.p, tol=options.tol, max_iter=options.max_rotations,
        objective=float(found.values.sum()), callback=relay(callback, "rotation"),
    )  # fmt: skip
    return Turned(run.U, run.n_iter, run.status, run.history)


def _trust_regions(found: Subspace, options: Any, rng: np.random.Generator, callback: Callback | None) -> Turned:
    if callback is not None and callback(Progress("rotation", 0)):
        return Turned(found.V, status=Status.STOPPED)
    U, n_iter, status = rotate_by_trust_regions(found.V, rng=rng, p=options.p, max_iter=options.max_iter)
    return Turned(U, n_iter, status)


@dataclass(frozen=True)
class Member:
    """One row of the table: a subspace, a rotation, and what a user should know when choosing."""

    name: str
    subspace: FindSubspace
    rotation: TurnBasis
    settings: type
    summary: str
    cost: str
    reference: str
    choose: str
    extra: str | None = None


FAMILY = (
    Member(
        "orthogonal-iteration", _orthogonal_iteration, _no_rotation, IterationOptions,
        "plain Orthogonal Iteration and projection, without any rotation", _ITERATION,
        "Golub, Van Loan: Matrix computations, 2013, section 8.2.4",
        "only to see what sparsity is worth: an arbitrary basis of the subspace has nothing to project",
    ),
    Member(
        "two-stage", _orthogonal_iteration, _fixed_steps, FixedOptions,
        "Orthogonal Iteration, then as many of the paper's rotation steps",
        "O(nnz·d + m·d²) per iteration of stage one, O(m·d²) per iteration of stage two", f"{_PAPER} (Ours/2-stage)",
        "for comparison with sparse-stiefel, which it resembles in cost and answer",
    ),
    Member(
        "two-stage-bt", _orthogonal_iteration, _backtracking, BacktrackingOptions,
        "Orthogonal Iteration, then the paper's rotation with backtracking until g settles",
        "as two-stage, with a few evaluations of g, O(m·d²) each, per rotation step", f"{_PAPER} (Ours/2-stage/bt)",
        "when g should be climbed to the end by gradient steps; slower than two-stage",
    ),
    Member(
        "orthit-manopt", _orthogonal_iteration, _trust_regions, OrthItOptions,
        "Orthogonal Iteration, then trust regions on O(d) for the secondary objective", f"{_ITERATION}, {_INNER}",
        f"{_PAPER} (OrthIt+ManOpt){_MANOPT}", "for comparison with two-stage, whose second stage it replaces", "rivals",
    ),
    Member(
        "eig-manopt", _eigh, _trust_regions, EigOptions,
        "a dense eigendecomposition, then trust regions on O(d) for the secondary objective",
        f"O(m³) with dense m×m arrays, {_INNER}", f"{_PAPER} (Eig+ManOpt){_MANOPT}",
        "when g must be maximised to the last digit and m is small", "rivals",
    ),
    Member(
        "eigs-manopt", _eigsh, _trust_regions, EigsOptions,
        "Lanczos eigenvectors, then trust regions on O(d) for the secondary objective",
        f"O(nnz·d + m·d²) per restart, {_INNER}", f"{_PAPER} (Eigs+ManOpt){_MANOPT}",
        "when g must be maximised to the last digit and m is large", "rivals",
    ),
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class TwoStageDetails(Details):
    """What the two-stage methods tell.

    Attributes
    ----------
    secondary
        g(U) = Σ U_ij^p of what was projected.
    eigenvalues : (d,)
        Rayleigh–Ritz values of the subspace, descending.
    """

    secondary: float
    eigenvalues: NDArray[Any]


def _enter(member: Member) -> Run:
    """Register one row of the table."""
    # long because the docstring of all these methods stands inside

    def run(
        matchings: Matchings,
        universe: int,
        options: Any,
        /,
        *,
        rng: np.random.Generator,
        callback: Callback | None = None,
    ) -> Outcome:
        """Find a basis V of the dominant subspace of W, turn it within the subspace, and project it.

        Stage one maximises ``tr(VᵀWV)`` over VᵀV = I (Lemma 2 of the paper); stage two raises
        ``g(VQ) = Σ (VQ)_ij^p`` over orthogonal Q (equations 2 and 3), or leaves V as it is.

        Notes
        -----
        Cycle-consistent. "eig-manopt" is inherently dense: W is made an m×m array; no other makes
        one. The paper finds that Eigs+ManOpt "performs worse due to numerical reasons" on the house
        sequence. A Krylov space started from one vector holds a multiple eigenvalue once in exact
        arithmetic; rounding brings the other copies in late, and ARPACK may stop before. Then one
        of the d eigenvectors is wrong and no rotation mends it: with the default number of Lanczos
        vectors on 9 of 60 shuffled house problems, with four times d on 6
        (docs/evidence/house-rivals.md). "eigs-manopt" also checks that no larger eigenvalue is left
        outside, and then agrees with "eig-manopt".
        """
        watch = Stopwatch()
        with watch("subspace"):
            d = min(universe, matchings.n_points)
            found = member.subspace(matchings.to_matrix(options.dtype), d, options, rng)
        with watch("rotation"):
            turned = member.rotation(found, options, rng, callback)
        # A stage that came to its own end says nothing of the other; nothing was iterated means
        # done.
        status = turned.status if turned.status is not Status.DONE else found.status
        if not found.status.converged and turned.status.converged:
            status = found.status
        return finish(
            turned.U, matchings, universe, watch, status=status, n_iter=found.n_iter + turned.n_iter,
            history=turned.history,
            details=TwoStageDetails(secondary(turned.U, getattr(options, "p", 3)), found.values),
        )  # fmt: skip

    run.__qualname__ = f"run[{member.name}]"
    return register(
        member.name, summary=member.summary, consistent=True, cost=member.cost, reference=member.reference,
        choose=member.choose, extra=member.extra, options=member.settings,
    )(run)  # fmt: skip


for _member in FAMILY:
    _enter(_member)
