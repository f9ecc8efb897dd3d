"""The matches of a problem, arranged so that labels can be scored quickly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from stiefelsync._core.binding import constant
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.kernels import (
    arrange_matches,
    earned_by_blocks,
    label_product,
    mark_supported,
    number_matches,
    number_partners,
    spread_values,
)

__all__ = ["MatchTable", "row_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST = 0.75  # share of the pairs from which a few without a match count as compared: small objects may share no point
_LOOKED_AT = 1 << 21  # pairs of a match and a third object that say whether rows and columns differ …
_DIFFERENT, _SURE = 0.05, 5.0  # … by at least so much, and so many standard deviations
_INDEXED = 2**30 - 1  # matches whose both entries of W 32 bits can count
_DENSE = 1000  # objects up to which a matrix over pairs of them is dense (8 MB)


@dataclass(frozen=True)
class MatchTable:
    """The matches of a problem, arranged for scoring.

    Attributes
    ----------
    matchings
        The problem.
    d
        Most labels there may be.
    indptr, indices
        Row pointers and columns of W without its diagonal, CSR of shape (m, m).
    ends : (2, M)
        Both ends of every match.
    """

    matchings: Matchings
    d: int
    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    ends: NDArray[np.int32]

    @classmethod
    def of(cls, matchings: Matchings, d: int) -> MatchTable:
        """Arrange `matchings` for at most `d` labels; O(M).

        Examples
        --------
        >>> MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2).indices.tolist()
        [2, 1]
        """
        if (M := matchings.n_matches) > _INDEXED:
            raise InputError(f"{M:,} matches are more than the {_INDEXED:,} this can index; method='tracks' takes them")
        return cls(matchings, d, *arrange_matches(matchings))

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """For every stored entry of W the number of its match; shape (nnz,)."""
        return number_matches(self)

    @cached_property
    def counted(self) -> dict[bytes, Any]:
        """What a few labellings say about the matches, by the bytes of the labels."""
        return {}

    @cached_property
    def weights(self) -> Floats:
        """The weights of the stored entries of W, scaled to mean one; shape (nnz,)."""
        if self.matchings.weights is None:
            return np.ones(len(self.indices))
        w = self.matchings.match_weights
        return (w / w.mean() if len(w) else w)[self.numbers]

    @cached_property
    def weight_scores(self) -> Floats | None:
        """Standard normal quantiles of the ranks of the matches' weights, shape (M,); None if all weights are equal."""
        w = self.matchings.weights
        if w is None or not len(w) or w.min() == w.max():
            return None
        _, inverse, counts = np.unique(w, return_inverse=True, return_counts=True)
        middle = (np.cumsum(counts) - 0.5 * counts) / len(w)
        return np.asarray(ndtri(middle)[inverse])

    @cached_property
    def owner(self) -> Ints:
        """Object of every point; shape (m,)."""
        return self.matchings.point_objects.astype(np.int64)

    @cached_property
    def pairs(self) -> Ints:
        """For every stored entry of W the number of its pair of objects; shape (nnz,)."""
        return self.matchings.match_pairs.take(self.numbers)

    @cached_property
    def partners(self) -> Ints:
        """For every stored entry of W the object of its column; shape (nnz,)."""
        return self.owner[self.indices]

    @cached_property
    def row_objects(self) -> Ints:
        """For every stored entry of W the object of its row; shape (nnz,)."""
        return np.repeat(self.owner, np.diff(self.indptr))

    @cached_property
    def cells(self) -> Ints:
        """For every stored entry of W column 1 of its row in an array of shape (m, d + 1); shape (nnz,)."""
        return np.repeat(np.arange(self.matchings.n_points) * (self.d + 1) + 1, np.diff(self.indptr))

    @cached_property
    def compared(self) -> Any:
        """1 where two objects were compared (share a match), else 0; shape (k, k), dense or CSR."""
        return self.between(np.ones(len(self.matchings.pair_objects)))

    @cached_property
    def partner_counts(self) -> Ints:
        """Number of objects each object was compared with; shape (k,)."""
        return np.bincount(self.matchings.pair_objects.ravel(), minlength=self.matchings.n_objects)

    @cached_property
    def neighbour_rows(self) -> tuple[Ints, Ints]:
        """The objects each object was compared with, as the row pointers and columns of a CSR matrix."""
        i, j = self.matchings.pair_objects.T.astype(np.int64)
        order = np.argsort(np.append(i, j), kind="stable")
        return np.append(0, np.cumsum(self.partner_counts, dtype=np.int64)), np.append(j, i)[order]

    @cached_property
    def neighbours(self) -> list[Ints]:
        """The objects each object was compared with."""
        first, objects = self.neighbour_rows
        return np.split(objects, first[1:-1])

    @cached_property
    def complete(self) -> bool:
        """Whether (nearly) all objects that have points were compared with each other."""
        k = int(np.count_nonzero(self.matchings.sizes))
        return 2 * len(self.matchings.pair_objects) >= _MOST * k * (k - 1)

    @cached_property
    def membership(self) -> Any:
        """Objects × points 0/1 matrix, CSR of shape (k, m)."""
        m, k = self.matchings.n_points, self.matchings.n_objects
        return sparse.csr_array((np.ones(m), np.arange(m), self.matchings.offsets), shape=(k, m))

    @cached_property
    def rows(self) -> int:
        """Rows of all blocks between compared objects, in both readings."""
        return int(self.partner_counts @ self.matchings.sizes)

    @cached_property
    def partial(self) -> bool:
        """Whether some point has no match in an object its own was compared with: only then X says anything."""
        return len(self.indices) < self.rows

    @cached_property
    def full(self) -> bool:
        """Whether every point has a match in (nearly) every object, and a byte can number the points of any."""
        return self.complete and not self.partial and int(self.matchings.sizes.max(initial=0)) < 255

    @cached_property
    def partner_numbers(self) -> NDArray[Any]:
        """The number, from 1, of every point's match in every object, 0 for none; shape (m, k or a little more)."""
        m, k = self.matchings.n_points, self.matchings.n_objects
        dtype = np.uint8 if self.matchings.sizes.max(initial=0) < 255 else np.uint32
        lanes = constant("row_lanes")
        numbers: NDArray[Any] = np.zeros((m, -(-k // lanes) * lanes), dtype=dtype)
        number_partners(self, numbers)
        return numbers

    @cached_property
    def sided(self) -> bool:
        """Whether rows and columns of blocks err differently, see :mod:`stiefelsync.sync.likelihood.sides`.

        Asked only where not all objects were compared. Two matched points should be matched, or not, in the same third
        objects. If they agree about third objects that come before both (whose columns both are) clearly more, or
        less, often than about those that come after both (whose rows both are), the two sides differ.
        """
        if not self.partial or self.complete:
            return False
        k, (a, b) = self.matchings.n_objects, self.ends
        some = np.arange(0, len(a), max(len(a) * k // _LOOKED_AT, 1))
        a, b = a[some], b[some]
        i, j = self.owner[a], self.owner[b]
        before, after = np.arange(k) < i[:, None], np.arange(k) > j[:, None]
        met, seen = self._rows_of(self.compared, i) * self._rows_of(self.compared, j), self.by_object(self.weights)
        same = (self._rows_of(seen, a) > 0) == (self._rows_of(seen, b) > 0)
        n = [float(np.sum(met * side)) for side in (before, after)]
        share = [float(np.sum(met * side * same)) / max(x, 1) for side, x in zip((before, after), n, strict=True)]
        return min(n) > 0 and abs(share[0] - share[1]) > max(_DIFFERENT, _SURE * (0.25 / n[0] + 0.25 / n[1]) ** 0.5)

    @staticmethod
    def _rows_of(matrix: Any, rows: Any) -> Any:
        """Return some rows of a matrix, dense or CSR, dense."""
        return matrix[rows] if isinstance(matrix, np.ndarray) else matrix[rows].toarray()

    @cached_property
    def first(self) -> Floats:
        """1 for every stored entry of W whose row belongs to the first object of the pair, else 0; shape (nnz,)."""
        return np.asarray(self.row_objects < self.partners, dtype=np.float64)

    @cached_property
    def spread(self) -> float:
        """The logarithm of n, the mean size of an object: the ways to be matched wrongly."""
        sizes = self.matchings.sizes
        return float(np.log(max(float(sizes.mean()), 1.0))) if sizes.size else 0.0

    def between(self, values: Floats) -> Any:
        """Return the symmetric matrix, shape (k, k), of one value per compared pair; CSR where k is large."""
        k = self.matchings.n_objects
        if k > _DENSE:
            i, j = self.matchings.pair_objects.T.astype(np.int64)
            both = np.append(i, j), np.append(j, i)
            return sparse.csr_array((np.append(values, values), both), shape=(k, k))
        return self._spread(values, k)

    def by_partner(self, values: Any) -> Floats:
        """Return one value for all compared pairs, or one for each, as a matrix as wide as `partner_numbers`."""
        return self._spread(values, self.partner_numbers.shape[1])

    def _spread(self, values: Any, width: int) -> Floats:
        """Return one value per compared pair as a symmetric matrix of shape (k, width)."""
        i, j = self._compared_pairs
        G = np.zeros(self.matchings.n_objects * width)
        G[i * width + j] = values
        G[j * width + i] = values
        return G.reshape(-1, width)

    @cached_property
    def _compared_pairs(self) -> tuple[Ints, Ints]:
        """Both objects of all compared pairs, shape (P,) each."""
        i, j = np.ascontiguousarray(self.matchings.pair_objects.T, np.int64)
        return i, j

    def each(self, value: Any) -> Floats:
        """Return a value for every stored entry of W, shape (nnz,), from one for all, or (P,), or (nnz,)."""
        if np.ndim(value) == 0:
            return np.full(len(self.indices), float(value))
        if len(value) == len(self.indices):
            return np.asarray(value)
        if self.matchings.n_objects <= _DENSE:
            return spread_values(self, self.between(value))
        return np.asarray(value.take(self.pairs))

    def matrix(self, values: Floats) -> Any:
        """Return the CSR matrix of shape (m, m) with W's pattern and other values."""
        m = self.matchings.n_points
        matrix = sparse.csr_array((values, self.indices, self.indptr), shape=(m, m))
        matrix.has_sorted_indices = True  # known: SciPy need not look
        return matrix

    def by_object(self, values: Floats) -> Any:
        """Return the CSR matrix of shape (m, k) with the value of each point's match in each object."""
        shape = self.matchings.n_points, self.matchings.n_objects
        return sparse.csr_array((values, self.partners, self.indptr), shape=shape)

    def occupancy(self, labels: Ints) -> Floats:
        """Return O, shape (k, d): 1 where an object holds a label."""
        O = np.zeros((self.matchings.n_objects, self.d))
        known = labels >= 0
        O[self.owner[known], labels[known]] = 1
        return O

    def product(self, labels: Ints, values: Floats, a: int = 0, b: int | None = None) -> Floats:
        """Return rows a, …, b - 1 of matrix(values) @ one_hot(labels), shape (b - a, d); O(nnz) of these rows."""
        if b is None:
            return label_product(self, labels, values)
        here = slice(self.indptr[a], self.indptr[b])
        # Unmatched neighbours (label -1) fall into a column in front, which is cut off.
        at = labels.take(self.indices[here])
        at += self.cells[here]
        at -= a * (self.d + 1)
        sums: Any = np.bincount(at, values[here], minlength=(b - a) * (self.d + 1))
        return np.asarray(sums.reshape(b - a, self.d + 1)[:, 1:])

    def earned(self, labels: Ints, match: Any) -> Floats:
        """Return what matches earn every point by each label, (m, d): `product` of values as :meth:`each` takes."""
        if not self.full or (np.ndim(match) and len(match) == len(self.indices)):
            return self.product(labels, self.each(match))
        return earned_by_blocks(self, labels, self.by_partner(match))

    def agreeing(self, labels: Ints) -> NDArray[np.bool_]:
        """Return whether a match joins equal labels, shape (M,)."""
        # Unmatched points get labels of their own, so that they agree with nobody.
        label = np.where(labels >= 0, labels, -1 - np.arange(len(labels))).astype(np.int32)
        a, b = self.ends
        return np.asarray(label.take(a) == label.take(b))

    def right(self, labels: Ints) -> Floats:
        """Return how many matches of every compared pair of objects join equal labels, shape (P,)."""
        if (known := self.counted.get(labels.tobytes())) is not None:
            return np.asarray(known.right)
        # No pair is without matches, so that every one of them has a sum of its own.
        return np.asarray(np.add.reduceat(self.agreeing(labels), self.matchings.pair_start[:-1], dtype=np.float64))

    def supported(self, labels: Ints) -> NDArray[np.bool_]:
        """Return which points have a match to a point of the same label, shape (m,); of those without a label, any."""
        return mark_supported(self, labels)

    def seen_by(self, labels: Ints, values: Floats | None = None) -> Floats:
        """Return Mᵀ U, shape (k, d), M = by_object(values), for hard labels: matches of each label per object."""
        k = self.matchings.n_objects
        at = self.partners * (self.d + 1) + np.repeat(labels + 1, np.diff(self.indptr))
        counts: Any = np.bincount(at, values, minlength=k * (self.d + 1))
        return np.asarray(counts.reshape(k, self.d + 1)[:, 1:], dtype=np.float64)

    def largest(self, labels: Ints) -> Ints:
        """Return labels, of any number, below d: those with most points, numbered by size; -1 for the others."""
        counts = np.bincount(labels[labels >= 0], minlength=1)
        largest = np.argsort(-counts, kind="stable")[: self.d]
        number = np.full(len(counts) + 1, -1)
        number[largest] = np.arange(len(largest))
        return np.asarray(number[labels])

    def one_hot(self, labels: Ints) -> Floats:
        """Return the labels as a 0/1 matrix, shape (m, d)."""
        U = np.zeros((len(labels), self.d))
        known = np.flatnonzero(labels >= 0)
        U[known, labels[known]] = 1
        return U


def row_of(matrix: Any, i: int) -> tuple[Ints, Floats]:
    """Return where row i of a matrix over pairs of objects, dense or CSR, is stored, and its values there.

    Examples
    --------
    >>> row_of(sparse.csr_array([[0.0, 2.0], [2.0, 0.0]]), 0)[1].tolist()
    [2.0]
    """
    if isinstance(matrix, np.ndarray):
        return np.arange(len(matrix)), matrix[i]
    here = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return matrix.indices[here], matrix.data[here]
