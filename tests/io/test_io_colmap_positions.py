"""Keypoints of a COLMAP database that lie on a grid: told, and moved in the copy if that is asked for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from stiefelsync import FormatError, Matchings, clean, io
from stiefelsync.cli.app import app
from stiefelsync.positions.refinement import refine_positions
from tests.io.colmap_schemas import build

N = 60


def problem(cell: float) -> Matchings:
    """Three views of a plane, moved and rounded to cells."""
    first = np.random.default_rng(0).uniform(0, 300, (N, 2))
    exact = np.vstack([first, 1.1 * first + 11, 1.2 * first + 3])
    given = (np.floor(exact / cell) + 0.5) * cell if cell else exact
    labels = np.tile(np.arange(N), 3)
    matches = Matchings.from_labels(labels, [N] * 3)
    names = ("a.jpg", "b.jpg", "c.jpg")
    return Matchings.from_endpoints(matches.endpoints, matches.sizes, names=names, coordinates=given)


def keypoints(path: Path) -> list[np.ndarray]:
    with closing(sqlite3.connect(path)) as opened:
        found = opened.execute("SELECT rows, cols, data FROM keypoints ORDER BY image_id").fetchall()
    return [np.frombuffer(data, dtype="<f4").reshape(rows, cols) for rows, cols, data in found]


@pytest.mark.parametrize("cols", [2, 6])
def test_keypoints_on_a_grid_are_moved_unless_told_otherwise(tmp_path: Path, cols: int) -> None:
    given = problem(8.0)
    build(tmp_path / "database.db", given, given, cols=cols)
    before = (tmp_path / "database.db").read_bytes()
    kept = clean(tmp_path / "database.db", tmp_path / "kept.db", method="tracks", refine=False)
    assert all(map(np.array_equal, keypoints(kept.output), keypoints(tmp_path / "database.db")))
    assert kept.written.moved == 0
    (said,) = (text for text in kept.advice if "grid of 8 px" in text)
    assert "unless refine=False" in said
    assert not any("can stay as they are" in text for text in kept.advice)
    done = clean(tmp_path / "database.db", tmp_path / "moved.db", method="tracks")
    asked = clean(tmp_path / "database.db", tmp_path / "asked.db", method="tracks", refine=True)
    assert all(map(np.array_equal, keypoints(done.output), keypoints(asked.output)))
    assert not any("grid" in text for text in asked.advice)
    assert done.as_dict()["keypoints_moved"] == done.written.moved > 2 * N
    at = np.vstack([block[:, :2] for block in keypoints(done.output)])
    held = io.read(done.output)
    held = Matchings.from_endpoints(held.endpoints, held.sizes, coordinates=given.coordinates)
    np.testing.assert_array_equal(at, refine_positions(held).astype("f4"))
    for old, new in zip(keypoints(tmp_path / "database.db"), keypoints(done.output), strict=True):
        np.testing.assert_array_equal(old[:, 2:], new[:, 2:])
    assert (tmp_path / "database.db").read_bytes() == before


def test_other_keypoints_stay_and_nothing_is_said(tmp_path: Path) -> None:
    given = problem(0.0)
    build(tmp_path / "database.db", given, given)
    done = clean(tmp_path / "database.db", tmp_path / "clean.db", method="tracks", refine=True)
    assert done.written.moved == 0
    assert all(map(np.array_equal, keypoints(done.output), keypoints(tmp_path / "database.db")))
    assert not any("grid" in text for text in done.advice)
    build(tmp_path / "empty.db", Matchings.from_pairs({}, [0, 0], names=("a", "b")), given.keep(np.zeros(3 * N, bool)))
    assert not any("grid" in text for text in io.FORMATS["colmap"].advice(tmp_path / "empty.db", {}))


def test_a_fine_grid_stays_unless_asked_for(tmp_path: Path) -> None:
    coarse = problem(8.0)
    given = Matchings.from_endpoints(
        coarse.endpoints, coarse.sizes, names=coarse.names, coordinates=coarse.coordinates * (1.5 / 8)
    )
    build(tmp_path / "database.db", given, given)
    for refine, moves in ((None, False), (True, True)):
        done = clean(tmp_path / "database.db", tmp_path / f"{refine}.db", method="tracks", refine=refine)
        assert (done.written.moved > 0) == moves


def test_matches_that_are_no_tracks_stay_where_they_are(tmp_path: Path) -> None:
    given = problem(8.0)
    build(tmp_path / "database.db", given, given)
    written = io.write(given.keep(np.arange(given.n_matches) > 5), tmp_path / "part.db", like=tmp_path / "database.db")
    assert written.moved == 0
    assert all(map(np.array_equal, keypoints(tmp_path / "part.db"), keypoints(tmp_path / "database.db")))
    io.write(given, tmp_path / "new.db")
    at = np.vstack([block[:, :2] for block in keypoints(tmp_path / "new.db")])
    np.testing.assert_array_equal(at, given.coordinates.astype("f4"))


def test_a_new_database_has_positions_off_the_grid(tmp_path: Path) -> None:
    given = problem(8.0)
    io.write(given, tmp_path / "new.db", refine=True)
    at = np.vstack([block[:, :2] for block in keypoints(tmp_path / "new.db")])
    np.testing.assert_array_equal(at, refine_positions(given).astype("f4"))


def test_the_command_line_tells_and_moves(tmp_path: Path) -> None:
    given = problem(8.0)
    build(tmp_path / "database.db", given, given)
    run = CliRunner().invoke
    told = run(app, ["inspect", str(tmp_path / "database.db")]).output
    assert "grid of 8 px" in " ".join(told.split())
    assert "unless --option refine=false" in " ".join(told.split())
    arguments = ["sync", str(tmp_path / "database.db"), "-o", str(tmp_path / "clean.db")]
    assert "moved off the grid" in run(app, arguments).output


def test_a_trigger_on_keypoints_is_refused(tmp_path: Path) -> None:
    given = problem(8.0)
    build(tmp_path / "database.db", given, given)
    with closing(sqlite3.connect(tmp_path / "database.db")) as opened, opened:
        opened.execute("CREATE TRIGGER t AFTER UPDATE ON keypoints BEGIN DELETE FROM images; END")
    with pytest.raises(FormatError, match="trigger"):
        clean(tmp_path / "database.db", tmp_path / "clean.db", method="tracks", refine=True)


def test_tracks_is_chosen_for_photographs_only_and_only_where_nobody_else_chose(tmp_path: Path) -> None:
    given = problem(0.0)
    build(tmp_path / "database.db", given, given)
    io.write(given, tmp_path / "points.npz")

    def chosen(name: str, **options: Any) -> tuple[str, str]:
        done = clean(tmp_path / name, tmp_path / f"clean-{name}", force=True, **options)
        return done.result.method, " ".join(done.advice)

    method, said = chosen("database.db")
    assert method == "tracks"
    assert "Method tracks was chosen" in said
    assert chosen("points.npz")[0] == "accurate"
    for options in ({"method": "accurate"}, {"universe": 2 * N}):
        method, said = chosen("database.db", **options)
        assert method == "accurate"
        assert "method='tracks' does not" in said
    assert "was chosen" not in chosen("database.db", method="tracks")[1]
    shuffled = np.random.default_rng(0).permutation(given.n_points)  # positions that say nothing
    about = {"names": given.names, "coordinates": given.coordinates[shuffled]}
    elsewhere = Matchings.from_endpoints(given.endpoints, given.sizes, **about)
    build(tmp_path / "shuffled.db", elsewhere, elsewhere)
    assert chosen("shuffled.db")[0] == "accurate"


def test_it_is_told_that_only_tracks_looks_at_positions(tmp_path: Path) -> None:
    given = problem(0.0)
    build(tmp_path / "database.db", given, given)
    told = [clean(tmp_path / "database.db", tmp_path / f"{name}.db", method=name).advice for name in ("fast", "tracks")]
    assert any("method='tracks' does not" in text for text in told[0])
    assert not any("method='tracks'" in text for text in told[1])
