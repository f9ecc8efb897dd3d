"""The block iteration: a few vectors more than wanted, a polynomial of the matrix, Rayleigh–Ritz, and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.stiefel.orthonormal import orthonormal_basis, turned, whitening
from stiefelsync.stiefel.product import Product
from stiefelsync.stiefel.result import Status, Subspace
from stiefelsync.stiefel.sizes import some_rows

__all__ = ["CHEBYSHEV", "POWERS", "Filter", "block_iteration", "chebyshev"]

_CHEBYSHEV_DEGREE = 4
# Nothing below this share of the largest Ritz value is wanted from a normalised matrix, whose
# wanted eigenvalues are near one; it keeps a poor first guess of the cut, and with it single
# precision, from harm.
_LEAST_EDGE = 0.3
# Products from one Rayleigh–Ritz step, which costs as much as two of them, to the next.
_POWERS = 3


@dataclass(frozen=True)
class Filter:
    """A polynomial of the matrix that is largest on the wanted eigenvalues.

    Attributes
    ----------
    apply
        (N, V, NV, Ritz values) ↦ q(N) V, where N is a function, V : (m, width).
    products
        Products with N that it takes.
    """

    apply: Callable[[Product, NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[Any]]
    products: int


def block_iteration(
    multiply: Product,
    V: NDArray[Any],
    d: int,
    *,
    filtered: Filter,
    tol: float,
    max_products: int,
    at_once: bool = False,
) -> Subspace:
    """Return the Ritz vectors and values of the d largest eigenvalues of a symmetric N.

    It ends when the sum of the d Ritz values grew less than `tol`, relatively, or promises to: what
    it still lacks is about Σ ‖N v − θ v‖² / (θ − θ_last).

    Parameters
    ----------
    multiply
        U ↦ N U, and (U, onto, scale) ↦ scale·N U − onto in the memory of `onto`.
    V : (m, width)
        The block to start from, width ≥ d, multiplied by N once already; its memory is used.
    filtered
        The polynomial applied between two Rayleigh–Ritz steps: `POWERS` or `CHEBYSHEV`.
    at_once
        Apply it before the first of them, too. That spares one, for a filter that needs no Ritz
        values and columns that stay well apart when filtered: what they span is the same.

    Notes
    -----
    O(nnz·width) per product and O(m·width²) per Rayleigh–Ritz step. A block finds all copies of
    multiple eigenvalues.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from stiefelsync.stiefel.product import sparse_product
    >>> N = sparse_product(csr_array(np.diag([1.0, 0.9, 0.2, 0.1, -0.1, 0.0])))
    >>> V = np.random.default_rng(0).standard_normal((6, 4))
    >>> found = block_iteration(N, N(V), 2, filtered=CHEBYSHEV, tol=1e-6, max_products=40)
    >>> np.abs(found.V).round(3)[:3].tolist(), found.values.round(6).tolist()
    ([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [1.0, 0.9])
    """
    before, products, fresh = -np.inf, 1, not at_once
    if at_once:
        V = filtered.apply(multiply, V, multiply(V), np.zeros(1))
        products += 1 + filtered.products
    while True:
        # Columns are made orthonormal and turned to Ritz vectors in one go: V T, where that is
        # accurate enough.
        T = whitening(V)
        if T is None:
            V /= np.maximum(np.linalg.norm(V, axis=0), np.finfo(V.dtype).tiny)
            V, T = orthonormal_basis(V), np.eye(V.shape[1], dtype=V.dtype)
        NV = multiply(V)
        values, Y = np.linalg.eigh(T.T @ (V.T @ NV) @ T)
        values, Y = values[::-1], np.ascontiguousarray(T @ Y[:, ::-1])
        total, products = float(values[:d].sum()), products + 1
        settled = total - before <= tol * abs(total)
        if settled or products + filtered.products + 1 > max_products:
            del NV
            return Subspace(V @ Y[:, :d], values[:d], products, Status.CONVERGED if settled else Status.MAX_ITER)
        # Ritz vectors keep the columns of very different eigenvalues apart, so that single
        # precision suffices.
        V, NV = turned(V, Y), turned(NV, Y)
        # Unfiltered, a basis that suited other weights promises less than it would gain.
        if not fresh and _promised(V, NV, values, d) <= tol * abs(total):
            del NV
            return Subspace(np.ascontiguousarray(V[:, :d]), values[:d], products, Status.CONVERGED)
        V = filtered.apply(multiply, V, NV, values)
        del NV
        before, products, fresh = total, products + filtered.products, False


def _promised(V: NDArray[Any], NV: NDArray[Any], values: NDArray[Any], d: int) -> float:
    """Return about what the sum of the d Ritz values still lacks."""
    lacking: Any = np.zeros(d)
    for rows in some_rows(len(V)):
        lacking += np.sum((NV[rows, :d] - values[:d] * V[rows, :d]) ** 2, axis=0)
    return float(np.sum(lacking / np.maximum(values[:d] - values[-1], np.finfo(V.dtype).eps)))


def chebyshev(least: float) -> Filter:
    """Return the filter T_4(N / edge), edge the smallest Ritz value of the block but no less than `least`.

    Examples
    --------
    >>> chebyshev(0.2).products
    3
    """

    def apply(multiply: Product, V: NDArray[Any], NV: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        return _chebyshev(multiply, V, NV, max(float(values[-1]), least))

    return Filter(apply, _CHEBYSHEV_DEGREE - 1)


def _relative(multiply: Product, V: NDArray[Any], NV: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return T_4(N / edge) V, edge the smallest Ritz value of the block, in the memory of V or NV."""
    return _chebyshev(multiply, V, NV, max(float(values[-1]), _LEAST_EDGE * float(values[0]), 1e-3))


def _chebyshev(multiply: Product, V: NDArray[Any], NV: NDArray[Any], cut: float) -> NDArray[Any]:
    """Return T_4(N / cut) V in the memory of V or NV."""
    edge = V.dtype.type(cut)
    previous: NDArray[Any] = V
    current: NDArray[Any] = np.divide(NV, edge, out=NV)
    for _ in range(_CHEBYSHEV_DEGREE - 1):
        previous, current = current, multiply(current, onto=previous, scale=2 / edge)
    return current


def _powers(multiply: Product, V: NDArray[Any], NV: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return N³ V, scaled."""
    scale = V.dtype.type(1 / max(float(abs(values).max()), float(np.finfo(V.dtype).tiny)))
    for _ in range(_POWERS - 1):
        NV = multiply(NV)
        NV *= scale
    return NV


CHEBYSHEV = Filter(_relative, _CHEBYSHEV_DEGREE - 1)
"""Damps a spectrum symmetric about zero below the cut: for wanted eigenvalues close to each other, as of D^-½WD^-½."""
POWERS = Filter(_powers, _POWERS - 1)
"""For any positive semidefinite N, however far apart its wanted eigenvalues are."""
