"""Cleaning before verification, verification by COLMAP itself, and the advice which of the two recipes fits."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stiefelsync import Matchings, clean, io
from stiefelsync.errors import InputError
from stiefelsync.io.colmap import advice as colmap_advice


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
    assert sorted(file.name for file in tmp_path.iterdir()) == ["clean.db", "database.db"]


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
    assert "before verification" in said
    done = clean(database, tmp_path / "clean.db", method="tracks")
    assert done.advice == (said,)
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("DELETE FROM two_view_geometries")
    assert colmap_advice.advice(database, {})[0].startswith("Only raw matches")


def test_verified_matches_can_stay_for_the_global_mapper(database: Path, tmp_path: Path) -> None:
    (said,) = clean(database, tmp_path / "clean.db", method="tracks").advice
    assert "global one hardly change, for which the matches can stay as they are" in said
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
    with pytest.raises(InputError, match=r"before_verification is for files of the format 'colmap'; .* is 'npz'"):
        clean(tmp_path / "a.npz", tmp_path / "b.npz", before_verification=True)


def test_a_new_database_can_be_verified_at_once(database: Path, tmp_path: Path) -> None:
    problem = io.read(database, source="matches")
    (tmp_path / "cameras.csv").write_text("name,model,width,height,params\n*,SIMPLE_PINHOLE,1024,768,1280 512 384\n")
    io.write(problem, tmp_path / "new.db", verify=True, cameras=tmp_path / "cameras.csv")
    assert io.read(tmp_path / "new.db", source="two_view_geometries").n_matches > 0.5 * problem.n_matches
