"""How reliable blocks are: rates of right matches that are beta distributed, or a mixture where that fits far better.

Along a video near blocks have no mistakes at all and far ones many. A beta distribution has to stand for both, and
takes a mistake in a near block for nearly as likely as one more in a far block. A mixture of fixed rates, its shares
fitted to the blocks, tells them apart: breaking a block that is right then costs what it should.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlogy

__all__ = ["Mixture", "beta_binomial", "beta_fit", "fit_mixture"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_RATES = np.concatenate([[0.02], np.arange(1, 19) * 0.05, [0.93, 0.96, 0.98, 0.99, 0.999]])
_ITERATIONS = 100
_COUNTED = 1 << 16  # numbers up to which sorting is done by counting
_EVEN = 100.0  # concentration beyond which blocks are so alike that no mixture is looked for


@dataclass(frozen=True)
class Mixture:
    """Rates of blocks that take one of fixed values.

    Attributes
    ----------
    shares : (n,)
        Share of the blocks of each of the rates.
    log_likelihood
        Of the blocks it was fitted to, less ½ log(number of blocks) for every share.
    """

    shares: Floats
    log_likelihood: float

    def rates(self, hits: Floats, trials: Floats) -> Floats:
        """Return the posterior mean of every block's rate, shape (P,)."""
        kinds, _, which = _kinds(hits, trials)
        Q = np.exp(_log_rates(*kinds)[0]) * self.shares
        return np.asarray(Q @ _RATES / Q.sum(axis=1))[which]


def fit_mixture(hits: Floats, trials: Floats) -> Mixture | None:
    """Return the mixture of fixed rates that explains so many hits in so many trials, shapes (P,), best.

    By expectation and maximisation. None where a beta distribution does as well, or the blocks are alike.

    Examples
    --------
    >>> hits = np.array([30.0] * 500 + [15.0] * 500)
    >>> fit_mixture(hits, np.full(1000, 30.0)).rates(np.array([28.0, 16.0]), np.array([30.0, 30.0])).round(2).tolist()
    [1.0, 0.5]
    >>> fit_mixture(np.full(9, 15.0), np.full(9, 30.0)) is None
    True
    """
    if not beta_fit(hits, trials, least=0.5)[1] < _EVEN:
        return None
    kinds, n, _ = _kinds(hits, trials)
    L, top = _log_rates(*kinds)
    E, shares, total, n = np.exp(L), np.full(len(_RATES), 1 / len(_RATES)), float(n.sum()), n.astype(np.float64)
    for _ in range(_ITERATIONS):
        shares = shares * ((n / (E @ shares)) @ E) / total
    value = float(n @ (np.log(E @ shares) + top)) - 0.5 * (len(_RATES) - 1) * float(np.log(total))
    return Mixture(shares, value) if value > beta_binomial(hits, trials, least=0.5) else None


def _kinds(hits: Floats, trials: Floats) -> tuple[tuple[Floats, Floats], Ints, Ints]:
    """Return the different pairs of whole numbers of hits and trials, (n,) each, how often each is, and which, (P,)."""
    width = int(trials.max(initial=0)) + 1
    key = (hits * width + trials).astype(np.int64)
    if width**2 > _COUNTED:
        kinds, which, n = np.unique(key, return_inverse=True, return_counts=True)
    else:
        counts = np.bincount(key, minlength=1)
        kinds, which = np.flatnonzero(counts), (np.cumsum(counts > 0) - 1)[key]
        n = counts[kinds]
    return ((kinds // width).astype(np.float64), (kinds % width).astype(np.float64)), n, which


def _log_rates(hits: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Return the log-likelihood of every block at every rate, (P, n), less its maximum, and that, (P,)."""
    L = np.outer(hits, np.log(_RATES)) + np.outer(trials - hits, np.log(1 - _RATES))
    top = L.max(axis=1)
    return L - top[:, None], top


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


def beta_binomial(hits: Floats, trials: Floats, *, least: float) -> float:
    """Return the log-likelihood of sequences with so many hits, whole numbers, at the fitted beta distribution.

    Examples
    --------
    >>> beta_binomial(np.array([4.0, 4.0]), np.array([4.0, 4.0]), least=1.0)
    0.0
    """
    p, kappa = beta_fit(hits, trials, least=least)
    a, b = kappa * p, kappa * (1 - p)
    if np.isfinite(kappa) and a > 0 and b > 0:
        (hits, trials), n, _ = _kinds(hits, trials)
        return float(n @ (betaln(hits + a, trials - hits + b) - betaln(a, b)))
    return float(xlogy(hits, p).sum() + xlogy(trials - hits, 1 - p).sum())
