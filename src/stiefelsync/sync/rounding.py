"""Projection onto partial permutations, object by object, by linear assignment."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from stiefelsync._border import typed
from stiefelsync._core.binding import call
from stiefelsync.errors import InputError, counted
from stiefelsync.matching._canonical import as_array, check_sizes

__all__ = ["assign_sparse", "check_universe", "nearest", "project", "round_labels"]

_TIE_SEED = np.random.SeedSequence(2021)  # any will do, as long as it is always the same


def project(U: ArrayLike, sizes: ArrayLike) -> NDArray[np.int64]:
    """Project every object's block of U onto the partial permutations of full row rank.

    Solves ``P_i = argmax tr(Xᵀ U_i)`` over 0/1 matrices X with one 1 per row and at most one per
    column: the Euclidean projection of section 4.2 of the paper.

    Parameters
    ----------
    U : (m, d)
        Scores, objects one after another.
    sizes : (k,) int
        Points per object, each at most d.

    Returns
    -------
    labels : (m,) int64
        The universe point of every point.

    Notes
    -----
    O(m·d), and O(m_i² d) for each object whose rows do not each have a largest entry in a column of
    their own. Assignment solvers break ties by column index, which would hand a constant U the
    identity; columns are therefore visited in an order drawn afresh (from a fixed seed) for each
    such object, which changes nothing unless scores tie. Scores tie that differ by less than 2⁻²⁴
    of the largest (float32: 2⁻¹⁸): their difference would be rounding's.

    Examples
    --------
    >>> project([[0.9, 0.1], [0.2, 0.1], [0.0, 1.0]], [2, 1]).tolist()
    [0, 1, 1]
    """
    U, sizes = np.asarray(U), check_sizes(sizes)
    if U.ndim != 2 or len(U) != sizes.sum():
        raise InputError(f"U must have shape ({int(sizes.sum())}, d), got {U.shape}")
    if not np.isfinite(U).all():
        raise InputError("U holds NaN or infinite entries and cannot be projected")
    check_universe(sizes, U.shape[1])
    return nearest(U, sizes)


def nearest(U: NDArray[Any], sizes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Do what :func:`project` does, for a U and sizes that are known to be right.

    Examples
    --------
    >>> nearest(np.array([[0.9, 0.1], [0.2, 0.1], [0.0, 1.0]]), np.array([2, 1])).tolist()
    [0, 1, 1]
    """
    if not len(U):
        return np.empty(0, dtype=np.int64)
    U, offsets = np.ascontiguousarray(_rounded(U)), np.append(0, np.cumsum(sizes, dtype=np.int64))
    (_, d), k, precision = U.shape, len(sizes), "f32" if U.dtype == np.float32 else "f64"
    labels, contested = np.empty(len(U), dtype=np.int64), np.zeros(k, dtype=bool)
    call(f"nearest_{precision}", U, d, offsets, k, labels, contested)
    # Objects in which two points want the same label, or one point two, are assigned theirs by
    # linear assignment.
    objects = np.flatnonzero(contested).astype(np.int64, copy=False)
    if len(objects):
        orders = _orders(d, len(objects))
        call(f"assign_objects_{precision}", U, d, offsets, len(objects), objects, orders, labels)
    return labels


def _orders(d: int, n: int) -> NDArray[np.int64]:
    """Return n orders of d columns, always the same ones, so that no column comes first in all ties; shape (n, d)."""
    return _drawn(d, 1 << max(n - 1, 7).bit_length())[:n]


@lru_cache(maxsize=4)
def _drawn(d: int, n: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(_TIE_SEED)
    return np.array([rng.permutation(d) for _ in range(n)], dtype=np.int64)


def _rounded(U: NDArray[Any]) -> NDArray[Any]:
    """Return U scaled by a power of two to entries below 1 and rounded to multiples of 2⁻²⁴ (float32: 2⁻¹⁸).

    Scores that are equal but for rounding tie then, on every processor, and their sums are exact.
    """
    single = U.dtype == np.float32
    U = U if single else np.asarray(U, dtype=np.float64)
    above = min(max(math.frexp(max(U.max(), -U.min()))[1], -100), 1000)
    # Added and taken away again it leaves such multiples.
    grid = np.float32(1.5 * 2**5) if single else 1.5 * 2.0**28
    scaled: NDArray[Any] = U * (np.float32(2.0**-above) if single else 2.0**-above)
    scaled += grid
    scaled -= grid
    return scaled


@typed
def round_labels(U: ArrayLike, sizes: ArrayLike) -> NDArray[np.int64]:
    """Return the labels nearest to a relaxed solution U of one's own: in every object all points labelled differently.

    Solves ``max Σ_a U[a, labels[a]]`` object by object, as :func:`project` does; ties are broken by
    a seeded draw.

    Parameters
    ----------
    U : (m, d)
        A score for every point and universe point, objects one after another.
    sizes : (k,) int
        Points per object, each at most d.

    Returns
    -------
    labels : (m,) int64

    Notes
    -----
    O(m·d), and O(m_i² d) for each object in which two points want the same label.

    Examples
    --------
    >>> round_labels([[0.9, 0.1], [0.8, 0.1], [0.0, 1.0]], sizes=[2, 1]).tolist()
    [0, 1, 1]
    """
    scores = as_array(U, "U")
    if scores.dtype.kind not in "biuf":
        raise InputError(f"U must hold real numbers, got {scores.dtype}")
    return project(scores, sizes)


def assign_sparse(scores: csr_array, sizes: ArrayLike) -> NDArray[np.int64]:
    """Assign points to universe points by sparse scores, leaving a point unmatched where no score is positive.

    Maximises ``Σ scores[a, labels[a]]`` with at most one point of an object per column; entries
    that are not stored, or not positive, are never chosen.

    Parameters
    ----------
    scores : (m, d) CSR
    sizes : (k,) int

    Returns
    -------
    labels : (m,) int64
        -1 where a point stays unmatched.

    Examples
    --------
    >>> assign_sparse(csr_array([[2.0, 1.0], [3.0, 0.0], [0.0, 0.0]]), [2, 1]).tolist()
    [1, 0, -1]
    """
    sizes = check_sizes(sizes)
    scores = scores.copy()
    scores.data[scores.data <= 0] = 0
    scores.eliminate_zeros()
    labels = np.full(int(sizes.sum()), -1, dtype=np.int64)
    start = 0
    for n in sizes.tolist():
        block: Any = scores[start : start + n]
        if block.nnz:
            labels[start : start + n] = _assign_block(block)
        start += n
    return labels


def _assign_block(block: Any) -> NDArray[np.int64]:
    """Assign one object's rows; each row also has a private column that means unmatched."""
    n = block.shape[0]
    columns, at = np.unique(block.indices, return_inverse=True)
    alone = len(columns) + np.arange(n)
    indptr = block.indptr + np.arange(n + 1)
    last = indptr[1:] - 1
    # SciPy before 1.15 accepts no other kind here
    indices = np.empty(block.nnz + n, dtype=np.int32)
    cost = np.empty(block.nnz + n)
    stored = np.ones(block.nnz + n, dtype=bool)
    stored[last] = False
    # A full assignment takes one entry per row, so a common offset makes costs positive without
    # changing the optimum.
    indices[stored], cost[stored] = at, 1 + block.data.max() - block.data
    indices[last], cost[last] = alone, 1 + block.data.max()
    graph = csr_array((cost, indices, indptr.astype(np.int32)), shape=(n, len(columns) + n))
    _, column = min_weight_full_bipartite_matching(graph)
    matched = column < len(columns)
    return np.where(matched, columns[np.where(matched, column, 0)], -1)


def check_universe(sizes: NDArray[np.int32], d: int) -> None:
    """Raise :class:`InputError` if an object, of `sizes` (k,), has more points than the universe."""
    if len(sizes) and sizes.max() > d:
        i = int(sizes.argmax())
        raise InputError(
            f"a universe of {counted(d, 'point')} is smaller than object {i}, which has {counted(sizes[i], 'point')};"
            f" give at least {int(sizes[i])}"
        )
