"""The demo shows something real: far better after than before, pictures, and a hint where matplotlib is absent."""

from __future__ import annotations

import sys

import pytest

from stiefelsync import io


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The demo's JSON document and its folder; run once."""
    import json

    from typer.testing import CliRunner

    from stiefelsync.cli import app

    folder = tmp_path_factory.mktemp("demo") / "out"
    result = CliRunner().invoke(app, ["demo", "--output", str(folder), "--json"])
    assert result.exit_code == 0, (result.stderr, result.exception)
    return json.loads(result.stdout), folder


def test_matches_become_consistent_and_better(told):
    document, _ = told
    before, after = document["before"], document["after"]
    assert before["precision"] < 0.9 < 0.95 < after["precision"]
    assert before["recall"] < 0.8 < 0.9 < after["recall"]
    assert before["cycle_error"] > 0.1
    assert after["cycle_error"] == 0
    assert before["conflicts"] > 0 == after["conflicts"]
    certificate = document["certificate"]
    assert certificate["objective"] <= certificate["upper_bound"]


def test_the_planted_problem_shows_what_the_rotation_is_for(told):
    plain, sparse = told[0]["planted"]
    assert sparse["objective"] == pytest.approx(plain["objective"], rel=1e-4)
    assert sparse["secondary"] > 5 * plain["secondary"]
    assert sparse["sparsity"] > plain["sparsity"] + 0.15


def test_files_are_written_and_pictures_small_enough_for_a_page(told):
    document, folder = told
    assert {path.name for path in folder.iterdir()} == {
        "castle.npz", "castle-consistent.npz", "demo.png", "sparsity.png",
    }  # fmt: skip
    for name in ("demo.png", "sparsity.png"):
        assert 20_000 < (folder / name).stat().st_size < 300_000
    assert io.read(folder / "castle.npz").n_matches == document["before"]["matches"]
    assert io.read(folder / "castle-consistent.npz").n_matches == document["after"]["matches"]
    assert io.read_truth(folder / "castle.npz") is not None


def test_without_matplotlib_the_table_and_a_hint(run, tmp_path, monkeypatch):
    from stiefelsync.datasets.cameras import camera_scene

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    cameras = sys.modules["stiefelsync.datasets.cameras"]  # datasets has a function of that name
    monkeypatch.setattr(cameras, "camera_scene", lambda rng: camera_scene(points=30, cameras=5, rng=rng))
    result = run("demo", "--output", tmp_path / "out")
    for word in ("precision", "recall", "cycle error", "certificate", "Orthogonal Iteration", "objective"):
        assert word in result.stdout
    assert 'no pictures: drawing needs matplotlib, which is not installed; run: pip install "stiefelsync[plot]"' in (
        result.stdout
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"castle.npz", "castle-consistent.npz"}


def test_output_must_be_a_folder(run, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file; name a folder" in run("demo", "--output", tmp_path / "file", code=2).stderr
    assert "file" in run("demo", "--output", tmp_path / "file" / "below", code=2).stderr
