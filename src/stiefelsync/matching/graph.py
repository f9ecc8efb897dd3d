"""The graph whose vertices are points and whose edges are matches.

Components, conflicts, triangles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings

__all__ = ["Conflicts", "components", "conflicts", "connected", "countable", "numbered", "triangle_support"]

MAX_LABEL_PER_POINT = 8  # times their number up to which labels are counted as they are
_PATHS_PER_CHUNK = 20_000_000  # of the sparse product: some 300 MB at a time


@dataclass(frozen=True)
class Conflicts:
    """The connected components that hold two points of one object.

    As they are they cannot be universe points.

    Attributes
    ----------
    which : (c,) int64
        Numbers of the conflicted components, ascending.
    sizes : (c,) int64
        Points in each of them.
    n_components
        Components in all, conflicted or not.
    """

    which: NDArray[np.int64] = field(repr=False)
    sizes: NDArray[np.int64] = field(repr=False)
    n_components: int

    @property
    def count(self) -> int:
        """How many components are conflicted."""
        return len(self.which)

    @property
    def largest(self) -> int:
        """Points in the largest conflicted component, 0 when there is none."""
        return int(self.sizes.max(initial=0))

    @property
    def n_points(self) -> int:
        """Points in all conflicted components together."""
        return int(self.sizes.sum())


def components(matchings: Matchings) -> tuple[int, NDArray[np.int64]]:
    """Return the number of connected components and the component of every point.

    W is block diagonal over these components, so they are independent synchronisation problems.

    Returns
    -------
    n : int
    labels : (m,) int64
        Numbered from 0 in the order of their first point.

    Notes
    -----
    O(m + M).

    Examples
    --------
    >>> n, labels = components(Matchings.from_pairs({(0, 2): [[1, 0]]}, [2, 1, 1]))
    >>> n, labels.tolist()
    (3, [0, 1, 2, 1])
    """
    labels = numbered(connected(matchings.n_points, matchings.endpoints))
    return int(labels.max(initial=-1)) + 1, labels


def connected(m: int, ends: NDArray[Any]) -> NDArray[np.int64]:
    """Return for each of m vertices the first one of its connected component; shape (m,).

    Parameters
    ----------
    ends : (M, 2) int
        The two vertices of every edge.

    Notes
    -----
    Vectorised, in a few rounds of O(m + M); on match graphs twice as fast as SciPy, which needs a
    matrix first. Every part of this package that needs components takes them from here.

    Examples
    --------
    >>> connected(5, np.array([[1, 3], [3, 4]])).tolist()
    [0, 1, 2, 1, 1]
    """
    first, (a, b) = np.arange(m), ends.T
    while len(a):
        # Every vertex points to its smallest neighbour, if that is smaller; the trees that makes
        # are the next vertices.
        tree = np.arange(m)
        np.minimum.at(tree, np.maximum(a, b), np.minimum(a, b))
        while not np.array_equal(tree, further := tree[tree]):
            tree = further
        first, a, b = tree[first], tree[a], tree[b]
        apart = np.flatnonzero(a != b)
        a, b = a[apart], b[apart]
    return first


def countable(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return labels, (n,), 0 or more, renumbered where they are so far above n that counting would fill the memory.

    Examples
    --------
    >>> countable(np.array([5, 2, 5])).tolist(), countable(np.array([2**62, 2, 2**62])).tolist()
    ([5, 2, 5], [1, 0, 1])
    """
    if labels.max(initial=0) <= MAX_LABEL_PER_POINT * len(labels):
        return labels
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def numbered(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return labels, (m,), 0 or more, numbered from 0 in the order in which they first appear.

    Examples
    --------
    >>> numbered(np.array([7, 2, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    m = len(labels)
    first = np.empty(int(labels.max(initial=-1)) + 1, dtype=np.int64)
    # Written from the end, so that the first place of each label is written last.
    # The last write stays, and that is the first of each label.
    first[labels[::-1]] = np.arange(m - 1, -1, -1)
    first = first[labels]
    return np.asarray((np.cumsum(first == np.arange(m)) - 1)[first])


def conflicts(matchings: Matchings, component_labels: ArrayLike | None = None) -> Conflicts:
    """Find the components that hold two points of one object.

    A component without a conflict is a finished track: all its points can be one universe point.

    Parameters
    ----------
    component_labels : (m,) int, optional
        The labels from :func:`components`, if already known.

    Notes
    -----
    O(m log m).

    Examples
    --------
    >>> found = conflicts(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 2]))
    >>> found, found.count, found.largest
    (Conflicts(n_components=2), 1, 4)
    """
    labels = components(matchings)[1] if component_labels is None else np.asarray(component_labels, dtype=np.int64)
    if labels.shape != (matchings.n_points,):
        raise InputError(f"{matchings.n_points} points need as many component labels, got shape {labels.shape}")
    key = np.sort(labels * matchings.n_objects + matchings.point_objects)
    twice = key[1:][key[1:] == key[:-1]]
    which = np.unique(twice // max(matchings.n_objects, 1))
    sizes = np.bincount(labels)
    return Conflicts(which, sizes[which], int((sizes > 0).sum()))


def triangle_support(matchings: Matchings) -> NDArray[np.int64]:
    """Count for every match the points that are matched with both its ends.

    The entries of W∘W² off the diagonal.

    A wrong match rarely closes a triangle, so components of the matches with support ≥ 1 fall apart
    where the plain components are one giant.

    Returns
    -------
    support : (M,) int64

    Notes
    -----
    One sparse product, O(Σ_a deg(a)²) in time, done in row chunks so that memory stays bounded.

    Examples
    --------
    >>> triangle_support(Matchings.from_labels([0, 1, 0, 1, 0], [2, 2, 1])).tolist()
    [1, 0, 1, 1]
    """
    A: Any = _adjacency(matchings)
    A = (A + A.T).tocsr()
    A.sort_indices()
    a, b = matchings.endpoints.T
    order = np.lexsort((b, a))
    a, b = a[order], b[order]
    support = np.empty(matchings.n_matches, dtype=np.int64)
    degree = np.diff(A.indptr)
    # Row x of A² costs Σ_{y ~ x} deg(y); only rows that are a first end are needed.
    paths = np.cumsum(A @ degree)
    start = 0
    while start < len(a):
        done = paths[a[start] - 1] if a[start] else 0
        last_row = max(int(np.searchsorted(paths, done + _PATHS_PER_CHUNK, side="right")), int(a[start]) + 1)
        stop = int(np.searchsorted(a, last_row))
        rows = slice(int(a[start]), last_row)
        two_steps = A[rows] @ A
        support[order[start:stop]] = two_steps[a[start:stop] - rows.start, b[start:stop]]
        start = stop
    return support


def _adjacency(matchings: Matchings) -> sparse.csr_array:
    """Return the matches as a 0/1 matrix of shape (m, m), one entry per match."""
    a, b = matchings.endpoints.astype(np.int32).T
    ones = np.ones(matchings.n_matches, dtype=np.int32)
    return sparse.csr_array((ones, (a, b)), shape=(matchings.n_points, matchings.n_points))
