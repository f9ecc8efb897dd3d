"""The probability that two near cells are one, from how alike they are: a mixture of two kinds of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from stiefelsync._border import typed

__all__ = ["Sameness", "fit_sameness"]

Floats = NDArray[np.float64]

FEWEST = 100  # pairs that a mixture is fitted to
MOST = 20_000  # a fit to more pairs is the same
EDGE = 1e-4  # similarities nearer to 0 and 1 count as this near
FALLBACK = 0.5  # cosine at which two cells are as likely one as not, where no mixture can be fitted
STEEP = 12.0  # and how fast the probability rises there


@dataclass(frozen=True)
class Sameness:
    """Probability of being one cell as a function of similarity.

    Attributes
    ----------
    similarity, probability : (n,)
        The function at some places, neither of them falling; straight between these.
    fitted
        Whether it was fitted to the data; else it is the same for all.
    crossing
        Similarity at which the probability is ½.
    share
        Share of the near pairs that are one cell.
    misfit
        Largest difference between the fitted and the real distribution of similarities.
    """

    similarity: Floats
    probability: Floats
    fitted: bool
    crossing: float
    share: float
    misfit: float

    def __call__(self, similarity: Floats) -> Floats:
        """Return the probabilities of similarities."""
        return np.interp(similarity, self.similarity, self.probability)


@typed
def fit_sameness(similarity: Floats) -> Sameness:
    """Fit a mixture to the similarities of near pairs, of which some are one cell and most others neighbours.

    1 − similarity is log-normal where the two are one cell and beta distributed where they are not (as in CellReg).
    Where too few pairs are given, or the two kinds cannot be told apart, the answer is a fixed curve through ½ at .5.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = fit_sameness(np.concatenate([1 - rng.lognormal(-3, 0.5, 500), rng.beta(2, 6, 500)]))
    >>> found.fitted, bool(0.6 < found.crossing < 0.95)
    (True, True)
    >>> fit_sameness(np.array([0.9, 0.2])).fitted
    False
    """
    distance = np.clip(1 - similarity[similarity > 0], EDGE, 1 - EDGE)
    if len(distance) > MOST:  # by ranks, so that nothing is drawn
        distance = np.sort(distance)[np.linspace(0, len(distance) - 1, MOST).astype(np.int64)]
    fallback = _fallback(similarity)
    if len(distance) < FEWEST:
        return fallback
    start = _start(distance)
    found = optimize.minimize(
        lambda q: -_loglikelihood(q, distance), start, method="Nelder-Mead",
        options={"maxiter": 2000, "maxfev": 2000, "xatol": 1e-3, "fatol": 1e-3 * len(distance) ** 0.5},
    )  # fmt: skip
    q = found.x
    share = float(special.expit(q[0]))
    grid = np.linspace(0.0, 1.0, 501)
    at = np.clip(1 - grid, EDGE, 1 - EDGE)
    same, other = share * _same(q, at), (1 - share) * _other(q, at)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.nan_to_num(same / (same + other))
    p = _monotone(p, same + other)
    above = np.flatnonzero(p >= 0.5)
    if not len(above) or not 0.05 < grid[above[0]] < 0.995 or not 0.02 < share < 0.98:
        return fallback
    misfit = _misfit(q, distance)
    return Sameness(grid, p, True, float(grid[above[0]]), share, misfit)


def _fallback(similarity: Floats) -> Sameness:
    grid = np.linspace(0.0, 1.0, 501)
    p = special.expit(STEEP * (grid - FALLBACK))
    share = float(np.mean(similarity > FALLBACK)) if len(similarity) else 0.0
    return Sameness(grid, p, False, FALLBACK, share, np.nan)


def _start(distance: Floats) -> Floats:
    """Return where the search begins: the lower and the upper half of the distances, by moments."""
    near, far = distance[distance < 0.5], distance[distance >= 0.5]
    near = near if len(near) > 1 else distance
    far = far if len(far) > 1 else distance
    logs, mean, spread = np.log(near), far.mean(), max(far.var(), 1e-4)
    size = max(mean * (1 - mean) / spread - 1, 2.0)
    share = np.clip(len(near) / len(distance), 0.05, 0.95)
    return np.array(
        [
            special.logit(share),
            logs.mean(),
            np.log(max(logs.std(), 0.05)),
            np.log(mean * size),
            np.log((1 - mean) * size),
        ]
    )


def _same(q: Floats, distance: Floats) -> Floats:
    """Return the log-normal density, cut off at 1."""
    spread = np.exp(q[2])
    z = (np.log(distance) - q[1]) / spread
    whole = special.ndtr(-q[1] / spread)
    return np.asarray(np.exp(-0.5 * z**2) / (distance * spread * np.sqrt(2 * np.pi) * max(whole, 1e-12)))


def _other(q: Floats, distance: Floats) -> Floats:
    """Return the beta density."""
    a, b = np.exp(np.clip(q[3:5], -5.0, 7.0))
    return np.asarray(np.exp((a - 1) * np.log(distance) + (b - 1) * np.log1p(-distance) - special.betaln(a, b)))


def _loglikelihood(q: Floats, distance: Floats) -> float:
    share = special.expit(q[0])
    density = share * _same(q, distance) + (1 - share) * _other(q, distance)
    return float(np.log(np.maximum(density, 1e-300)).sum())


def _monotone(p: Floats, weight: Floats) -> Floats:
    """Return the probabilities made to rise: the tail of the log-normal turns round where similarity is low."""
    return np.asarray(optimize.isotonic_regression(p, weights=np.maximum(weight, 1e-9)).x)


def _misfit(q: Floats, distance: Floats) -> float:
    """Return the largest difference between the two distribution functions."""
    share, spread = special.expit(q[0]), np.exp(q[2])
    at = np.sort(distance)
    a, b = np.exp(np.clip(q[3:5], -5.0, 7.0))
    whole = max(special.ndtr(-q[1] / spread), 1e-12)
    model = share * special.ndtr((np.log(at) - q[1]) / spread) / whole + (1 - share) * special.betainc(a, b, at)
    return float(np.abs(model - (np.arange(len(at)) + 0.5) / len(at)).max())
