"""Verification by COLMAP itself, where pycolmap is installed."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np

from stiefelsync.errors import MissingExtraError
from stiefelsync.io.base import Verification
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.grid import resolution

__all__ = ["DEGENERATE", "can_verify", "installed_program", "verify"]

Row = tuple[int, int, int, bytes]

DEGENERATE = 1  # a value of the column `config`; COLMAP's mappers skip rows of 0 and 1
MAX_ERROR = 4.0  # pixels: COLMAP's own tolerance
_OF_CELL = 0.75  # positions rounded to cells of 8 px are verified to within 6


def can_verify() -> bool:
    """Return whether pycolmap is installed."""
    return find_spec("pycolmap") is not None


def installed_program() -> str:
    """Return which of COLMAP's programs is at hand: the command "colmap", else "pycolmap" where that is installed."""
    return "pycolmap" if which("colmap") is None and can_verify() else "colmap"


def verify(path: Path, matchings: Matchings, table: str = "matches") -> Verification:
    """Verify all matches of one table of a database anew, in place, within 4 pixels or what a grid of positions needs.

    Parameters
    ----------
    matchings
        The matches of that table, with names and positions.
    table : {"matches", "two_view_geometries"}
        Raw matches, or those that were verified before: then these alone are verified again, and raw ones stay as they
        are.

    Returns
    -------
    Verification
        What was verified and what passed.
    """
    try:
        import pycolmap
    except ImportError:
        raise MissingExtraError("verifying matches", "pycolmap", "colmap") from None
    assert matchings.names is not None
    cells = np.zeros(1) if matchings.coordinates is None else resolution(matchings.coordinates, matchings.sizes)
    options = pycolmap.TwoViewGeometryOptions()
    options.ransac.max_error = max(MAX_ERROR, _OF_CELL * float(np.median(cells)))
    options.ransac.random_seed = 0
    level, pycolmap.logging.minloglevel = pycolmap.logging.minloglevel, pycolmap.logging.Level.ERROR.value
    try:
        with tempfile.TemporaryDirectory() as folder:
            pairs = Path(folder) / "pairs.txt"
            names = matchings.names
            text = "".join(f"{names[i]} {names[j]}\n" for i, j in matchings.pair_objects)
            pairs.write_text(text, encoding="utf-8")
            with closing(sqlite3.connect(path)) as database, database:
                verified = [pair for (pair,) in database.execute("SELECT pair_id FROM two_view_geometries")]
                raw = [] if table == "matches" else _swap_in_verified(database)
                database.execute("DELETE FROM two_view_geometries")
            pycolmap.verify_matches(path, pairs, options)
    finally:
        pycolmap.logging.minloglevel = level
    with closing(sqlite3.connect(path)) as database:  # pycolmap leaves a log beside the file
        if table != "matches":
            with database:
                _put_back(database, raw, verified)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode = DELETE")
        passed = "SELECT count(*), coalesce(sum(rows), 0) FROM two_view_geometries WHERE rows > 0"
        left, count = database.execute(passed).fetchone()
    return Verification(len(matchings.pair_objects), matchings.n_matches, int(left), int(count))


def _swap_in_verified(database: sqlite3.Connection) -> list[Row]:
    """Put the verified matches into the place of the raw ones, from where COLMAP verifies, and return these."""
    raw: list[Row] = database.execute("SELECT pair_id, rows, cols, data FROM matches").fetchall()
    database.execute("DELETE FROM matches")
    database.execute(
        "INSERT INTO matches (pair_id, rows, cols, data)"
        " SELECT pair_id, rows, cols, data FROM two_view_geometries WHERE rows > 0"
    )
    return raw


def _put_back(database: sqlite3.Connection, raw: list[Row], verified: list[int]) -> None:
    """Put raw matches back, and an empty row for every pair that had one and has none left."""
    database.execute("DELETE FROM matches")
    database.executemany("INSERT INTO matches (pair_id, rows, cols, data) VALUES (?, ?, ?, ?)", raw)
    database.executemany(
        f"INSERT OR IGNORE INTO two_view_geometries (pair_id, rows, cols, config) VALUES (?, 0, 2, {DEGENERATE})",
        [(pair,) for pair in verified],
    )
