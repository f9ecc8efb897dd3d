"""What the rules of tracks use of the whole problem, so that parts can be solved apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings

__all__ = ["ROUNDING", "Scale"]

ROUNDING = 1e-9  # of sums of weights: gains no larger are none

Floats = NDArray[np.float64]

# In medians: no few matches outvote all the others, none counts for nothing.
_MAX_WEIGHT, _MIN_WEIGHT = 2.0, 1e-6
# The rank of a value in a sample is off by 50, root mean square.
_SAMPLED_VALUES, _RANKS_AROUND = 10_000, 300


@dataclass(frozen=True)
class Scale:
    """What the rules use of the whole problem.

    It follows from the input alone, so that parts of it can share it.

    Attributes
    ----------
    n_matches
        Matches M.
    fullest
        Matches of the pair of objects that has most.
    median
        The median weight (of two in the middle the smaller); None if all matches weigh the same.
    """

    n_matches: int
    fullest: int
    median: float | None = None

    @classmethod
    def of(cls, matchings: Matchings) -> Scale:
        """Return the scale of a problem in memory."""
        M, fullest, weights = matchings.n_matches, int(np.diff(matchings.pair_start).max(initial=1)), matchings.weights
        if weights is None or (weights == weights[:1]).all():
            return cls(M, fullest)
        return cls(M, fullest, _ranked(weights, (M - 1) // 2))

    def bounded_weights(
        self, weights: Floats | None, matches_of_pair: NDArray[np.integer[Any]]
    ) -> tuple[Floats, Floats]:
        """Return bounded weights, and these times how full the pair of each match is.

        Both (M,) and in (0, 2].

        Weights have the median as unit, the largest cut off, so that no few matches outvote all the
        others. Wrong matches are spread over the pairs more evenly than right ones, so those of
        full pairs are trusted more.

        Examples
        --------
        >>> scale = Scale(3, 2, 4.0)
        >>> [part.tolist() for part in scale.bounded_weights(np.array([1.0, 4.0, 100.0]), np.array([1, 2, 2]))]
        [[0.25, 1.0, 2.0], [0.125, 1.0, 2.0]]
        """
        if weights is None or self.median is None:
            bounded = np.ones(len(matches_of_pair))
        else:
            # In this order nothing overflows.
            share = np.minimum(weights / _MAX_WEIGHT, self.median) / self.median
            bounded = np.maximum(_MAX_WEIGHT * share, _MIN_WEIGHT)
        return bounded, np.asarray(bounded * matches_of_pair / self.fullest)


def _ranked(values: Floats, rank: int) -> float:
    """Return ``np.sort(values)[rank]``; as a rule only those near it, by a sample, are sorted.

    Examples
    --------
    >>> _ranked(np.array([3.0, 1.0, 2.0]), 1)
    2.0
    """
    sample = np.sort(values[:: len(values) // _SAMPLED_VALUES + 1])
    place = rank * len(sample) // len(values)
    low, high = sample[max(place - _RANKS_AROUND, 0)], sample[min(place + _RANKS_AROUND, len(sample) - 1)]
    below, near = int(np.count_nonzero(values < low)), values.compress((values >= low) & (values <= high))
    if not below <= rank < below + len(near):
        below, near = 0, values
    return float(np.partition(near, rank - below)[rank - below])
