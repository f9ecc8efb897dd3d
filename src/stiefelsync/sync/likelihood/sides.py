"""Rows and columns of blocks, counted apart: matchings that go from one object to the other need not err alike in both.

Where not all objects were compared a point has few comparisons, and if rows and columns visibly differ
(`MatchTable.sided`) the search uses all that they say; if they err alike, it would count the same twice. Of a block
between objects i < j, points of i are *rows* and points of j *columns*. Of the labels that both hold each is matched
with probability p. A row that has a partner but is not matched to it is matched elsewhere with probability u₁, one
without a partner with u₀, a column with v₁ and v₀, and the w wrong matches are any of w! ways to pair off the rows and
columns so matched. This is the model of :mod:`stiefelsync.sync.likelihood.posterior`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from stiefelsync.sync.likelihood.matches import MatchTable

__all__ = ["Sides", "count_sides", "profile"]

Floats = NDArray[np.float64]

_LEAST, _MOST = 1e-3, 0.999  # rates stay between these


@dataclass(frozen=True)
class Sides:
    """What a labelling says about rows and about columns, over all blocks; counts may be soft.

    Attributes
    ----------
    found, rows : (2,)
        Rows and columns that are matched and have a partner; all rows and columns.
    matches : (P,)
        Matches of every block.
    """

    found: Floats
    rows: Floats
    matches: Floats

    def rates(self, right: Floats, present: Floats) -> tuple[Floats, Floats]:
        """Return u₁, v₁ and u₀, v₀, smoothed, given the right matches and shared labels of the blocks, (P,)."""
        x, y = float(right.sum()), float(present.sum())
        with_ = (np.maximum(self.found - x, 0) + 0.5) / (max(y - x, 0.0) + 1)
        strays = float(self.matches.sum()) - self.found
        without = (np.maximum(strays, 0) + 0.5) / (np.maximum(self.rows - y, 0) + 1)
        return np.clip(with_, _LEAST, _MOST), np.clip(without, _LEAST, _MOST)

    def worth(self, table: MatchTable, right: Floats, present: Floats, p: Any) -> tuple[Any, Any, Any]:
        """Return α, γ and β − γ of :mod:`stiefelsync.sync.likelihood.model`; p may differ between blocks.

        Two points of equal labels are worth, against "no partners", in all
        ``log p + log w − log u₀ − log v₀`` if they are matched with each other, and otherwise ``log(1 − p)`` with
        ``log(u₁/u₀)`` or ``log((1 − u₁)/(1 − u₀))`` for a row matched elsewhere or nowhere, and so for the column.
        """
        one, none = self.rates(right, present)
        wrong = max(float(self.matches.sum() - right.sum()), 0.0) / max(len(right), 1) + 0.5
        alpha = np.log(p) - np.log(1 - p) + np.log(wrong) - np.log(one).sum()
        gamma = np.log(1 - p) + (np.log(1 - one) - np.log(1 - none)).sum()
        # Twice, because the model counts one half of what each end of a pair says.
        gain = 2 * (np.log(one) - np.log(none) - np.log(1 - one) + np.log(1 - none))
        return alpha, gamma, np.where(table.first > 0, gain[0], gain[1])

    def log_likelihood(self, right: Floats, present: Floats) -> float:
        """Return the log-likelihood of everything but which of the shared labels are matched, at the best rates."""
        x, y, M = float(right.sum()), float(present.sum()), float(self.matches.sum())
        value = -float(gammaln(np.maximum(self.matches - right, 0) + 1).sum())
        for found, rows in zip(self.found.tolist(), self.rows.tolist(), strict=True):
            value += profile(max(found - x, 0.0), max(y - found, 0.0))
            value += profile(max(M - found, 0.0), max(rows - y - M + found, 0.0))
        return value


def count_sides(table: MatchTable, rows: float, both: float) -> Sides:
    """Return the counts of rows and columns apart.

    Parameters
    ----------
    rows, both
        Rows that are matched and have a partner; rows and columns that do.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> chain = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [2, 1, 1])
    >>> count_sides(MatchTable.of(chain, 2), 2.0, 4.0).rows.tolist()
    [3.0, 2.0]
    """
    i, j = table.matchings.pair_objects.T
    sizes = table.matchings.sizes.astype(np.float64)
    matches = np.diff(table.matchings.pair_start).astype(np.float64)
    return Sides(np.array([rows, both - rows]), np.array([sizes[i].sum(), sizes[j].sum()]), matches)


def profile(x: float, y: float) -> float:
    """Return the maximum over s of x·log s + y·log(1 − s).

    Examples
    --------
    >>> profile(0.0, 3.0)
    0.0
    """
    return float(xlogy(x, x) + xlogy(y, y) - xlogy(x + y, x + y))
