"""A table of matches made a dataset that is read in parts, without ever being in memory whole."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, MissingExtraError
from stiefelsync.io.csv import MATCH, number_objects
from stiefelsync.io.csv_table import Table, check_header, header_of, skip_header
from stiefelsync.io.files import replacing
from stiefelsync.io.limits import check_points, lines, regular
from stiefelsync.io.parquet import Piece, write_pieces
from stiefelsync.io.staging import staging
from stiefelsync.io.tables.files import contents
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.matchings import Matchings

__all__ = ["pack"]

Ints = NDArray[np.int64]
Tell = Callable[[str, int, int], object]

# Rows of a bucket, which are sorted together: some 50 MB while they are.
_ROWS_PER_BUCKET = 500_000
_ROWS_PER_BATCH = 250_000
_BLOCK = 2**19  # bytes of text that Arrow reads at a time; it reads some thirty of them ahead
_ENDS = ("object_a", "point_a", "object_b", "point_b")


@dataclass
class _Read:
    """What one pass over a table tells, beside its rows."""

    table: Table
    weighted: bool
    rows: int = 0
    largest: Ints = field(default_factory=lambda: np.full(0, -1, dtype=np.int64))  # point of every text


def pack(path: Path, target: Path, *, one_to_many: OneToMany = "error", tell: Tell = lambda *_: None) -> None:
    """Write the matches of a CSV, TSV or flat Parquet file as a dataset.

    Parameters
    ----------
    target
        The folder, which appears whole or not at all; there is none yet.
    tell
        Called with a stage, the steps done and all steps.

    Notes
    -----
    The rows go to a file of numbers first; then, by the first of their objects, to buckets that are
    sorted one after another. O(M log M), memory O(k + bucket), disk 16 or 24 bytes a match, twice.
    """
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("reading a table in parts", "pyarrow", "tables") from None
    with replacing(target) as staged, staging(target.parent) as folder:
        read = _spool(path, folder / "rows", tell)
        used = np.flatnonzero(read.largest >= 0)
        place, names, k = number_objects(read.table, used, path)
        if (place[used] < 0).any():
            strange = list(read.table.texts)[int(used[place[used] < 0][0])]
            raise FormatError(f"{path}: unknown object {strange.strip()!r}")
        if read.table.sizes is None:
            sizes = np.zeros(k, dtype=np.int64)
            np.maximum.at(sizes, place[used], read.largest[used] + 1)
        else:
            sizes = np.array(read.table.sizes, dtype=np.int64)
        check_points(sizes, 2 * read.rows, path)
        kind = _row(read.weighted)
        cuts = _distribute(folder, read.rows, kind, place, k, tell)

        def pieces() -> Iterator[Piece]:
            for number in range(len(cuts)):
                tell("packing", number, len(cuts))
                bucket = folder / f"bucket-{number}"
                if not bucket.exists():
                    continue
                rows = np.fromfile(bucket, dtype=kind)
                bucket.unlink()
                try:
                    made = Matchings.from_arrays(
                        np.stack([rows["object_a"], rows["object_b"]], axis=1),
                        np.stack([rows["point_a"], rows["point_b"]], axis=1),
                        sizes,
                        weights=rows["weight"] if read.weighted else None,
                        names=names,
                        one_to_many=one_to_many,
                    )
                except InputError as error:
                    raise FormatError(f"{path}: {error}") from None
                yield Piece(made.pair_objects, np.diff(made.pair_start), made.indices, made.weights)
            tell("packing", len(cuts), len(cuts))

        write_pieces(staged, sizes, pieces(), names=names)
    pyarrow.default_memory_pool().release_unused()


def _row(weighted: bool) -> np.dtype[Any]:
    """Return the type of a row of numbers."""
    ends = [(name, np.int32) for name in _ENDS]
    return np.dtype([*ends, ("weight", np.float64)] if weighted else ends)


def _spool(path: Path, rows: Path, tell: Tell) -> _Read:
    """Write the rows of a table as numbers, objects as numbers of their texts, and return what else it tells."""
    delimiter, header = header_of(path)
    check_header(path, header, MATCH)
    weighted = "weight" in header
    kind = _row(weighted)
    read = _Read(Table({}, {}), weighted)
    batches = _text_batches(path, header, delimiter, read, tell) if delimiter else _parquet_batches(path, read, tell)
    with rows.open("wb") as file:
        for columns in batches:
            some = np.empty(len(columns["point_a"]), dtype=kind)
            for end in "ab":
                codes = _codes(columns[f"object_{end}"], read)
                points = _points(columns[f"point_{end}"], f"point_{end}", path)
                np.maximum.at(read.largest, codes, points)
                some[f"object_{end}"], some[f"point_{end}"] = codes, points
            if weighted:
                weight = columns["weight"].to_numpy(zero_copy_only=False)
                if columns["weight"].null_count or not (np.isfinite(weight) & (weight > 0)).all():
                    raise FormatError(f"{path}: every weight must be a positive and finite number")
                some["weight"] = weight
            some.tofile(file)
            read.rows += len(some)
    return read


def _codes(column: Any, read: _Read) -> Ints:
    """Return the numbers of the texts of a column, new texts getting new numbers."""
    import pyarrow

    if not pyarrow.types.is_dictionary(column.type):
        column = column.cast(pyarrow.string()).dictionary_encode()
    texts = read.table.texts
    places = [texts.setdefault(text or "", len(texts)) for text in column.dictionary.to_pylist()]
    if len(texts) > len(read.largest):
        more = np.full(max(len(texts), 2 * len(read.largest)) - len(read.largest), -1, dtype=np.int64)
        read.largest = np.append(read.largest, more)
    codes: Ints = np.array(places, dtype=np.int64)[column.indices.to_numpy(zero_copy_only=False)]
    return codes


def _points(column: Any, name: str, path: Path) -> Ints:
    values: Ints = column.to_numpy(zero_copy_only=False)
    if column.null_count or values.dtype.kind not in "iu":
        raise FormatError(f"{path}: {name} must hold whole numbers, and none missing")
    if len(values) and (int(values.min()) < 0 or int(values.max()) >= 2**31):
        raise FormatError(f"{path}: {name} holds a number below 0 or beyond 32 bits; points are numbered from 0")
    return values


def _text_batches(path: Path, header: list[str], delimiter: str, read: _Read, tell: Tell) -> Iterator[Any]:
    """Yield the columns of text, some rows at a time, by name."""
    import pyarrow as pa
    from pyarrow import csv as quick

    with path.open(encoding="utf-8-sig", newline="") as file:
        read.table = skip_header(csv.reader(lines(file, path), delimiter=delimiter, strict=True), header, path)
    kinds = {name: pa.float64() if name == "weight" else pa.int64() for name in header}
    kinds |= dict.fromkeys(("object_a", "object_b"), pa.dictionary(pa.int32(), pa.string()))
    with path.open("rb") as file:
        quoted = any(b'"' in block for block in iter(lambda: file.read(2**20), b""))
    total = path.stat().st_size
    try:
        with regular(path).open("rb") as file:
            reader = quick.open_csv(
                file,
                quick.ReadOptions(
                    skip_rows=read.table.start, column_names=header, block_size=_BLOCK, use_threads=False
                ),
                quick.ParseOptions(delimiter=delimiter, newlines_in_values=quoted),
                quick.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=False),
            )
            for batch in reader:
                yield {name: batch.column(n) for n, name in enumerate(header)}
                tell("reading", min(file.tell(), total), total)
    except (pa.lib.ArrowException, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise FormatError(f"{path} is no table of matches that can be read in parts: {error}") from None


def _parquet_batches(path: Path, read: _Read, tell: Tell) -> Iterator[Any]:
    """Yield the columns of a Parquet file, some rows at a time, by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = contents(path)
    said = about.about
    read.table.sizes = said["sizes"] if isinstance(said.get("sizes"), list) else None
    read.table.names = said["names"] if isinstance(said.get("names"), list) else None
    try:
        with pq.ParquetFile(regular(path)) as reader:
            done, total = 0, reader.metadata.num_rows
            for batch in reader.iter_batches(_ROWS_PER_BATCH, use_threads=False):
                yield {name.strip().lower(): batch.column(n) for n, name in enumerate(batch.schema.names)}
                done += batch.num_rows
                tell("reading", done, total)
    except (pa.lib.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise FormatError(f"{path} is not a complete Parquet file ({error}); was it cut short?") from None


def _distribute(folder: Path, n: int, kind: np.dtype[Any], place: NDArray[np.int32], k: int, tell: Tell) -> Ints:
    """Put rows into files by the smaller of their objects; return the objects at which the files begin."""
    per_object = np.zeros(k, dtype=np.int64)

    def batches() -> Iterator[NDArray[Any]]:
        with (folder / "rows").open("rb") as file:
            while len(rows := np.fromfile(file, dtype=kind, count=_ROWS_PER_BATCH)):
                rows["object_a"], rows["object_b"] = place[rows["object_a"]], place[rows["object_b"]]
                yield rows

    for rows in batches():
        per_object += np.bincount(np.minimum(rows["object_a"], rows["object_b"]), minlength=k)
    # A file begins where the rows before it fill as many files as there are before it.
    before = np.cumsum(per_object) - per_object
    cuts = np.flatnonzero(np.diff(before // _ROWS_PER_BUCKET, prepend=-1))
    done = 0
    for rows in batches():
        bucket = np.searchsorted(cuts, np.minimum(rows["object_a"], rows["object_b"]), side="right") - 1
        order = np.argsort(bucket, kind="stable")
        ends = np.flatnonzero(np.diff(bucket[order], append=-1)) + 1
        for first, last in zip(np.append(0, ends[:-1]).tolist(), ends.tolist(), strict=True):
            with (folder / f"bucket-{bucket[order[first]]}").open("ab") as file:
                rows[order[first:last]].tofile(file)
        done += len(rows)
        tell("sorting", done, n)
    (folder / "rows").unlink()
    return cuts
