"""``sync`` that goes on from an earlier answer, and on several processes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stiefelsync import datasets, distributed, io, score
from stiefelsync.io.labels import read_labels

pytest.importorskip("distributed", reason="needs the extra distributed")
pytest.importorskip("pyarrow", reason="needs the extra distributed")


@pytest.fixture
def scene(tmp_path):
    problem, truth = datasets.scene(1_000, 40, 200, 400, 0.3, 0.3, rng=0)
    io.write(problem, tmp_path / "all.npz")
    io.write(problem[:39], tmp_path / "old.npz")
    return problem, truth


@pytest.mark.parametrize("ending", ["npz", "dataset"])
def test_sync_goes_on_from_an_earlier_answer(run, scene, tmp_path, ending):
    _, truth = scene
    old, new = tmp_path / f"old-answer.{ending}", tmp_path / "answer.npz"
    run("sync", tmp_path / "old.npz", "-o", old, "--method", "tracks")
    run("sync", tmp_path / "all.npz", "-o", new, "--method", "tracks", "--start", old)
    assert score(read_labels(new), truth).fscore > 0.93
    wrong = run("sync", tmp_path / "all.npz", "-o", tmp_path / "b.npz", "--start", tmp_path / "all.npz", code=2)
    assert "holds no labels" in wrong.stderr


def test_sync_on_several_processes(run, scene, tmp_path):
    problem, _ = scene
    done = run("sync", tmp_path / "all.npz", "-o", tmp_path / "a.npz", "--method", "tracks", "--workers", 2, "--json")
    assert json.loads(done.stdout)["method"] == "tracks"
    np.testing.assert_array_equal(read_labels(tmp_path / "a.npz"), distributed.synchronise(problem).labels)
    wrong = run("sync", tmp_path / "all.npz", "-o", tmp_path / "b.npz", "--workers", 2, code=2)
    assert "works in one process" in wrong.stderr
