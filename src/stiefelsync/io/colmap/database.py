"""COLMAP databases, schemas 3.6 to 4.2, read and written with the standard library's sqlite3.

Reconstruction reads `two_view_geometries` only; `matches` are what verification starts from. The original is never
touched: the output is a copy in which only the rows that change are changed.
"""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync.errors import InputError, unknown_name
from stiefelsync.io.base import Content, Format, Written, losses, register
from stiefelsync.io.colmap.advice import advice
from stiefelsync.io.colmap.create import create
from stiefelsync.io.colmap.positions import LEAST_CELL, move_keypoints, with_refined
from stiefelsync.io.colmap.read_rows import (
    MAX_IMAGES,
    TABLES,
    Database,
    check_triggers,
    load_images,
    load_rows,
)
from stiefelsync.io.colmap.read_rows import check_tables as _check_tables
from stiefelsync.io.colmap.verify import can_verify, installed_program
from stiefelsync.io.colmap.verify import verify as run_verification
from stiefelsync.io.colmap.write_rows import changed_rows, fit_content, write_rows
from stiefelsync.io.sqlite import distrust, is_sqlite, snapshot, state_of
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.duplicate_keypoints import representatives

__all__ = ["COLMAP", "MAX_IMAGES", "TABLES", "check_same_table", "next_command"]

PROGRAMS = ("colmap", "pycolmap")


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
        as :func:`~stiefelsync.positions.duplicate_keypoints.representatives` says.
    """
    return load(path, one_to_many=one_to_many, source=source, merge_px=merge_px)[0]


def load(
    path: Path, *, one_to_many: OneToMany = "repair", source: str | None = None, merge_px: float = 0.0
) -> tuple[Matchings, Database]:
    """Return what :func:`read` does, and the tables, for writing a changed copy."""
    with snapshot(path) as connection:
        found = _database(connection, path, source)
    images, rows = found.images, found.rows
    about: dict[str, Any] = {"names": images.names, "coordinates": images.coordinates}
    plain = Matchings.from_arrays(rows.objects, rows.indices, images.sizes, **about, one_to_many=one_to_many)
    if not merge_px:
        return plain, found
    stands = representatives(images.coordinates, images.sizes, rows.ends, merge_px)
    points = stands[rows.ends] - images.offsets[rows.objects]
    return Matchings.from_arrays(rows.objects, points, images.sizes, **about, one_to_many="repair"), found


def _database(connection: sqlite3.Connection, path: Path, source: str | None, earlier: object = None) -> Database:
    """Return the images, and the matches of the table asked for; None takes the verified ones if there are any.

    What an earlier reading found is returned as it is, if it is of the same file and this has not changed since.
    """
    if source is not None and source not in TABLES:
        raise unknown_name("source", source, TABLES)
    state = state_of(path.resolve())
    if isinstance(earlier, Database) and (earlier.path, earlier.asked, earlier.state) == (path, source, state):
        return earlier
    _check_tables(connection, path)
    images = load_images(connection, path)
    for table in TABLES if source is None else (source,):
        rows = load_rows(connection, table, images, path)
        if len(rows.indices):
            break
    return Database(path, state, source, table, images, rows)


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


# ---------------------------------------------------------------- writing


def write(
    content: Content,
    path: Path,
    *,
    like: Path | None,
    source: str | None = None,
    target: str | None = None,
    merge_px: float = 0.0,
    refine: bool | None = None,
    verify: bool = False,
    cameras: str | Path | None = None,
    photos: str | Path | None = None,
    shift: float = 0.0,
) -> Written | None:
    """Write a copy of the database `like` with only those matches that the content holds, and count them.

    If `like` is not a database, a new one is written, of raw matches (:func:`~stiefelsync.io.colmap.create.create`).

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
    refine
        Whether keypoints that lie on a grid are moved to where their matches and those around them put them
        (:func:`~stiefelsync.positions.refinement.refine_positions`). Others stay where they are. None moves those of
        tracks, where the grid is no finer than two pixels, and none of matches that are no tracks.
    verify
        Whether COLMAP (pycolmap) verifies the matches that are written, and leaves only those that pass.
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
        least = _least_cell(refine, content)
        matchings = content.matchings if least is None else with_refined(content.matchings, least)
        create(matchings, path, cameras=cameras, photos=photos, shift=shift)
        if verify:
            run_verification(path, read(path, source="matches"))
        return None
    for name, value in (("cameras", cameras), ("photos", photos), ("shift", shift)):
        if value:
            raise InputError(f"option {name} is for a new database; this one is a copy of {like}")
    with snapshot(like) as original:
        known = _database(original, like, source, content.original)
        check_triggers(original, like, (*TABLES, "keypoints"))
        images, source, given = known.images, known.table, known.rows
        fitted = fit_content(content, images, like)
        target = target or source
        rows = given if target == source else load_rows(original, target, images, like)
        stands = np.arange(len(images.coordinates))
        if merge_px:  # as they were read
            stands = representatives(images.coordinates, images.sizes, given.ends, merge_px)
        changed, written = changed_rows(rows, fitted, images, stands)
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as copy:
                distrust(copy)
                copy.execute("PRAGMA synchronous = OFF")  # the finished file is flushed once
                original.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                copy.execute("BEGIN IMMEDIATE")
                dropped = write_rows(copy, target, changed)
                least, moved = _least_cell(refine, content), 0
                if least is not None:
                    moved = move_keypoints(copy, images, load_rows(copy, target, images, like), least)
                copy.execute("COMMIT")
        except sqlite3.Error as error:  # of the copy: the original was read to the end above
            raise OSError(0, str(error)) from error
    passed = run_verification(path, read(path, source=target), target) if verify else None
    return replace(
        written,
        source=source,
        target=target,
        to_verify=0 if verify else dropped,
        merged=merge_px,
        moved=moved,
        verification=passed,
    )


def _least_cell(refine: bool | None, content: Content) -> float | None:
    """Return the finest grid of which keypoints are to be moved, in pixels, or None."""
    if refine is None:
        return None if content.labels is None else LEAST_CELL
    return 0.0 if refine else None


def next_command(
    path: str | Path, *, target: str | None = None, images: str | Path = "images", program: str | None = None
) -> str:
    """Return what to type next to reconstruct from a database written here.

    Parameters
    ----------
    target : {"two_view_geometries", "matches"}
        The table that was written; after "matches" these are to be verified first. None looks into the database, if
        there is one: whether it has raw matches that were never verified, or no verified ones at all.
    program : {"colmap", "pycolmap"}
        What to reconstruct with; None is the one that is installed.

    Examples
    --------
    >>> print(next_command("clean.db", program="colmap"))
    mkdir -p sparse && colmap mapper --database_path clean.db --image_path images --output_path sparse
    """
    program = installed_program() if program is None else program
    if program not in PROGRAMS:
        raise unknown_name("program", program, PROGRAMS)
    if target is not None and target not in TABLES:
        raise unknown_name("target", target, TABLES)
    first = _unverified(Path(path)) if target is None else target == "matches"
    if program == "pycolmap":
        verify = f"pycolmap.geometric_verification({str(path)!r}); " if first else ""
        mapper = f"pycolmap.incremental_mapping({str(path)!r}, {str(images)!r}, 'sparse')"
        return f"mkdir -p sparse && python -c {_quoted(f'import pycolmap; {verify}{mapper}')}"
    database, folder = shlex.quote(str(path)), shlex.quote(str(images))
    mapper = f"colmap mapper --database_path {database} --image_path {folder} --output_path sparse"
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


def _go_on(path: Path, written: Written | None, images: Path | None) -> str:
    """Return what to type next after writing a database."""
    # Raw matches may have been verified since.
    target = None if written is None or written.target == "matches" else written.target
    return next_command(path, target=target, images="IMAGES" if images is None else images)


def _before_verification() -> dict[str, Any]:
    """Return the options for raw matches in and raw matches out, verified at once where pycolmap is installed."""
    return {"source": "matches", "target": "matches", "verify": can_verify()}


COLMAP = register(
    Format(
        "colmap",
        "COLMAP database: verified or raw matches",
        (".db", ".sqlite", ".sqlite3"),
        is_sqlite,
        read,
        write,
        partial(losses, where="A COLMAP database", weights=False),
        adds=False,
        copies=True,
        photographs=True,
        load=load,
        next_command=_go_on,
        check_comparable=check_same_table,
        files=("cameras",),
        recipes={"before_verification": _before_verification},
        advice=advice,
    )
)


def _quoted(program: str) -> str:
    """Return a program for the shell, in double quotes where nothing in it means something there."""
    return f'"{program}"' if not set(program) & set('"$`\\!') else shlex.quote(program)
