"""Files whose matches are read in parts, by many processes at once."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import FormatError, InputError, unknown_name
from stiefelsync.io.colmap.read_rows import MAX_IMAGES, TABLES, check_tables, load_names
from stiefelsync.io.limits import guarded
from stiefelsync.io.parquet import ParquetSource
from stiefelsync.io.parquet import sniff as is_dataset
from stiefelsync.io.sqlite import is_sqlite, snapshot
from stiefelsync.matching.matchings import Matchings

__all__ = ["ColmapSource", "FileSource", "open_source"]

Ints = NDArray[np.int64]

_IDS_PER_QUERY = 500  # SQLite allows 999 parameters in old versions


@dataclass(frozen=True)
class ColmapSource:
    """A COLMAP database of which matches are read by pair_id.

    Keypoint positions are not read: matches count by the cycles they close alone.

    Attributes
    ----------
    path, table
        The database, and which of its tables of matches is read.
    sizes : (k,) int64
        Keypoints of the images, in order of their ids.
    names
        Of the images.
    pair_objects, counts : (P, 2), (P,) int64
        Pairs of images, and how many matches each has.
    pair_ids : (P,) int64
        What the database calls the pairs.
    """

    path: Path
    table: str
    sizes: Ints
    names: tuple[str, ...] | None
    pair_objects: Ints
    counts: Ints
    pair_ids: Ints
    weighted: bool = False

    @classmethod
    @typed
    def open(cls, path: str | Path, *, source: str | None = None) -> ColmapSource:
        """Read which images and pairs there are.

        `source` is the table, by default the verified matches if any.
        """
        path = Path(path)
        if source is not None and source not in TABLES:
            raise unknown_name("source", source, TABLES)
        with guarded(path, "colmap"), snapshot(path) as connection:
            check_tables(connection, path)
            images = load_names(connection, path)
            for table in ("keypoints", *TABLES):
                _check_lengths(connection, table, path)
            rows = dict(connection.execute("SELECT image_id, rows FROM keypoints WHERE rows > 0"))
            for table in TABLES if source is None else (source,):
                found = connection.execute(
                    f"SELECT pair_id, rows FROM {table} WHERE rows > 0 ORDER BY pair_id"
                ).fetchall()
                if found:
                    break
        ids = np.array([image[0] for image in images], dtype=np.int64)
        pair_ids, counts = (np.array([row[n] for row in found], dtype=np.int64) for n in (0, 1))
        both = np.stack(np.divmod(pair_ids, MAX_IMAGES), axis=1).reshape(-1, 2)
        pairs = np.searchsorted(ids, both)
        if (pairs >= len(ids)).any() or (ids[pairs] != both).any() or (both[:, 0] >= both[:, 1]).any():
            raise FormatError(f"{path}: the table {table} names images that the database does not have")
        sizes = np.array([rows.get(image_id, 0) for image_id, _ in images], dtype=np.int64)
        return cls(path, table, sizes, tuple(name for _, name in images), pairs, counts, pair_ids)

    @typed
    def only(self, pairs: Ints) -> ColmapSource:
        """Return the part of the source that knows these pairs only, renumbered."""
        objects, counts, ids = self.pair_objects[pairs], self.counts[pairs], self.pair_ids[pairs]
        return replace(self, names=None, pair_objects=objects, counts=counts, pair_ids=ids)

    @typed
    def read(self, pairs: Ints) -> tuple[Ints, NDArray[np.int32], None]:
        """Return how many matches these pairs have, (p,), and the matches, (K, 2).

        As :func:`stiefelsync.io.read` does, only the first of several partners of a keypoint is
        taken.
        """
        blocks: dict[int, bytes] = {}
        with snapshot(self.path) as connection:
            for first in range(0, len(pairs), _IDS_PER_QUERY):
                ids = self.pair_ids[pairs[first : first + _IDS_PER_QUERY]].tolist()
                asked = f"SELECT pair_id, data FROM {self.table} WHERE pair_id IN ({','.join('?' * len(ids))})"
                blocks |= dict(connection.execute(asked, ids))
        points = [np.empty((0, 2), dtype=np.int32)]
        for pair in pairs.tolist():
            data = blocks.get(int(self.pair_ids[pair]))
            if not isinstance(data, bytes) or len(data) != 8 * self.counts[pair]:
                i, j = self.pair_objects[pair].tolist()
                raise FormatError(f"{self.path}: the matches of images {i} and {j} in {self.table} are damaged")
            points.append(np.frombuffer(data, dtype="<u4").reshape(-1, 2).astype(np.int32))
        objects = np.repeat(self.pair_objects[pairs], self.counts[pairs], axis=0)
        part = Matchings.from_arrays(objects, np.concatenate(points), self.sizes, one_to_many="repair")
        return np.diff(part.pair_start), part.indices, None


def _check_lengths(connection: sqlite3.Connection, table: str, path: Path) -> None:
    """Raise :class:`FormatError` if a row has more or fewer bytes than its numbers need."""
    wrong = "typeof(rows) <> 'integer' OR typeof(cols) <> 'integer' OR length(data) IS NOT 4 * rows * cols"
    key = "image_id" if table == "keypoints" else "pair_id"
    asked = (
        f"SELECT {key} FROM {table} WHERE typeof({key}) <> 'integer' OR coalesce(rows, 0) <> 0 AND ({wrong}) LIMIT 1"
    )
    for (number,) in connection.execute(asked):
        raise FormatError(f"{path}: the {table} of {key} {number!r} have another length than their rows need")


FileSource = ParquetSource | ColmapSource


@typed
def open_source(path: str | Path, **options: str) -> FileSource:
    """Open a file that can be read in parts: a Parquet dataset or a COLMAP database.

    Options are those of the format (`source` for COLMAP: which table).
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if is_dataset(path):
        return ParquetSource.open(path, **options)
    if is_sqlite(path):
        return ColmapSource.open(path, **options)
    raise InputError(
        f"{path} cannot be read in parts; convert it to a Parquet dataset with: stiefelsync convert {path.name}"
        " matches.dataset"
    )
