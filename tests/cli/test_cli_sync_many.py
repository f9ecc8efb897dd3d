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


def test_sync_in_parts_says_time_memory_and_whether_workers_pay(run, scene, tmp_path):
    pytest.importorskip("pyarrow")
    problem, _ = scene
    io.write(problem, tmp_path / "all.csv")
    done = run("sync", tmp_path / "all.csv", "-o", tmp_path / "a.csv", "--memory", "1GB").stdout
    assert "s in all, " in done
    assert "MB of memory at most" in done
    assert "one group of objects" in done or "1 group of objects" in done
    figures = json.loads(
        run("sync", tmp_path / "all.csv", "-o", tmp_path / "b.parquet", "--checkpoint", tmp_path / "c", "--json").stdout
    )
    assert figures["peak_memory_bytes"] > 10**7
    assert figures["matches_before"] == problem.n_matches
    told = run("sync", tmp_path / "all.npz", "-o", tmp_path / "d.npz", "--method", "tracks", "--workers", 1).stdout
    assert "Below some 20 million matches workers take longer than one process does" in told
    wrong = run("sync", tmp_path / "all.csv", "-o", tmp_path / "e.csv", "--memory", "2GB", "--method", "fast", code=2)
    assert "--method is for problems that fit into memory" in wrong.stderr
    wrong = run("sync", tmp_path / "all.csv", "-o", tmp_path / "e.csv", "--memory", "much", code=2)
    assert "--memory must be a size such as 400MB or 2GB, got 'much'" in wrong.stderr
