"""Keypoints of a COLMAP database that lie on a grid, moved to where their matches put them."""

from __future__ import annotations

import sqlite3

import numpy as np
from numpy.typing import NDArray

from stiefelsync.io.colmap.read_rows import Images, Rows
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.grid import resolution
from stiefelsync.positions.refinement import refine_positions

__all__ = ["LEAST_CELL", "move_keypoints", "with_refined"]


LEAST_CELL = 2.0
"""Grids finer than this, in pixels, are not worth a word: detectors that round to whole pixels are off by less."""


def with_refined(matchings: Matchings, least: float) -> Matchings:
    """Return the same matches with positions off grids of cells no finer than that; those on none stay as they are."""
    if matchings.coordinates is None:
        return matchings
    return Matchings.from_endpoints(
        matchings.endpoints,
        matchings.sizes,
        weights=matchings.weights,
        names=matchings.names,
        coordinates=_refined(matchings, least),
    )


def move_keypoints(connection: sqlite3.Connection, images: Images, rows: Rows, least: float) -> int:
    """Move the keypoints of a database that lie on a grid to where these matches put them; return how many moved.

    Grids of cells finer than `least` pixels do not count. Scales and orientations stay as they are.
    """
    problem = Matchings.from_endpoints(rows.ends, images.sizes, coordinates=images.coordinates, one_to_many="repair")
    at = _refined(problem, least).astype("<f4")
    moved = np.abs(at - images.coordinates).max(axis=1, initial=0) > 0
    for i, image_id in enumerate(images.ids.tolist()):
        own = slice(*images.offsets[i : i + 2])
        if moved[own].any():
            of = "FROM keypoints WHERE image_id = ?"
            count, columns, data = connection.execute(f"SELECT rows, cols, data {of}", (image_id,)).fetchone()
            block = np.frombuffer(data, dtype="<f4").reshape(count, columns).copy()
            block[:, :2] = at[own]
            connection.execute("UPDATE keypoints SET data = ? WHERE image_id = ?", (block.tobytes(), image_id))
    return int(np.count_nonzero(moved))


def _refined(matchings: Matchings, least: float) -> NDArray[np.float64]:
    """Return the positions of points, moved off grids of cells no finer than that; shape (m, 2)."""
    assert matchings.coordinates is not None
    cell = resolution(matchings.coordinates, matchings.sizes)
    return refine_positions(matchings, cell=np.where(cell >= least, cell, 0.0))
