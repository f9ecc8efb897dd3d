"""How reliable whole pairs of objects are, from cycles of three: cycle-edge message passing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.matching.matchings import Matchings

__all__ = ["Cycles", "corruption", "three_cycles"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cycles:
    """The cycles of three pairs of objects around which matches can be followed.

    Attributes
    ----------
    pairs : (c, 3) int64
        The rows of `pair_objects` a cycle consists of.
    inconsistency : (c,) float64
        The share of paths of two matches around the cycle that the third pair does not close.
    """

    pairs: Ints
    inconsistency: Floats


def three_cycles(matchings: Matchings, *, stop: Callable[[int], bool] = lambda _done: False) -> Cycles:
    """Find the cycles of three pairs of objects and how inconsistent each is.

    A path a–c–b of two matches, in objects i, k and j, is closed if a and b are matched. Over the
    paths with their middle in any of the three objects, ``d_ijk = 1 − closed / paths``. Cycles
    without a path say nothing and are left out.

    Parameters
    ----------
    stop
        Told how many middle objects are done; a true answer leaves out the rest.

    Notes
    -----
    O(Σ deg² + k·m).

    Examples
    --------
    >>> pairs = {(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 0], [1, 1]], (0, 2): [[0, 0]]}
    >>> found = three_cycles(Matchings.from_pairs(pairs, [2, 2, 2]))
    >>> found.pairs.tolist(), found.inconsistency.tolist()
    ([[0, 1, 2]], [0.25])
    """
    k, offsets = matchings.n_objects, matchings.offsets
    a, b = matchings.endpoints.T
    ones = np.ones(matchings.n_matches)
    upper: Any = sparse.csr_array((ones, (a, b)), shape=(matchings.n_points,) * 2)
    A: Any = sparse.csr_array(upper + upper.T)
    known = matchings.pair_objects.astype(np.int64) @ np.array([k, 1])
    names: list[Ints] = [np.empty(0, dtype=np.int64)]
    counts: list[Floats] = [np.empty((0, 2))]
    for middle in range(k):
        if stop(middle):
            break
        partners = A[offsets[middle] : offsets[middle + 1]]
        paths: Any = sparse.triu(partners.T @ partners, 1, format="csr")
        closed = _per_pair(paths.multiply(A).tocoo(), matchings, known)
        every = _per_pair(paths.tocoo(), matchings, known)
        (row,) = np.nonzero(every)
        i, j = matchings.pair_objects[row].astype(np.int64).T
        low, high = np.minimum(i, middle), np.maximum(j, middle)
        names.append((low * k + (i + j + middle - low - high)) * k + high)
        counts.append(np.stack([every[row], closed[row]], axis=1))
    name, place = np.unique(np.concatenate(names), return_inverse=True)
    all_paths, all_closed = (np.bincount(place, c, minlength=len(name)) for c in np.concatenate(counts).T)
    corners = np.stack([name // k // k, name // k % k, name % k], axis=1)
    ends = corners[:, [[0, 1], [0, 2], [1, 2]]] @ np.array([k, 1])
    return Cycles(np.searchsorted(known, ends), 1 - all_closed / all_paths)


def _per_pair(paths: Any, matchings: Matchings, known: Ints) -> Floats:
    """Return how many entries of a sparse (m, m) matrix belong to each pair of objects that has matches; shape (P,)."""
    i, j = (matchings.point_objects[c].astype(np.int64) for c in paths.coords)
    pair = i * matchings.n_objects + j
    row = np.minimum(np.searchsorted(known, pair), max(len(known) - 1, 0))
    found = row[known[row] == pair] if len(known) else row
    return np.bincount(found, minlength=len(known)).astype(np.float64)


def corruption(cycles: Cycles, n_pairs: int, sharpness: Sequence[float]) -> Floats:
    """Estimate from cycles how corrupted each pair of objects is; shape (n_pairs,), 0 good, 1 bad.

    ``s_ij ← Σ_k w_ijk d_ijk / Σ_k w_ijk`` with ``w_ijk = exp(−β (s_ik + s_jk))``, for β = 0 and
    then each of `sharpness`: cycles count by how good their other two pairs are believed to be. A
    pair without a cycle gets 1.

    Notes
    -----
    O(c) per β.

    Examples
    --------
    >>> corruption(Cycles(np.array([[0, 1, 2]]), np.array([0.25])), 4, [1.0]).tolist()
    [0.25, 0.25, 0.25, 1.0]
    """
    s: Floats = np.ones(n_pairs)
    if not len(cycles.pairs):
        return s
    for beta in (0.0, *sharpness):
        around = s[cycles.pairs]
        w = np.exp(-beta * (around.sum(axis=1, keepdims=True) - around))
        total, weight = np.zeros(n_pairs), np.zeros(n_pairs)
        for side, pairs in enumerate(cycles.pairs.T):
            total += np.bincount(pairs, w[:, side] * cycles.inconsistency, minlength=n_pairs)
            weight += np.bincount(pairs, w[:, side], minlength=n_pairs)
        s = np.divide(total, weight, out=np.ones(n_pairs), where=weight > 0)
    return s
