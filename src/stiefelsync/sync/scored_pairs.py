"""Pairs of objects that somebody else judged: what is believed of them, and where that differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from stiefelsync.errors import InputError
from stiefelsync.matching._canonical import as_reals
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.pair_odds import pair_odds

__all__ = ["ScoredPairs", "judge_pairs", "prior_of"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Log-odds of pairs of objects that both are of the same thing.

    Attributes
    ----------
    objects : (P, 2) int
        The pairs with matches.
    given : (P,) float64
        The prior, 0 where there is none.
    believed : (P,) float64
        By the prior and third objects.
    """

    objects: NDArray[np.int32]
    given: Floats
    believed: Floats

    @property
    def good(self) -> Bools:
        """Pairs that are believed to be of the same thing, (P,); the matches of all others are left out."""
        return np.asarray(self.believed > 0)

    @property
    def disputed(self) -> Bools:
        """Pairs on which belief and prior disagree, (P,); never those without a prior."""
        return np.asarray(self.given * self.believed < 0)

    def figures(self, problem: Matchings) -> dict[str, Any]:
        """Return the pairs left out and the disputed ones by name, with both probabilities, ready for JSON.

        Examples
        --------
        >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
        >>> judge_pairs(problem, {(1, 0): 2.0, (1, 2): -1.0}).figures(problem)
        {'pairs_left_out': [['1', '2']], 'disputed_pairs': []}
        """
        called = problem.names or [str(i) for i in range(problem.n_objects)]
        pairs = [[called[i], called[j]] for i, j in self.objects.tolist()]
        odds = np.stack([expit(self.given), expit(self.believed)], axis=1).tolist()
        return {
            "pairs_left_out": [pairs[p] for p in np.flatnonzero(~self.good)],
            "disputed_pairs": [[*pairs[p], *odds[p]] for p in np.flatnonzero(self.disputed)],
        }


def judge_pairs(matchings: Matchings, prior: Any) -> ScoredPairs:
    """Return what is believed of the pairs of a problem.

    Parameters
    ----------
    prior
        As for :func:`prior_of`.

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
    >>> judge_pairs(problem, {(1, 0): 2.0}).believed.tolist()
    [2.0, 0.0]
    """
    given = prior_of(matchings, prior)
    return ScoredPairs(matchings.pair_objects, given, pair_odds(matchings, given))


def prior_of(matchings: Matchings, prior: Any) -> Floats:
    """Return the log-odds of every pair, (P,), 0 where unknown, or raise :class:`InputError`.

    Parameters
    ----------
    prior : (P,) float or Mapping
        Of the pairs of ``matchings.pair_objects`` in that order, or by the numbers of two objects.
        Those of pairs without matches count for nothing.
    """
    if not isinstance(prior, Mapping):
        try:
            return as_reals(prior, "the prior")  # whose shape the judge looks at
        except InputError:
            raise
        except (TypeError, ValueError):
            raise InputError(f"the prior holds log-odds of pairs of objects, got {type(prior).__name__}") from None
    place = {(int(i), int(j)): p for p, (i, j) in enumerate(matchings.pair_objects)}
    found = np.zeros(len(place))
    for key, value in prior.items():
        try:
            (i, j), odds = sorted(map(int, key)), float(value)
        except (TypeError, ValueError):
            raise InputError(f"the prior holds {key!r}: {value!r}, not two objects and a number") from None
        if not 0 <= i < j < matchings.n_objects:
            raise InputError(f"the prior names the objects {i} and {j}; they are 0 to {matchings.n_objects - 1}")
        if (i, j) in place:
            found[place[i, j]] = odds
    return found
