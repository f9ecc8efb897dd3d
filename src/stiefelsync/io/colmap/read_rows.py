"""The tables of a COLMAP database as arrays: images with their keypoints, and matches."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError
from stiefelsync.io.limits import shown
from stiefelsync.io.sqlite import bytes_of, quoted, weigh

__all__ = [
    "MAX_IMAGES", "TABLES", "Database", "Images", "Rows", "check_tables", "check_triggers", "load_images",
    "load_names", "load_rows",
]  # fmt: skip

MAX_IMAGES = 2147483647  # pair_id = MAX_IMAGES · min(id1, id2) + max(id1, id2)
TABLES = ("two_view_geometries", "matches")

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """The images of a database, in order of their ids, and their keypoints one image after another.

    Attributes
    ----------
    sizes, offsets : (k,) and (k + 1,) int64
        Keypoints of each image, and the global index of its first one, with their number at the end.
    """

    ids: Int64s
    names: list[str]
    sizes: Int64s
    offsets: Int64s
    coordinates: NDArray[np.float32]


@dataclass(frozen=True)
class Rows:
    """The matches of one table; row r has matches ``start[r]:start[r + 1]``.

    Attributes
    ----------
    objects, indices, ends : (M, 2) int64
        Both images of every match, its keypoints within them, and their global indices.
    """

    pair_ids: Int64s
    start: Int64s
    objects: Int64s
    indices: Int64s
    ends: Int64s


@dataclass(frozen=True)
class Database:
    """What reading a database found, so that writing a changed copy need not read it again.

    Attributes
    ----------
    path, state
        The file, and its size and time of change when it was read.
    asked, table
        The table that was asked for, None for none, and the one that was read.
    """

    path: Path
    state: object
    asked: str | None
    table: str
    images: Images
    rows: Rows


def check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Raise :class:`FormatError` if a database is none of COLMAP's, or holds anything but plain tables."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [name for name in ("images", "keypoints", *TABLES) if name not in there]
    if len(missing) == 4:
        raise FormatError(f"{path} is a database of something else: it has none of COLMAP's tables")
    if missing:
        raise FormatError(f"{path} is not a complete COLMAP database: it has no table {missing[0]!r}")
    for name in ("images", "keypoints", *TABLES):
        if any(hidden for *_, hidden in connection.execute(f"PRAGMA table_xinfo({name})")):
            raise FormatError(f"{path}: the table {name!r} computes its values instead of holding them")
        weigh(connection, name, path)


def check_triggers(connection: sqlite3.Connection, path: Path, tables: tuple[str, ...] = TABLES) -> None:
    """Raise :class:`FormatError` if changing these tables would run statements that the database brings along."""
    for name, table in connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"):
        if str(table).lower() in tables:
            raise FormatError(
                f"{path} has the trigger {name!r}, which would run as the copy is written, and COLMAP has none; "
                f"remove it with: DROP TRIGGER {quoted(str(name))};"
            )


def load_names(connection: sqlite3.Connection, path: Path) -> list[tuple[int, str]]:
    """Return number and name of every image, in order of the numbers."""
    listed: list[tuple[int, str]] = []
    left = bytes_of(path)
    for image_id, name in connection.execute("SELECT image_id, name FROM images ORDER BY image_id"):
        if not isinstance(image_id, int) or not 0 <= image_id < MAX_IMAGES or not isinstance(name, str):
            told = repr(name)
            raise FormatError(f"{path} has the image {image_id!r} named {shown(told)}; it needs a number and a text")
        if listed and listed[-1][0] >= image_id:
            raise FormatError(f"{path} is damaged: it has image {image_id} twice")
        listed.append((image_id, name))
        left -= len(name)
        if left < 0:
            raise FormatError(f"{path} is damaged: its images have longer names than the file has bytes")
    return listed


def load_images(connection: sqlite3.Connection, path: Path) -> Images:
    """Return the images and their keypoints, or say what is wrong with them."""
    listed = load_names(connection, path)
    place = {image_id: i for i, (image_id, _) in enumerate(listed)}
    blocks, seen = [np.empty((0, 2), dtype=np.float32)] * len(listed), set[int]()
    for image_id, rows, cols, data in connection.execute("SELECT image_id, rows, cols, data FROM keypoints"):
        if image_id not in place:
            raise FormatError(f"{path} holds keypoints of image {image_id}, but has no such image")
        if image_id in seen:
            raise FormatError(f"{path} is damaged: it has keypoints of image {image_id} twice")
        seen.add(image_id)
        i = place[image_id]
        if rows and cols not in (2, 4, 6):
            raise FormatError(f"{path}: the keypoints of {listed[i][1]!r} have {cols} columns; COLMAP has 2, 4 or 6")
        blocks[i] = _matrix(data, rows, cols, np.float32, f"{path}: the keypoints of {listed[i][1]!r}")[:, :2]
    sizes = np.array([len(block) for block in blocks], dtype=np.int64)
    coordinates = np.concatenate([np.empty((0, 2), dtype=np.float32), *blocks])
    ids, offsets = np.array(list(place), dtype=np.int64), np.append(0, np.cumsum(sizes))
    return Images(ids, [name for _, name in listed], sizes, offsets, coordinates)


def load_rows(connection: sqlite3.Connection, table: str, images: Images, path: Path) -> Rows:
    """Return the matches of a table, or say what is wrong with them."""
    place = {int(image_id): i for i, image_id in enumerate(images.ids)}
    ids: list[int] = []
    objects, blocks = [], [np.empty((0, 2), dtype=np.int64)]
    for pair_id, rows, cols, data in connection.execute(
        f"SELECT pair_id, rows, cols, data FROM {table} ORDER BY pair_id"
    ):
        if not isinstance(pair_id, int):
            raise FormatError(f"{path}: {table} has the pair {pair_id!r}, which is not a number")
        if ids and ids[-1] >= pair_id:
            raise FormatError(f"{path} is damaged: {table} has pair {pair_id} twice")
        first, second = divmod(pair_id, MAX_IMAGES)
        for image_id in (first, second):
            if image_id not in place:
                raise FormatError(
                    f"{path}: {table} has pair {pair_id} of images {first} and {second}; no image {image_id}"
                )
        if first >= second:
            raise FormatError(
                f"{path}: {table} has pair {pair_id}, of image {first} with {second}: the smaller goes first"
            )
        i, j = place[first], place[second]
        where = f"{path}: the {table} of {images.names[i]!r} and {images.names[j]!r}"
        if rows and cols != 2:
            raise FormatError(f"{where} have {cols} columns where 2 are expected")
        block = _matrix(data, rows, 2, np.uint32, where)
        for o, column in ((i, block[:, 0]), (j, block[:, 1])):
            if len(column) and column.max() >= images.sizes[o]:
                raise FormatError(
                    f"{where} name keypoint {column.max()} of {images.names[o]!r}, which has only {images.sizes[o]}"
                )
        ids.append(pair_id)
        objects.append((i, j))
        blocks.append(block.astype(np.int64))
    start = np.append(0, np.cumsum([len(block) for block in blocks[1:]], dtype=np.int64))
    indices, pairs = np.concatenate(blocks), np.array(objects, dtype=np.int64).reshape(-1, 2)
    flat = np.repeat(pairs, np.diff(start), axis=0)
    return Rows(np.array(ids, dtype=np.int64), start, flat, indices, indices + images.offsets[flat])


def _matrix(data: Any, rows: Any, cols: Any, dtype: type[np.generic], where: str) -> NDArray[Any]:
    """Return a blob as a matrix of little-endian numbers, or say that its length is wrong."""
    if not isinstance(rows, int) or not isinstance(cols, int) or rows < 0:
        raise FormatError(f"{where} have {rows} rows and {cols} columns")
    kind = np.dtype(dtype).newbyteorder("<")
    if not isinstance(data, bytes | None):
        raise FormatError(f"{where} are {type(data).__name__} where bytes are expected; the database is damaged")
    expected, found = rows * cols * kind.itemsize, len(data or b"")
    if found != expected:
        raise FormatError(f"{where} take {found} bytes where {rows} rows need {expected}; the database is damaged")
    return np.frombuffer(data or b"", dtype=kind).reshape(rows, cols if rows else 2)
