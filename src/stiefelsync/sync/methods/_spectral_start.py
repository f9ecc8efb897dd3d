"""The deterministic start: a dominant subspace of the degree-normalised matrix, rotated until it is sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync._core.binding import call
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.block import CHEBYSHEV, block_iteration, chebyshev
from stiefelsync.stiefel.product import sparse_product
from stiefelsync.stiefel.rotation import rotate, sparsest
from stiefelsync.stiefel.sizes import QUICK_ROWS, some_rows
from stiefelsync.stiefel.subspace import dominant_subspace, leading_vectors
from stiefelsync.sync.rounding import nearest

__all__ = ["MAX_WORK", "SMALL", "nudges", "spectral_labels", "spectral_start", "start_matrix", "start_size"]

_NUDGE = 2.0**-16  # relative differences that keep equal components apart: far above rounding, far below the data
_TIE_SEED = np.random.SeedSequence(2021)  # any will do, as long as it is always the same
MAX_WORK = 10_000_000_000  # m·d² beyond which labels begin with tracks
SMALL = 3_000_000  # nnz·d below which every digit is affordable
_TURNS = 25  # of the rotation at most: more made labels neither better nor worse
_LANES = 16  # columns that the product takes at a time in single precision
_NOISE, _MOST_NOISE = 1.75, 0.3


def start_matrix(matchings: Matchings) -> Any:
    """Return W without its diagonal, (m, m), weights of mean one: dense for few rows, or CSR.

    Examples
    --------
    >>> start_matrix(Matchings.from_labels([0, 0], [1, 1])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    m, (a, b), w = matchings.n_points, matchings.endpoints.T, matchings.match_weights
    values = w / w.mean() if len(w) else w
    if m > QUICK_ROWS:
        both = np.append(a, b).astype(np.int32), np.append(b, a).astype(np.int32)
        A = sparse.csr_array((np.append(values, values), both), shape=(m, m))
        A.sort_indices()
        return A
    A = np.zeros((m, m))
    A[a, b] = A[b, a] = values
    return A


def start_size(A: Any, sizes: NDArray[Any], d: int) -> int:
    """Return how many labels to start with, at most d: ten per cent more than the trace of ``D^-½ (A + I) D^-½``.

    Without wrong or missing matches the eigenvalues are ones and zeros and the trace is the number of universe points;
    wrong matches hardly move it and missing ones enlarge it. More columns than that would be noise, and so would any
    beyond the size of the largest object if the trace does not exceed that, as for full permutations.

    Parameters
    ----------
    A : (m, m) CSR or dense
        Zero diagonal.
    sizes : (k,) int
        Points per object; the largest is a lower bound.

    Examples
    --------
    >>> A = sparse.csr_array(np.kron(np.ones((3, 3)) - np.eye(3), np.eye(2)))
    >>> start_size(A, np.array([2, 2, 2]), 5)
    2
    """
    trace, largest = float((1 / (_row_sums(A) + 1)).sum()), int(sizes.max(initial=1))
    enough = largest if trace <= largest + 0.5 else max(largest, int(np.ceil(1.1 * trace)))
    return min(d, int(A.shape[0]), enough)


def spectral_labels(matchings: Matchings, universe: int, *, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """Return the projected :func:`spectral_start` of a problem with so many universe points, (m,).

    None where that costs too much.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> len(set(spectral_labels(problem, 2, rng=np.random.default_rng(0)).tolist()))
    2
    """
    A = start_matrix(matchings)
    d = start_size(A, matchings.sizes, universe)
    if matchings.n_points * d**2 > MAX_WORK:
        return None
    U = spectral_start(A, d, rng=rng)
    return nearest(U, matchings.sizes)


def spectral_start(
    A: Any,
    d: int,
    *,
    rng: np.random.Generator,
    diagonal: float = 1.0,
    near: NDArray[Any] | None = None,
    max_products: int = 10,
) -> NDArray[Any]:
    """Return U, shape (m, d): the d leading eigenvectors of ``D^-½ W D^-½``, rotated to maximise g(U) = Σ U³.

    W is A with `diagonal` on its diagonal. Dividing by its row sums D restores what the rotation relies on, equal
    eigenvalues for all universe points, where some are seen more often than others. This differs from the paper in: the
    matrix, the subspace (found by a filtered block iteration in single precision) and the rotation (fixed point instead
    of gradient steps).

    Parameters
    ----------
    A : (m, m) CSR, or dense if there are few rows
        Symmetric, non-negative, zero diagonal, sorted indices.
    d
        Number of columns, at most m.
    rng
        Draws the block that the iteration starts from.
    near : (m, c), optional
        Orthonormal columns, such as a U of other weights, that take the place of c of the columns drawn.
    max_products
        The subspace is good enough when the sum of its Ritz values has no more than two thousandths to gain from
        another look, and after at most so many products with A in any case. Small problems are iterated in double
        precision until there is no more than a ten-thousandth to gain: they have fewer matches to repair a start with.

    Notes
    -----
    O(nnz·d + m·d²) per product. Small problems, and any breakdown in single precision, take the exact route.

    Examples
    --------
    >>> A = sparse.csr_array(np.kron(np.ones((3, 3)) - np.eye(3), np.eye(2)))
    >>> U = spectral_start(A, 2, rng=np.random.default_rng(0))
    >>> np.abs(U.round(3)).max(axis=1).tolist()
    [0.577, 0.577, 0.577, 0.577, 0.577, 0.577]
    """
    m = A.shape[0]
    s = nudges(m) / np.sqrt(_row_sums(A) + diagonal)
    if m <= max(QUICK_ROWS, 4 * d):
        N = (A.toarray() if sparse.issparse(A) else A) * (s[:, None] * s)
        N.reshape(-1)[:: m + 1] += diagonal * s**2
        return sparsest(leading_vectors(N, d), max_iter=_TURNS)
    small = A.nnz * d < SMALL
    dtype, tol, most = (np.float64, 1e-4, 60) if small else (np.float32, 2e-3, max_products)
    N, shift = _normalised(A, s, dtype), (diagonal * s**2).astype(dtype)
    multiply, width = sparse_product(N, diagonal=shift), _width(m, d, small)
    try:
        drawn, filtered = small or near is not None, CHEBYSHEV if small else chebyshev(_noise(A))
        found = block_iteration(
            multiply,  # no name here for the block: its memory may go
            multiply(_block(m, width, near, dtype, rng)) if drawn else _apart(_sketch(N, shift, width, rng), s),
            d, filtered=filtered, tol=tol, max_products=most, at_once=not drawn,
        )  # fmt: skip
        U = sparsest(found.V, max_iter=_TURNS)
    except (np.linalg.LinAlgError, ValueError):
        U = np.full((m, d), np.nan)
    if not np.isfinite(U).all():
        scale = sparse.diags_array(s)
        U = rotate(dominant_subspace(scale @ (A + sparse.diags_array(np.full(m, diagonal))) @ scale, d, rng=rng).V)
    return U


def nudges(m: int) -> NDArray[np.float64]:
    """Return factors near 1, shape (m,), that differ: rows and columns so scaled have no eigenvalues in common.

    Every component of W has the leading eigenvalue 1. Which of them come first would be left to rounding, so to the
    processor; and so would the order of rows that are as long as each other.

    Examples
    --------
    >>> bool(np.ptp(nudges(9)) > 1e-6), bool(abs(nudges(9) - 1).max() < 1e-4)
    (True, True)
    """
    return np.asarray(1 + _NUDGE * np.random.default_rng(_TIE_SEED).random(m))


def _row_sums(A: Any) -> NDArray[np.float64]:
    """Return the sums of the rows of A, CSR or dense, shape (m,)."""
    if sparse.issparse(A):
        out, rows = np.empty(A.shape[0]), np.ascontiguousarray(A.indptr, np.int32)
        call("sum_rows", len(out), rows, np.ascontiguousarray(A.data, np.float64), out)
        return out
    return np.asarray(A @ np.ones(A.shape[0]))


def _normalised(A: Any, s: NDArray[np.float64], dtype: Any) -> Any:
    """Return diag(s) A diag(s), CSR, in that precision."""
    out: NDArray[Any] = np.empty(len(A.data), dtype=dtype)
    where = (None, out) if out.dtype == np.float32 else (out, None)
    rows = [np.ascontiguousarray(x, np.int32) for x in (A.indptr, A.indices)]
    reals = [np.ascontiguousarray(x, np.float64) for x in (A.data, s)]
    call("scale_entries", A.shape[0], *rows, *reals, *where)
    N = sparse.csr_array((out, A.indices, A.indptr), shape=A.shape)
    N.has_sorted_indices = A.has_sorted_indices
    return N


def _noise(A: Any) -> float:
    """Return about where the eigenvalues of random matches end: at 2/√n for n matches of a point, by Wigner's law.

    Few of them reach the end, and a cut below it lets the first look see more: 1.75/√n, and no more than .3.
    """
    total = float(A.data.sum())
    matches = total**2 / max(A.shape[0] * float(np.vdot(A.data, A.data)), np.finfo(np.float64).tiny)
    return float(min(_MOST_NOISE, _NOISE / max(matches, 1.0) ** 0.5))


def _width(m: int, d: int, small: bool) -> int:
    """Return how many columns to iterate with: an eighth more than d, for large problems whole lanes of the product."""
    width = d + max(4, d // 8)
    if not small:
        width = max(width // _LANES, -(-(d + 2) // _LANES)) * _LANES
    return min(m, width)


def _sketch(N: Any, shift: NDArray[Any], width: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return (N + diag(shift)) S, shape (m, width), S with one random sign in every row: O(nnz + m·width)."""
    m, sketch = N.shape[0], np.empty((N.shape[0], width), dtype=N.dtype)
    column, sign = rng.integers(width, size=m), rng.choice(np.array([-1, 1], dtype=N.dtype), m)
    rows = [np.ascontiguousarray(x, np.int32) for x in (N.indptr, N.indices)]
    data, diagonal, signs = (np.ascontiguousarray(x, N.dtype) for x in (N.data, shift, sign))
    name = "sketch_f32" if N.dtype == np.float32 else "sketch_f64"
    call(name, *sketch.shape, *rows, data, diagonal, np.ascontiguousarray(column, np.int64), signs, sketch)
    return sketch


def _apart(V: NDArray[Any], s: NDArray[np.float64]) -> NDArray[Any]:
    """Put the eigenvector of the largest eigenvalue, 1, first and the other columns at right angles to it, in place.

    It is 1/s, the roots of the row sums. Where wrong matches abound all other eigenvalues are far below 1, and every
    filtered column would be little more than this vector.
    """
    leading = 1 / s
    leading /= np.linalg.norm(leading)
    leading = leading.astype(V.dtype)
    along = leading @ V
    for rows in some_rows(len(V)):
        V[rows] -= np.outer(leading[rows], along)
    V[:, 0] = leading
    return V


def _block(m: int, width: int, near: NDArray[Any] | None, dtype: Any, rng: np.random.Generator) -> NDArray[Any]:
    """Return the columns to start from, shape (m, width): `near` and random ones.

    Small problems, which may be sampled later from the same generator, draw those that `near` replaces, too.
    """
    known = 0 if near is None else min(near.shape[1], width)
    drawn = width - known if dtype == np.float32 else width
    V = np.empty((m, width), dtype)
    V[:, width - drawn :] = rng.standard_normal((m, drawn), dtype=np.float32)
    if near is not None:
        V[:, :known] = np.sqrt(m) * near[:, :width]
    return V
