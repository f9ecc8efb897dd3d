"""A folder of Parquet files that can be read in parts, for problems larger than memory; needs pyarrow.

``objects.parquet`` has one row per object: `size`, and `name` where objects have names. ``pairs.parquet`` has one row
per pair of objects with matches, sorted: `object_a` < `object_b` (numbers) and `count`. The files of the folder
``matches``, in order of their names, hold the matches of these pairs one after another: `point_a`, `point_b`, and
`weight` where matches have weights. ``points.parquet``, where there is one, has a row per point, objects one after
another: `x`, `y`. ``labels.parquet`` has the column `label`, -1 = unmatched, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import FormatError, InputError, MissingExtraError
from stiefelsync.io.base import Content, Format, Labels, register
from stiefelsync.io.limits import as_integers, check_bytes, check_points, regular
from stiefelsync.io.parquet_pages import weigh
from stiefelsync.io.provenance import as_text
from stiefelsync.io.tables.files import PROVENANCE
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.matchings import Matchings

__all__ = ["DATASET", "ParquetSource", "Piece", "read_labels", "write_labels", "write_pieces"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

OBJECTS, PAIRS, MATCHES, POINTS, LABELS = (
    "objects.parquet",
    "pairs.parquet",
    "matches",
    "points.parquet",
    "labels.parquet",
)
_ROWS_PER_GROUP = 131_072  # read whole, so small beside the matches of a group of objects
_ROWS_PER_FILE = 16_777_216


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet", "pyarrow", "distributed") from None
    return pyarrow, pyarrow.parquet


def sniff(path: Path) -> bool:
    """Return whether a folder holds these tables."""
    return path.is_dir() and (path / OBJECTS).exists() and (path / PAIRS).exists()


def _metadata(path: Path, *columns: str) -> Any:
    """Return the metadata of a file, once these of its columns have been weighed against its size."""
    pa, pq = _arrow()
    try:
        about = pq.read_metadata(regular(path))
    except (pa.lib.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} is not a complete Parquet file ({error}); was it cut short?") from None
    weigh(path, about, columns)
    return about


def _table(path: Path, *columns: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a small table as arrays; those that are not there are left out."""
    pa, pq = _arrow()
    about = _metadata(path, *columns)
    found = {}
    try:
        # A text that many rows share is kept once, so that its length can be asked before it is repeated.
        names = [name for name in columns if name in about.schema.names]
        with pq.ParquetFile(path, metadata=about, read_dictionary=[name for name in names if name == "name"]) as reader:
            table = reader.read(columns=names, use_threads=False)
        for name in names:
            column = table.column(name)
            if column.null_count:
                raise FormatError(f"{path}: the column {name!r} has {column.null_count} empty entries")
            if pa.types.is_dictionary(column.type):
                check_bytes(_text_bytes(column), path, f"the column {name!r}")
            found[name] = column.to_numpy()
    except (pa.lib.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} is not a complete Parquet file ({error}); was it cut short?") from None
    return found


def _text_bytes(column: Any) -> int:
    """Return how many bytes the texts of a column take when each row has its own."""
    pa, _ = _arrow()
    import pyarrow.compute as compute

    taken = 0
    for chunk in column.chunks:
        if pa.types.is_string(chunk.dictionary.type) or pa.types.is_binary(chunk.dictionary.type):
            lengths = compute.binary_length(chunk.dictionary).to_numpy(zero_copy_only=False)
            taken += sum(lengths[chunk.indices.to_numpy(zero_copy_only=False)].tolist())
    return taken


def _whole(columns: dict[str, NDArray[Any]], name: str, path: Path) -> Ints:
    """Return a column of whole numbers, at least 0."""
    if name not in columns:
        raise FormatError(f"{path} has no column {name!r}")
    column = columns[name]
    if not np.issubdtype(column.dtype, np.integer) or (len(column) and int(column.min()) < 0):
        raise FormatError(f"{path}: the column {name!r} must hold whole numbers of at least 0")
    try:
        return as_integers(column, name)
    except InputError as error:
        raise FormatError(f"{path}: {error}") from None


@dataclass(frozen=True)
class ParquetSource:
    """A dataset of which matches are read in parts.

    Attributes
    ----------
    path
        The folder.
    sizes : (k,) int64
        Points per object.
    pair_objects : (P, 2) int64
        Pairs of objects.
    counts, start : (P,) int64
        Matches of each pair, and which row is its first.
    names
        Of the objects, if they have any.
    weighted
        Whether matches have weights.
    files
        The files of matches, in order.
    """

    path: Path
    sizes: Ints
    pair_objects: Ints
    counts: Ints
    start: Ints
    names: tuple[str, ...] | None
    weighted: bool
    files: tuple[_File, ...]

    @classmethod
    def open(cls, path: str | Path) -> ParquetSource:
        """Read the index of a dataset and check that it fits its files; the matches are not read."""
        path = Path(path)
        if not sniff(path):
            raise FormatError(f"{path} is not a Parquet dataset: it needs {OBJECTS} and {PAIRS}")
        objects = _table(path / OBJECTS, "size", "name")
        pairs = _table(path / PAIRS, "object_a", "object_b", "count")
        sizes = _whole(objects, "size", path / OBJECTS)
        both = np.stack([_whole(pairs, name, path / PAIRS) for name in ("object_a", "object_b")], axis=1)
        counts = _whole(pairs, "count", path / PAIRS)
        keys = both @ np.array([max(len(sizes), 1), 1])
        if len(both) and ((both >= len(sizes)).any() or (both[:, 0] >= both[:, 1]).any() or (np.diff(keys) <= 0).any()):
            raise FormatError(f"{path / PAIRS} must hold pairs of objects object_a < object_b of {OBJECTS}, sorted")
        files = _files(path)
        # Counts are added as Python's numbers: a sum of 64 bits may wrap, and be what the files hold.
        rows, announced = sum(file.rows for file in files), sum(counts.tolist())
        if rows != announced:
            raise FormatError(f"{path} announces {announced:,} matches in {PAIRS} and holds {rows:,}")
        if not regular(path / POINTS).exists():
            check_points(sizes, 2 * rows, path)
        elif (listed := _metadata(path / POINTS, "x", "y").num_rows) != sum(sizes.tolist()):
            raise FormatError(
                f"{path / POINTS} must have the columns x and y and {sum(sizes.tolist()):,} rows, not {listed:,}"
            )
        names = tuple(map(str, objects["name"])) if "name" in objects else None
        weighted = any(file.weighted for file in files)
        return cls(path, sizes, both, counts, np.cumsum(counts) - counts, names, weighted, files)

    def only(self, pairs: Ints) -> ParquetSource:
        """Return the part of the source that knows these pairs only, renumbered."""
        return replace(
            self, pair_objects=self.pair_objects[pairs], counts=self.counts[pairs], start=self.start[pairs], names=None
        )

    def read(self, pairs: Ints) -> tuple[Ints, NDArray[np.int32], Floats | None]:
        """Return how many matches these pairs have, (p,), the matches, (K, 2), and their weights, (K,), or None."""
        counts, start = self.counts[pairs], self.start[pairs]
        indices = np.empty((int(counts.sum()), 2), dtype=np.int32)
        weights = np.empty(len(indices)) if self.weighted else None
        columns = ["point_a", "point_b", *(["weight"] if self.weighted else [])]
        joins = np.flatnonzero(start[1:] != (start + counts)[:-1]) + 1  # between them rows follow each other
        last = np.append(joins, len(pairs))[: len(pairs)] - 1
        begin, end = start[np.append(0, joins)[: len(pairs)]], (start + counts)[last]
        done = 0
        for first, table in _row_groups(self.files, columns, begin, end):
            for low, high in _overlaps(begin, end, first, first + table.num_rows):
                part = table.slice(low - first, high - low)
                for side, name in enumerate(columns[:2]):
                    indices[done : done + high - low, side] = _checked(part.column(name), self.path)
                if weights is not None:
                    weights[done : done + high - low] = _weights(part.column("weight"), self.path)
                done += high - low
        _check_points(
            indices, np.repeat(self.sizes[self.pair_objects[pairs]].reshape(-1, 2), counts, axis=0), self.path
        )
        return counts, indices, weights


def _checked(column: Any, path: Path) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy()
    if not np.issubdtype(values.dtype, np.integer) or column.null_count:
        raise FormatError(f"{path / MATCHES} must hold whole numbers as points, and none missing")
    if len(values) and (int(values.max()) > np.iinfo(np.int32).max or int(values.min()) < 0):
        raise FormatError(f"{path / MATCHES} holds a point below 0 or beyond 32 bits")
    return values


def _weights(column: Any, path: Path) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy()
    if values.dtype.kind not in "fiu" or column.null_count:
        raise FormatError(f"{path / MATCHES} must hold numbers as weights, and none missing")
    return values


def _check_points(indices: NDArray[np.int32], sizes: Ints, path: Path) -> None:
    if (indices >= sizes).any():
        row = int((indices >= sizes).any(axis=1).argmax())
        raise FormatError(
            f"{path / MATCHES}: the match {indices[row].tolist()} is beyond objects of {sizes[row].tolist()}"
        )


@dataclass(frozen=True)
class _File:
    """One file of matches: its first row among all, its rows, and whether they have weights."""

    path: Path
    first: int
    rows: int
    groups: Ints
    weighted: bool


def _files(path: Path) -> tuple[_File, ...]:
    found, first = [], 0
    for name in sorted((path / MATCHES).glob("*.parquet")):
        about = _metadata(name, "point_a", "point_b", "weight")
        groups = np.array([about.row_group(g).num_rows for g in range(about.num_row_groups)], dtype=np.int64)
        columns = set(about.schema.names)
        if not {"point_a", "point_b"} <= columns:
            raise FormatError(f"{name} must have the columns point_a and point_b, and weight if matches have weights")
        found.append(_File(name, first, about.num_rows, groups, "weight" in columns))
        first += about.num_rows
    if len({file.weighted for file in found}) > 1:
        raise FormatError(f"some files of {path / MATCHES} have weights and others have none")
    return tuple(found)


def _row_groups(files: Sequence[_File], columns: list[str], begin: Ints, end: Ints) -> Iterable[tuple[int, Any]]:
    """Yield the first row and the table of each row group that meets one of the ascending ranges of rows."""
    pa, pq = _arrow()
    for file in files:
        stop = file.first + np.cumsum(file.groups)
        first = stop - file.groups
        met = np.flatnonzero(np.searchsorted(end, first, side="right") < np.searchsorted(begin, stop))
        if not len(met):
            continue
        try:
            with pq.ParquetFile(file.path) as reader:
                for number in met.tolist():
                    table = reader.read_row_group(number, columns=columns, use_threads=False)
                    if table.num_rows != file.groups[number]:
                        raise FormatError(f"{file.path} has {table.num_rows:,} rows where it announces others")
                    yield int(first[number]), table
        except (pa.lib.ArrowException, OSError, ValueError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{file.path} is damaged: {error}") from None


def _overlaps(begin: Ints, end: Ints, low: int, high: int) -> list[tuple[int, int]]:
    """Return the parts of ascending, disjoint ranges that lie in low … high - 1."""
    first, last = np.searchsorted(end, low, side="right"), np.searchsorted(begin, high)
    spans = zip(begin[first:last].tolist(), end[first:last].tolist(), strict=True)
    return [(max(a, low), min(b, high)) for a, b in spans if max(a, low) < min(b, high)]


@dataclass(frozen=True)
class Piece:
    """Pairs of objects, (p, 2), how many matches each has, (p,), the matches, (K, 2), and weights, (K,), or None."""

    pair_objects: NDArray[Any]
    counts: NDArray[Any]
    indices: NDArray[Any]
    weights: NDArray[Any] | None = None


def write_pieces(
    path: str | Path,
    sizes: ArrayLike,
    pieces: Iterable[Piece],
    *,
    names: Sequence[str] | None = None,
    coordinates: NDArray[Any] | None = None,
) -> None:
    """Write a dataset piece by piece, so that it never is in memory whole.

    Parameters
    ----------
    path
        A folder, made if need be.
    sizes : (k,) int
        Points per object.
    pieces
        The matches, pairs of objects ascending from piece to piece. They are taken as they come: nothing is checked.
    """
    pa, pq = _arrow()
    path = Path(path)
    for folder in (path, path / MATCHES):  # not the one around it: whoever removed that did not want it back
        folder.mkdir(exist_ok=True)
    pairs, counts, writer, rows, n_files = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)], None, 0, 0
    for piece in pieces:
        pairs.append(np.asarray(piece.pair_objects, dtype=np.int64))
        counts.append(np.asarray(piece.counts, dtype=np.int64))
        columns = {
            name: pa.array(piece.indices[:, side], pa.int32()) for side, name in ((0, "point_a"), (1, "point_b"))
        }
        if piece.weights is not None:
            columns["weight"] = pa.array(piece.weights, pa.float64())
        table = pa.table(columns)
        if writer is None or rows >= _ROWS_PER_FILE:
            if writer is not None:
                writer.close()
            name, rows, n_files = path / MATCHES / f"part-{n_files:05d}.parquet", 0, n_files + 1
            writer = pq.ParquetWriter(name, table.schema, compression="lz4", use_dictionary=False)
        writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
        rows += table.num_rows
    if writer is not None:
        writer.close()
    both = np.concatenate(pairs)
    columns = {"object_a": both[:, 0], "object_b": both[:, 1], "count": np.concatenate(counts)}
    pq.write_table(pa.table(columns), path / PAIRS)
    objects: dict[str, Any] = {"size": np.asarray(sizes, dtype=np.int64)}
    pq.write_table(pa.table(objects if names is None else objects | {"name": list(names)}), path / OBJECTS)
    if coordinates is not None:
        pq.write_table(pa.table({"x": coordinates[:, 0], "y": coordinates[:, 1]}), path / POINTS)


def read(path: Path, *, one_to_many: OneToMany = "error") -> Matchings:
    """Read a whole dataset."""
    source = ParquetSource.open(path)
    counts, indices, weights = source.read(np.arange(len(source.counts)))
    coordinates = None
    if (path / POINTS).is_file():
        columns = _table(path / POINTS, "x", "y")
        if len(columns) < 2 or any(column.dtype.kind not in "fiu" for column in columns.values()):
            raise FormatError(f"{path / POINTS} must have the columns x and y, of numbers")
        coordinates = np.stack([columns["x"], columns["y"]], axis=1)
    return Matchings.from_arrays(
        np.repeat(source.pair_objects, counts, axis=0), indices, source.sizes,
        weights=weights, names=source.names, coordinates=coordinates, one_to_many=one_to_many,
    )  # fmt: skip


def write(content: Content, path: Path, *, like: Path | None) -> None:
    """Write a dataset, and the labels where they are known."""
    matchings = content.matchings
    piece = Piece(matchings.pair_objects, np.diff(matchings.pair_start), matchings.indices, matchings.weights)
    write_pieces(path, matchings.sizes, [piece], names=matchings.names, coordinates=matchings.coordinates)
    if content.labels is not None:
        write_labels(content.labels, path / LABELS, content.provenance)


def write_labels(labels: Labels, path: Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Write labels, shape (m,), as a Parquet file that may say what made them."""
    pa, pq = _arrow()
    table = pa.table({"label": labels})
    if provenance is not None:
        table = table.replace_schema_metadata({PROVENANCE: as_text(provenance).encode()})
    pq.write_table(table, path, compression="lz4", row_group_size=8 * _ROWS_PER_GROUP)


def read_labels(path: str | Path) -> Labels:
    """Return the labels of a file, or of a dataset that has them; shape (m,).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_labels(np.array([0, -1, 0]), Path(folder, "labels.parquet"))
    ...     read_labels(folder).tolist()
    [0, -1, 0]
    """
    path = Path(path)
    path = path / LABELS if path.is_dir() else path
    columns = _table(path, "label")
    if "label" not in columns or not np.issubdtype(columns["label"].dtype, np.integer):
        raise FormatError(f"{path} has no column 'label' of whole numbers")
    return columns["label"].astype(np.int64)


DATASET = register(Format("dataset", "a folder of Parquet files, read in parts", (".dataset",), sniff, read, write))
