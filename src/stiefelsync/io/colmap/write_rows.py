"""The rows of a COLMAP database that change: which these are, and what is written into them."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.io.base import Content, Written, names_of
from stiefelsync.io.colmap.read_rows import MAX_IMAGES, Images, Rows
from stiefelsync.io.colmap.verify import DEGENERATE
from stiefelsync.matching.matchings import Matchings

__all__ = ["changed_rows", "fit_content", "write_rows"]

UNCALIBRATED = 3  # a value of the column `config`

Int64s = NDArray[np.int64]


def fit_content(content: Content, images: Images, like: Path) -> Content:
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
    barred = np.sort(place[content.barred], axis=1)
    fitted = Matchings.from_arrays(objects, given.indices, images.sizes)
    return replace(content, matchings=fitted, labels=labels, barred=barred)


def changed_rows(
    rows: Rows, content: Content, images: Images, stands: Int64s
) -> tuple[dict[int, tuple[NDArray[np.uint32], bool]], Written]:
    """Return the new matches of every pair whose matches change and whether some were added, by pair id; and counts."""
    ends = rows.ends
    weight = np.array([len(stands), 1])
    keep = content.holds(stands[ends])
    first = np.zeros(len(keep), dtype=bool)  # of the same match given twice
    first[np.unique(ends @ weight, return_index=True)[1]] = True
    keep &= first
    row = np.repeat(np.arange(len(rows.pair_ids)), np.diff(rows.start))
    touched = set(row[~keep].tolist())
    extra: dict[int, NDArray[Any]] = {}
    held = np.sort(stands[ends[keep]] @ weight)
    held = held[np.append(True, held[1:] != held[:-1])[: len(held)]]  # np.unique counts by hashes, ten times as slowly
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


def write_rows(copy: sqlite3.Connection, target: str, changed: dict[int, tuple[NDArray[np.uint32], bool]]) -> int:
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
