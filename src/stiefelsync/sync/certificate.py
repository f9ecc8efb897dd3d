"""How good an answer can be at most: an upper bound on the objective, without solving anything."""

from __future__ import annotations

import numpy as np

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.sizes import MAX_LANCZOS_WORK, MAX_ROWS_OF_ALL_VALUES, MAX_VECTOR_ENTRIES
from stiefelsync.stiefel.subspace import dominant_subspace

__all__ = ["upper_bound"]


def upper_bound(matchings: Matchings) -> float:
    """Return an upper bound on tr(PᵀWP) over all consistent labellings P, whatever their universe size.

    The columns of P are orthogonal with squared lengths n_c, so the objective is Σ n_c·(v_cᵀWv_c)
    for orthonormal v_c. With Σ n_c = m and n_c ≤ k this is at most ``k (λ_1 + … + λ_q) + r
    λ_{q+1}``, where m = qk + r and λ are the eigenvalues of W in descending order. Nor can it
    exceed the total weight 1ᵀW1, reached when nothing contradicts.

    Notes
    -----
    Costs the ⌈m/k⌉ largest eigenvalues, a few seconds at most: of a dense m×m array up to 3,000
    points, by the Lanczos method beyond; where that is too much (large universes) the total weight
    alone is returned. Unmatched points count as universe points of their own.

    Examples
    --------
    >>> upper_bound(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]))
    18.0
    """
    m = matchings.n_points
    total = float(m + 2 * matchings.match_weights.sum())
    k = int(np.count_nonzero(matchings.sizes))
    if not matchings.n_matches:
        return total
    full, rest = divmod(m, k)
    count = full + (rest > 0)
    if count >= m or count * m > MAX_VECTOR_ENTRIES or (m > MAX_ROWS_OF_ALL_VALUES and count**2 * m > MAX_LANCZOS_WORK):
        return total
    W = matchings.to_matrix()
    if m <= MAX_ROWS_OF_ALL_VALUES:
        values = np.linalg.eigvalsh(W.toarray())[::-1][:count]
    else:
        values = dominant_subspace(W, count, method="eigsh", rng=0).values
    lengths = np.full(count, float(k))
    if rest:
        lengths[-1] = rest
    spectral = float(lengths @ values)
    # Eigenvalues are computed to about twelve digits; the bound must hold all the same.
    return min(total, spectral * (1 + 1e-9))
