"""Cleaning before verification, verification by COLMAP itself, and the advice which of the two recipes fits."""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from stiefelsync import Matchings, clean, io
from stiefelsync.cleaning import LeftOut
from stiefelsync.cli.app import app
from stiefelsync.errors import InputError
from stiefelsync.io.colmap import advice as colmap_advice
from stiefelsync.io.colmap.verify import installed_program


@pytest.fixture(scope="module")
def pycolmap() -> Any:
    return pytest.importorskip("pycolmap", reason="needs the extra colmap")


@pytest.fixture
def database(pycolmap: Any, tmp_path: Path) -> Path:
    path = tmp_path / "database.db"
    pycolmap.set_random_seed(1)
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=1, num_cameras_per_rig=1, num_frames_per_rig=6, num_points3D=150, inlier_match_ratio=0.9
    )
    with pycolmap.Database.open(str(path)) as opened:
        pycolmap.synthesize_dataset(options, opened)
    return path


def rows(path: Path, what: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute(what).fetchall()


def test_raw_in_verified_out(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    done = clean(database, tmp_path / "clean.db", method="tracks", before_verification=True)
    assert database.read_bytes() == before
    raw, verified = (io.read(done.output, source=table) for table in ("matches", "two_view_geometries"))
    assert 0 < verified.n_matches <= raw.n_matches < rows(database, "SELECT sum(rows) FROM matches")[0][0]
    geometries = rows(done.output, "SELECT F, E, H FROM two_view_geometries WHERE rows > 0")
    assert all(any(part is not None for part in row) for row in geometries)
    assert done.next_command.startswith("mkdir -p sparse && colmap mapper")
    assert done.advice == ()
    given = rows(done.output, "SELECT count(*), sum(rows) FROM matches WHERE rows > 0")[0]
    left = rows(done.output, "SELECT count(*), sum(rows) FROM two_view_geometries WHERE rows > 0")[0]
    assert done.as_dict()["verified"] == dict(
        zip(("pairs", "matches", "pairs_left", "matches_left"), (*given, *left), strict=True)
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["clean.db", "database.db"]


def test_what_is_left_of_verified_matches_is_verified_and_raw_ones_stay(database: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database)) as opened, opened:  # one in ten verified matches is wrong, of one pair all
        for pair, data in opened.execute("SELECT pair_id, data FROM two_view_geometries WHERE rows > 0").fetchall():
            block = np.frombuffer(data, dtype="<u4").reshape(-1, 2).copy()
            some = np.arange(0, len(block), 10 if pair % 7 else 1)
            block[some, 1] = block[np.roll(some, 1), 1]
            opened.execute("UPDATE two_view_geometries SET data = ? WHERE pair_id = ?", (block.tobytes(), pair))
    plain = clean(database, tmp_path / "plain.db", method="tracks", neighbours=0)
    page = tmp_path / "a.html"
    done = clean(database, tmp_path / "clean.db", method="tracks", neighbours=0, verify=True, report=page)
    before, after = (io.read(path, source="two_view_geometries") for path in (plain.output, done.output))
    assert done.counts == plain.counts
    # What passed is among what was left, and every pair that passed has a geometry of its own.
    assert set(after.match_keys.tolist()) <= set(before.match_keys.tolist())
    assert 0.5 * before.n_matches < after.n_matches
    fundamental = "SELECT pair_id, F FROM two_view_geometries WHERE rows > 0"
    old, new = (dict(rows(path, fundamental)) for path in (database, done.output))
    assert all(matrix is not None and len(matrix) == 72 for matrix in new.values())
    assert any(new[pair] != old[pair] for pair in new)
    # Raw matches are what they were, and no pair lost its row.
    raw = "SELECT pair_id, rows, data FROM matches ORDER BY pair_id"
    assert rows(done.output, raw) == rows(database, raw)
    every = "SELECT pair_id FROM two_view_geometries ORDER BY pair_id"
    assert rows(done.output, every) == rows(database, every)
    told = done.as_dict()["verified"]
    assert told == {
        "pairs": len(before.pair_objects), "matches": before.n_matches,
        "pairs_left": len(after.pair_objects), "matches_left": after.n_matches,
    }  # fmt: skip
    assert f"{after.n_matches:,} of {before.n_matches:,} are left" in page.read_text()
    assert "geometric" not in done.next_command
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.html", "clean.db", "database.db", "plain.db"]


def test_verified_matches_that_all_go_leave_empty_rows(database: Path, tmp_path: Path) -> None:
    names = io.read(database).names
    with closing(sqlite3.connect(database)) as opened, opened:  # ten matches of a pair are fewer than COLMAP asks for
        opened.execute("UPDATE two_view_geometries SET rows = 10, data = substr(data, 1, 80)")
    done = clean(database, tmp_path / "clean.db", method="tracks", left_out=LeftOut(names[2:]), verify=True)
    assert done.written.verification.matches_left == 0
    every = "SELECT pair_id FROM two_view_geometries ORDER BY pair_id"
    assert rows(done.output, every) == rows(database, every)
    assert rows(done.output, "SELECT sum(rows) FROM two_view_geometries") == [(0,)]


def test_without_pycolmap_nothing_is_written_that_was_to_be_verified(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycolmap", None)
    told = CliRunner().invoke(app, ["sync", str(database), "--verify", "-o", str(tmp_path / "clean.db")])
    assert told.exit_code == 2
    assert 'pip install "stiefelsync[colmap]"' in told.output
    assert not (tmp_path / "clean.db").exists()


def test_without_pycolmap_verification_comes_next(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stiefelsync.io.colmap.database.can_verify", lambda: False)
    done = clean(database, tmp_path / "clean.db", method="tracks", before_verification=True)
    assert done.next_command.startswith("colmap geometric_verifier")


def test_rows_without_geometry_are_told(database: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database)) as opened, opened:
        unity = np.eye(3).tobytes()
        opened.execute("UPDATE two_view_geometries SET F = NULL, E = NULL, H = ? WHERE rows > 0", (unity,))
    (said,) = colmap_advice.advice(database, {})
    assert "of 15 pairs with verified matches have no geometry: nobody verified them." in said
    assert "have them verified" in said
    done = clean(database, tmp_path / "clean.db", method="tracks")
    assert done.advice == (said,)
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("DELETE FROM two_view_geometries")
    assert colmap_advice.advice(database, {})[0].startswith("Only raw matches")


def test_verified_matches_can_stay_for_the_global_mapper(database: Path, tmp_path: Path) -> None:
    (said,) = clean(database, tmp_path / "clean.db", method="tracks").advice
    assert "hardly change; for that one the matches can stay as they are" in said
    for options, told in (
        ({"source": "two_view_geometries"}, [said]),
        ({"source": "matches"}, []),
        ({"refine": True}, []),
        ({"verify": False}, []),
    ):
        assert colmap_advice.advice(database, options) == told
    with closing(sqlite3.connect(database)) as opened, opened:  # a single pair that nobody verified
        one = "(SELECT min(pair_id) FROM two_view_geometries WHERE rows > 0)"
        opened.execute(f"UPDATE two_view_geometries SET F = NULL, E = NULL, H = NULL WHERE pair_id = {one}")
    assert said not in colmap_advice.advice(database, {})


def test_other_formats_are_not_verified(tmp_path: Path) -> None:
    io.write(Matchings.from_labels([0, 0], [1, 1]), tmp_path / "a.npz")
    with pytest.raises(InputError, match="verify"):
        clean(tmp_path / "a.npz", tmp_path / "b.npz", verify=True)
    with pytest.raises(InputError, match=r"before_verification is for files of the format 'colmap'; .* is 'npz'"):
        clean(tmp_path / "a.npz", tmp_path / "b.npz", before_verification=True)


def test_a_new_database_can_be_verified_at_once(database: Path, tmp_path: Path) -> None:
    problem = io.read(database, source="matches")
    (tmp_path / "cameras.csv").write_text("name,model,width,height,params\n*,SIMPLE_PINHOLE,1024,768,1280 512 384\n")
    io.write(problem, tmp_path / "new.db", verify=True, cameras=tmp_path / "cameras.csv")
    assert io.read(tmp_path / "new.db", source="two_view_geometries").n_matches > 0.5 * problem.n_matches


def test_the_command_line_says_what_verification_left(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "clean.db"
    told = CliRunner().invoke(app, ["sync", str(database), "--before-verification", "-o", str(path)]).output
    (pairs, matches), (pairs_left, matches_left) = (
        rows(path, f"SELECT count(*), sum(rows) FROM {table} WHERE rows > 0")[0]
        for table in ("matches", "two_view_geometries")
    )
    said = " ".join(told.split())
    assert f"by pycolmap: of {matches:,} raw matches in {pairs} pairs {matches_left:,} in {pairs_left} pairs" in said
    told = CliRunner().invoke(app, ["sync", str(database), "--verify", "-o", str(path), "--force"]).output
    pairs_left, matches_left = rows(path, "SELECT count(*), sum(rows) FROM two_view_geometries WHERE rows > 0")[0]
    assert f"pairs {matches_left:,} in {pairs_left} pairs are left" in " ".join(told.split())
    assert "raw" not in told


def test_what_to_type_next_is_of_the_program_that_is_there(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installed_program() == "colmap"
    monkeypatch.setattr("stiefelsync.io.colmap.verify.which", lambda _: None)
    assert installed_program() == "pycolmap"
    clean(database, tmp_path / "clean it.db", method="tracks", target="matches", source="matches")
    monkeypatch.chdir(tmp_path)
    command = io.colmap.next_command("clean it.db", images=".")
    assert "geometric_verification" in command
    words = shlex.split(command.split("&&")[1])
    assert words[:2] == ["python", "-c"]
    Path("sparse").mkdir()
    # It runs, and reconstructs all six images.
    done = subprocess.run([sys.executable, "-c", words[2]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    import pycolmap

    assert pycolmap.Reconstruction("sparse/0").num_reg_images() == 6
    monkeypatch.setattr("stiefelsync.io.colmap.verify.find_spec", lambda _: None)
    assert installed_program() == "colmap"
    with pytest.raises(InputError, match="program"):
        io.colmap.next_command("clean.db", program="glomap")


def test_matches_given_twice_are_told_with_the_message_they_cause_and_mended(database: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database)) as opened, opened:
        pair, data = opened.execute("SELECT pair_id, data FROM two_view_geometries").fetchone()
        block = np.frombuffer(data, dtype="<u4").reshape(-1, 2)
        more = np.vstack([block, block[:3], [[block[0, 0], block[5, 1]]]])
        change = "UPDATE two_view_geometries SET rows = ?, data = ? WHERE pair_id = ?"
        opened.execute(change, (len(more), more.tobytes(), pair))
    told = io.FORMATS["colmap"].advice(database, {})
    assert any(
        text.startswith("3 verified matches given twice") and "must not contain duplicate" in text for text in told
    )
    assert any(text.startswith("1 verified match to a second keypoint") for text in told)
    said = subprocess.run(
        [sys.executable, "-c", f"import pycolmap; pycolmap.global_mapping({str(database)!r}, '.', {str(tmp_path)!r})"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "duplicate" in said.stderr.lower()
    clean(database, tmp_path / "clean.db", method="tracks")
    left = rows(tmp_path / "clean.db", f"SELECT data FROM two_view_geometries WHERE pair_id = {pair}")[0][0]
    left = np.frombuffer(left, dtype="<u4").reshape(-1, 2)
    assert len(left) > 10
    assert all(len(np.unique(left[:, side])) == len(left) for side in (0, 1))
    assert not any("given twice" in text for text in io.FORMATS["colmap"].advice(tmp_path / "clean.db", {}))
