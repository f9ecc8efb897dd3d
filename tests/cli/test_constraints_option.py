"""``sync --constraints`` from the command line."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from stiefelsync import Matchings, io

HEAD = "kind,object_a,point_a,object_b,point_b\n"


def sync(folder, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stiefelsync", "sync", "matches.csv", "-o", "tracks.csv", "--to", "tracks", *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_answer_holds_what_the_file_says(tmp_path):
    names = ["a", "b", "c", "d"]
    io.write(Matchings.from_labels(np.tile([0, 1, 2], 4), [3] * 4, names=names), tmp_path / "matches.csv")
    (tmp_path / "known.csv").write_text(HEAD + "cannot,a,0,b,0\nmust,a,1,d,2\n")
    done = sync(tmp_path, "--constraints", "known.csv")
    assert done.returncode == 0, done.stderr
    answer = io.read(tmp_path / "tracks.csv")
    assert [0, 0] not in answer.pair(0, 1).tolist()
    assert [1, 2] in answer.pair(0, 3).tolist()


def test_contradictions_are_bad_input(tmp_path):
    io.write(Matchings.from_labels([0, 1, 0, 1], [2, 2], names=["a", "b"]), tmp_path / "matches.csv")
    (tmp_path / "known.csv").write_text(HEAD + "must,a,0,b,0\nmust,b,0,a,1\n")
    done = sync(tmp_path, "--constraints", "known.csv")
    assert done.returncode == 2
    assert "point 0 of 'a' must be point 0 of 'b', which must be point 1 of 'a'" in " ".join(done.stderr.split())
    assert not (tmp_path / "tracks.csv").exists()
