"""The data type everything else works on: pairwise partial matchings among many objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike
from scipy import sparse

from stiefelsync.errors import InputError
from stiefelsync.matching import _flat
from stiefelsync.matching._arrays import Int32s, MatchArrays
from stiefelsync.matching._canonical import (
    OneToMany,
    as_coordinates,
    as_names,
    as_pairs,
    canonical,
    check_sizes,
    check_weights,
    sort_matches,
)
from stiefelsync.matching._typed import typed

__all__ = ["Matchings"]


class Matchings(MatchArrays):
    """Pairwise partial matchings P_ij among k objects, at most one-to-one within each pair.

    The matches of object pair number s are rows ``pair_start[s]:pair_start[s + 1]`` of `indices`. Pairs are sorted,
    i < j, and matches within a pair are sorted by their point in i, so that equal problems are equal arrays. All
    arrays are read-only. Called directly, the class checks that its arguments are so and copies them; the
    ``from_…`` methods take matches in any order.

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
        """Build from global point indices, shape (M, 2), objects one after another: what `endpoints` gives back.

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

        Objects are numbered from 0; ``io.from_dict`` takes their names instead. Every row is a match: a permutation
        *matrix* belongs to :meth:`from_blocks`.

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
        """Build from the block matrix W = [P_ij], shape (m, m), symmetric and binary (or `weighted`).

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
        """Build from one matrix P_ij, shape (n_i, n_j), dense or sparse, per object pair; nonzero entries are matches.

        Parameters
        ----------
        blocks : {(i, j): (n_i, n_j)}, or (k, k, n, n)
            Either orientation of a pair will do; if both are given they must be each other's transpose.
        sizes : (k,) int, optional
            Points per object; by default as the blocks say. What a tensor holds beyond them is ignored.
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
        """Build from similarities: in every pair of objects choose one-to-one matches among the scores S_ij.

        Parameters
        ----------
        scores : {(i, j): (n_i, n_j)}, or (k, k, n, n)
            The larger, the more alike; of any sign, and any number of them large. -inf means impossible.
        sizes : (k,) int, optional
            Points per object; by default as the blocks say. What a tensor holds beyond them is ignored.
        threshold
            Only scores above it can become matches.
        assign : {"hungarian", "mutual"}
            The matches of largest total gain over the threshold, or those that are the largest of row and column.
        weighted
            Give every match its score as weight (less the threshold where that is negative: weights are positive).

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
        flat = _flat.flat_labels(labels, checked, called)
        # Labels make matches of existing points, i < j and one-to-one: only their order is open.
        *layout, _ = sort_matches(flat.objects, flat.points, checked)
        at = as_coordinates(coordinates, int(checked.sum()))
        return object.__new__(cls)._set(checked, *layout, None, called, at, None)

    @classmethod
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
            A dict of columns, a frame of pandas, polars or Arrow, a relation of DuckDB, or whatever knows Arrow's
            interface ``__arrow_c_stream__``. Splink's columns are found by name, and ``id_left,id_right,score``; ids
            may be of any type and are kept in `records`. Scores are probabilities.
        columns
            The columns to take where names do not tell: ``"id,id,score"`` or ``"source,id,source,id,score"``.
        threshold
            Probability below which pairs are ignored; by default 0.3 where sources are free of duplicates, else 0,
            since an improbable pair is evidence, too.
        duplicates
            Whether sources may hold several records of one thing, or the names of those which may. By default those
            do inside which pairs were scored, and a single source.
        sources
            Names of the left and the right source where the table has no such columns and the ids are of two sources.
        prefix
            What stands between source and id in the ids, where it does: Splink's ``"-__-"``.

        Returns
        -------
        Matchings
            Of sources free of duplicates, each an object, with the best one-to-one choice in every pair of them; or,
            where some may hold duplicates, of records, each an object of one point, with every pair.

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
