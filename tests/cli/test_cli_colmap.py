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
    table = run("sync", database, "-o", clean, "--option", "merge_px=1").stdout
    assert f"colmap mapper --database_path '{clean}' --image_path IMAGES" in table
    assert "more would follow (--add)" in table
    assert hashlib.sha256(database.read_bytes()).hexdigest() == digest


def test_raw_matches_on_request(document, data_dir):
    raw = document("inspect", data_dir / "sceaux" / "database.db", "--option", "source=matches")
    assert raw["matches"] == 56_586
