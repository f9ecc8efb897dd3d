"""Leading eigenpairs of a problem's matrix W, shared by the spectral methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.stiefel.operators import as_operator
from stiefelsync.stiefel.sizes import MAX_EXACT_ROWS
from stiefelsync.stiefel.subspace import Subspace, dominant_subspace

__all__ = ["eigenpairs", "is_full", "pad_columns", "signs"]

Floats = NDArray[np.floating[Any]]


def eigenpairs(
    W: Any, d: int, *, rng: np.random.Generator, method: str = "auto", magnitude: bool = False
) -> tuple[Floats, Floats]:
    """Return the d leading eigenvectors and eigenvalues of a symmetric W.

    Parameters
    ----------
    W : (m, m) sparse
        float32 or float64; what is returned is of its type.
    d
        How many; when W has fewer rows, only m are returned.
    method
        As for :func:`dominant_subspace`, but "auto" decomposes a dense W up to 500 rows only:
        beyond, the Lanczos method with its check for lost copies of multiple eigenvalues is as
        exact and faster.
    magnitude
        Rank eigenvalues by |λ| instead of λ.

    Returns
    -------
    V : (m, min(d, m))
        Orthonormal columns.
    values : (min(d, m),)
        Descending in the chosen order.

    Notes
    -----
    O(m³) dense, else O(nnz·d + m·d²) per restart.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> W = csr_array(np.diag([1.0, -5.0, 3.0]))
    >>> eigenpairs(W, 2, rng=np.random.default_rng(0))[1].tolist()
    [3.0, 1.0]
    >>> eigenpairs(W, 2, rng=np.random.default_rng(0), magnitude=True)[1].tolist()
    [-5.0, 3.0]
    """
    m = W.shape[0]
    n = min(d, m)
    if n == 0:
        return np.zeros((m, 0), dtype=W.dtype), np.zeros(0, dtype=W.dtype)
    if method == "auto":
        method = "eigh" if m <= MAX_EXACT_ROWS or 8 * n > m else "eigsh"
    top = dominant_subspace(W, n, method=method, rng=rng)
    if not magnitude or as_operator(W).positive_shift(rng) <= top.values[-1]:
        return top.V, top.values
    bottom: Subspace = dominant_subspace(-W, n, method=method, rng=rng)
    V, values = np.hstack([top.V, bottom.V]), np.append(top.values, -bottom.values)
    # With n > m/2 the two ends overlap: an eigenvalue counts once, so each end gives its own sign
    # only.
    own = np.append(top.values >= 0, bottom.values > 0)
    order = np.argsort(np.where(own, -abs(values), np.inf), kind="stable")[:n]
    return np.ascontiguousarray(V[:, order]), values[order]


def pad_columns(V: NDArray[Any], d: int) -> NDArray[Any]:
    """Return V with zero columns appended up to d, for a universe larger than the number of points.

    Examples
    --------
    >>> pad_columns(np.ones((1, 1)), 3).tolist()
    [[1.0, 0.0, 0.0]]
    """
    return np.pad(V, ((0, 0), (0, d - V.shape[1])))


def signs(x: Floats) -> Floats:
    """Return −1 where x, of any shape, is negative and 1 elsewhere, in the type of x.

    Examples
    --------
    >>> signs(np.array([-2.0, 0.0, 3.0])).tolist()
    [-1.0, 1.0, 1.0]
    """
    return np.where(x < 0, -1, 1).astype(x.dtype)


def is_full(sizes: NDArray[np.int32], universe: int) -> bool:
    """Return whether every object that has points sees the whole universe, so that all matchings are permutations.

    Examples
    --------
    >>> is_full(np.array([3, 0, 3], dtype=np.int32), 3)
    True
    """
    return bool(np.isin(sizes, (0, universe)).all())
