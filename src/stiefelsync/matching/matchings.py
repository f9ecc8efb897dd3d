"""The data type everything else works on: pairwise partial matchings among many objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from stiefelsync._border import typed
from stiefelsync._core.binding import call
from stiefelsync._html import facts
from stiefelsync.errors import InputError, counted
from stiefelsync.matching import _flat
from stiefelsync.matching._canonical import (
    OneToMany,
    Repair,
    as_array,
    as_coordinates,
    as_labels,
    as_names,
    as_pairs,
    canonical,
    check_layout,
    check_precision,
    check_sizes,
    check_weights,
)
from stiefelsync.matching.records import Records

__all__ = ["Matchings"]

Int32s = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Matchings:
    """Pairwise partial matchings P_ij among k objects, at most one-to-one within each pair.

    The matches of object pair number s are rows ``pair_start[s]:pair_start[s + 1]`` of `indices`.
    Pairs are sorted, i < j, and matches within a pair are sorted by their point in i, so that equal
    problems are equal arrays. All arrays are read-only. Called directly, the class checks that its
    arguments are so and copies them; the ``from_…`` methods take matches in any order.

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
    records : Records or None
        Whose the points are, where they are records of tables; given by :meth:`with_records`.
    n_objects, n_points, n_matches : int
        Numbers of objects k, of points m over all objects, and of matches M.

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
    n_objects: int = field(init=False, compare=False)
    n_points: int = field(init=False, compare=False)
    n_matches: int = field(init=False, compare=False)
    records: Records | None = field(default=None, init=False, compare=False)

    @typed
    def __post_init__(self) -> None:
        sizes = check_sizes(self.sizes)
        names = as_names(self.names, len(sizes))
        weights = None if self.weights is None else check_weights(self.weights, len(self.indices))
        layout = check_layout(sizes, self.pair_objects, self.pair_start, self.indices, weights, names)
        self._set(sizes, *layout, names, as_coordinates(self.coordinates, int(sizes.sum())), self.repair)

    def _set(self, *values: Any) -> Self:
        """Fill the fields in their order and count; arrays are canonical and nobody else's."""
        named = dict(zip(_GIVEN, values, strict=True))
        counts = {
            "n_objects": len(named["sizes"]),
            "n_points": int(named["sizes"].sum(dtype=np.int64)),
            "n_matches": len(named["indices"]),
        }
        for name, value in (named | counts).items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)
        return self

    def _with(self, **changes: Any) -> Self:
        """Return a copy with some fields changed to values that need no check."""
        changed = object.__new__(type(self))._set(*(changes.get(name, getattr(self, name)) for name in _GIVEN))
        if "sizes" in changes:
            return changed
        other = not changes.keys().isdisjoint(("pair_objects", "pair_start", "indices", "weights"))
        return changed._described(self.records.without_scores() if self.records is not None and other else self.records)

    def _described(self, records: Records | None) -> Self:
        """Say whose the points are, in place, which only who made these matchings may do."""
        object.__setattr__(self, "records", records)
        return self

    @typed
    def with_records(self, records: Records | None) -> Self:
        """Return the same matches of points that are records, or of plain points.

        Records have sources and ids of their own.

        Examples
        --------
        >>> from stiefelsync import Matchings
        >>> from stiefelsync.matching.records import Records
        >>> records = Records(("a", "b"), np.array([0, 1]), np.array([7, 9]), np.array([True, True]))
        >>> Matchings.from_labels([0, 0], [1, 1]).with_records(records).records.ids.tolist()
        [7, 9]
        """
        if records is not None and len(records) != self.n_points:
            raise InputError(f"{self.n_points:,} points need as many records, got {len(records):,}")
        return self._with()._described(records)

    @classmethod
    def _checked(
        cls,
        flat: _flat.Flat,
        sizes: Int32s,
        *,
        names: Sequence[str] | None,
        coordinates: ArrayLike | None,
        one_to_many: OneToMany = "error",
    ) -> Matchings:
        """Bring flat arrays into canonical form."""
        called = as_names(names, len(sizes))
        *layout, repair = canonical(flat.objects, flat.points, sizes, flat.weights, one_to_many, called)
        at = as_coordinates(coordinates, int(sizes.sum()))
        return object.__new__(cls)._set(sizes, *layout, called, at, repair)

    @classmethod
    @typed
    def from_arrays(
        cls,
        objects: ArrayLike,
        points: ArrayLike,
        sizes: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        one_to_many: OneToMany = "error",
    ) -> Matchings:
        """Build from flat arrays, in any order and orientation.

        O(M log M), without a Python loop over matches.

        Parameters
        ----------
        objects, points : (M, 2) int
            Match t joins point ``points[t, 0]`` of object ``objects[t, 0]`` with ``points[t, 1]``
            of ``objects[t, 1]``.
        one_to_many : {"error", "repair"}
            What to do when a point has two partners in one object: raise, or keep the heaviest and
            report (`repair`).

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
        flat = _flat.Flat(object_array, point_array, values)
        return cls._checked(flat, checked, names=names, coordinates=coordinates, one_to_many=one_to_many)

    @classmethod
    @typed
    def from_endpoints(
        cls,
        ends: ArrayLike,
        sizes: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        one_to_many: OneToMany = "error",
    ) -> Matchings:
        """Build from global point indices, shape (M, 2), objects one after another.

        What `endpoints` gives back.

        Examples
        --------
        >>> Matchings.from_endpoints([[6, 2]], [3, 5]).pairs()[0, 1].tolist()
        [[2, 3]]
        """
        checked = check_sizes(sizes)
        flat = _flat.flat_endpoints(ends, checked)
        if weights is not None:
            flat = flat._replace(weights=check_weights(weights, len(flat.points)))
        return cls._checked(flat, checked, names=names, coordinates=coordinates, one_to_many=one_to_many)

    @classmethod
    @typed
    def from_pairs(
        cls,
        pairs: Mapping[tuple[int, int], ArrayLike],
        sizes: ArrayLike,
        *,
        weights: Mapping[tuple[int, int], ArrayLike] | None = None,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        one_to_many: OneToMany = "error",
    ) -> Matchings:
        """Build from ``{(i, j): (K, 2) ints}``, the usual type of structure-from-motion programs.

        Objects are numbered from 0; ``io.from_dict`` takes their names instead. Every row is a
        match: a permutation *matrix* belongs to :meth:`from_blocks`.

        Examples
        --------
        >>> Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], weights={(0, 1): [0.5]}).weights.tolist()
        [0.5]
        """
        checked, flat = check_sizes(sizes), _flat.flat_pairs(pairs, weights)
        return cls._checked(flat, checked, names=names, coordinates=coordinates, one_to_many=one_to_many)

    @classmethod
    @typed
    def from_matrix(
        cls,
        W: ArrayLike | sparse.sparray | sparse.spmatrix,
        sizes: ArrayLike,
        *,
        weighted: bool = False,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        one_to_many: OneToMany = "error",
    ) -> Matchings:
        """Build from the block matrix W = [P_ij], (m, m), symmetric and binary (or `weighted`).

        Diagonal blocks may be identity or zero.

        Examples
        --------
        >>> Matchings.from_matrix([[1, 0, 1], [0, 1, 0], [1, 0, 1]], [2, 1]).n_matches
        1
        """
        checked = check_sizes(sizes)
        called = as_names(names, len(checked))
        flat = _flat.flat_matrix(W, checked, weighted=weighted, names=called)
        return cls._checked(flat, checked, names=called, coordinates=coordinates, one_to_many=one_to_many)

    @classmethod
    @typed
    def from_blocks(
        cls,
        blocks: Mapping[tuple[int, int], Any] | ArrayLike,
        sizes: ArrayLike | None = None,
        *,
        weighted: bool = False,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        one_to_many: OneToMany = "error",
    ) -> Matchings:
        """Build from one matrix P_ij, shape (n_i, n_j), dense or sparse, per object pair.

        Nonzero entries are matches.

        Parameters
        ----------
        blocks : {(i, j): (n_i, n_j)}, or (k, k, n, n)
            Either orientation of a pair will do; if both are given they must be each other's
            transpose.
        sizes : (k,) int, optional
            Points per object; by default as the blocks say. What a tensor holds beyond them is
            ignored.
        weighted
            Take the entries for weights; otherwise they must be 0 or 1.
        one_to_many : {"error", "repair"}
            As for :meth:`from_arrays`.

        Examples
        --------
        >>> Matchings.from_blocks({(0, 1): [[0, 1], [1, 0]]}).pair(0, 1).tolist()
        [[0, 1], [1, 0]]
        """
        flat, checked = _flat.flat_blocks(blocks, sizes, weighted=weighted)
        if flat.weights is not None:
            check_weights(flat.weights, len(flat.points))
        return cls._checked(flat, checked, names=names, coordinates=coordinates, one_to_many=one_to_many)

    @classmethod
    @typed
    def from_scores(
        cls,
        scores: Mapping[tuple[int, int], ArrayLike] | ArrayLike,
        sizes: ArrayLike | None = None,
        *,
        threshold: float = 0.0,
        assign: _flat.Assign = "hungarian",
        weighted: bool = True,
        names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
    ) -> Matchings:
        """Build from similarities S_ij: in every pair of objects choose one-to-one matches.

        Parameters
        ----------
        scores : {(i, j): (n_i, n_j)}, or (k, k, n, n)
            The larger, the more alike; of any sign, and any number of them large. -inf means
            impossible.
        sizes : (k,) int, optional
            Points per object; by default as the blocks say. What a tensor holds beyond them is
            ignored.
        threshold
            Only scores above it can become matches.
        assign : {"hungarian", "mutual"}
            The matches of largest total gain over the threshold, or those that are the largest of
            row and column.
        weighted
            Give every match its score as weight (less the threshold where that is negative: weights
            are positive).

        Notes
        -----
        O(n³) per pair with "hungarian", O(n²) with "mutual".

        Examples
        --------
        >>> Matchings.from_scores({(0, 1): [[0.9, 0.8], [0.7, -0.2]]}).pair(0, 1).tolist()
        [[0, 1], [1, 0]]
        >>> Matchings.from_scores({(0, 1): [[0.9, 0.8], [0.7, -0.2]]}, assign="mutual").weights.tolist()
        [0.9]
        """
        flat, checked = _flat.flat_scores(scores, sizes, threshold=threshold, assign=assign, weighted=weighted)
        return cls._checked(flat, checked, names=names, coordinates=coordinates)

    @classmethod
    @typed
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
        called = as_names(names, len(checked))
        layout = _flat.Tracks.of(labels, checked).layout(0, len(checked), called)
        at = as_coordinates(coordinates, int(checked.sum()))
        return object.__new__(cls)._set(checked, *layout, None, called, at, None)

    @classmethod
    @typed
    def from_networkx(cls, graph: Any, *, weight: str = "weight", one_to_many: OneToMany = "error") -> Matchings:
        """Build from a graph of networkx whose nodes are (object, id) and whose edges are matches.

        Parameters
        ----------
        weight
            Attribute of the edges that is their weight, where all have it.
        one_to_many : {"error", "repair"}
            As for :meth:`from_arrays`.

        Returns
        -------
        Matchings
            Objects are named and sorted; the ids, of any type, are kept in `records`.
        """
        from stiefelsync.matching.networks import from_networkx  # which needs this class

        return from_networkx(graph, weight=weight, one_to_many=one_to_many)

    @typed
    def to_networkx(self) -> Any:
        """Return a `networkx.Graph`: nodes (object, id), edges with the attribute ``weight``.

        Needs networkx.
        """
        from stiefelsync.matching.networks import to_networkx  # which needs this class

        return to_networkx(self)

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        weights = None if self.weights is None else f"{self.weights.min(initial=1):.3g} to {self.weights.max():.3g}"
        told = {
            "objects": self.n_objects,
            "points": self.n_points,
            "matches": self.n_matches,
            "pairs of objects": len(self.pair_objects),
            "weights": weights if self.n_matches else None,
            "positions": self.coordinates is not None,
        }
        return facts("Matchings", told)

    @classmethod
    @typed
    def from_table(
        cls,
        table: Any,
        *,
        columns: str | Sequence[str] | None = None,
        threshold: float | None = None,
        duplicates: bool | str | Sequence[str] | None = None,
        sources: str | Sequence[str] | None = None,
        prefix: str | None = None,
    ) -> Matchings:
        """Build from a table of scored pairs of records, such as record linkage programs make.

        Parameters
        ----------
        table
            A dict of columns, a frame of pandas, polars or Arrow, a relation of DuckDB, or whatever
            knows Arrow's interface ``__arrow_c_stream__``. Splink's columns are found by name, and
            ``id_left,id_right,score``; ids may be of any type and are kept in `records`. Scores are
            probabilities.
        columns
            The columns to take where names do not tell: ``"id,id,score"`` or
            ``"source,id,source,id,score"``.
        threshold
            Probability below which pairs are ignored; by default none are, since an improbable pair
            is evidence, too, and only the matches of clean sources are chosen among those of 0.3
            and more.
        duplicates
            Whether sources may hold several records of one thing, or the names of those which may.
            By default those do inside which pairs were scored, and a single source.
        sources
            Names of the left and the right source where the table has no such columns and the ids
            are of two sources.
        prefix
            What stands between source and id in the ids, where it does: Splink's ``"-__-"``.

        Returns
        -------
        Matchings
            Of sources free of duplicates, each an object, with the best one-to-one choice in every
            pair of them as matches, and all pairs in ``records.scored``; or, where some may hold
            duplicates, of records, each an object of one point, with every pair.

        Examples
        --------
        >>> table = {"id_left": ["a", "a"], "id_right": ["x", "y"], "score": [0.9, 0.6]}
        >>> problem = Matchings.from_table(table, sources="shop,shelf")
        >>> problem, problem.records.ids.tolist()
        (Matchings(2 objects, 3 points, 1 match in 1 of 1 pair), ['a', 'x', 'y'])
        >>> Matchings.from_table(table)
        Matchings(3 objects, 3 points, 2 matches in 2 of 3 pairs)
        """
        from stiefelsync.matching.table import from_table  # which needs this class

        return from_table(
            table, columns=columns, threshold=threshold, duplicates=duplicates, sources=sources, prefix=prefix
        )

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Global index of each object's first point, and m at the end; shape (k + 1,)."""
        return _read_only(np.append(0, np.cumsum(self.sizes, dtype=np.int64)))

    @cached_property
    def point_objects(self) -> Int32s:
        """Object of every point; shape (m,)."""
        return _read_only(np.repeat(np.arange(self.n_objects, dtype=np.int32), self.sizes))

    @cached_property
    def match_pairs(self) -> NDArray[np.int64]:
        """For every match the row of `pair_objects` it belongs to; shape (M,)."""
        return _read_only(np.repeat(np.arange(len(self.pair_objects)), np.diff(self.pair_start)))

    @cached_property
    def endpoints(self) -> NDArray[np.int64]:
        """Global point indices of both ends of every match; shape (M, 2)."""
        ends = np.repeat(self.offsets[self.pair_objects], np.diff(self.pair_start), axis=0)
        ends += self.indices
        return _read_only(ends)

    @cached_property
    def match_keys(self) -> NDArray[np.int64]:
        """One number per match, a·m + b for global points a < b.

        Equal for equal matches of equal sizes; shape (M,).
        """
        return _read_only(self.endpoints @ np.array([self.n_points, 1]))

    @property
    def match_weights(self) -> Floats:
        """Weight of every match, ones when there are none; shape (M,)."""
        return np.ones(self.n_matches) if self.weights is None else self.weights

    @typed
    def pairs(self) -> dict[tuple[int, int], Int32s]:
        """Return all matches as ``{(i, j): (K, 2) int32}`` with i < j."""
        bounds = self.pair_start.tolist()
        keys = map(tuple, self.pair_objects.tolist())
        return {key: self.indices[a:b] for key, a, b in zip(keys, bounds[:-1], bounds[1:], strict=True)}

    @typed
    def pair(self, i: int, j: int) -> Int32s:
        """Return the matches between objects i and j, shape (K, 2), first column in i.

        Empty if there are none.
        """
        for o in (i, j):
            if not 0 <= o < self.n_objects:
                raise InputError(f"unknown object {o}; there are {self.n_objects} objects, numbered from 0")
        s = self._pair_numbers.get((min(i, j), max(i, j)))
        block = self.indices[:0] if s is None else self.indices[self.pair_start[s] : self.pair_start[s + 1]]
        return block if i <= j else block[:, ::-1]

    @cached_property
    def _pair_numbers(self) -> dict[tuple[int, int], int]:
        return {(i, j): s for s, (i, j) in enumerate(self.pair_objects.tolist())}

    @typed
    def to_matrix(self, dtype: DTypeLike = np.float64) -> sparse.csr_array:
        """Return W = [P_ij], CSR of shape (m, m), symmetric, with identity diagonal blocks.

        Float32 or float64.

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

    @typed
    def agreeing(self, labels: ArrayLike) -> Bools:
        """Return which matches join two points of the same label, shape (M,).

        Label -1 agrees with nothing.

        Parameters
        ----------
        labels : (m,) int

        Examples
        --------
        >>> Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2]).agreeing([5, -1, 5, -1]).tolist()
        [True, False]
        """
        given = np.ascontiguousarray(as_labels(labels, self.n_points), np.int64)
        ends, agree = self.endpoints, np.empty(self.n_matches, dtype=bool)
        call("find_agreeing", ends, len(ends), given, agree)
        return agree

    @typed
    def shared_with(self, other: Matchings) -> Bools:
        """Return which matches `other`, among objects of the same sizes, has too; shape (M,).

        Examples
        --------
        >>> two = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2])
        >>> two.shared_with(two.keep([False, True])).tolist()
        [False, True]
        """
        if not np.array_equal(self.sizes, other.sizes):
            raise InputError("the two have objects of different sizes")
        return np.isin(self.match_keys, other.match_keys, assume_unique=True)

    @typed
    def keep(self, mask: ArrayLike) -> Self:
        """Return the matchings with only the matches where `mask`, shape (M,), is true; O(M).

        Examples
        --------
        >>> Matchings.from_labels([0, 1, 1, 0], [2, 2]).keep([False, True]).pair(0, 1).tolist()
        [[1, 0]]
        """
        chosen = np.asarray(mask, dtype=bool)
        if chosen.shape != (self.n_matches,):
            raise InputError(f"the mask must have one entry per match ({self.n_matches}), got shape {chosen.shape}")
        counts = np.add.reduceat(chosen, self.pair_start[:-1], dtype=np.int64)
        left, rows = counts > 0, np.flatnonzero(chosen)
        return self._with(
            pair_objects=self.pair_objects[left],
            pair_start=np.append(0, np.cumsum(counts[left], dtype=np.int64)),
            indices=self.indices.take(rows, axis=0),
            weights=None if self.weights is None else self.weights[rows],
            repair=None,
        )

    @typed
    def with_weights(self, weights: ArrayLike | None) -> Self:
        """Return the same matches with other weights, shape (M,), or none."""
        return self._with(weights=None if weights is None else check_weights(weights, self.n_matches))

    @typed
    def __getitem__(self, objects: slice | Sequence[int] | NDArray[Any]) -> Self:
        """Return the problem on some of the objects, in the order given.

        Examples
        --------
        >>> problem = Matchings.from_labels([0, 1, 1, 0, 1], [2, 2, 1])
        >>> problem[[2, 0]]
        Matchings(2 objects, 3 points, 1 match in 1 of 1 pair)
        """
        if isinstance(objects, slice):
            chosen = np.arange(self.n_objects)[objects]
        else:
            given = as_array(objects, "objects")
            whole = not given.size or np.issubdtype(given.dtype, np.integer)
            chosen = given.astype(np.int64) if whole else np.empty((0, 0), dtype=np.int64)
        if chosen.ndim != 1 or len(np.unique(chosen)) != len(chosen):
            raise InputError("objects must be selected by a slice or by a list of different object numbers")
        outside = (chosen < 0) | (chosen >= self.n_objects)
        if outside.any():
            raise InputError(
                f"unknown object {int(chosen[outside][0])}; there are {self.n_objects} objects, numbered from 0"
            )
        place = np.full(self.n_objects, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        part = self.keep((place[self.pair_objects].min(axis=1, initial=0) >= 0)[self.match_pairs])
        pair_objects = place[part.pair_objects]
        sizes = self.sizes[chosen]
        names = None if self.names is None else tuple(self.names[o] for o in chosen.tolist())
        at, records = None, None
        if self.coordinates is not None or self.records is not None:
            first = self.offsets[chosen] - np.append(0, np.cumsum(sizes, dtype=np.int64))[:-1]
            points = np.repeat(first, sizes) + np.arange(sizes.sum(dtype=np.int64))
            at = None if self.coordinates is None else self.coordinates[points]
            records = None if self.records is None else self.records[points]
        if (np.diff(chosen) > 0).all():  # the order of objects, and so that of matches, stays
            return part._with(sizes=sizes, pair_objects=pair_objects, names=names, coordinates=at)._described(records)
        *layout, _ = canonical(pair_objects[part.match_pairs], part.indices, sizes, part.weights, "error", names)
        return object.__new__(type(self))._set(sizes, *layout, names, at, None)._described(records)

    @typed
    def only_pairs(self, which: NDArray[np.int64]) -> Self:
        """Return all objects with the matches of some pairs only.

        The numbers of these pairs are given, ascending; O(those matches).

        Examples
        --------
        >>> from stiefelsync import Matchings
        >>> Matchings.from_labels([0, 0, 0], [1, 1, 1]).only_pairs(np.array([1]))
        Matchings(3 objects, 3 points, 1 match in 1 of 3 pairs)
        """
        counts = np.diff(self.pair_start)[which]
        stop = np.cumsum(counts)
        rows = np.repeat(self.pair_start[which] - stop + counts, counts) + np.arange(int(counts.sum()))
        return self._with(
            pair_objects=self.pair_objects[which],
            pair_start=np.append(0, stop),
            indices=self.indices[rows],
            weights=None if self.weights is None else self.weights[rows],
            repair=None,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Matchings):
            return NotImplemented
        mine, theirs = ([getattr(x, at.name) for at in fields(x) if at.compare] for x in (self, other))
        # For tuples of names and for None, array_equal is plain equality.
        return all((a is None) == (b is None) and np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        made = _restored, (type(self), *(getattr(self, name) for name in _GIVEN))
        return made if self.records is None else (*made, {"records": self.records})

    def __repr__(self) -> str:
        k = self.n_objects
        nouns = counted(k, "object"), counted(self.n_points, "point"), counted(self.n_matches, "match")
        return f"Matchings({', '.join(nouns)} in {len(self.pair_objects):,} of {counted(k * (k - 1) // 2, 'pair')})"


_GIVEN = tuple(at.name for at in fields(Matchings) if at.init)
"""What matchings are made from; all else follows."""


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that is kept for whoever asks, which nobody may change."""
    array.setflags(write=False)
    return array


def _restored(cls: type[Matchings], *values: Any) -> Matchings:
    """Return what was pickled, whose arrays are canonical."""
    return object.__new__(cls)._set(*values)
