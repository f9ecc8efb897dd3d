"""The model: how likely matches and labels are. docs/method/model.md explains it with the same names.

Of two compared objects i < j call a point of i a *row* and one of j a *column*. C labels are held
by both. Of these R are matched with each other, each with probability p, the reliability of the
pair. The other w matches are strays: they join any rows and columns that are left over, and each
side is matched at rates of its own,

    t₁ = λθ / (1 + λθ)  of what has a partner on the other side,   t₀ = λ / (1 + λ)  of what has none,

where λ is such that w are expected, and θ, of rows and of columns, is the same for all pairs. With
θ = 1 it tells nothing that a point is matched, and with θ = ∞ only points that have a partner are
ever matched. The w! ways to pair off strays are alike. So against two labels each held by one of
the objects alone, two points that carry the same label are worth

    log p + log w − log t₀ − log t₀'                              if they are matched with each other,
    log(1 − p) + log(t₁/t₀)  or  log((1 − t₁)/(1 − t₀))           if not, by whether the row is matched
               + log(t₁'/t₀')  or  log((1 − t₁')/(1 − t₀'))       and whether the column is.

Labels have a prior that follows the graph of comparisons. Objects are put in an order; u is the
share of the earlier compared objects, weighted by how much they overlap, that hold label c, and f
whether none, one or more earlier objects that were *not* compared hold it. An object holds c with
probability π[f, u] where u > 0. A label that no earlier compared object holds begins there, at a
rate β; if it has begun before it comes back, which costs as much as being one among all labels.

All rates are fitted to the labels on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, xlog1py, xlogy

from stiefelsync._core.binding import constant
from stiefelsync.sync.likelihood.observations import Observations

__all__ = ["Counts", "Rates", "beta_fit", "first_rates", "fit_rates", "log_posterior"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Log-odds are multiples of so little that their sums are exact, in whatever order.
_GRID = 2.0**20
_THETA_DEVIATION, _MAX_THETA = 3.0, 6.0  # of the prior on log θ, and its limit: row noise has ∞
_FEW_STRAYS = 0.25  # pseudo-counts on either side, so that no rate is 0 or 1
_LEAST_RATE = 1e-3
_LEAST_CONCENTRATION = 0.5
# Neighbours, in units of the usual weight, that tell objects apart by how many labels begin there.
_NEIGHBOURS = np.array([1, 2, 3, 5, 9, 17, 33])
# Rates to begin with, before labels say anything.
_FIRST_P, _FIRST_STRAYS, _FIRST_BIRTHS = 0.5, 0.3, 1.0
_STEEPEST = 4.0  # log-odds that a standard deviation of the weights' ranks may be worth


@dataclass(frozen=True)
class Counts:
    """What labels say of the matches and of who sees what.

    Attributes
    ----------
    right, both, rows, columns : (P,)
        Of every pair R, C, and how many of the C rows and columns are matched at all.
    held, absent : (reaches · bins,)
        Objects that hold a label, and that do not, by f and u.
    begun : (k,)
        Labels that begin or come back in an object.
    returns
        How many of these come back.
    labels
        Number of labels.
    """

    right: Floats
    both: Floats
    rows: Floats
    columns: Floats
    held: Floats
    absent: Floats
    begun: Floats
    returns: float
    labels: int


@dataclass(frozen=True)
class Rates:
    """The rates of the model, as kernels take them.

    Attributes
    ----------
    log_theta : (2,)
        Of rows and of columns.
    worth : (P, 5)
        What two points of one label are worth: matched with each other; else row unmatched, row
        matched, column unmatched, column matched (the first two with log(1 − p)).
    held, absent : (reaches · bins,)
        log π and log(1 − π).
    birth : (k,)
        log β.
    back
        What it costs a label to come back, beyond β.
    """

    log_theta: tuple[float, float]
    worth: Floats
    held: Floats
    absent: Floats
    birth: Floats
    back: float


def beta_fit(hits: Floats, trials: Floats) -> tuple[float, float]:
    """Return mean p and concentration κ of a beta distribution of success rates, by moments.

    κ is infinite where rates differ no more than by chance.

    Parameters
    ----------
    hits, trials : (n,)
        Successes among trials of each of n binomial variables.

    Examples
    --------
    >>> beta_fit(np.array([5.0, 5.0]), np.array([10.0, 10.0]))
    (0.5, inf)
    >>> beta_fit(np.array([0.0, 10.0] * 50), np.full(100, 10.0))[1]
    0.5
    """
    hits, trials = hits[trials > 0], trials[trials > 0]
    if not len(trials):
        return _FIRST_P, np.inf
    share, p = trials / trials.sum(), float(hits.sum() / trials.sum())
    chance = float(share @ (p * (1 - p) / trials))
    # What chance does is known to √(2/n) of itself: two of these are left out.
    excess = float(share @ (hits / trials - p) ** 2) - chance * (1 + 2 * (2 / len(trials)) ** 0.5)
    return p, np.inf if excess <= 1e-6 else max(p * (1 - p) / excess - 1, _LEAST_CONCENTRATION)


def stray_rates(partnered: Floats, single: Floats, strays: Floats, log_theta: float) -> tuple[Floats, Floats]:
    """Return t₁ and t₀, (P,), at which `strays` are expected among left-over points of one side.

    With x = λ and q = θ this solves ``n₁ q x / (1 + q x) + n₀ x / (1 + x) = w``, a quadratic
    equation.

    Examples
    --------
    >>> t1, t0 = stray_rates(np.array([4.0]), np.array([6.0]), np.array([5.0]), 0.0)
    >>> float(t1[0]), float(t0[0])
    (0.5, 0.5)
    """
    q = np.exp(log_theta)
    square = q * (partnered + single - strays)
    linear = partnered * q + single - strays * (1 + q)
    root = np.sqrt(linear**2 + 4 * square * strays)
    # Of the two ways to write the positive root the one without cancellation.
    x = np.where(linear > 0, 2 * strays / (linear + root), (root - linear) / (2 * square))
    return q * x / (1 + q * x), x / (1 + x)


def first_rates(seen: Observations) -> Rates:
    """Return the rates to begin with where labels say nothing yet: half of all labels are matched."""
    P, bins, reaches = len(seen.pairs), constant("bins"), constant("reaches")
    si, sj = seen.sizes[seen.pairs].T.astype(np.float64)
    strays = _FIRST_STRAYS * np.minimum(si, sj)
    none = np.zeros(P)
    worth = _worth(np.full(P, _FIRST_P), (none, si), (none, sj), strays, (0.0, 0.0))[0]
    pi = np.tile(0.2 + 0.6 * np.arange(bins) / (bins - 1), reaches)
    return Rates(
        (0.0, 0.0), _rounded(worth), _rounded(np.log(pi)), _rounded(np.log1p(-pi)),
        np.full(len(seen.sizes), np.log(_FIRST_BIRTHS)), float(_rounded(-np.log(len(seen.owner) + 1.0))),
    )  # fmt: skip


def fit_rates(seen: Observations, counts: Counts, before: Rates) -> Rates:
    """Return the rates that fit labels, from what these say; θ takes one step of Newton's method."""
    si, sj = seen.sizes[seen.pairs].T.astype(np.float64)
    R, C = counts.right, counts.both
    strays = seen.matched - R
    # The reliability of a pair is drawn towards that of all, the more so the less pairs differ.
    p, kappa = (R.sum() + 2) / (C.sum() + 3), beta_fit(R, C)[1]
    P = (R + kappa * p) / (C + kappa) if np.isfinite(kappa) else np.full(len(R), p)
    P = np.clip(P, _LEAST_RATE, 1 - _LEAST_RATE)
    worth, gradients = _worth(P, (C - R, si - C), (C - R, sj - C), strays, before.log_theta)
    matched = counts.rows - R, counts.columns - R
    theta = tuple(
        _next_theta(old, float((x - expected).sum()), curvature)
        for old, x, (expected, curvature) in zip(before.log_theta, matched, gradients, strict=True)
    )
    # Who sees what: shares, drawn a little towards the share u itself.
    bins, reaches = constant("bins"), constant("reaches")
    usual = np.tile(0.05 + 0.9 * (np.arange(bins) + 0.5) / bins, reaches)
    pi = np.clip((counts.held + usual) / (counts.held + counts.absent + 1), 1e-4, 1 - 1e-4)
    kind = np.searchsorted(_NEIGHBOURS, seen.earlier, side="right")
    births = np.bincount(kind, counts.begun, minlength=len(_NEIGHBOURS) + 1)
    beta = (births + 0.5) / (np.bincount(kind, minlength=len(_NEIGHBOURS) + 1) + 1)
    share = (counts.returns + 0.5) / (counts.begun.sum() + 1)
    return Rates(
        (theta[0], theta[1]), _rounded(worth), _rounded(np.log(pi)), _rounded(np.log1p(-pi)),
        _rounded(np.log(beta[kind])), float(_rounded(np.log(share / max(counts.labels, 1)))),
    )  # fmt: skip


def fit_slope(ranks: Floats, agree: NDArray[np.bool_]) -> float:
    """Return what a standard deviation of the rank of a match's weight is worth in log-odds, at least 0.

    Right and wrong matches have normal ranks of means μ₁, μ₀ and one variance σ²: (μ₁ − μ₀)/σ²,
    less what chance may have done: times t²/(1 + t²), t being the difference in standard errors.

    Parameters
    ----------
    ranks : (M,)
        Normal scores of the ranks within every pair of objects.
    agree : (M,)
        Whether the match joins equal labels.

    Examples
    --------
    >>> fit_slope(np.array([-1.0, -0.5, 0.5, 1.0] * 9), np.array([True, False, True, False] * 9))
    0.0
    """
    n1 = int(agree.sum())
    n0 = len(agree) - n1
    if min(n0, n1) < 2:
        return 0.0
    gap = float(ranks[agree].mean() - ranks[~agree].mean())
    variance = float((ranks[agree].var() * n1 + ranks[~agree].var() * n0) / (n0 + n1)) + 1e-9
    if gap <= 0:
        return 0.0
    t2 = gap**2 / (variance * (1 / n0 + 1 / n1))
    return min(gap / variance * t2 / (1 + t2), _STEEPEST)


def log_posterior(seen: Observations, counts: Counts, rates: Rates) -> float:
    """Return how likely matches and labels are together, but for a constant of the problem.

    The reliabilities of pairs are integrated out (beta-binomial), and strays are those of one side
    given how many there are on the other; weights are left out. Comparable between labels of one problem.
    """
    si, sj = seen.sizes[seen.pairs].T.astype(np.float64)
    R, C = counts.right, counts.both
    strays = seen.matched - R
    p, kappa = beta_fit(R, C)
    if np.isfinite(kappa) and 0 < p < 1:
        a, b = kappa * p, kappa * (1 - p)
        value = float((betaln(R + a, C - R + b) - betaln(a, b)).sum())
    else:
        value = float(xlogy(R, p).sum() + xlogy(C - R, 1 - p).sum())
    for n, matched, theta in ((si, counts.rows, rates.log_theta[0]), (sj, counts.columns, rates.log_theta[1])):
        n1, n0, x = C - R, n - C, matched - R
        t1, t0 = stray_rates(n1 + _FEW_STRAYS, n0 + _FEW_STRAYS, strays + _FEW_STRAYS, theta)
        value += float((xlogy(x, t1) + xlog1py(n1 - x, -t1) + xlogy(strays - x, t0)).sum())
        value += float(xlog1py(n0 - strays + x, -t0).sum())
        # Given that there are as many as on the other side: over a normal density at its mean.
        spread = 2 * np.pi * (n1 * t1 * (1 - t1) + n0 * t0 * (1 - t0))
        value += 0.5 * float(np.log(np.maximum(spread, 1)).sum())
    value -= float(gammaln(strays + 1).sum())
    value += float(counts.held @ rates.held + counts.absent @ rates.absent)
    value += float(counts.begun @ rates.birth - np.exp(rates.birth).sum() + counts.returns * rates.back)
    return float(_rounded(value))


def _worth(
    P: Floats, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats], strays: Floats, theta: tuple[float, float]
) -> tuple[Floats, list[tuple[Floats, float]]]:
    """Return what two points of one label are worth, (P, 5), and of rows and columns what θ predicts.

    Rows and columns are left-over points with and without a partner; predicted are the matched
    ones with a partner, (P,), and how fast their number grows with log θ.
    """
    logs, predicted = [], []
    for (n1, n0), log_theta in zip((rows, columns), theta, strict=True):
        n1, n0 = n1 + _FEW_STRAYS, n0 + _FEW_STRAYS
        t1, t0 = stray_rates(n1, n0, np.minimum(strays + _FEW_STRAYS, n1 + n0 - _FEW_STRAYS), log_theta)
        v1, v0 = n1 * t1 * (1 - t1), n0 * t0 * (1 - t0)
        predicted.append(((n1 - _FEW_STRAYS) * t1, float((v1 * v0 / np.maximum(v1 + v0, 1e-9)).sum())))
        t1, t0 = (np.clip(t, _LEAST_RATE, 1 - _LEAST_RATE) for t in (t1, t0))
        logs.append((np.log(t0), np.log1p(-t1) - np.log1p(-t0), np.log(t1) - np.log(t0)))
    (row, row_free, row_matched), (column, column_free, column_matched) = logs
    matched = np.log(P) - row - column + np.log(np.maximum(strays, 0.5))
    missed = np.log1p(-P)
    worth = [matched, missed + row_free, missed + row_matched, column_free, column_matched]
    return np.stack(worth, axis=1), predicted


def _next_theta(theta: float, excess: float, curvature: float) -> float:
    """Return log θ after a step of Newton's method, no longer than 2."""
    gradient = excess - theta / _THETA_DEVIATION**2
    step = gradient / (curvature + 1 / _THETA_DEVIATION**2)
    return float(np.clip(theta + np.clip(step, -2.0, 2.0), 0.0, _MAX_THETA))


def _rounded(values: Floats | float) -> Floats:
    return np.asarray(np.round(np.asarray(values) * _GRID) / _GRID)
