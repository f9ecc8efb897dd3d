"""Pairs of points that may be one, with the probability that they are: what is known before anything is decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings

__all__ = ["Candidates"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of points of different objects, and how probably each pair is one thing; all other pairs are not.

    Attributes
    ----------
    sizes : (k,) int
        Points per object.
    ends : (n, 2) int
        Global point indices, that of the earlier object first.
    p : (n,)
        Probability that the two are one.
    names : tuple of k str
        Of the objects.

    Examples
    --------
    >>> found = Candidates(np.array([2, 2]), np.array([[0, 2], [0, 3], [1, 3]]), np.array([0.9, 0.8, 0.7]), ("a", "b"))
    >>> found.matchings(0.3).pair(0, 1).tolist()
    [[0, 0], [1, 1]]
    """

    sizes: Ints
    ends: Ints
    p: Floats
    names: tuple[str, ...]

    @typed
    def __post_init__(self) -> None:
        if self.ends.shape != (len(self.p), 2) or len(self.names) != len(self.sizes):
            raise InputError(f"{len(self.p)} probabilities do not fit pairs of shape {self.ends.shape}")

    @property
    def objects(self) -> Ints:
        """Object of every point, (m,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @typed
    def matchings(self, threshold: float = 0.3) -> Matchings:
        """Choose one-to-one matches of largest total gain p − threshold in every pair of objects.

        Parameters
        ----------
        threshold
            Only pairs more probable than this can become matches; their probabilities become weights.

        Notes
        -----
        Choices are independent between connected parts, of a few points each, so nothing of n × n is made.
        """
        if not 0 <= threshold < 1:
            raise InputError(f"the threshold is {threshold}; it must be a probability, 0 or more and below 1")
        above = self.p > threshold
        ends, p = self.ends[above], self.p[above]
        chosen = _best(ends, self.objects[ends], p - threshold)
        return Matchings.from_endpoints(ends[chosen], self.sizes, weights=p[chosen], names=self.names)


def _best(ends: Ints, objects: Ints, gain: Floats) -> NDArray[np.bool_]:
    """Return which pairs are chosen, no point twice for one other object."""
    if not len(ends):
        return np.zeros(0, dtype=bool)
    # A point of one pair of objects is another node in every other pair of objects.
    pair = objects[:, 0] * (int(objects.max()) + 1) + objects[:, 1]
    span = int(ends.max()) + 1
    _, node = np.unique((pair[:, None] * span + ends).ravel(), return_inverse=True)
    a, b = node.reshape(-1, 2).T
    n = int(node.max()) + 1
    _, part = connected_components(sparse.coo_array((np.ones(len(a)), (a, b)), shape=(n, n)), directed=False)
    part = part[a]
    size = np.bincount(part)
    chosen: NDArray[np.bool_] = size[part] == 1
    rest = np.flatnonzero(~chosen)
    rest = rest[np.argsort(part[rest], kind="stable")]
    for group in np.split(rest, np.flatnonzero(np.diff(part[rest])) + 1) if len(rest) else ():
        rows, i = np.unique(a[group], return_inverse=True)
        columns, j = np.unique(b[group], return_inverse=True)
        table, which = np.zeros((len(rows), len(columns))), np.full((len(rows), len(columns)), -1)
        table[i, j], which[i, j] = gain[group], group
        taken = which[linear_sum_assignment(table, maximize=True)]
        chosen[taken[taken >= 0]] = True
    return chosen
