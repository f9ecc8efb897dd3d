"""COLMAP databases, schemas 3.6 to 4.2, read and written with the standard library's sqlite3.

Reconstruction reads `two_view_geometries` only; `matches` are what verification starts from. The original is never
touched: the output is a copy in which only the rows that change are changed.
"""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, unknown_name
from stiefelsync.io.base import Content, Format, Written, losses, names_of, register
from stiefelsync.io.colmap_create import create
from stiefelsync.io.colmap_verify import advice
from stiefelsync.io.colmap_verify import verify as run_verification
from stiefelsync.io.sqlite import distrust, is_sqlite, snapshot
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.copies import representatives
from stiefelsync.matching.matchings import Matchings

__all__ = ["COLMAP", "check_same_table", "next_command"]

MAX_IMAGES = 2147483647  # pair_id = MAX_IMAGES · min(id1, id2) + max(id1, id2)
TABLES = ("two_view_geometries", "matches")
DEGENERATE, UNCALIBRATED = 1, 3  # values of the column `config`; COLMAP's mappers skip rows of 0 and 1

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """The images of a database, in order of their ids, and their keypoints one image after another."""

    ids: Int64s
    names: list[str]
    sizes: Int64s
    coordinates: NDArray[np.float32]

    @property
    def offsets(self) -> Int64s:
        """Global index of each image's first keypoint, and their number at the end."""
        return np.append(0, np.cumsum(self.sizes))


@dataclass(frozen=True)
class Rows:
    """The matches of one table; row r has matches ``start[r]:start[r + 1]``, between the images ``objects[r]``."""

    pair_ids: Int64s
    objects: Int64s
    start: Int64s
    indices: Int64s

    def flat_objects(self) -> Int64s:
        """Both images of every match; shape (M, 2)."""
        return np.repeat(self.objects, np.diff(self.start), axis=0)

    def ends(self, images: Images) -> Int64s:
        """Global indices of both keypoints of every match; shape (M, 2)."""
        return self.indices + images.offsets[self.flat_objects()]


# ---------------------------------------------------------------- reading


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [name for name in ("images", "keypoints", *TABLES) if name not in there]
    if len(missing) == 4:
        raise FormatError(f"{path} is a database of something else: it has none of COLMAP's tables")
    if missing:
        raise FormatError(f"{path} is no complete COLMAP database: it has no table {missing[0]!r}")
    for name in ("images", "keypoints", *TABLES):
        if any(hidden for *_, hidden in connection.execute(f"PRAGMA table_xinfo({name})")):
            raise FormatError(f"{path}: the table {name!r} computes its values instead of holding them")


def _check_triggers(connection: sqlite3.Connection, path: Path) -> None:
    """Raise :class:`FormatError` if changing the matches would run statements that the database brings along."""
    for name, table in connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"):
        if str(table).lower() in TABLES:
            raise FormatError(
                f"{path} has the trigger {name!r}, which would run as the copy is written, and COLMAP has none; "
                f"remove it with: DROP TRIGGER {name}"
            )


def _load_images(connection: sqlite3.Connection, path: Path) -> Images:
    listed = connection.execute("SELECT image_id, name FROM images ORDER BY image_id").fetchall()
    for image_id, name in listed:
        if not isinstance(image_id, int) or not 0 <= image_id < MAX_IMAGES or not isinstance(name, str):
            raise FormatError(f"{path} has the image {image_id!r} named {name!r}; it needs a number and a text")
    place = {image_id: i for i, (image_id, _) in enumerate(listed)}
    blocks = [np.empty((0, 2), dtype=np.float32)] * len(listed)
    for image_id, rows, cols, data in connection.execute("SELECT image_id, rows, cols, data FROM keypoints"):
        if image_id not in place:
            raise FormatError(f"{path} holds keypoints of image {image_id}, but has no such image")
        i = place[image_id]
        if rows and cols not in (2, 4, 6):
            raise FormatError(f"{path}: the keypoints of {listed[i][1]!r} have {cols} columns; COLMAP has 2, 4 or 6")
        blocks[i] = _matrix(data, rows, cols, np.float32, f"{path}: the keypoints of {listed[i][1]!r}")[:, :2]
    sizes = np.array([len(block) for block in blocks], dtype=np.int64)
    coordinates = np.concatenate([np.empty((0, 2), dtype=np.float32), *blocks])
    return Images(np.array(list(place), dtype=np.int64), [str(name) for _, name in listed], sizes, coordinates)


def _load_rows(connection: sqlite3.Connection, table: str, images: Images, path: Path) -> Rows:
    place = {int(image_id): i for i, image_id in enumerate(images.ids)}
    ids, objects, blocks = [], [], [np.empty((0, 2), dtype=np.int64)]
    for pair_id, rows, cols, data in connection.execute(
        f"SELECT pair_id, rows, cols, data FROM {table} ORDER BY pair_id"
    ):
        if not isinstance(pair_id, int):
            raise FormatError(f"{path}: {table} has the pair {pair_id!r}, which is no number")
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
    pairs = np.array(objects, dtype=np.int64).reshape(-1, 2)
    return Rows(np.array(ids, dtype=np.int64), pairs, start, np.concatenate(blocks))


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


def read(
    path: Path, *, one_to_many: OneToMany = "repair", source: str | None = None, merge_px: float = 0.0
) -> Matchings:
    """Read the matches, keypoint positions and image names of a COLMAP database.

    Parameters
    ----------
    one_to_many
        COLMAP 3.13 and newer allow one-to-many matches; the first partner is kept and the rest is counted in
        ``Matchings.repair``, or with "error" refused. What only merging makes one-to-many is repaired in either case.
    source : {"two_view_geometries", "matches"}
        Verified or raw matches; None takes the verified ones if there are any.
    merge_px
        Take keypoints of one image no farther apart than this for one point where a chain of matches connects them,
        as :func:`~stiefelsync.matching.copies.merge_near` does.
    """
    with snapshot(path) as connection:
        _check_tables(connection, path)
        images = _load_images(connection, path)
        _, rows = _load_source(connection, source, images, path)
    about: dict[str, Any] = {"names": images.names, "coordinates": images.coordinates}
    objects = rows.flat_objects()
    plain = Matchings.from_arrays(objects, rows.indices, images.sizes, **about, one_to_many=one_to_many)
    if not merge_px:
        return plain
    points = _stands(rows, images, merge_px)[rows.ends(images)] - images.offsets[objects]
    return Matchings.from_arrays(objects, points, images.sizes, **about, one_to_many="repair")


def _load_source(connection: sqlite3.Connection, source: str | None, images: Images, path: Path) -> tuple[str, Rows]:
    """Return the table that is read and its matches; None takes the verified ones if there are any."""
    if source is not None and source not in TABLES:
        raise unknown_name("source", source, TABLES)
    for table in TABLES if source is None else (source,):
        rows = _load_rows(connection, table, images, path)
        if len(rows.indices):
            break
    return table, rows


def check_same_table(before: Path, after: Path) -> None:
    """Raise :class:`InputError` if what is read by default of two databases cannot be compared.

    That is verified matches of the one and raw ones of the other, or where pairs with verified matches before have no
    such row after: ``target="matches"`` leaves them so, to be verified again.
    """
    rows = []
    for path in (before, after):
        with snapshot(path) as connection:
            _check_tables(connection, path)
            rows.append(dict(connection.execute(f"SELECT pair_id, rows FROM {TABLES[0]}").fetchall()))
    old, new = (TABLES[0] if any(counts.values()) else TABLES[1] for counts in rows)
    waiting = len({pair for pair, count in rows[0].items() if count} - rows[1].keys())
    if waiting:
        raise InputError(
            f"{waiting:,} pairs that are verified in {before} are still to be verified in {after}; "
            "compare the raw matches of both with source='matches'",
            setting="source",
        )
    if old != new:
        raise InputError(
            f"of {before} the table {old} would be read and of {after} {new}; "
            f"name the same for both with source='{old}'",
            setting="source",
        )


def _stands(rows: Rows, images: Images, merge_px: float) -> Int64s:
    """Return for every keypoint the one that stands for it; reading and writing take it from the same matches."""
    if not merge_px:
        return np.arange(len(images.coordinates))
    return representatives(images.coordinates, images.sizes, rows.ends(images), merge_px)


# ---------------------------------------------------------------- writing


def write(
    content: Content,
    path: Path,
    *,
    like: Path | None,
    source: str | None = None,
    target: str | None = None,
    merge_px: float = 0.0,
    verify: bool = False,
    cameras: str | Path | None = None,
    photos: str | Path | None = None,
    shift: float = 0.0,
) -> Written | None:
    """Write a copy of the database `like` with only those matches that the content holds, and count them.

    If `like` is no database, a new one is written, of raw matches (:func:`~stiefelsync.io.colmap_create.create`).

    Parameters
    ----------
    source : {"two_view_geometries", "matches"}
        The table the matches were read from; None is what it is in reading.
    target : {"two_view_geometries", "matches"}
        Which table to filter: the verified matches, ready for reconstruction, or the raw ones, whose verified
        counterpart is then dropped wherever they changed, to be verified again. None takes the one they were read from.
    merge_px
        The distance the matches were read with. Matches are kept by the points that stand for their ends, so several
        copies of a keypoint may stay in one track.
    verify
        Whether COLMAP (pycolmap) verifies all raw matches that are written.
    cameras, photos, shift
        Of a new database: a CSV file of cameras, a folder of photographs, what to add to positions.

    Notes
    -----
    A pair that loses all its matches keeps an empty row (of `config` degenerate), as COLMAP itself leaves for a pair
    that failed verification, so that no later step matches it anew. With ``add=True`` matches of the content that the
    table does not have are appended; a pair that had no verified match gets `config` uncalibrated and no geometry,
    because COLMAP passes over the rows it calls undefined or degenerate.
    """
    if target is not None and target not in TABLES:
        raise unknown_name("target", target, TABLES)
    if like is None or not is_sqlite(like):
        create(content.matchings, path, cameras=cameras, photos=photos, shift=shift)
        if verify:
            run_verification(path, read(path, source="matches"))
        return None
    for name, value in (("cameras", cameras), ("photos", photos), ("shift", shift)):
        if value:
            raise InputError(f"option {name} is for a new database; this one is a copy of {like}")
    with snapshot(like) as original:
        _check_tables(original, like)
        _check_triggers(original, like)
        images = _load_images(original, like)
        fitted = _fitted(content, images, like)
        source, given = _load_source(original, source, images, like)
        target = target or source
        rows = given if target == source else _load_rows(original, target, images, like)
        changed, written = _changes(rows, fitted, images, _stands(given, images, merge_px))
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as copy:
                distrust(copy)
                copy.execute("PRAGMA synchronous = OFF")  # the finished file is flushed once
                original.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                copy.execute("BEGIN IMMEDIATE")
                dropped = _apply(copy, target, changed)
                copy.execute("COMMIT")
        except sqlite3.Error as error:  # of the copy: the original was read to the end above
            raise OSError(0, str(error)) from error
    if verify:
        run_verification(path, read(path, source="matches"))
        dropped = 0
    return replace(written, source=source, target=target, to_verify=dropped, merged=merge_px)


def _fitted(content: Content, images: Images, like: Path) -> Content:
    """Return the content on all keypoints of the database, or say why it does not belong there.

    Some formats put images into another order and forget the keypoints after an image's last matched one. So images
    are found by name, and may have fewer keypoints than in the database; without names they must be equal in size.
    """
    given, wrong = content.matchings, f"these matches are not about the keypoints of {like}"
    if given.names is None:
        if not np.array_equal(given.sizes, images.sizes):
            raise InputError(f"{wrong}: the images or their sizes differ")
        return content
    if list(given.names) == images.names and np.array_equal(given.sizes, images.sizes):
        return content
    names = names_of(given)
    for name in sorted({*names} ^ {*images.names})[:1]:
        raise InputError(f"{wrong}: {'the database has no' if name in names else 'they have no'} image {name!r}")
    number = {name: i for i, name in enumerate(images.names)}
    place = np.array([number[name] for name in names], dtype=np.int64)
    for i in np.flatnonzero(given.sizes > images.sizes[place])[:1]:
        raise InputError(f"{wrong}: {names[i]!r} has {images.sizes[place[i]]:,} of them, not {given.sizes[i]:,}")
    labels = None
    if content.labels is not None:
        shift = (images.offsets[place] - given.offsets[:-1])[given.point_objects]
        labels = np.full(int(images.sizes.sum()), -1, dtype=np.int64)
        labels[np.arange(given.n_points) + shift] = content.labels
    objects = place[given.pair_objects][given.match_pairs]
    return replace(content, matchings=Matchings.from_arrays(objects, given.indices, images.sizes), labels=labels)


def _changes(
    rows: Rows, content: Content, images: Images, stands: Int64s
) -> tuple[dict[int, tuple[NDArray[np.uint32], bool]], Written]:
    """Return the new matches of every pair whose matches change and whether some were added, by pair id; and counts."""
    ends = rows.ends(images)
    weight = np.array([len(stands), 1])
    keep = content.holds(stands[ends])
    first = np.zeros(len(keep), dtype=bool)  # of the same match given twice
    first[np.unique(ends @ weight, return_index=True)[1]] = True
    keep &= first
    row = np.repeat(np.arange(len(rows.pair_ids)), np.diff(rows.start))
    touched = set(row[~keep].tolist())
    extra: dict[int, NDArray[Any]] = {}
    held = np.unique(stands[ends[keep]] @ weight)
    if content.add:
        new = ~np.isin(content.matchings.match_keys, held)
        pairs = images.ids[content.matchings.pair_objects] @ np.array([MAX_IMAGES, 1])
        pair_of, indices = pairs[content.matchings.match_pairs[new]], content.matchings.indices[new]
        bounds = np.flatnonzero(np.diff(pair_of)) + 1
        extra = {
            int(pair_of[at]): block
            for at, block in zip([0, *bounds], np.split(indices, bounds), strict=True)
            if len(block)
        }
    number = {int(pair_id): r for r, pair_id in enumerate(rows.pair_ids)}
    changed = {}
    for pair_id in sorted({int(rows.pair_ids[r]) for r in touched} | extra.keys()):
        old = np.empty((0, 2), dtype=np.int64)
        if pair_id in number:
            span = slice(*rows.start[number[pair_id] : number[pair_id] + 2])
            old = rows.indices[span][keep[span]]
        changed[pair_id] = np.concatenate([old, extra.get(pair_id, old[:0])]).astype("<u4"), pair_id in extra
    return changed, Written(len(keep), int(keep.sum()), len(held), sum(map(len, extra.values())))


def _apply(copy: sqlite3.Connection, target: str, changed: dict[int, tuple[NDArray[np.uint32], bool]]) -> int:
    """Write the new matches of pairs; return of how many the verified ones were dropped."""
    dropped = 0
    for pair_id, (block, added) in changed.items():
        values = (len(block), block.tobytes(), pair_id)
        new = not copy.execute(f"UPDATE {target} SET rows = ?, cols = 2, data = ? WHERE pair_id = ?", values).rowcount
        if target == "matches":
            if new:
                copy.execute("INSERT INTO matches (rows, data, pair_id, cols) VALUES (?, ?, ?, 2)", values)
            verified = "FROM two_view_geometries WHERE pair_id = ?"
            dropped += copy.execute(f"SELECT count(*) {verified} AND rows > 0", (pair_id,)).fetchone()[0]
            copy.execute(f"DELETE {verified}", (pair_id,))
            continue
        if new:
            insert = f"INSERT INTO {target} (rows, data, pair_id, cols, config) VALUES (?, ?, ?, 2, {UNCALIBRATED})"
            copy.execute(insert, values)
        elif added:
            raised = f"UPDATE {target} SET config = {UNCALIBRATED} WHERE pair_id = ? AND config <= {DEGENERATE}"
            copy.execute(raised, (pair_id,))
        elif not len(block):
            copy.execute(f"UPDATE {target} SET config = {DEGENERATE} WHERE pair_id = ?", (pair_id,))
    return dropped


def next_command(path: str | Path, *, target: str | None = None, images: str | Path = "images") -> str:
    """Return what to type next to reconstruct from a database written here.

    Parameters
    ----------
    target : {"two_view_geometries", "matches"}
        The table that was written; after "matches" these are to be verified first. None looks into the database, if
        there is one: whether it has raw matches that were never verified, or no verified ones at all.

    Examples
    --------
    >>> print(next_command("clean.db"))
    mkdir -p sparse && colmap mapper --database_path clean.db --image_path images --output_path sparse
    """
    if target is not None and target not in TABLES:
        raise unknown_name("target", target, TABLES)
    database, folder = shlex.quote(str(path)), shlex.quote(str(images))
    mapper = f"colmap mapper --database_path {database} --image_path {folder} --output_path sparse"
    first = _unverified(Path(path)) if target is None else target == "matches"
    verify = f"colmap geometric_verifier --database_path {database} && " if first else ""
    return f"{verify}mkdir -p sparse && {mapper}"


def _unverified(path: Path) -> bool:
    """Return whether a database has pairs to verify: verification leaves a row even of a pair that fails."""
    if not path.exists():
        return False
    with snapshot(path) as connection:
        _check_tables(connection, path)
        verified, raw = (dict(connection.execute(f"SELECT pair_id, rows FROM {table}").fetchall()) for table in TABLES)
    waiting = {pair for pair, count in raw.items() if count}
    return bool(waiting - verified.keys()) or bool(waiting and not any(verified.values()))


def loses(matchings: Matchings) -> list[str]:
    """A COLMAP database has no place for weights."""
    return losses(matchings, "A COLMAP database", weights=False)


def _table_to_map(written: Written | None) -> str | None:
    """Return the table that was written if that says all; raw matches may have been verified since."""
    return None if written is None or written.target == "matches" else written.target


COLMAP = register(
    Format(
        "colmap",
        "COLMAP database: verified or raw matches",
        (".db", ".sqlite", ".sqlite3"),
        is_sqlite,
        read,
        write,
        loses,
        adds=False,
        next_command=lambda path, written, images: next_command(
            path, target=_table_to_map(written), images="IMAGES" if images is None else images
        ),
        check_comparable=check_same_table,
        files=("cameras",),
        advice=advice,
    )
)
