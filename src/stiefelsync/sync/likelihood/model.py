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

Where not all objects are compared and the sides of blocks differ, rows and columns have rates of their own, see
:mod:`stiefelsync.sync.likelihood.sides`; α, β and γ then follow from these, and β differs between the two ends.

Where matches have weights, α grows with the weight as the chance of being right does (`counts.Trust`).

Labels have a prior. Where all objects are compared, an object holds label c with a probability of c's own, these being
beta distributed with mean ρ and concentration κ; taking a label that s others hold earns log(s + κρ) − log(k − 1 − s +
κ(1 − ρ)). κ, by moments, is infinite and the prior constant when labels differ in size no more than chance. When a
universe is chosen too large the fragments of its points do differ: the larger then attract, and the smaller empty out.

Where not all are compared, an object can only be expected to hold what objects it was compared with hold. The more of
them do, the likelier: it holds c with a rate q_l that depends on their share, in five levels (`counts.Sight`), and of a
label that none of them holds nothing is known. Taking label c at level l earns log q_l − log(1 − q_l), and costs
−log(1 − q_0) for every compared object that had nobody near it with c and does not hold it either. A label whose
holders no comparisons connect pays log d for every piece beyond the first: nothing says that they are the same.

Where most labels are seen near one place only (a window that moves along a sequence), labels also have an *extent*. The
reach of a label is the number of objects that hold it or were compared with a holder. Reaches are normally distributed
about their median, but for a tenth that may be anything, and K labels begin in k objects as by a Poisson process, which
adds K log(K/k) − K. Without this, labels that follow each other in a sequence would be joined, since nothing speaks
against it but few missing matches; with it, a label twice as long as others has to earn it.

All parameters are fitted to the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.stiefel.sizes import some_rows
from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts, level, near
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.reliability import beta_binomial, beta_fit
from stiefelsync.sync.likelihood.sides import profile

__all__ = ["LogOdds", "fresh", "log_likelihood", "log_odds"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FINE = 2.0**30  # one over the difference in log-likelihood that counts


@dataclass(frozen=True)
class LogOdds:
    """Log-odds of the model, one set per block.

    Attributes
    ----------
    table
        The matches that they are about.
    match : float, (P,) or (nnz,)
        α, at least 0: one for all, of each compared pair of objects, or of each stored entry of W.
    sighting : float, (P,) or (nnz,), or None
        β − γ, likewise; None when it carries no information.
    size : (k, k), dense or CSR
        γ where two objects were compared (β when nothing is partial), else 0.
    popularity
        ρ and κ of the prior, where all objects were compared.
    sight : (5,) or None
        The rates q of the prior where not.
    extent : (k + 1,) or None
        Logarithm of the probability of every reach, where labels are local.
    births
        Logarithm of the number of labels per object there.
    """

    table: MatchTable
    match: Any
    sighting: Any
    size: Any
    popularity: tuple[float, float] = (0.5, np.inf)
    sight: Floats | None = None
    extent: Floats | None = None
    births: float = 0.0

    @cached_property
    def right(self) -> Floats:
        """α of each stored entry of W, shape (nnz,)."""
        return self.table.each(self.match)

    @property
    def by_blocks(self) -> bool:
        """Whether all matches of two objects are worth the same, and being seen is worth nothing."""
        return self.sighting is None and (np.ndim(self.match) == 0 or len(self.match) < len(self.table.indices))

    @cached_property
    def seen(self) -> Floats | None:
        """β − γ of each stored entry, shape (nnz,), or None."""
        return None if self.sighting is None else self.table.each(self.sighting)

    @cached_property
    def by_level(self) -> tuple[Floats, float]:
        """Log-odds of every level of the prior, (6,), the last for level -1; and what a newly seen label costs."""
        assert self.sight is not None
        q = np.append(self.sight, 0.5)  # at level -1 nothing is known
        return np.log(q) - np.log(1 - q), float(np.log(1 - q[0]))

    def prior(self, holders: Floats, k: int) -> Floats | float:
        """Return what the prior adds for labels that so many *other* objects hold, all k having been compared."""
        p, kappa = self.popularity
        if not np.isfinite(kappa):
            return 0.0
        return np.asarray(np.log(holders + kappa * p) - np.log(np.maximum(k - 1 - holders, 0) + kappa * (1 - p)))

    def prior_near(
        self, levels: Ints, fresh: Floats, elsewhere: NDArray[np.bool_], reach: Ints | None = None
    ) -> Floats | float:
        """Return what the prior adds where not all objects were compared; all of shape (n, d).

        Parameters
        ----------
        levels
            How many of the compared objects hold the label, see :func:`stiefelsync.sync.likelihood.counts.level`.
        fresh
            Compared objects that neither hold the label nor have another holder near.
        elsewhere
            Whether other objects hold the label.
        reach
            Of the label as others hold it, 0 for none; for `extent`.
        """
        if self.sight is None:
            return 0.0
        logit, newly = self.by_level
        begins = (levels < 0) & elsewhere
        value = logit[levels] + fresh * newly - np.where(begins, float(np.log(levels.shape[-1])), 0.0)
        if reach is not None and self.extent is not None:
            after = reach + fresh.astype(np.int64) + (levels < 0)
            value += self.extent[after] - np.where(reach > 0, self.extent[reach], -self.births)
        return np.asarray(value)

    def scores(self, U: Floats, earned: Floats) -> Floats:
        """Return S, (m, d), for soft labels U whose matches earn ``Σ_b α W_ab U_b``, in the memory of `earned`.

        O(m·d) unless partial.
        """
        table = self.table
        O = table.membership @ U
        others = O.sum(axis=0) - O
        if table.complete:
            shared = self.size @ O + self.prior(others, len(O))
        else:
            n = near(table, O)
            shared = self.size @ O + self.prior_near(level(table, n), fresh(table, O, n), others > 0.5)
        if self.seen is not None:
            M = table.by_object(0.5 * self.seen)
            earned += M @ O
            shared += M.T @ U
        for rows in some_rows(len(earned)):
            earned[rows] += shared[table.owner[rows]]
        return earned


def fresh(table: MatchTable, O: Floats, n: Floats) -> Floats:
    """Return how many objects compared with each neither hold a label nor have another holder of it near; (k, d).

    `O` says who holds what, and n = near(O) how many of the compared objects do.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> chain = MatchTable.of(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1]), 1)
    >>> O = np.array([[1.0], [0.0], [0.0]])
    >>> fresh(chain, O, near(chain, O)).ravel().tolist()
    [1.0, 1.0, 0.0]
    """
    once, never = np.maximum(1 - np.abs(n - 1), 0) * (1 - O), (1 - np.minimum(n, 1)) * (1 - O)
    return np.asarray(O * (table.compared @ once) + (1 - O) * (table.compared @ never))


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
    if blocks is not None and blocks.mixture is not None:
        P = np.clip(blocks.mixed_rates, 1e-3, 0.999)
    elif blocks is not None and np.isfinite(kappa := beta_fit(*blocks.reliability, least=0.5)[1]):
        P = np.clip((blocks.right + kappa * p) / (blocks.present + kappa), 1e-3, 0.999)

    if counts.sides is not None:
        alpha, gamma, seen = counts.sides.worth(table, counts.right, counts.present, P)
    else:
        R1 = (1 - P) * (r1 / (1 - p))
        alpha = np.log(P) - np.log(R1) + table.spread
        beta = np.log(R1) - np.log(r0)
        gamma = np.log(1 - P - R1) - np.log(1 - r0) if table.partial else beta
        seen = beta - gamma if table.partial else None
    if counts.trust is not None:
        alpha = table.each(alpha) + counts.trust.odds[table.numbers]
    size = table.between(gamma) if np.ndim(gamma) else gamma * table.compared
    return LogOdds(
        table=table,
        match=np.maximum(alpha, 0),
        sighting=seen,
        size=size,
        popularity=counts.popularity if table.complete else (0.5, np.inf),
        sight=None if counts.sight is None else counts.sight.rates,
        extent=None if counts.sight is None or counts.sight.reached is None else counts.sight.extent,
        births=0.0 if counts.sight is None else counts.sight.births,
    )


def log_likelihood(table: MatchTable, labels: Ints, counts: BlockCounts | None = None) -> float:
    """Return the log-likelihood of matches and labels, all rates and their spread fitted to the labels.

    The number of right matches of a block is beta-binomial, or of a mixture of rates where all are full permutations
    and that explains the blocks better (:mod:`stiefelsync.sync.likelihood.reliability`). The number of objects that
    hold a label (an unmatched point holds one of its own) is beta-binomial where all objects were compared; for other
    problems see `Sight`. The rest is multinomial, and weights add their own. Comparable between labellings of one
    problem; O(nnz + P·d). `counts` are those of the labels, if known.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
    >>> log_likelihood(table, np.array([0, 1, 1, 0, 0, 1])) > log_likelihood(table, np.array([0, 1, 0, 1, 0, 1]))
    True
    """
    counts = block_counts(table, labels) if counts is None else counts
    value = counts.mixture.log_likelihood if counts.mixture else beta_binomial(*counts.reliability, least=0.5)
    if counts.sight is None:
        held = np.append(counts.holders[counts.holders > 0], np.ones(int((labels < 0).sum())))
        value += beta_binomial(held, np.full(len(held), float(counts.n_objects)), least=1.0)
    else:
        value += counts.sight.log_likelihood - counts.sight.apart * np.log(table.d)
    value += 0.0 if counts.trust is None else counts.trust.gain
    if counts.sides is not None:
        return _rounded(value + counts.sides.log_likelihood(counts.right, counts.present))
    right, present = 2 * float(counts.right.sum()), 2 * float(counts.present.sum())
    wrong = max(counts.found - right, 0.0)
    stray = max(counts.matched - counts.found, 0.0)
    rest = (
        profile(wrong, max(present - counts.found, 0.0))
        + profile(stray, max(counts.rows - present - stray, 0.0))
        - (wrong + stray) * table.spread
    )
    return _rounded(value + 0.5 * rest)


def _rounded(value: float) -> float:
    """Return a multiple of 2⁻³⁰, so that labels as likely as others are not likelier on some processors."""
    return float(np.round(value * _FINE) / _FINE)
