"""How likely the observed matches are under a labelling: the model behind `accurate`.

The block between objects i and j is read row by row. Let point a of object i carry label c. If j also holds a point of
label c (its *partner*), a is matched to it with probability p_ij, to another point with probability r₁, and unmatched
otherwise. If j holds none, a is matched (wrongly) with probability r₀ and unmatched otherwise. So an absent match is
evidence too, and so is a match that merely shows that *something* was found in j. Rows and columns are both read and
count one half each. Against "c is absent everywhere else", giving label c to point a of object i earns

    S[a, c] = Σ_b α_ij W_ab U_bc + ½ Σ_j X_aj O_jc + ½ Σ_b X_bi U_bc,      X_aj = β_ij if a is matched in j, else γ_ij,

    α = log p − log(r₁/n),   β = log r₁ − log r₀,   γ = log(1 − p − r₁) − log(1 − r₀),

with U (m, d) the labels as a 0/1 (or soft) matrix, O (k, d) the objects' occupied labels and n the size of an object.
With β = γ this is the familiar score "matches minus θ times cluster size"; for full permutations it is W U alone.

Labels have a prior: object i holds label c with a probability of c's own, these being beta distributed. A label that s
other objects hold then earns log(s + κρ) − log(k − 1 − s + κ(1 − ρ)) more. All parameters are fitted to the labels; κ,
by moments, is infinite and the prior constant when labels differ in size no more than chance. When a universe is
chosen too large the fragments of its points do differ: the larger then attract, and the smaller empty out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlogy

from stiefelsync.sync.likelihood.matches import MatchTable

__all__ = ["BlockCounts", "LogOdds", "beta_fit", "block_counts", "log_likelihood", "log_odds", "soft_block_counts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class BlockCounts:
    """What a labelling says about the matches, block by block; counts may be soft.

    Attributes
    ----------
    right, present : (k, k)
        Matches that join equal labels, and labels the two objects share.
    holders : (d,)
        Objects that hold each label.
    found, matched, rows
        Over all blocks and both readings: rows that are matched and have a partner; matched rows; rows.
    """

    right: Floats
    present: Floats
    holders: Floats
    found: float
    matched: float
    rows: float

    @property
    def rates(self) -> tuple[float, float, float]:
        """Smoothed p, r₁, r₀ over all blocks."""
        right, present = float(self.right.sum()), float(self.present.sum())
        p = min((right + 1) / (present + 2), 0.999)
        r1 = min((max(self.found - right, 0.0) + 0.5) / (present + 2), 0.99 * (1 - p))
        r0 = min((max(self.matched - self.found, 0.0) + 0.5) / (max(self.rows - present, 0.0) + 2), 0.99)
        return p, r1, r0

    @property
    def reliability(self) -> tuple[Floats, Floats]:
        """Right matches and shared labels of the blocks i < j that share any."""
        upper = np.triu(self.present, 1) > 1e-6
        return self.right[upper], self.present[upper]

    @property
    def popularity(self) -> tuple[float, float]:
        """ρ and κ of the beta distribution of the labels' observation rates."""
        held = self.holders[self.holders > 1e-6]
        p, kappa = beta_fit(held, np.full(len(held), float(len(self.right))), least=1.0)
        return min(max(p, 1e-3), 1 - 1e-3), kappa


def beta_fit(hits: Floats, trials: Floats, *, least: float) -> tuple[float, float]:
    """Return mean p and concentration κ of a beta distribution of success rates, by moments; κ = ∞ for equal rates.

    Parameters
    ----------
    hits, trials : (n,)
        Successes among trials of each of n binomial variables.
    least
        Lower bound of κ.

    Examples
    --------
    >>> beta_fit(np.array([5.0, 5.0]), np.array([10.0, 10.0]), least=1.0)
    (0.5, inf)
    >>> beta_fit(np.array([0.0, 10.0]), np.array([10.0, 10.0]), least=1.0)
    (0.5, 1.0)
    """
    if not len(trials):
        return 0.5, np.inf
    share, p = trials / trials.sum(), float(hits.sum() / trials.sum())
    excess = float(share @ (hits / trials - p) ** 2 - share @ (p * (1 - p) / trials))
    return p, np.inf if excess <= 1e-6 else max(p * (1 - p) / excess - 1, least)


def block_counts(table: MatchTable, labels: Ints) -> BlockCounts:
    """Count right and wrong matches under labels, shape (m,); O(nnz + k²·d).

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> block_counts(table, np.array([0, 1, 1])).right.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    key = labels.tobytes()
    if key not in table.counted:
        table.counted.clear()
        table.counted[key] = _block_counts(table, labels)
    return table.counted[key]


def _block_counts(table: MatchTable, labels: Ints) -> BlockCounts:
    k = table.matchings.n_objects
    i, j = table.matchings.pair_objects.T.astype(np.int64)
    right = np.zeros((k, k))
    # No pair is without matches, so that every one of them has a sum of its own.
    agree = table.agreeing(labels)
    right[i, j] = right[j, i] = np.add.reduceat(agree, table.matchings.pair_start[:-1], dtype=np.int64)
    O = table.occupancy(labels)
    present = (O @ O.T) * table.compared
    found = float(np.sum(table.seen_by(labels) * O)) if table.partial else float(present.sum())
    return BlockCounts(right, present, O.sum(axis=0), found, *_rows(table))


def soft_block_counts(table: MatchTable, U: Floats, WU: Floats) -> BlockCounts:
    """Count expected right and wrong matches under soft labels U, shape (m, d), given W U; rates of blocks are equal.

    O(m·d + k²·d), and O(nnz·d) more where objects are partial.
    """
    O = table.membership @ U
    present = (O @ O.T) * table.compared
    right = present * (float(np.sum(U * WU)) / max(float(present.sum()), 1.0))
    found = float(present.sum())
    if table.partial:
        found = float(np.sum((table.by_object(np.ones(len(table.indices))).T @ U) * O))
    return BlockCounts(right, present, O.sum(axis=0), found, *_rows(table))


def _rows(table: MatchTable) -> tuple[float, float]:
    """Return the matched rows and all rows of all blocks, in both readings."""
    return float(len(table.indices)), float(table.compared.sum(axis=1) @ table.matchings.sizes)


@dataclass(frozen=True)
class LogOdds:
    """Log-odds of the model, one set per block.

    Attributes
    ----------
    right : (nnz,)
        α times the weight of each stored entry of W.
    scale
        α where it is the same for all blocks, else None.
    seen : (nnz,) or None
        β − γ of each stored entry; None when it carries no information.
    size : (k, k)
        γ where two objects were compared (β when nothing is partial), else 0.
    popularity
        ρ and κ of the prior.
    """

    right: Floats
    scale: float | None
    seen: Floats | None
    size: Floats
    popularity: tuple[float, float] = (0.5, np.inf)

    def prior(self, holders: Floats, k: int) -> Floats | float:
        """Return what the prior adds for labels that so many *other* objects, of k in all, hold."""
        p, kappa = self.popularity
        if not np.isfinite(kappa):
            return 0.0
        return np.asarray(np.log(holders + kappa * p) - np.log(np.maximum(k - 1 - holders, 0) + kappa * (1 - p)))

    def scores(self, table: MatchTable, U: Floats, earned: Floats) -> Floats:
        """Return S, shape (m, d), for soft labels U whose matches earn ``Σ_b α W_ab U_b``; O(m·d) unless partial."""
        O = table.membership @ U
        S = earned.copy()
        shared = self.size @ O + self.prior(O.sum(axis=0) - O, len(O))
        if self.seen is not None:
            M = table.by_object(0.5 * self.seen)
            S += M @ O
            shared += M.T @ U
        S += shared[table.owner]
        return S


def log_odds(table: MatchTable, counts: BlockCounts, blocks: BlockCounts | None = None) -> LogOdds:
    """Return the log-odds of the rates in `counts`; with `blocks` p is estimated for every block of its own.

    The rate of a block is shrunk towards the common one, ``p_ij = (right + κ p) / (present + κ)``, with κ from the
    spread over blocks: κ = ∞, one rate for all, when blocks differ no more than chance.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1, 0], [2, 2]), 2)
    >>> log_odds(table, block_counts(table, np.array([0, 1, 1, 0]))).right.round(2).tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    p, r1, r0 = counts.rates
    P: Any = p
    if blocks is not None and np.isfinite(kappa := beta_fit(*blocks.reliability, least=0.5)[1]):
        P = np.clip((blocks.right + kappa * p) / (blocks.present + kappa), 1e-3, 0.999)
    R1 = (1 - P) * (r1 / (1 - p))
    alpha = np.maximum(np.log(P) - np.log(R1) + table.spread, 0)
    beta = np.log(R1) - np.log(r0)
    gamma = np.log(1 - P - R1) - np.log(1 - r0) if table.partial else beta

    def each(value: Any) -> Any:
        return value if np.ndim(value) == 0 else value.ravel()[table.blocks]

    return LogOdds(
        right=each(alpha) * table.weights,
        scale=float(alpha) if np.ndim(alpha) == 0 else None,
        seen=each(beta - gamma) * np.ones(len(table.indices)) if table.partial else None,
        size=gamma * table.compared,
        popularity=counts.popularity,
    )


def log_likelihood(table: MatchTable, labels: Ints) -> float:
    """Return the log-likelihood of matches and labels, all rates and their spread fitted to the labels.

    The number of right matches of a block is beta-binomial, and so is the number of objects that hold a label (an
    unmatched point holds one of its own); the rest is multinomial. Comparable between labellings of one problem;
    O(nnz + k²·d).

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
    >>> log_likelihood(table, np.array([0, 1, 1, 0, 0, 1])) > log_likelihood(table, np.array([0, 1, 0, 1, 0, 1]))
    True
    """
    counts = block_counts(table, labels)
    held = np.append(counts.holders[counts.holders > 0], np.ones(int((labels < 0).sum())))
    binomial = _beta_binomial(*counts.reliability, least=0.5)
    binomial += _beta_binomial(held, np.full(len(held), float(len(counts.right))), least=1.0)
    present = float(counts.present.sum())
    wrong = max(counts.found - float(counts.right.sum()), 0.0)
    stray = max(counts.matched - counts.found, 0.0)
    rest = (
        _profile(wrong, max(present - counts.found, 0.0))
        + _profile(stray, max(counts.rows - present - stray, 0.0))
        - (wrong + stray) * table.spread
    )
    return binomial + 0.5 * rest


def _beta_binomial(hits: Floats, trials: Floats, least: float) -> float:
    """Return the log-likelihood of sequences with so many hits, at the fitted beta distribution."""
    p, kappa = beta_fit(hits, trials, least=least)
    a, b = kappa * p, kappa * (1 - p)
    if np.isfinite(kappa) and a > 0 and b > 0:
        return float(np.sum(betaln(hits + a, trials - hits + b) - betaln(a, b)))
    return float(xlogy(hits, p).sum() + xlogy(trials - hits, 1 - p).sum())


def _profile(x: float, y: float) -> float:
    """Return the maximum over s of x·log s + y·log(1 − s)."""
    return float(xlogy(x, x) + xlogy(y, y) - xlogy(x + y, x + y))
