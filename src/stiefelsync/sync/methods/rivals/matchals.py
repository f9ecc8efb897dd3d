"""MatchALS (Zhou, Zhu and Daniilidis 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Stopwatch, register
from stiefelsync.sync.options import dtype_option, option

__all__ = ["MatchALSDetails", "project_capped", "run"]

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Options:
    """Options of matchals."""

    rank: int | None = option(None, "Columns of A and B; 2d by default, as the authors advise.", kind=int, least=1)
    alpha: float = option(50.0, "Weight of the nuclear norm.", least=0)
    beta: float = option(0.1, "Weight of the l1 norm.", least=0)
    selection: float = option(
        1.0,
        "Share of points that are selected: the diagonal of Z is projected onto 0 ≤ x ≤ 1, Σx = selection·m; 1 fixes"
        " the diagonal at 1. (The paper's comparison on the house sequence has 0.7 and at most 100 iterations.)",
        above=0,
    )
    max_iter: int = option(1000, "Most iterations.", least=1)
    tol: float = option(5e-4, "What both residuals must fall below before that.", above=0)
    balance: float = option(
        10.0, "Factor between the two residuals beyond which the penalty doubles or halves.", above=0
    )
    A0: NDArray[Any] | None = option(None, "Where A starts, shape (m, rank); uniform in [0, 1] by default.")
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True, eq=False, repr=False)
class MatchALSDetails(Details):
    """What MatchALS tells.

    Attributes
    ----------
    A, B : (m, r)
        The factors of X = ABᵀ.
    mu
        The penalty at the end.
    second_partners
        Matches of X left out because the answer is one-to-one.
    """

    A: Floats
    B: Floats
    mu: float
    second_partners: int


@register(
    "matchals",
    summary="low-rank ADMM with entries kept in [0, 1]",
    consistent=False,
    cost="O(m²·rank) per iteration; inherently two dense m×m arrays",
    reference="Zhou, Zhu, Daniilidis: Multi-image matching via fast alternating minimization, ICCV 2015",
    choose="for small partial problems (m below a few thousand) with few objects, if consistency is not needed",
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
    """Minimise ``⟨β − W, X⟩ + α‖X‖_*`` over X in [0, 1] with zero within-object blocks, as ``X = ABᵀ``, by ADMM.

    With Z the copy of X that obeys the constraints and y the scaled dual variable, one iteration
    is: ridge regressions of ``T = Z − y + (W − β)/μ`` for B, then A, with weight α/μ; ``Z`` =
    projection of ``ABᵀ + y``; ``y += ABᵀ − Z``. The penalty μ starts at 64 and doubles or halves
    when the residuals ``‖X − Z‖_F/m`` and ``μ‖X − X_old‖_F/m`` differ by more than a factor
    `balance`. Matches are the entries of the symmetrised X above ½; where those are not one-to-one
    the larger stays.

    Notes
    -----
    Not cycle-consistent. :class:`MatchALSDetails` holds A and B. Two dense m×m arrays are inherent
    in the method: the constraint set is not low-rank.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0), alpha=1.0).matchings == problem
    True
    """
    watch = Stopwatch()
    m, offsets = matchings.n_points, matchings.offsets.tolist()
    spans = [(a, b) for a, b in pairwise(offsets) if a < b]
    r = 2 * universe if options.rank is None else options.rank
    A0 = options.A0
    if A0 is not None and np.shape(A0) != (m, r):
        raise InputError(f"A0 has shape {np.shape(A0)}; {m} points and rank {r} need ({m}, {r})")
    if not spans:
        return Outcome(matchings=matchings, status=Status.CONVERGED, timings={"iterations": 0.0})
    with watch("set up"):
        W = matchings.to_matrix(options.dtype)
        W.setdiag(0)
        W.eliminate_zeros()
        A = (rng.random((m, r)) if A0 is None else np.asarray(A0)).astype(W.dtype)
    with watch("iterations"):
        A, B, mu, n_iter, status = _iterate(W, A, spans, options, callback)
    with watch("rounding"):
        result = _round(A, B, matchings, spans)
    return Outcome(
        matchings=result,
        status=status,
        n_iter=n_iter,
        timings=watch.seconds,
        details=MatchALSDetails(A, B, mu, 0 if result.repair is None else result.repair.second_partners),
    )


def _iterate(
    W: Any, A: Floats, spans: list[tuple[int, int]], options: Options, callback: Callback | None
) -> tuple[Floats, Floats, float, int, Status]:
    """Run ADMM from A; return A, B, the penalty, the number of iterations and how they ended."""
    m, alpha, beta, balance = len(A), options.alpha, options.beta, options.balance
    B, y, ridge = np.zeros_like(A), np.zeros((m, m), dtype=W.dtype), np.eye(A.shape[1], dtype=W.dtype)
    S = W.toarray()  # Z − y
    mu, n_iter, status = 64.0, 0, Status.MAX_ITER
    for n_iter in range(1, options.max_iter + 1):
        A_old, B_old = A, B
        B = np.linalg.solve(A.T @ A + alpha / mu * ridge, (S.T @ A + (W @ A - beta * A.sum(axis=0)) / mu).T).T
        A = np.linalg.solve(B.T @ B + alpha / mu * ridge, (S @ B + (W @ B - beta * B.sum(axis=0)) / mu).T).T
        diagonal = np.einsum("ij,ij->i", A, B) + y.diagonal()
        diagonal = np.ones(m) if options.selection >= 1 else project_capped(diagonal, options.selection * m)
        primal = _update_copies(A, B, S, y, spans, diagonal) / m
        dual = mu * (_change(A, B, A_old, B_old) if n_iter > 1 else _first_change(A, B, W)) / m
        if max(primal, dual) < options.tol:
            status = Status.CONVERGED
            break
        if callback is not None and callback(Progress("iterations", n_iter, options.max_iter)):
            status = Status.STOPPED
            break
        factor = 2.0 if primal > balance * dual else 0.5 if dual > balance * primal else 1.0
        if factor != 1:
            mu *= factor
            S += (1 - 1 / factor) * y
            y /= factor
    return A, B, mu, n_iter, status


def _update_copies(A: Floats, B: Floats, S: Floats, y: Floats, spans: list[tuple[int, int]], diagonal: Floats) -> float:
    """Update Z and y in place, one object's rows at a time, and return ‖X − Z‖_F.

    S becomes Z − y.
    """
    total = 0.0
    for a, b in spans:
        Z = A[a:b] @ B.T
        X = Z.copy()
        Z += y[a:b]
        y[a:b] = Z
        np.clip(Z, 0, 1, out=Z)
        Z[:, a:b] = np.diag(diagonal[a:b])
        y[a:b] -= Z
        np.subtract(Z, y[a:b], out=S[a:b])
        X -= Z
        total += float(np.vdot(X, X))
    return float(np.sqrt(total))


def _change(A: Floats, B: Floats, C: Floats, D: Floats) -> float:
    """Return ‖ABᵀ − CDᵀ‖_F from 2r×2r Gram matrices, in O(m·r²), as ‖(A − C)Bᵀ + C(B − D)ᵀ‖_F: no digits cancel."""
    left, right = np.hstack([A - C, C]), np.hstack([B, B - D])
    return float(np.sqrt(max(np.vdot(left.T @ left, right.T @ right), 0.0)))


def _first_change(A: Floats, B: Floats, W: Any) -> float:
    """Return ‖ABᵀ − W‖_F for sparse W, which is what X starts from."""
    cross = float(np.vdot(A, W @ B))
    square = float(np.vdot(A.T @ A, B.T @ B)) - 2 * cross + float(np.vdot(W.data, W.data))
    return float(np.sqrt(max(square, 0.0)))


def _round(A: Floats, B: Floats, matchings: Matchings, spans: list[tuple[int, int]]) -> Matchings:
    """Return the matches where the symmetrised ABᵀ exceeds ½, one object's rows at a time."""
    ends, values = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    for a, b in spans:
        X = (A[a:b] @ B[b:].T + B[a:b] @ A[b:].T) / 2
        row, col = np.nonzero(X > 0.5)
        ends.append(np.stack([row + a, col + b], axis=1))
        values.append(X[row, col])
    return Matchings.from_endpoints(
        np.concatenate(ends), matchings.sizes, weights=np.concatenate(values), one_to_many="repair",
        names=matchings.names, coordinates=matchings.coordinates,
    ).with_weights(None)  # fmt: skip


def project_capped(x: Floats, total: float) -> Floats:
    """Project x, shape (n,), onto ``{z : 0 ≤ z ≤ 1, Σz = total}``, 0 ≤ total ≤ n.

    The projection is ``clip(x − t, 0, 1)`` for the t at which the sum is right; that sum is
    piecewise linear in t and falls, so t lies between two neighbouring kinks. O(n log n).

    Examples
    --------
    >>> project_capped(np.array([2.0, 0.5, 0.25]), 1.5).tolist()
    [1.0, 0.375, 0.125]
    """
    kinks = np.sort(np.concatenate([x, x - 1]))
    low, high = 0, len(kinks) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if np.clip(x - kinks[middle], 0, 1).sum() > total else (low, middle)
    at_low, at_high = (float(np.clip(x - kinks[i], 0, 1).sum()) for i in (low, high))
    share = 0.0 if at_low == at_high else (at_low - total) / (at_low - at_high)
    return np.asarray(np.clip(x - kinks[low] - share * (kinks[high] - kinks[low]), 0, 1))
