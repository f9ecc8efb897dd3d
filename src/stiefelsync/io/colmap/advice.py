"""How a COLMAP database is best dealt with, as far as one look at it tells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync.errors import counted
from stiefelsync.io.colmap.positions import LEAST_CELL
from stiefelsync.io.colmap.read_rows import TABLES, load_images, load_rows
from stiefelsync.io.sqlite import snapshot
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.grid import resolution

__all__ = ["advice"]

_BEFORE, _AFTER = "before_verification=True", "verify=True"
_NOTHING = (np.zeros((3, 3)).tobytes(), np.eye(3).tobytes())  # matrices that say nothing


def _repeated(path: Path) -> list[str]:
    """Return sentences on verified matches given twice or to two partners, with the message that each causes."""
    with snapshot(path) as connection:
        images = load_images(connection, path)
        rows = load_rows(connection, TABLES[0], images, path)
    found = Matchings.from_arrays(rows.objects, rows.indices, images.sizes, one_to_many="repair").repair
    said = []
    if found is not None and found.duplicates:
        said.append(
            f"{counted(found.duplicates, 'verified match')} given twice: COLMAP's global mapper "
            'stops at them ("The correspondence graph must not contain duplicate matches"). The copy has each once.'
        )
    if found is not None and found.second_partners:
        said.append(
            f"{counted(found.second_partners, 'verified match')} to a second keypoint of the same"
            ' image: COLMAP before 3.13 ignores them ("Duplicate correspondence between point2D_idx"). The copy has at'
            " most one partner for each keypoint, unless merge_px takes several for one."
        )
    return said


def advice(path: Path, options: Mapping[str, Any]) -> list[str]:
    """Return sentences on what speaks for verification or for moving keypoints, where `options` do not ask for it.

    COLMAP's own verification leaves a matrix F, E or H in every row that passed. Rows without any were put there by
    other programs, and so were identity matrices. Whether keypoints lie on a grid is told from the image with most.

    Where nothing speaks for either, matches can stay as they are for COLMAP's global mapper: it takes rotations from
    the geometries, drops tracks that contradict themselves and adjusts no point that fewer than three images see.
    """
    with snapshot(path) as connection:
        matrices = ", ".join(f"CASE WHEN typeof({m}) = 'blob' AND length({m}) = 72 THEN {m} END" for m in "FEH")
        rows = connection.execute(f"SELECT {matrices} FROM two_view_geometries WHERE rows > 0").fetchall()
        raw = connection.execute("SELECT count(*) FROM matches WHERE rows > 0").fetchone()[0]
        largest = connection.execute("SELECT rows, data FROM keypoints ORDER BY rows DESC LIMIT 1").fetchone()
    bare = sum(not any(part is not None and part not in _NOTHING for part in row) for row in rows)
    said = []
    if "verify" in options:
        pass
    elif bare:
        told = f"{bare:,} of {counted(len(rows), 'pair')} with verified matches have no geometry: nobody verified them."
        recipe = f"For COLMAP's global mapper clean the raw matches and have them verified ({_BEFORE})."
        said.append(f"{told} {recipe if raw else f'Have pycolmap verify what is left ({_AFTER}).'}")
    elif raw and not rows:
        said.append(f"Only raw matches: mappers read verified ones. Clean and verify them in one go: {_BEFORE}.")
    said += _repeated(path)
    if largest is not None and largest[0] and not options.get("refine"):
        at = np.frombuffer(largest[1], dtype="<f4").reshape(largest[0], -1)[:, :2]
        cell = float(resolution(at, np.array([len(at)]))[0])
        if cell >= LEAST_CELL:
            said.append(
                f"Keypoints lie on a grid of {cell:g} px, off by up to half of that: for better cameras those of the"
                " copy are moved to where the matches around them put them, unless refine=False."
            )
    if rows and not (said or "verify" in options or options.get("refine") or options.get("source") == "matches"):
        said.append(
            "Cleaning is for COLMAP's incremental mapper. As every pair is verified, the cameras of the global mapper"
            " hardly change; for that one the matches can stay as they are."
        )
    return said
