"""Several sessions on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stiefelsync import datasets


@pytest.fixture(scope="module")
def mouse(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mice") / "mouse"
    datasets.sessions(4, 50, difficulty="easy", shape=(200, 200), folder=folder, rng=2)
    return sorted(folder.iterdir())


def test_sync_writes_a_table_and_a_page(run, mouse, tmp_path):
    page = tmp_path / "cells.html"
    told = run("sync", *mouse, "-o", tmp_path / "cells.csv", "--report", page)
    assert "transitivity" in told.stdout
    assert "MB of memory at most" in told.stdout
    header = (tmp_path / "cells.csv").read_text().splitlines()[0]
    assert header == "cell,confidence,day01,day02,day03,day04"
    assert "Worst cells first" in page.read_text()


def test_figures_are_json(run, mouse, tmp_path):
    told = json.loads(run("sync", *mouse, "-o", tmp_path / "cells.csv", "--json").stdout)
    assert told["sessions"] == ["day01", "day02", "day03", "day04"]
    assert told["method"] == "tracks and greedy joins, weighed"
    assert told["planes"][0]["doubled"] == 0
    assert told["peak_memory_bytes"] > 10**7
    assert len(told["planes"][0]["registrations"]) == 6


def test_inspect_writes_nothing(run, mouse, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = json.loads(run("inspect", *mouse, "--json").stdout)
    assert told["kind"] == "cells"
    assert {"cycle_error", "exclusivity", "transitivity"} <= set(told["planes"][0])
    assert "exclusivity" in run("inspect", *mouse).stdout
    assert list(tmp_path.iterdir()) == []


def test_units_are_one_input(run, tmp_path):
    p, recording, _ = datasets.units(4, 15, rng=0)
    np.savez(tmp_path / "u.npz", scores=p, session=recording)
    run("sync", tmp_path / "u.npz", "-o", tmp_path / "u.csv", "--option", "threshold=.4")
    assert (tmp_path / "u.csv").read_text().startswith("session,unit,UID,confidence\n")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--universe", "9"], "--universe is for matches"),
        (["--workers", "2"], "--workers is for matches"),
        (["--option", "thresholds=.5"], "did you mean 'threshold'"),
        (["--option", "threshold=1.5"], "must be a probability"),
        (["--option", "max_distance=-1"], "must be a number of pixels"),
        (["--to", "roicats"], "did you mean 'roicat'"),
        (["--method", "trakcs"], "did you mean"),
    ],
)
def test_misuse_is_told(run, mouse, tmp_path, more, message):
    told = run("sync", *mouse, "-o", tmp_path / "a.csv", *more, code=2)
    assert message in " ".join(told.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_one_session_is_too_few(run, mouse, tmp_path):
    assert "name two or more" in run("sync", mouse[0], "-o", tmp_path / "a.csv", code=2).stderr
    assert "several sessions" in run("sync", mouse[0].parent, "-o", tmp_path / "a.csv", code=2).stderr
