"""How many universe points there are, from the matches alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.matching.graph import components, conflicts
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.subspace import dominant_subspace

__all__ = ["UniverseEstimate", "estimate_universe"]

_CLEAR = 3.0  # a gap is clear when it is so many times the next largest
_SOUGHT = 1.25  # a gap is sought up to this multiple of the eigenvalues' sum, which rather exceeds d
_MARGIN = 1.1  # too small a universe cannot be repaired, too large a one can
_DENSE = 2_000  # points up to which all eigenvalues are computed
_WORK = 100_000_000  # multiplications in one product of W with the vectors sought, for larger components
_PRODUCTS = 8  # such products, enough for the place of a gap


@dataclass(frozen=True)
class UniverseEstimate:
    """An estimate of the universe size d.

    Attributes
    ----------
    size
        The estimate; at least `floor`.
    floor
        Points of the largest object, below which no labelling exists.
    sure
        Whether the data speak clearly; if not, `size` is meant to err on the large side.
    reason
        Why, in a sentence.
    """

    size: int
    floor: int
    sure: bool
    reason: str


def estimate_universe(matchings: Matchings) -> UniverseEstimate:
    """Estimate the universe size d.

    Connected components are counted separately. One without a conflict is a single universe point. For one with
    conflicts let λ_1 ≥ λ_2 ≥ … be the eigenvalues of D^-½ W D^-½ (one minus those of the normalised Laplacian), D the
    row sums of W. Without noise d of them are 1 and the others 0, so a clear gap after λ_c says d = c. Without a clear
    gap the sum of all of them, ``tr D^-½ W D^-½ = Σ_a 1 / D_aa``, still says d: wrong matches move eigenvalues but
    hardly their sum, and missing matches make it larger. Ten per cent are then added.

    Notes
    -----
    O(M) plus, for every conflicted component of n points, O(n³) if n ≤ 2,000; larger ones get their largest
    eigenvalues by eight block power products if one costs at most 10⁸ multiplications, else the sum
    alone. Weights are ignored.

    Examples
    --------
    >>> estimate_universe(Matchings.from_labels([0, 1, 1, 2, 0, 2], [2, 2, 2]))
    UniverseEstimate(size=3, floor=2, sure=True, reason='the matches are consistent')
    """
    floor = int(matchings.sizes.max(initial=0))
    n, component = components(matchings)
    found = conflicts(matchings, component)
    if not found.count:
        return UniverseEstimate(n, floor, True, "the matches are consistent")
    W = _unweighted(matchings)
    inverse_degree = 1 / W.sum(axis=1)
    trace = np.bincount(component, weights=inverse_degree, minlength=n)
    clear, vague, n_vague = n - found.count, 0.0, 0
    order = np.argsort(component, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(component, minlength=n)))
    for c in found.which:
        points = order[start[c] : start[c + 1]]
        least = int(np.bincount(matchings.point_objects[points]).max())
        count = _count(W, points, inverse_degree, least, float(trace[c]))
        if count is None:
            vague += max(trace[c], least)
            n_vague += 1
        else:
            clear += count
    if not n_vague:
        reason = "the matches are consistent but for conflicts that the eigenvalues of the match graph resolve clearly"
        return UniverseEstimate(max(clear, floor), floor, True, reason)
    size = max(clear + math.ceil(_MARGIN * vague), floor)
    reason = (
        f"{n_vague} of {n} connected components have conflicts and no clear gap in their eigenvalues;"
        " the sum of the eigenvalues was taken and a tenth added"
    )
    return UniverseEstimate(size, floor, False, reason)


def _count(
    W: sparse.csr_array, points: NDArray[np.int64], inverse_degree: NDArray[np.float64], least: int, trace: float
) -> int | None:
    """Return the number of universe points in one conflicted component, or None when that is not clear."""
    if trace <= least + 0.5:
        # The sum rather exceeds d, and d is at least the number of points one object has here.
        return least
    most = min(math.ceil(_SOUGHT * trace) + 1, len(points) - 1)
    values = _largest_eigenvalues(W, points, inverse_degree, most + 1)
    if values is None or most - least < 2:
        return None
    gaps = (values[:-1] - values[1:])[least - 1 : most]
    second, first = np.partition(gaps, -2)[-2:]
    return least + int(gaps.argmax()) if first >= _CLEAR * second else None


def _largest_eigenvalues(
    W: sparse.csr_array, points: NDArray[np.int64], inverse_degree: NDArray[np.float64], count: int
) -> NDArray[np.float64] | None:
    """Return the `count` largest eigenvalues of D^-½ W D^-½ on some points, largest first, or None if too expensive."""
    scale = np.sqrt(inverse_degree[points])
    block: Any = W[points][:, points]
    if len(points) > _DENSE and block.nnz * count > _WORK:
        return None
    normalised = (block * scale).multiply(scale[:, None])
    if len(points) <= _DENSE:
        return np.linalg.eigvalsh(normalised.toarray())[::-1][:count]
    W32 = normalised.tocsr().astype(np.float32)
    return dominant_subspace(W32, count, method="block-power", tol=1e-3, max_iter=_PRODUCTS, rng=0).values


def _unweighted(matchings: Matchings) -> sparse.csr_array:
    W = matchings.to_matrix()
    W.data[:] = 1.0
    return W
