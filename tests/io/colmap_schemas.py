"""COLMAP databases of four schemas, made with plain SQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from stiefelsync import Matchings

MAX_IMAGES = 2147483647
CAMERAS = """CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);"""
KEYPOINTS = """CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL,
    cols INTEGER NOT NULL, data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);
CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);
CREATE TABLE matches (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB);"""
IMAGES = """CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE,
    camera_id INTEGER NOT NULL, {priors}
    CONSTRAINT image_id_check CHECK(image_id >= 0 and image_id < 2147483647),
    FOREIGN KEY(camera_id) REFERENCES cameras(camera_id)); CREATE UNIQUE INDEX index_name ON images(name);"""
GEOMETRIES = """CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL,
    cols INTEGER NOT NULL, data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB{more});"""
FRAMES = """CREATE TABLE rigs (rig_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, ref_sensor_id INTEGER NOT NULL,
    ref_sensor_type INTEGER NOT NULL);
CREATE TABLE frames (frame_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, rig_id INTEGER NOT NULL,
    FOREIGN KEY(rig_id) REFERENCES rigs(rig_id) ON DELETE CASCADE);"""
PRIORS = " ".join(f"prior_{name} REAL," for name in ("qw", "qx", "qy", "qz", "tx", "ty", "tz"))
POSE_PRIORS = (
    "CREATE TABLE pose_priors (image_id INTEGER PRIMARY KEY NOT NULL, position BLOB, coordinate_system INTEGER);"
)

SCHEMAS = {
    "3.6": CAMERAS + IMAGES.format(priors=PRIORS) + KEYPOINTS + GEOMETRIES.format(more=""),
    "3.8": CAMERAS + IMAGES.format(priors=PRIORS) + KEYPOINTS + GEOMETRIES.format(more=", qvec BLOB, tvec BLOB"),
    "3.11": CAMERAS + IMAGES.format(priors="") + KEYPOINTS + POSE_PRIORS
    + GEOMETRIES.format(more=", qvec BLOB, tvec BLOB"),
    "3.13": FRAMES + CAMERAS + IMAGES.format(priors="") + KEYPOINTS + POSE_PRIORS
    + GEOMETRIES.format(more=", qvec BLOB, tvec BLOB"),
    "4.2": FRAMES + CAMERAS + IMAGES.format(priors="") + KEYPOINTS + POSE_PRIORS
    + GEOMETRIES.format(more=", qvec BLOB, tvec BLOB, camera1 BLOB, camera2 BLOB"),
}  # fmt: skip


def pair_id(first: int, second: int) -> int:
    return MAX_IMAGES * min(first, second) + max(first, second)


def build(path: Path, matches, geometries, schema: str = "4.2", cols: int = 2, step: int = 3) -> None:
    """Make a database of Matchings `matches` (raw) and `geometries` (verified), image ids 2, 2 + step, …"""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA synchronous = OFF")
        database.executescript(SCHEMAS[schema])
        database.execute("INSERT INTO cameras VALUES (1, 2, 640, 480, x'00', 1)")
        k = matches.n_objects
        ids = [2 + step * i for i in range(k)]
        for i, image_id in enumerate(ids):
            name = matches.names[i] if matches.names else f"image{i:02}.jpg"
            database.execute("INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, 1)", (image_id, name))
            points = np.zeros((matches.sizes[i], cols), dtype="<f4")
            if matches.coordinates is not None:
                points[:, :2] = matches.coordinates[matches.offsets[i] : matches.offsets[i + 1]]
            row = (image_id, *points.shape, points.tobytes())
            database.execute("INSERT INTO keypoints VALUES (?, ?, ?, ?)", row)
        geometry = None if schema == "4.2" else bytes(72)
        for (i, j), block in blocks(matches):
            row = (pair_id(ids[i], ids[j]), len(block), block.astype("<u4").tobytes())
            database.execute("INSERT INTO matches (pair_id, rows, cols, data) VALUES (?, ?, 2, ?)", row)
        for (i, j), block in blocks(geometries):
            row = (pair_id(ids[i], ids[j]), len(block), block.astype("<u4").tobytes(), b"F" * 72, geometry)
            columns = "pair_id, rows, cols, data, config, F, E"
            database.execute(f"INSERT INTO two_view_geometries ({columns}) VALUES (?, ?, 2, ?, 3, ?, ?)", row)


def blocks(matches):
    return matches.pairs().items() if isinstance(matches, Matchings) else matches.items()


def dump(path: Path) -> dict[str, list[tuple]]:
    """Return every row of every table."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in tables}
