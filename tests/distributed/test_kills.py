"""A run that is killed goes on where it was and ends with the same bytes (``benchmarks.kills`` does more)."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from stiefelsync import InputError, datasets, distributed, io

pytest.importorskip("pyarrow", reason="needs the extra distributed")

PROGRAM = """
import sys
from stiefelsync import distributed
distributed.synchronise(sys.argv[1], group=5, checkpoint=sys.argv[2], output=sys.argv[3])
"""


def test_a_killed_run_ends_with_the_same_bytes(tmp_path):
    problem, _ = datasets.scene(2_000, 80, 200, 400, 0.3, 0.3, rng=0)
    io.write(problem, tmp_path / "a.dataset")

    def start(output: str) -> subprocess.Popen[bytes]:
        arguments = [tmp_path / "a.dataset", tmp_path / "checkpoint", tmp_path / output]
        return subprocess.Popen([sys.executable, "-c", PROGRAM, *map(str, arguments)])

    assert start("whole.parquet").wait() == 0
    for stage in ("groups", "bundles"):
        run = start("killed.parquet")
        while run.poll() is None and not any((tmp_path / "checkpoint" / stage).glob("*3.npz")):
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)
        run.wait()
    left = list((tmp_path / "checkpoint").glob("*/*.npz"))
    assert start("killed.parquet").wait() == 0
    assert left, "the runs were over before they were killed"
    assert (tmp_path / "killed.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not (tmp_path / "checkpoint").exists()


def test_two_runs_do_not_share_checkpoints(tmp_path):
    pytest.importorskip("fcntl", reason="there are no locks on folders here")
    problem, _ = datasets.scene(200, 12, 50, 100, 0.3, 0.3, rng=0)
    folder, told = tmp_path / "checkpoint", []

    def meanwhile(_: object) -> None:
        if not told:
            with pytest.raises(InputError, match="checkpoint is in use by another run; wait for its end") as caught:
                distributed.synchronise(problem, group=4, checkpoint=folder)
            told.append(caught.value)

    labels = distributed.synchronise(problem, group=4, checkpoint=folder, callback=meanwhile).labels
    assert told
    assert not folder.exists()
    assert labels.tolist() == distributed.synchronise(problem, group=4, checkpoint=folder).labels.tolist()
