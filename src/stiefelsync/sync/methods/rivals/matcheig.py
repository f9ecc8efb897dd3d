"""MatchEig (Maset, Arrigoni and Fusiello 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Stopwatch, register
from stiefelsync.sync.methods._eigen import eigenpairs, is_full
from stiefelsync.sync.options import dtype_option, option

__all__ = ["MatchEigDetails", "Options", "run"]


@dataclass(frozen=True)
class Options:
    """Options of matcheig."""

    threshold: float | None = option(
        None, "Smallest entry that may become a match; by default 0 for full permutations, ¼ for partial matchings.",
        kind=float,
    )  # fmt: skip
    dtype: DTypeLike = dtype_option()


@dataclass(frozen=True, eq=False, repr=False)
class MatchEigDetails(Details):
    """What MatchEIG tells.

    Attributes
    ----------
    eigenvalues : (d,)
        Of W, the largest in magnitude.
    scores : (M,) float64
        Entry of U Uᵀ at each match of the answer.
    threshold
        That entries had to reach.
    """

    eigenvalues: NDArray[Any]
    scores: NDArray[np.float64] | None
    threshold: float


@register(
    "matcheig",
    summary="low-rank eigen-approximation of W, matched pair by pair",
    consistent=False,
    cost="one eigendecomposition and O(m²·d) for the pairwise products, one object at a time",
    reference="Maset, Arrigoni, Fusiello: Practical and efficient multi-view matching, ICCV 2017",
    choose="for quick denoising of pairwise matches when cycle consistency is not needed",
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
    """Approximate W by ``U_i U_jᵀ``, ``U = V|Λ|^½`` for the d eigenvalues largest in magnitude, and match every pair.

    In each block, entries not above `threshold` are dropped; the candidates left are the largest of
    each row and of each column, taken greedily from the largest down, one-to-one.

    Notes
    -----
    Not cycle-consistent. Every pair of objects is matched, also those the input says nothing about,
    so the answer can hold d·k(k − 1)/2 matches; beside it memory is O(m·max m_i). Stopped by the
    callback it leaves later objects unmatched.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).matchings == problem
    True
    """
    watch = Stopwatch()
    sizes, offsets = matchings.sizes, matchings.offsets
    threshold = options.threshold
    if threshold is None:
        threshold = 0.0 if is_full(sizes, universe) else 0.25
    with watch("eigenvectors"):
        V, values = eigenpairs(matchings.to_matrix(options.dtype), universe, rng=rng, magnitude=True)
        U = V * np.sqrt(abs(values))
    ends, scores = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    status = Status.DONE
    with watch("pairs"):
        for i in range(matchings.n_objects - 1):
            a, b = offsets[i], offsets[i + 1]
            if a == b or b == matchings.n_points:
                continue
            if callback is not None and callback(Progress("pairs", i, matchings.n_objects - 1)):
                status = Status.STOPPED
                break
            block = U[a:b] @ U[b:].T
            later = np.arange(block.shape[1])
            starts = np.unique(offsets[i + 1 : -1][sizes[i + 1 :] > 0]) - b
            top = np.maximum.reduceat(block, starts, axis=1)
            group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(later)))
            row, col = np.nonzero(block == top[:, group])
            row, col = np.append(row, block.argmax(axis=0)), np.append(col, later)
            score = block[row, col]
            chosen = (score >= threshold) & (score > 0)
            ends.append(np.stack([row[chosen] + a, col[chosen] + b], axis=1))
            scores.append(score[chosen])
        result = Matchings.from_endpoints(
            np.concatenate(ends), sizes, weights=np.concatenate(scores), one_to_many="repair",
            names=matchings.names, coordinates=matchings.coordinates,
        )  # fmt: skip
    return Outcome(
        matchings=result.with_weights(None),
        U=U,
        status=status,
        timings=watch.seconds,
        details=MatchEigDetails(values, result.weights, threshold),
    )
