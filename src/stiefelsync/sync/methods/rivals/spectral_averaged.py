"""Spectral synchronisation with the rotation averaged over all objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.orthonormal import polar
from stiefelsync.sync.method import Callback, Outcome, Stopwatch, register
from stiefelsync.sync.methods._eigen import eigenpairs, is_full, pad_columns
from stiefelsync.sync.methods.rivals.spectral import SpectralDetails, largest_clusters, spectral_labels, unit_rows
from stiefelsync.sync.options import dtype_option
from stiefelsync.sync.rounding import assign_sparse, project

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options:
    """Options of spectral-averaged."""

    dtype: DTypeLike = dtype_option()


@register(
    "spectral-averaged",
    summary="leading eigenvectors, rounded against all objects at once",
    consistent=True,
    cost="as spectral, and O(m·d²) for the rotation",
    reference="after Pachauri, Kondor, Singh: Solving the multi-way matching problem by permutation synchronization,"
    " NIPS 2013",
    choose="instead of spectral: errors of the reference object average out, at no cost",
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
    """Round the eigenvectors V as `spectral` does to P, and again after the rotation that fits P best.

    That rotation is the orthogonal Procrustes solution over all objects, ``Q = argmin ‖VQ − P‖_F =
    polar(VᵀP)``. Full permutations: VQ is projected by linear assignment. Partial ones: P keeps the
    `universe` largest clusters, rows of V are normalised, and the assignment takes correlations
    above ½ only; the other points stay unmatched.

    Notes
    -----
    Cycle-consistent. Costs O(m·d²) more than `spectral`; no m×m array is made beyond 500 points.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 1, 0]
    """
    watch = Stopwatch()
    with watch("eigenvectors"):
        V, values = eigenpairs(matchings.to_matrix(options.dtype), universe, rng=rng)
        V = pad_columns(V, universe)
    with watch("rounding"):
        labels = largest_clusters(spectral_labels(V, matchings, universe), universe)
    with watch("averaging"):
        full = is_full(matchings.sizes, universe)
        rows = V if full else unit_rows(V)
        (known,) = np.nonzero(labels >= 0)
        P = csr_array((np.ones(len(known), dtype=V.dtype), (known, labels[known])), shape=V.shape)
        U = rows @ polar((P.T @ rows).T)
    with watch("projection"):
        sizes = matchings.sizes
        labels = project(U, sizes) if full else assign_sparse(csr_array(np.maximum(U - 0.5, 0)), sizes)
    return Outcome(labels=labels, U=U, timings=watch.seconds, details=SpectralDetails(values))
