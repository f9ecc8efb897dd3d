"""Keypoints of a COLMAP database that lie on a grid, moved to where their matches put them."""

from __future__ import annotations

import sqlite3

import numpy as np

from stiefelsync.io.colmap.tables import Images, Rows
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.refinement import refine_positions

__all__ = ["move_keypoints", "with_refined"]


def with_refined(matchings: Matchings) -> Matchings:
    """Return the same matches with positions off their grid; those on none stay where they are."""
    if matchings.coordinates is None:
        return matchings
    return Matchings.from_endpoints(
        matchings.endpoints,
        matchings.sizes,
        weights=matchings.weights,
        names=matchings.names,
        coordinates=refine_positions(matchings),
    )


def move_keypoints(connection: sqlite3.Connection, images: Images, rows: Rows) -> int:
    """Move the keypoints of a database that lie on a grid to where these matches put them; return how many moved.

    Scales and orientations stay as they are.
    """
    problem = Matchings.from_endpoints(rows.ends, images.sizes, coordinates=images.coordinates, one_to_many="repair")
    at = refine_positions(problem).astype("<f4")
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
