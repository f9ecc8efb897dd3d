"""The data type everything else works on: pairwise partial matchings among many objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from stiefelsync.errors import InputError, counted
from stiefelsync.matching._canonical import (
    Repair,
    as_coordinates,
    as_names,
    as_pairs,
    canonical,
    check_precision,
    check_sizes,
    check_weights,
    describe,
)

__all__ = ["Matchings"]

Int32s = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Matchings:
    """Pairwise partial matchings P_ij among k objects, at most one-to-one within each pair.

    The matches of object pair number s are rows ``pair_start[s]:pair_start[s + 1]`` of `indices`. Pairs are sorted,
    i < j, and matches within a pair are sorted by their point in i, so that equal problems are equal arrays. All
    arrays are read-only.

    Attributes
    ----------
    sizes : (k,) int32
        Points per object; zero is allowed.
    pair_objects : (P, 2) int32
        The object pairs (i, j), i < j, that have at least one match.
    pair_start : (P + 1,) int64
        Where each pair's matches begin.
    indices : (M, 2) int32
        Point in object i and point in object j of every match.
    weights : (M,) float64 or None
        Positive confidence per match; None means 1.
    names : tuple of k str, or None
        All different.
    coordinates : (m, 2) float32 or None
        Image position of every point, objects one after another.
    repair
        What was dropped to make the matches one-to-one, if anything was.

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]], (1, 2): [[0, 0]]}, sizes=[2, 2, 1])
    >>> problem
    Matchings(3 objects, 5 points, 3 matches in 2 of 3 pairs)
    >>> problem.pair(1, 0).tolist()
    [[1, 0], [0, 1]]
    """

    sizes: Int32s
    pair_objects: Int32s
    pair_start: NDArray[np.int64]
    indices: Int32s
    weights: Floats | None = None
    names: tuple[str, ...] | None = None
    coordinates: NDArray[np.float32] | None = None
    repair: Repair | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for array in (self.sizes, self.pair_objects, self.pair_start, self.indices, self.weights, self.coordinates):
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def from_arrays(
        cls,
        objects: ArrayLike,
        points: ArrayLike,
        sizes: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        one_to_many: str = "error",
    ) -> Matchings:
        """Build from flat arrays, in any order and orientation, in O(M log M) without a Python loop over matches.

        Parameters
        ----------
        objects, points : (M, 2) int
            Match t joins point ``points[t, 0]`` of object ``objects[t, 0]`` with ``points[t, 1]`` of ``objects[t, 1]``.
        one_to_many : {"error", "repair"}
            What to do when a point has two partners in one object: raise, or keep the heaviest and report (`repair`).

        Examples
        --------
        >>> Matchings.from_arrays([[1, 0]], [[4, 2]], [3, 5]).pairs()[0, 1].tolist()
        [[2, 4]]
        """
        checked = check_sizes(sizes)
        object_array, point_array = as_pairs(objects), as_pairs(points)
        if len(object_array) != len(point_array):
            raise InputError(f"{len(object_array)} object pairs do not fit {len(point_array)} point pairs")
        values = None if weights is None else check_weights(weights, len(point_array))
        called = as_names(names, len(checked))
        pair_objects, start, indices, values, repair = canonical(
            object_array, point_array, checked, values, one_to_many, called
        )
        return cls(
            checked, pair_objects, start, indices, values, called,
            as_coordinates(coordinates, int(checked.sum())), repair,
        )  # fmt: skip

    @classmethod
    def from_pairs(
        cls,
        pairs: Mapping[tuple[int, int], ArrayLike],
        sizes: ArrayLike,
        *,
        weights: Mapping[tuple[int, int], ArrayLike] | None = None,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        one_to_many: str = "error",
    ) -> Matchings:
        """Build from ``{(i, j): (K, 2) ints}``, the exchange type of structure-from-motion programs.

        Objects are numbered from 0; ``io.from_dict`` takes their names instead.

        Examples
        --------
        >>> Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], weights={(0, 1): [0.5]}).weights.tolist()
        [0.5]
        """
        if not isinstance(pairs, Mapping):
            raise InputError(f"pairs must map (i, j) to an array of shape (K, 2), got {type(pairs).__name__}")
        named = next((o for key in pairs if isinstance(key, tuple) for o in key if isinstance(o, str)), None)
        if named is not None:
            raise InputError(
                f"keys must be pairs of object numbers, got {named!r}; io.from_dict takes pairs of names, too"
            )
        blocks = {key: as_pairs(block) for key, block in pairs.items()}
        counts = [len(block) for block in blocks.values()]
        objects = np.repeat(as_pairs(list(blocks)), counts, axis=0)
        points = np.concatenate(list(blocks.values())) if blocks else np.empty((0, 2), dtype=np.int32)
        flat = None
        if weights is not None:
            if set(weights) != set(blocks):
                raise InputError("weights must have exactly the object pairs that the matches have")
            for key, block in blocks.items():
                check_weights(weights[key], len(block))
            flat = np.concatenate([np.empty(0), *(np.asarray(weights[key], dtype=np.float64) for key in blocks)])
        return cls.from_arrays(
            objects, points, sizes, weights=flat, names=names, coordinates=coordinates, one_to_many=one_to_many
        )

    @classmethod
    def from_matrix(
        cls,
        W: ArrayLike | sparse.sparray | sparse.spmatrix,
        sizes: ArrayLike,
        *,
        weighted: bool = False,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        one_to_many: str = "error",
    ) -> Matchings:
        """Build from the block matrix W = [P_ij], shape (m, m), symmetric and binary (or `weighted`).

        Diagonal blocks may be identity or zero.

        Examples
        --------
        >>> Matchings.from_matrix([[1, 0, 1], [0, 1, 0], [1, 0, 1]], [2, 1]).n_matches
        1
        """
        checked = check_sizes(sizes)
        m = int(checked.sum())
        entries: Any = sparse.coo_array(W)
        entries.sum_duplicates()
        entries.eliminate_zeros()
        if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
            raise InputError(f"the matching matrix must be square, got shape {entries.shape}")
        if entries.shape[0] != m:
            raise InputError(f"sizes add up to {m} points but the matrix has {entries.shape[0]} rows")
        data = entries.data.astype(np.float64)
        if not np.isfinite(data).all():
            raise InputError("the matching matrix holds NaN or infinite entries")
        if not weighted and (data != 1).any():
            raise InputError(
                f"the matching matrix must be binary, found {data[data != 1][0]:g}; pass weighted=True for weights"
            )
        if (entries != entries.T).nnz:
            raise InputError("the matching matrix must be symmetric: block (j, i) is the transpose of block (i, j)")
        owner = np.repeat(np.arange(len(checked), dtype=np.int32), checked)
        offsets = np.append(0, np.cumsum(checked, dtype=np.int64))
        row, col = entries.coords
        inside = (owner[row] == owner[col]) & (row != col)
        if inside.any():
            i = int(owner[row[inside][0]])
            called = describe(i, as_names(names, len(checked)))
            raise InputError(f"diagonal block ({i}, {i}) matches {called} with itself; it must be identity or zero")
        upper = row < col
        ends = np.stack([row[upper], col[upper]], axis=1)
        return cls.from_arrays(
            owner[ends], ends - offsets[owner[ends]], checked,
            weights=data[upper] if weighted else None, names=names, coordinates=coordinates, one_to_many=one_to_many,
        )  # fmt: skip

    @classmethod
    def from_labels(
        cls,
        labels: ArrayLike,
        sizes: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
    ) -> Matchings:
        """Build the consistent matchings P_ij = P_i P_jᵀ of a labelling; label -1 means unmatched.

        Parameters
        ----------
        labels : (m,) int
            Universe point of every point, objects one after another.

        Notes
        -----
        Costs as much as it returns: a universe point seen n times makes n(n-1)/2 matches.

        Examples
        --------
        >>> {key: block.tolist() for key, block in Matchings.from_labels([0, 1, 1, -1, 1], [2, 2, 1]).pairs().items()}
        {(0, 1): [[1, 0]], (0, 2): [[1, 0]], (1, 2): [[0, 0]]}
        """
        checked = check_sizes(sizes)
        flat = np.asarray(labels)
        if flat.shape != (int(checked.sum()),):
            raise InputError(f"{int(checked.sum())} points need {int(checked.sum())} labels, got shape {flat.shape}")
        if flat.size and not np.issubdtype(flat.dtype, np.integer):
            raise InputError(f"labels must be whole numbers, got {flat.dtype}")
        owner = np.repeat(np.arange(len(checked), dtype=np.int32), checked)
        offsets = np.append(0, np.cumsum(checked, dtype=np.int64))
        order = np.argsort(flat, kind="stable").astype(np.int32)
        order = order[flat[order] >= 0]
        ends = [np.empty((0, 2), dtype=np.int32)]
        step = 1
        while True:
            equal = flat[order[step:]] == flat[order[:-step]]
            if not equal.any():
                break
            ends.append(np.stack([order[:-step][equal], order[step:][equal]], axis=1))
            step += 1
        both = np.concatenate(ends)
        twice = owner[both[:, 0]] == owner[both[:, 1]]
        if twice.any():
            a, b = both[twice][0]
            called = describe(int(owner[a]), as_names(names, len(checked)))
            raise InputError(f"two points of {called} carry the same label {int(flat[b])}")
        return cls.from_arrays(owner[both], both - offsets[owner[both]], checked, names=names, coordinates=coordinates)

    @property
    def n_objects(self) -> int:
        """Number of objects k."""
        return len(self.sizes)

    @cached_property
    def n_points(self) -> int:
        """Number of points m over all objects."""
        return int(self.sizes.sum(dtype=np.int64))

    @property
    def n_matches(self) -> int:
        """Number of matches M."""
        return len(self.indices)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Global index of each object's first point, and m at the end; shape (k + 1,)."""
        return np.append(0, np.cumsum(self.sizes, dtype=np.int64))

    @cached_property
    def point_objects(self) -> Int32s:
        """Object of every point; shape (m,)."""
        return np.repeat(np.arange(self.n_objects, dtype=np.int32), self.sizes)

    @cached_property
    def match_pairs(self) -> NDArray[np.int64]:
        """For every match the row of `pair_objects` it belongs to; shape (M,)."""
        return np.repeat(np.arange(len(self.pair_objects)), np.diff(self.pair_start))

    @cached_property
    def endpoints(self) -> NDArray[np.int64]:
        """Global point indices of both ends of every match; shape (M, 2)."""
        return self.indices + self.offsets[self.pair_objects][self.match_pairs]

    @property
    def match_weights(self) -> Floats:
        """Weight of every match, ones when there are none; shape (M,)."""
        return np.ones(self.n_matches) if self.weights is None else self.weights

    def pairs(self) -> dict[tuple[int, int], Int32s]:
        """Return all matches as ``{(i, j): (K, 2) int32}`` with i < j."""
        bounds = self.pair_start.tolist()
        keys = map(tuple, self.pair_objects.tolist())
        return {key: self.indices[a:b] for key, a, b in zip(keys, bounds[:-1], bounds[1:], strict=True)}

    def pair(self, i: int, j: int) -> Int32s:
        """Return the matches between objects i and j, shape (K, 2), first column in i; empty if there are none."""
        for o in (i, j):
            if not 0 <= o < self.n_objects:
                raise InputError(f"unknown object {o}; there are {self.n_objects} objects, numbered from 0")
        s = self._pair_numbers.get((min(i, j), max(i, j)))
        block = self.indices[:0] if s is None else self.indices[self.pair_start[s] : self.pair_start[s + 1]]
        return block if i <= j else block[:, ::-1]

    @cached_property
    def _pair_numbers(self) -> dict[tuple[int, int], int]:
        return {(i, j): s for s, (i, j) in enumerate(self.pair_objects.tolist())}

    def to_matrix(self, dtype: DTypeLike = np.float64) -> sparse.csr_array:
        """Return W = [P_ij], CSR of shape (m, m), symmetric, with identity diagonal blocks; float32 or float64.

        Examples
        --------
        >>> Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1]).to_matrix("float32").toarray().tolist()
        [[1.0, 1.0], [1.0, 1.0]]
        """
        precision = check_precision(dtype, self.match_weights)
        a, b = self.endpoints.T
        own = np.arange(self.n_points)
        row, col = np.concatenate([a, b, own]), np.concatenate([b, a, own])
        value = np.concatenate([self.match_weights, self.match_weights, np.ones(self.n_points)], dtype=precision)
        return sparse.coo_array((value, (row, col)), shape=(self.n_points, self.n_points)).tocsr()

    def keep(self, mask: ArrayLike) -> Matchings:
        """Return the matchings with only the matches where `mask`, shape (M,), is true."""
        chosen = np.asarray(mask, dtype=bool)
        if chosen.shape != (self.n_matches,):
            raise InputError(f"the mask must have one entry per match ({self.n_matches}), got shape {chosen.shape}")
        return self._rebuilt(self.pair_objects[self.match_pairs[chosen]], self.indices[chosen], chosen)

    def _rebuilt(self, objects: NDArray[Any], points: NDArray[Any], chosen: NDArray[np.bool_]) -> Matchings:
        weights = None if self.weights is None else self.weights[chosen]
        pair_objects, start, indices, weights, _ = canonical(objects, points, self.sizes, weights, "error", self.names)
        return replace(self, pair_objects=pair_objects, pair_start=start, indices=indices, weights=weights, repair=None)

    def with_weights(self, weights: ArrayLike | None) -> Matchings:
        """Return the same matches with other weights, shape (M,), or none."""
        return replace(self, weights=None if weights is None else check_weights(weights, self.n_matches))

    def __getitem__(self, objects: slice | Sequence[int] | NDArray[Any]) -> Matchings:
        """Return the problem on some of the objects, in the order given.

        Examples
        --------
        >>> problem = Matchings.from_labels([0, 1, 1, 0, 1], [2, 2, 1])
        >>> problem[[2, 0]]
        Matchings(2 objects, 3 points, 1 match in 1 of 1 pair)
        """
        everything = np.arange(self.n_objects)
        chosen = everything[objects] if isinstance(objects, slice) else np.asarray(objects, dtype=np.int64)
        if chosen.ndim != 1 or len(np.unique(chosen)) != len(chosen):
            raise InputError("objects must be selected by a slice or by a list of different object numbers")
        outside = (chosen < 0) | (chosen >= self.n_objects)
        if outside.any():
            raise InputError(
                f"unknown object {int(chosen[outside][0])}; there are {self.n_objects} objects, numbered from 0"
            )
        place = np.full(self.n_objects, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        objects_of = place[self.pair_objects][self.match_pairs]
        inside = (objects_of >= 0).all(axis=1)
        spans = [np.arange(self.offsets[o], self.offsets[o + 1]) for o in chosen]
        rows = np.concatenate([np.empty(0, dtype=np.int64), *spans])
        return Matchings.from_arrays(
            objects_of[inside],
            self.indices[inside],
            self.sizes[chosen],
            weights=None if self.weights is None else self.weights[inside],
            names=None if self.names is None else [self.names[o] for o in chosen],
            coordinates=None if self.coordinates is None else self.coordinates[rows],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Matchings):
            return NotImplemented
        return self.names == other.names and all(
            (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
            for a, b in (
                (self.sizes, other.sizes),
                (self.pair_objects, other.pair_objects),
                (self.pair_start, other.pair_start),
                (self.indices, other.indices),
                (self.weights, other.weights),
                (self.coordinates, other.coordinates),
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.sizes, self.pair_objects, self.pair_start, self.indices, self.weights, self.names)
        return Matchings, (*fields, self.coordinates, self.repair)

    def __repr__(self) -> str:
        k = self.n_objects
        nouns = counted(k, "object"), counted(self.n_points, "point"), counted(self.n_matches, "match")
        return f"Matchings({', '.join(nouns)} in {len(self.pair_objects):,} of {counted(k * (k - 1) // 2, 'pair')})"
