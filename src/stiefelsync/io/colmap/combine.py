"""Several COLMAP databases of shared images as one: all images, cameras, keypoints and matches."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.io.colmap.read_rows import MAX_IMAGES, TABLES, check_tables, check_triggers, load_names
from stiefelsync.io.sqlite import distrust, quoted, snapshot

__all__ = ["combine"]

CAMERA = 0  # COLMAP's number of that kind of sensor


def combine(paths: Sequence[Path], target: Path) -> None:
    """Write the first of several databases with what the others have beside it; which images are one is told by name.

    Images that both have keep the keypoints, the camera and the descriptors of the first. A row of
    matches that both have holds the matches of both, and the geometry of the one with more of them.

    Parameters
    ----------
    paths
        At least one; images of one name must have equal numbers of keypoints.
    target
        A fresh file.

    Notes
    -----
    Of tables only columns that both files have are filled, so that databases of different versions of
    COLMAP go together; the first says which version it is.
    """
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        distrust(copy)
        copy.execute("PRAGMA synchronous = OFF")
        with snapshot(paths[0]) as first:
            check_tables(first, paths[0])
            check_triggers(first, paths[0], tuple(_columns(first)))
            first.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.execute("BEGIN IMMEDIATE")
        for path in paths[1:]:
            with snapshot(path) as other:
                check_tables(other, path)
                _add(copy, other, path)
        copy.execute("COMMIT")


def _add(copy: sqlite3.Connection, other: sqlite3.Connection, path: Path) -> None:
    """Add what another database has to a copy."""
    there = {name: image for image, name in copy.execute("SELECT image_id, name FROM images")}
    image_of, new = dict[int, int](), dict[int, int]()
    following = max(there.values(), default=0) + 1
    for image, name in load_names(other, path):
        if name in there:
            image_of[image] = there[name]
        else:
            image_of[image] = new[image] = following
            following += 1
    for image, name in load_names(other, path):
        sizes = [
            connection.execute("SELECT rows FROM keypoints WHERE image_id = ?", (number,)).fetchone()
            for connection, number in ((other, image), (copy, image_of[image]))
        ]
        if sizes[0] is not None and image not in new and sizes[0] != sizes[1]:
            raise InputError(f"{name!r} has other keypoints in {path}; both databases must come from one detection")
    _add_images(copy, other, image_of, new)
    for table in TABLES:
        _add_matches(copy, other, table, image_of)


def _columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of every table."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {table: [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})")] for table in tables}


def _copy_rows(
    copy: sqlite3.Connection,
    other: sqlite3.Connection,
    table: str,
    key: str,
    numbers: Mapping[int, int],
    changed: Mapping[str, Mapping[int, int]],
    own: str = "",
) -> None:
    """Insert the rows of a table whose `key` is among `numbers`, under the new ones; other columns may change, too.

    The column `own` is a number that the copy gives by itself.
    """
    ours, theirs = _columns(copy).get(table, []), _columns(other).get(table, [])
    shared = [name for name in theirs if name in ours and name != own]
    if key not in shared:
        return
    listed = ", ".join(map(quoted, shared))
    insert = f"INSERT INTO {table} ({listed}) VALUES ({', '.join('?' * len(shared))})"
    for number, fresh in numbers.items():
        for row in other.execute(f"SELECT {listed} FROM {table} WHERE {quoted(key)} = ?", (number,)).fetchall():
            values = dict(zip(shared, row, strict=True)) | {key: fresh}
            for name, mapped in changed.items():
                if name in values:
                    values[name] = mapped[values[name]]
            copy.execute(insert, [values[name] for name in shared])


def _add_images(
    copy: sqlite3.Connection, other: sqlite3.Connection, image_of: Mapping[int, int], new: Mapping[int, int]
) -> None:
    """Add images with their cameras, keypoints and descriptors.

    Parameters
    ----------
    image_of, new
        The number in the copy of every image of the other database, and of those that are added.
    """
    used = dict(other.execute("SELECT image_id, camera_id FROM images").fetchall())
    ours = dict(copy.execute("SELECT image_id, camera_id FROM images").fetchall())
    rigs = dict[int, int]()
    framed = {"rigs", "frames", "frame_data"} <= _columns(copy).keys()
    if framed:  # since version 4 every image is a frame of a rig
        rigs = dict(copy.execute("SELECT ref_sensor_id, rig_id FROM rigs WHERE ref_sensor_type = ?", (CAMERA,)))
    # The camera of an image that both have is that of the first; all others are new.
    cameras = {used[image]: ours[here] for image, here in image_of.items() if image not in new}
    cameras = {theirs: camera for theirs, camera in cameras.items() if not framed or camera in rigs}
    (last,) = copy.execute("SELECT coalesce(max(camera_id), 0) FROM cameras").fetchone()
    unknown = sorted({used[image] for image in new} - cameras.keys())
    added = {camera: last + n for n, camera in enumerate(unknown, start=1)}
    cameras |= added
    _copy_rows(copy, other, "cameras", "camera_id", added, {})
    _copy_rows(copy, other, "images", "image_id", new, {"camera_id": cameras})
    for table in ("keypoints", "descriptors"):
        _copy_rows(copy, other, table, "image_id", new, {})
    # Where a photograph was taken: by image before version 4, by sensor since.
    _copy_rows(copy, other, "pose_priors", "image_id", new, {})
    _copy_rows(copy, other, "pose_priors", "corr_data_id", new, {"corr_sensor_id": cameras}, own="pose_prior_id")
    for camera in added.values() if framed else ():  # a rig of its own
        row = "INSERT INTO rigs (ref_sensor_id, ref_sensor_type) VALUES (?, ?)"
        rigs[camera] = copy.execute(row, (camera, CAMERA)).lastrowid or 0
    for image, fresh in new.items() if framed else ():
        camera = cameras[used[image]]
        frame = copy.execute("INSERT INTO frames (rig_id) VALUES (?)", (rigs[camera],)).lastrowid
        row = "INSERT INTO frame_data (frame_id, data_id, sensor_id, sensor_type) VALUES (?, ?, ?, ?)"
        copy.execute(row, (frame, fresh, camera, CAMERA))


def _add_matches(copy: sqlite3.Connection, other: sqlite3.Connection, table: str, image_of: Mapping[int, int]) -> None:
    """Add the matches of one of COLMAP's tables of them."""
    ours = _columns(copy)[table]
    shared = [name for name in _columns(other)[table] if name in ours]
    listed = ", ".join(map(quoted, shared))
    for row in other.execute(f"SELECT {listed} FROM {table}").fetchall():
        values: dict[str, Any] = dict(zip(shared, row, strict=True))
        first, second = (image_of[image] for image in divmod(values["pair_id"], MAX_IMAGES))
        block = _block(values)
        for name in ("camera1", "camera2"):  # which have other numbers now
            if name in values:
                values[name] = None
        if first > second:
            first, second, block = second, first, block[:, ::-1]
            _turn(values)
        values["pair_id"] = pair = first * MAX_IMAGES + second
        held = copy.execute(f"SELECT rows, cols, data FROM {table} WHERE pair_id = ?", (pair,)).fetchone()
        if held is not None:
            before = _block(dict(zip(("rows", "cols", "data"), held, strict=True)))
            more = len(block) > len(before)
            block = np.unique(np.concatenate([before, block]), axis=0)
            if not more:  # the geometry stays
                values = {"pair_id": pair}
        values |= {"rows": len(block), "cols": 2, "data": np.ascontiguousarray(block, dtype="<u4").tobytes()}
        names = [name for name in values if name != "pair_id"]
        if held is None:
            marks = ", ".join("?" * (len(names) + 1))
            columns = ", ".join(map(quoted, ["pair_id", *names]))
            copy.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", [pair, *(values[name] for name in names)])
        else:
            assigned = ", ".join(f"{quoted(name)} = ?" for name in names)
            copy.execute(f"UPDATE {table} SET {assigned} WHERE pair_id = ?", [*(values[name] for name in names), pair])


def _block(values: Mapping[str, Any]) -> NDArray[np.uint32]:
    """Return the matches of a row, (n, 2)."""
    return np.frombuffer(values["data"] or b"", dtype="<u4").reshape(-1, 2)


def _turn(values: dict[str, Any]) -> None:
    """Change a row of verified matches to the other order of its images: transposed, inverted, or left unknown."""
    for name in ("F", "E"):
        if values.get(name):
            values[name] = np.frombuffer(values[name]).reshape(3, 3).T.tobytes()
    if values.get("H"):
        H = np.frombuffer(values["H"]).reshape(3, 3)
        values["H"] = np.linalg.inv(H).tobytes() if abs(np.linalg.det(H)) > 0 else None
    for name in ("qvec", "tvec"):  # of the pose, which whoever needs it computes anew
        if name in values:
            values[name] = None
