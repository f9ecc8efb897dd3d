"""Scores that are probabilities: what they are worth, and how sure an answer is of every point by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings

__all__ = ["MISSING", "OFFSET", "are_probabilities", "log_odds", "match_values", "move_confidence"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A pair that nobody scored was improbable, or fell through the blocks: -0.25 to -1 are equally good, for matches
# without weights, too; with 0 a table of likely pairs alone (.3 and more) loses .1 to .2 of fscore.
MISSING = -0.5
# Scores of a bad record are too low all at once, so a pair needs less than even odds: on simulated records .5 is best,
# 0 and 1 lose up to .01 of fscore. Pairs that were never scored are no judgements and have no such bonus.
OFFSET = 0.5
_SUREST = 1e-6  # no single score is surer than this, from either side
# What sums of log-odds are worth beside those of independent judgements: with it the confidence of simulated records
# (datasets.records, where a bad record spoils all its scores) is theirs, within .05, up to .98.
_TOGETHER = 0.6


def are_probabilities(matchings: Matchings) -> bool:
    """Return whether matches have weights that can be probabilities.

    Examples
    --------
    >>> are_probabilities(Matchings.from_labels([0, 0], [1, 1]))
    False
    """
    return matchings.weights is not None and float(matchings.weights.max(initial=0)) <= 1


def match_values(matchings: Matchings, offset: float = OFFSET) -> NDArray[np.float64]:
    """Return the value of every match, (M,).

    Weights of at most 1 are probabilities and become log-odds, plus the `offset`. Matches without weights are worth 1
    each, and larger weights are measured in units of their median.

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], weights={(0, 1): [0.5]})
    >>> match_values(problem)
    array([0.5])
    """
    if matchings.weights is None:
        return np.ones(matchings.n_matches)
    if not are_probabilities(matchings):
        return np.asarray(matchings.weights / np.median(matchings.weights))
    return log_odds(matchings.weights, offset)


def log_odds(probability: Floats, offset: float = 0.0) -> Floats:
    """Return log p / (1 - p) + `offset`, (M,), with no p surer than one in a million.

    Examples
    --------
    >>> log_odds(np.array([0.5, 0.8])).round(2).tolist()
    [0.0, 1.39]
    """
    p = np.clip(probability, _SUREST, 1 - _SUREST)
    return np.asarray(np.log(p / (1 - p)) + offset)


def move_confidence(ends: Ints, values: Floats, labels: Ints, missing: float = 0.0) -> Floats:
    """Return for every vertex the odds, as a probability, of its cluster against the best other place; shape (n,).

    The other place is the cluster it is worth most to, or none. Where values are log-odds of judgements it estimates
    the probability that the vertex belongs where it is, all other vertices being right. Judgements of pairs that share
    a vertex err together, so their sum counts as less than if they were independent.

    Examples
    --------
    >>> ends, values = np.array([[0, 1], [1, 2]]), np.log([9.0, 1 / 4])
    >>> move_confidence(ends, values, np.array([0, 0, 1])).round(2).tolist()
    [0.79, 0.79, 0.7]
    """
    width = int(labels.max(initial=-1)) + 1
    both = np.concatenate([ends, ends[:, ::-1]])
    ways, which = np.unique(both[:, 0] * width + labels[both[:, 1]], return_inverse=True)
    worth = np.bincount(which, np.concatenate([values, values]), len(ways))
    vertex, cluster = np.divmod(ways, max(width, 1))
    home = cluster == labels[vertex]
    size = np.bincount(labels, minlength=1)
    worth += missing * (size[cluster] - home - np.bincount(which, minlength=len(ways)))
    own = missing * (size[labels] - 1.0)
    own[vertex[home]] = worth[home]
    # Somebody alone may only go elsewhere; all others may also be alone, which is worth nothing.
    other = np.where(size[labels] > 1, 0.0, -np.inf)
    np.maximum.at(other, vertex[~home], worth[~home])
    return np.asarray(1 / (1 + np.exp(np.clip(_TOGETHER * (other - own), -700, 700))))
