"""Databases for ``benchmarks.poses``: a scene's own ones, and such as other matchers or careless users would make."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.keypoints import find_keypoints

__all__ = ["DATABASES", "SCENES", "make", "rewire", "shuffle_out", "thin"]

SCENES = {"fountain": "strecha/fountain-P11", "entry": "strecha/entry-P10", "herz-jesu": "herz-jesu-p8"}
MAX_IMAGES = 2147483647
JITTER = 0.5  # pixels
CALIBRATED = 2  # what COLMAP's own example script writes for imported matches, without any geometry

Block = NDArray[np.uint32]


@contextmanager
def _changing(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def _blocks(connection: sqlite3.Connection, table: str) -> dict[int, Block]:
    rows = connection.execute(f"SELECT pair_id, data FROM {table} WHERE rows > 0").fetchall()
    return {pair: np.frombuffer(data, dtype=np.uint32).reshape(-1, 2) for pair, data in rows}


def _put(connection: sqlite3.Connection, table: str, blocks: dict[int, Block]) -> None:
    for pair, block in blocks.items():
        data = np.ascontiguousarray(block).tobytes()
        connection.execute(f"UPDATE {table} SET rows = ?, data = ? WHERE pair_id = ?", (len(block), data, pair))


def _as_it_is(connection: sqlite3.Connection, rng: np.random.Generator) -> None:
    pass


def _raw(connection: sqlite3.Connection, rng: np.random.Generator) -> None:
    """Take the raw matches for verified ones, as a matcher's user does who skips verification."""
    raw = _blocks(connection, "matches")
    connection.execute("DELETE FROM two_view_geometries")
    for pair, block in raw.items():
        row = (pair, len(block), block.tobytes(), CALIBRATED)
        connection.execute(
            "INSERT INTO two_view_geometries (pair_id, rows, cols, data, config) VALUES (?, ?, 2, ?, ?)", row
        )


def _rewired(share: float) -> Callable[[sqlite3.Connection, np.random.Generator], None]:
    """Permute the targets of a share of every pair's matches among themselves, of the raw and of the verified ones."""

    def change(connection: sqlite3.Connection, rng: np.random.Generator) -> None:
        for table in ("matches", "two_view_geometries"):
            blocks = _blocks(connection, table)
            for pair, block in blocks.items():
                chosen = rng.choice(len(block), round(share * len(block)), replace=False)
                block = block.copy()
                block[chosen, 1] = block[np.roll(chosen, 1), 1]
                blocks[pair] = block
            _put(connection, table, blocks)

    return change


def _jittered(connection: sqlite3.Connection, rng: np.random.Generator) -> None:
    """Take verified matches as correspondences with half a pixel of noise, and find their keypoints anew."""
    ids = [number for (number,) in connection.execute("SELECT image_id FROM images ORDER BY image_id")]
    at = {number: place for place, number in enumerate(ids)}
    keypoints = {
        number: np.frombuffer(data, dtype=np.float32).reshape(rows, cols)[:, :2].astype(float)
        for number, rows, cols, data in connection.execute("SELECT image_id, rows, cols, data FROM keypoints")
    }
    pairs = {}
    for pair, block in _blocks(connection, "two_view_geometries").items():
        i, j = divmod(pair, MAX_IMAGES)
        exact = np.hstack([keypoints[i][block[:, 0]], keypoints[j][block[:, 1]]])
        pairs[at[i], at[j]] = exact + rng.normal(size=exact.shape) * JITTER
    found = find_keypoints(pairs, len(ids)).matchings
    connection.execute("DELETE FROM keypoints")
    connection.execute("DELETE FROM matches")
    assert found.coordinates is not None
    for place, number in enumerate(ids):
        block = found.coordinates[found.offsets[place] : found.offsets[place + 1]].astype(np.float32)
        connection.execute("INSERT INTO keypoints VALUES (?, ?, 2, ?)", (number, len(block), block.tobytes()))
    for (i, j), matches in found.pairs().items():
        row = (MAX_IMAGES * ids[i] + ids[j], len(matches), matches.astype(np.uint32).tobytes())
        connection.execute("INSERT INTO matches (pair_id, rows, cols, data) VALUES (?, ?, 2, ?)", row)
    _raw(connection, rng)


DATABASES: dict[str, tuple[str, Callable[[sqlite3.Connection, np.random.Generator], None]]] = {
    "verified": ("verified", _as_it_is),
    "raw": ("verified", _raw),
    "rewired05": ("verified", _rewired(0.05)),
    "rewired20": ("verified", _rewired(0.2)),
    "ratio95": ("ratio95", _as_it_is),
    "grid8": ("grid8", _as_it_is),
    "jittered": ("verified", _jittered),
}
"""By name: the file of the scene it is made from, and what is done to it."""


def make(data: Path, scene: str, name: str, path: Path) -> None:
    """Write a database of a scene."""
    file, change = DATABASES[name]
    folder = data / SCENES[scene]
    original = folder / f"{file}.db"
    if scene == "herz-jesu":
        original = folder / "database.db"
    shutil.copyfile(original, path)
    path.chmod(0o644)
    with _changing(path) as connection:
        change(connection, np.random.default_rng(0))


def rewire(path: Path, share: float) -> None:
    """Rewire a share of every pair's matches of a database, on top of what is wrong in it."""
    with _changing(path) as connection:
        _rewired(share)(connection, np.random.default_rng(0))


def thin(path: Path, draw: int, share: float = 0.01) -> None:
    """Leave out a random share of the matches of both tables; draw 0 leaves out none.

    A verified match that the raw ones lack, as after rewiring, stays or goes by itself.
    """
    if not draw:
        return
    rng = np.random.default_rng([1, draw])
    with _changing(path) as connection:
        for table in ("matches", "two_view_geometries"):
            blocks = _blocks(connection, table)
            _put(connection, table, {pair: block[rng.random(len(block)) >= share] for pair, block in blocks.items()})


def shuffle_out(path: Path, clean: Path) -> None:
    """Remove at random as many verified matches of every pair as another database has fewer."""
    rng = np.random.default_rng(2)
    with closing(sqlite3.connect(clean)) as other:
        left = dict(other.execute("SELECT pair_id, rows FROM two_view_geometries").fetchall())
    with _changing(path) as connection:
        blocks = _blocks(connection, "two_view_geometries")
        for pair, block in blocks.items():
            blocks[pair] = block[np.sort(rng.permutation(len(block))[: left.get(pair, 0)])]
        _put(connection, "two_view_geometries", blocks)
