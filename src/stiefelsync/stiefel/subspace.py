"""The dominant subspace alone: four ways to a basis of the d largest eigenvalues' eigenspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.linalg import ArpackError, eigsh

from stiefelsync.errors import InputError, unknown_name
from stiefelsync.stiefel.block import POWERS, block_iteration
from stiefelsync.stiefel.checks import check_count, check_tolerance, generator, is_integer
from stiefelsync.stiefel.flags import ignoring_kernel_flags
from stiefelsync.stiefel.iterate import WeightedUpdate, iterate, settled
from stiefelsync.stiefel.lanczos import extreme_pair
from stiefelsync.stiefel.operators import MatrixLike, SymmetricOperator, as_operator
from stiefelsync.stiefel.orthonormal import orthonormalise
from stiefelsync.stiefel.result import Subspace
from stiefelsync.stiefel.sizes import MAX_DENSE_ROWS
from stiefelsync.stiefel.steps import none

__all__ = ["SUBSPACES", "Subspace", "arpack", "dominant_subspace", "leading_vectors", "next_eigenvalue"]

# ARPACK goes on from a random vector where the Krylov space is exhausted; SciPy 1.17 can draw it
# from our generator.
_DRAWS = "rng" in signature(eigsh).parameters


@ignoring_kernel_flags
def dominant_subspace(
    W: MatrixLike | SymmetricOperator,
    d: int,
    *,
    method: str = "auto",
    tol: float = 1e-5,
    max_iter: int = 200,
    rng: np.random.Generator | int | None = 0,
) -> Subspace:
    """Return a basis V of the dominant subspace, a maximiser of tr(VᵀWV) over VᵀV = I (Lemma 2).

    Parameters
    ----------
    W : (m, m)
        As for :func:`sparse_stiefel`; symmetrised.
    method : {"auto", "eigh", "eigsh", "orthogonal-iteration", "block-power"}
        "eigh" forms a dense m×m matrix, exact; "eigsh" is Lanczos with 4d vectors and a check for
        lost copies of multiple eigenvalues; "orthogonal-iteration" is the paper's stage one;
        "block-power" adds oversampling and Rayleigh–Ritz, the quickest to a few digits. "auto":
        eigh up to m = 2000, else eigsh.
    tol, max_iter
        For the two iterations: relative growth of the objective at which to stop, and the most
        products with W.
    rng
        Seed or generator of the random starts; None is different every time.

    Examples
    --------
    >>> dominant_subspace(np.diag([5.0, 4.0, 1.0]), 2).values.tolist()
    [5.0, 4.0]
    """
    operator = as_operator(W)
    if method == "auto":
        method = "eigh" if operator.size <= MAX_DENSE_ROWS else "eigsh"
    if method not in SUBSPACES:
        raise unknown_name("subspace method", method, ["auto", *SUBSPACES])
    if not is_integer(d) or not 1 <= d <= operator.size:
        raise InputError(f"d must be a whole number from 1 to {operator.size}, got {d!r}")
    tol, max_iter = check_tolerance(tol), check_count("max_iter", max_iter)
    return SUBSPACES[method](operator, int(d), tol, max_iter, generator(rng))


def arpack(W: Any, d: int, *, ncv: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return d eigenvectors, shape (m, d), and their values, descending, as plain ARPACK has them from `ncv` vectors.

    Parameters
    ----------
    W : (m, m)
        Symmetric sparse array or `LinearOperator`.

    Examples
    --------
    >>> from scipy.sparse import diags_array
    >>> arpack(diags_array(np.arange(9.0)), 2, ncv=6, rng=np.random.default_rng(0))[1].round(9).tolist()
    [8.0, 7.0]
    """
    start = rng.standard_normal(W.shape[0]).astype(W.dtype)
    draws = {"rng": rng} if _DRAWS else {}
    values, V = eigsh(W, d, which="LA", v0=start, ncv=ncv, tol=0, **draws)
    order = np.argsort(values)[::-1]
    return np.ascontiguousarray(V[:, order]), values[order]


def leading_vectors(N: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """Return the d leading eigenvectors of a dense symmetric N, shape (m, m), the largest eigenvalue's first; (m, d).

    Notes
    -----
    O(m³).

    Examples
    --------
    >>> abs(leading_vectors(np.diag([1.0, 5.0, 3.0, 0.0, 2.0, 4.0]), 2)).round(9).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """
    return np.ascontiguousarray(np.linalg.eigh(N)[1][:, : -d - 1 : -1])


def next_eigenvalue(W: SymmetricOperator, V: NDArray[Any], rng: np.random.Generator) -> tuple[float, NDArray[Any]]:
    """Return the largest eigenvalue of W on the complement of im(V), shape (m, d), and its vector, (m, 1)."""

    def deflated(x: NDArray[Any]) -> NDArray[Any]:
        x = W @ (x - V @ (V.T @ x))
        return np.asarray(x - V @ (V.T @ x))

    m, d = V.shape
    start = rng.standard_normal((m, 1)).astype(W.dtype)
    start -= V @ (V.T @ start)
    if d == m - 1:
        x = start / np.linalg.norm(start)
        return float(np.vdot(x, W @ x)), x
    value, x, _ = extreme_pair(deflated, start, largest=True, max_steps=min(100, m - d))
    return value, x


def _rayleigh_ritz(W: SymmetricOperator, V: NDArray[Any], d: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the d best vectors within im(V) and their values, descending."""
    values, Y = np.linalg.eigh(V.T @ (W @ V))
    return np.ascontiguousarray(V @ Y[:, ::-1][:, :d]), values[::-1][:d]


def _eigh(W: SymmetricOperator, d: int, tol: float, max_iter: int, rng: np.random.Generator) -> Subspace:
    m = W.size
    dense = W.dense()
    values, vectors = linalg.eigh(dense, subset_by_index=(m - d, m - 1), overwrite_a=True, check_finite=False)
    return Subspace(np.ascontiguousarray(vectors[:, ::-1]), values[::-1], 0)


def _eigsh(W: SymmetricOperator, d: int, tol: float, max_iter: int, rng: np.random.Generator) -> Subspace:
    ncv = min(W.size, max(4 * d, 2 * d + 20))
    if ncv <= d + 1:
        return _eigh(W, d, tol, max_iter, rng)
    try:
        V, values = arpack(W.as_linear_operator(), d, ncv=ncv, rng=rng)
    except ArpackError:
        return _block_power(W, d, 1e-12, 10 * max_iter, rng)
    V = orthonormalise(V)[0]
    # Lanczos can lose copies of a multiple eigenvalue: whatever is left outside must not exceed
    # what was found.
    for _ in range(d):
        outside, x = next_eigenvalue(W, V, rng)
        if not outside > values[-1] + 1e-6 * abs(values[0]):
            break
        V, values = _rayleigh_ritz(W, orthonormalise(np.hstack([V, x]))[0], d)
    return Subspace(V, values, 0)


def _orthogonal_iteration(
    W: SymmetricOperator, d: int, tol: float, max_iter: int, rng: np.random.Generator
) -> Subspace:
    U0 = rng.standard_normal((W.size, d)).astype(W.dtype)
    update = WeightedUpdate(W, W.positive_shift(rng), U0)
    run = iterate(U0, update, step=none, p=3, criterion=settled("objective", tol=tol), max_iter=max_iter)
    values = np.linalg.eigvalsh(run.U.T @ (W @ run.U))[::-1]
    return Subspace(run.U, values, run.n_iter, run.status)


def _block_power(W: SymmetricOperator, d: int, tol: float, max_iter: int, rng: np.random.Generator) -> Subspace:
    width = min(W.size, d + max(5, d // 5))
    shift = W.positive_shift(rng)
    V = rng.standard_normal((W.size, width)).astype(W.dtype)
    N = W.shifted(shift)
    found = block_iteration(N.__matmul__, N @ V, d, filtered=POWERS, tol=tol, max_products=max_iter)
    return replace(found, values=found.values - W.dtype.type(shift))


_Finder: TypeAlias = Callable[[SymmetricOperator, int, float, int, np.random.Generator], Subspace]
SUBSPACES: dict[str, _Finder] = {
    "eigh": _eigh,
    "eigsh": _eigsh,
    "orthogonal-iteration": _orthogonal_iteration,
    "block-power": _block_power,
}
