"""Spectral synchronisation (Pachauri, Kondor and Singh 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Details, Outcome, Stopwatch, register
from stiefelsync.sync.methods._eigen import eigenpairs, is_full
from stiefelsync.sync.options import dtype_option
from stiefelsync.sync.rounding import project

__all__ = ["SpectralDetails", "largest_clusters", "run", "spectral_labels", "unit_rows"]

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Options:
    """Options of spectral."""

    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True, eq=False, repr=False)
class SpectralDetails(Details):
    """What the spectral method tells.

    Attributes
    ----------
    eigenvalues : (d,)
        Of the matrix decomposed, those of the eigenvectors in U.
    """

    eigenvalues: NDArray[Any]


@register(
    "spectral",
    summary="leading eigenvectors, rounded against one reference object",
    consistent=True,
    cost="one eigendecomposition, O(nnz·d + m·d²) per restart; rounding O(m·d²)",
    reference="Pachauri, Kondor, Singh: Solving the multi-way matching problem by permutation synchronization,"
    " NIPS 2013",
    choose="as the classical baseline; everything hinges on one reference object, so noise in it is noise everywhere",
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
    """Relax ``max tr(PᵀWP)`` to ``max tr(UᵀWU), UᵀU = I`` and round its eigenvector solution V.

    Full permutations (every object sees the whole universe): V_i V_1ᵀ estimates the permutation
    between objects i and 1 and is projected by linear assignment. Partial ones: rows of V are
    normalised and the points walked through in order; a point without a label opens a new universe
    point, and in every later object the unlabelled point of largest correlation above ½ joins it.
    There may be more labels than `universe` then.

    Notes
    -----
    Cycle-consistent. The walk costs O(m·d) per universe point it opens; no m×m array is made beyond
    500 points.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 1, 0]
    """
    watch = Stopwatch()
    with watch("eigenvectors"):
        V, values = eigenpairs(matchings.to_matrix(options.dtype), universe, rng=rng)
    with watch("rounding"):
        labels = spectral_labels(V, matchings, universe)
    return Outcome(labels=labels, U=V, timings=watch.seconds, details=SpectralDetails(values))


def spectral_labels(V: Floats, matchings: Matchings, universe: int) -> NDArray[np.int64]:
    """Round eigenvectors V, shape (m, d), to labels, shape (m,), by a reference object or by correlation."""
    sizes = matchings.sizes
    if not is_full(sizes, universe):
        return _walk(unit_rows(V), matchings)
    first = int(sizes.argmax()) if len(sizes) else 0
    reference = V[matchings.offsets[first] :][:universe]
    return project(V @ reference.T, sizes)


def largest_clusters(labels: NDArray[np.int64], universe: int) -> NDArray[np.int64]:
    """Return labels 0, …, universe − 1 for the largest clusters, by size, and −1 for the points of all others.

    Examples
    --------
    >>> largest_clusters(np.array([5, 7, 7, 3, 3, 3]), 2).tolist()
    [-1, 1, 1, 0, 0, 0]
    """
    size = np.bincount(labels[labels >= 0], minlength=1)
    rank = np.empty(len(size), dtype=np.int64)
    rank[np.argsort(-size, kind="stable")] = np.arange(len(size))
    rank[rank >= universe] = -1
    return np.where(labels >= 0, rank[labels], -1)


def unit_rows(V: Floats) -> Floats:
    """Return V with rows of unit length; zero rows stay zero."""
    length = np.linalg.norm(V, axis=1, keepdims=True)
    return V / np.where(length > 0, length, 1)


def _walk(V: Floats, matchings: Matchings) -> NDArray[np.int64]:
    """Label points in order, each new label taking the best correlated unlabelled point of every later object."""
    m, k = matchings.n_points, matchings.n_objects
    owner, offsets = matchings.point_objects, matchings.offsets
    width = int(matchings.sizes.max(initial=0))
    # Row i holds the points of object i, padded with m, whose correlation is kept at −∞.
    slots = offsets[:-1, None] + np.arange(width)
    slots[np.arange(width) >= matchings.sizes[:, None]] = m
    correlation = np.full(m + 1, -np.inf, dtype=V.dtype)
    labels = np.full(m, -1, dtype=np.int64)
    opened = 0
    for a in range(m):
        if labels[a] >= 0:
            continue
        labels[a] = opened
        later = offsets[owner[a] + 1]
        if later < m:
            correlation[later:m] = np.where(labels[later:] < 0, V[later:] @ V[a], -np.inf)
            rest = correlation[slots[owner[a] + 1 :]]
            best = rest.argmax(axis=1)
            rows = np.arange(k - 1 - owner[a])
            joins = rest[rows, best] > 0.5
            labels[slots[owner[a] + 1 :][rows[joins], best[joins]]] = opened
        opened += 1
    return labels
