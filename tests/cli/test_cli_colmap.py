"""A real COLMAP database through the command line."""

from __future__ import annotations

import hashlib

import pytest

pytestmark = pytest.mark.data


def test_sceaux(run, document, data_dir, tmp_path):
    database, clean = data_dir / "sceaux" / "database.db", tmp_path / "clean database.db"
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    found = document("inspect", database, "--max-conflicts", 100, code=1)
    assert found["matches"] == 53_108
    assert 0 < found["conflicts_apart"] < found["conflicts"]
    told = document("sync", database, "-o", clean)
    assert told["conflicts_before"] == found["conflicts"]
    assert told["conflicts_after"] == 0
    assert told["matches_kept"] == told["matches_after"] >= 0.97 * found["matches"]
    assert not told["added_written"]
    after = document("inspect", clean, "--max-conflicts", 0)
    assert after["matches"] == told["matches_after"]
    assert found["worth"].startswith("yes")
    assert after["worth"].startswith(("no", "hardly"))
    more = document("sync", database, "-o", clean, "--force", "--option", "merge_px=10")
    merged = document("inspect", clean)
    assert more["matches_before"] == found["matches"]
    assert more["matches_after"] == merged["matches"] > told["matches_after"]
    assert (more["conflicts_after"], merged["conflicts_apart"]) == (merged["conflicts"], 0)
    at_ten = document("inspect", database, "--option", "merge_px=10")
    assert at_ten["conflicts"] <= found["conflicts_apart"]
    table = run("sync", database, "-o", clean, "--force", "--option", "merge_px=1", "--verbose").stdout
    assert f"colmap mapper --database_path '{clean}' --image_path IMAGES" in table
    assert "more would follow from the tracks, which --add writes, too" in " ".join(table.split())
    assert hashlib.sha256(database.read_bytes()).hexdigest() == digest


def test_through_a_table_and_back(run, document, data_dir, tmp_path):
    """Matches taken out as a table, made consistent and put into a copy of the database they came from."""
    database = data_dir / "sceaux" / "database.db"
    table, clean, direct = tmp_path / "matches.csv", tmp_path / "clean.db", tmp_path / "direct.db"
    run("convert", database, table)
    assert "needs the positions of keypoints" in run("convert", table, clean, code=2).stderr
    run("sync", table, "-o", clean, "--like", database)
    run("sync", database, "-o", direct, "--method", "tracks", "--option", "neighbours=0", "--option", "copies=0")
    assert document("inspect", clean) | {"input": ""} == document("inspect", direct) | {"input": ""}
    run("sync", table, "-o", tmp_path / "consistent.csv")
    run("convert", tmp_path / "consistent.csv", clean, "--force", "--like", database, "--option", "target=matches")
    assert "is the input itself" in run("convert", table, database, "--like", database, code=2).stderr
    said = document("convert", direct, tmp_path / "tracks.csv", "--to", "tracks")["lost"]
    assert len(said) == 1
    assert "also holds what follows" in said[0]


def test_raw_matches_are_verified_next(run, data_dir, tmp_path):
    database = data_dir / "sceaux" / "database.db"
    for option in ("target=matches", "source=matches"):
        told = run("sync", database, "-o", tmp_path / "raw.db", "--force", "--option", option).stdout
        verify = f"colmap geometric_verifier --database_path {tmp_path / 'raw.db'}"
        assert f"{verify} && mkdir -p sparse && colmap mapper" in told


def test_raw_matches_on_request(document, data_dir):
    raw = document("inspect", data_dir / "sceaux" / "database.db", "--option", "source=matches")
    assert raw["matches"] == 56_586


def test_union_find_discards_and_does_not_repair(run, data_dir, tmp_path):
    database = data_dir / "sceaux" / "database.db"
    told = run("sync", database, "-o", tmp_path / "clean.db", "--method", "union-find").stdout
    assert "242 conflicting ones discarded, 0 left" in told
