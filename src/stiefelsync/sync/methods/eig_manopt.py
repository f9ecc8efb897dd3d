"""Eig+ManOpt: a dense eigendecomposition, then trust regions on O(d)."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Outcome, Stopwatch, register
from stiefelsync.sync.methods._stages import stage_one
from stiefelsync.sync.methods._trust_regions import finish_by_trust_regions

__all__ = ["run"]


@register(
    "eig-manopt",
    summary="a dense eigendecomposition, then trust regions on O(d) for the secondary objective",
    consistent=True,
    cost="O(m³) with dense m×m arrays, then O(m·d²) per inner iteration",
    reference="Bernard, Cremers, Thunberg: Sparse Quadratic Optimisation over the Stiefel Manifold, NeurIPS 2021,"
    " appendix B.1 (Eig+ManOpt); Absil, Baker, Gallivan 2007; Townsend, Koep, Weichwald 2016 (pymanopt)",
    choose="when g must be maximised to the last digit and m is small",
    extra="rivals",
)
def run(
    matchings: Matchings,
    universe: int,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
    p: int = 3,
    max_iter: int = 500,
    dtype: DTypeLike = np.float64,
) -> Outcome:
    """Take a basis V of the dominant subspace from LAPACK and maximise ``g(VQ) = Σ (VQ)_ij^p`` over Q.

    Parameters
    ----------
    p
        Power of the secondary objective.
    max_iter
        Most outer iterations of the trust-region method.
    dtype
        float32 or float64: the precision of W and all that is computed from it.

    Notes
    -----
    Cycle-consistent. Inherently dense: W is made an m×m array.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> labels = run(problem, 2, rng=np.random.default_rng(0)).labels
    >>> Matchings.from_labels(labels, [2, 2]) == problem
    True
    """
    watch = Stopwatch()
    found = stage_one(matchings, universe, watch, method="eigh", rng=rng, dtype=dtype)
    return finish_by_trust_regions(
        found, matchings, universe, watch, rng=rng, p=p, max_iter=max_iter, callback=callback
    )
