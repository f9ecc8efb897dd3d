"""Files that do not fit into memory: the same answer from every kind of file, after a kill, and in little memory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from stiefelsync import FormatError, InputError, Matchings, datasets, distributed, io
from stiefelsync.io import packing
from stiefelsync.io.packing import pack
from stiefelsync.out_of_core import clean_out_of_core

pytest.importorskip("pyarrow", reason="needs the extra tables")

PROBLEM = datasets.scene(1_000, 40, 200, 400, 0.3, 0.3, rng=0)[0]
NAMED = Matchings.from_arrays(
    PROBLEM.pair_objects[PROBLEM.match_pairs],
    PROBLEM.indices,
    PROBLEM.sizes,
    weights=np.random.default_rng(0).uniform(0.1, 1, PROBLEM.n_matches),
    names=[f"image {n:03}" for n in range(PROBLEM.n_objects)],
)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("problem", [PROBLEM, NAMED], ids=["plain", "names and weights"])
def test_a_table_becomes_the_same_dataset_in_parts(problem, ending, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_ROWS_PER_BUCKET", 500)
    monkeypatch.setattr(packing, "_ROWS_PER_BATCH", 300)
    monkeypatch.setattr(packing, "_BLOCK", 4_000)
    path = tmp_path / f"a.{ending}"
    io.write(problem, path, "csv", **({} if ending == "parquet" else {"plain": False}))
    told = []
    pack(path, tmp_path / "a.dataset", tell=lambda *step: told.append(step))
    assert io.read(tmp_path / "a.dataset") == problem
    stages = {stage: (done, total) for stage, done, total in told}
    assert list(stages) == ["reading", "sorting", "packing"]
    assert all(done == total for done, total in stages.values())  # told to the end


def test_rows_in_any_order_and_orientation(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_ROWS_PER_BUCKET", 500)
    io.write(PROBLEM, tmp_path / "a.csv")
    header, *rows = (tmp_path / "a.csv").read_text().splitlines()
    rng = np.random.default_rng(1)
    turned = [row if rng.random() < 0.5 else ",".join(np.roll(row.split(","), 2)) for row in rng.permutation(rows)]
    (tmp_path / "b.csv").write_text("\n".join([header, *turned]))
    pack(tmp_path / "b.csv", tmp_path / "b.dataset")
    assert io.read(tmp_path / "b.dataset") == io.read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,0,1,0\n0,1,1\n", "no table of matches that can be read in parts: CSV parse error: Row #3"),
        ("0,0,1,x\n", "no table of matches that can be read in parts: .* conversion error to int64"),
        ("0,0,1,-1\n", "point_b holds a number below 0 or beyond 32 bits"),
        ("0,0,0,1\n", "matches object 0 with itself"),
        ("0,0,1,0\n0,0,1,1\n", "is matched to more than one"),
        ("a,1000000000,b,1\n", "mentions at most 2 points of 1,000,000,003"),
    ],
)
def test_bad_tables_are_refused_and_leave_nothing(rows, message, tmp_path):
    (tmp_path / "a.csv").write_text("object_a,point_a,object_b,point_b\n" + rows)
    with pytest.raises(FormatError, match=message):
        clean_out_of_core(tmp_path / "a.csv", tmp_path / "b.csv", memory=1e9)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("to", ["csv", "tracks"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_written_is_the_answer_of_groups(to, ending, tmp_path):
    io.write(NAMED, tmp_path / "a.csv")
    there = distributed.synchronise(io.read(tmp_path / "a.csv"))
    done = clean_out_of_core(tmp_path / "a.csv", tmp_path / f"b.{ending}", to=to)
    assert io.detect(done.output).name == to
    read, expected = io.read(done.output), there.matchings()
    by_name = [
        {
            (m.names[i], p, m.names[j], q)
            for (i, j), (p, q) in zip(m.pair_objects[m.match_pairs].tolist(), m.indices.tolist(), strict=True)
        }
        for m in (read, expected)
    ]
    assert by_name[0] == by_name[1]
    assert done.as_dict()["matches_kept"] + done.added == expected.n_matches


def test_a_killed_command_ends_with_the_same_bytes(tmp_path):
    problem, _ = datasets.scene(4_000, 150, 200, 400, 0.3, 0.3, rng=0)
    io.write(problem, tmp_path / "a.csv")
    kept = tmp_path / "unfinished"

    def start(output: str) -> subprocess.Popen[bytes]:
        arguments = ["sync", tmp_path / "a.csv", "-o", tmp_path / output, "--memory", "1GB", "--checkpoint", kept]
        command = [sys.executable, "-m", "stiefelsync", *map(str, arguments), "--quiet"]
        return subprocess.Popen(command)

    assert start("whole.csv").wait() == 0
    assert not kept.exists()
    killed = 0
    for sign in ("matches.dataset", "parts/groups/000000.npz", "parts/bundles/000000.npz"):
        run = start("killed.csv")
        while run.poll() is None and not (kept / sign).exists():
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)
        killed += run.wait() == -signal.SIGKILL
        if (tmp_path / "killed.csv").exists():
            (tmp_path / "killed.csv").unlink()
    assert killed, "the runs were over before they were killed"
    assert start("killed.csv").wait() == 0
    assert (tmp_path / "killed.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not kept.exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_checkpoints_of_another_input_are_refused(tmp_path):
    io.write(PROBLEM, tmp_path / "a.csv")
    io.write(NAMED, tmp_path / "b.csv")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "input.json").write_text(json.dumps({"input": "other"}))
    with pytest.raises(InputError, match="holds checkpoints of another run"):
        clean_out_of_core(tmp_path / "a.csv", tmp_path / "c.csv", checkpoint=tmp_path / "kept")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(InputError, match="is not empty and holds no checkpoints"):
        clean_out_of_core(tmp_path / "a.csv", tmp_path / "c.csv", checkpoint=tmp_path / "mine")
    assert not (tmp_path / "c.csv").exists()


def test_a_run_killed_before_it_had_said_whose_its_folder_is(tmp_path):
    """Such a folder was refused for good: "is not empty and holds no checkpoints"."""
    io.write(PROBLEM, tmp_path / "a.csv")
    clean_out_of_core(tmp_path / "a.csv", tmp_path / "whole.csv")
    program = """
import os, sys
from stiefelsync import io
from stiefelsync.out_of_core import clean_out_of_core
os.link = os.replace = lambda *_, **__: os._exit(9)
clean_out_of_core(sys.argv[1], sys.argv[2], checkpoint=sys.argv[3])
"""
    command = [sys.executable, "-c", program, *(str(tmp_path / name) for name in ("a.csv", "b.csv", "kept"))]
    assert subprocess.run(command).returncode == 9
    assert list((tmp_path / "kept").iterdir())
    clean_out_of_core(tmp_path / "a.csv", tmp_path / "b.csv", checkpoint=tmp_path / "kept")
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not (tmp_path / "kept").exists()


def test_a_run_killed_while_it_removes_its_checkpoints(tmp_path):
    """A dataset of which half was gone was refused for good: "cannot be read in parts"."""
    io.write(PROBLEM, tmp_path / "a.csv")
    clean_out_of_core(tmp_path / "a.csv", tmp_path / "whole.csv")
    program = """
import os, shutil, sys
from pathlib import Path
from stiefelsync.out_of_core import clean_out_of_core
remove = shutil.rmtree
def killed(path, **options):
    for file in Path(path).rglob("objects.parquet"):
        file.unlink()
        os._exit(9)
    remove(path, **options)
shutil.rmtree = killed
clean_out_of_core(sys.argv[1], sys.argv[2], checkpoint=sys.argv[3])
"""
    command = [sys.executable, "-c", program, *(str(tmp_path / name) for name in ("a.csv", "b.csv", "kept"))]
    assert subprocess.run(command).returncode == 9
    assert (tmp_path / "kept").exists()
    clean_out_of_core(tmp_path / "a.csv", tmp_path / "b.csv", checkpoint=tmp_path / "kept", force=True)
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not (tmp_path / "kept").exists()


def test_memory_that_is_not_enough_is_refused_before_it_is_used(tmp_path):
    io.write(PROBLEM, tmp_path / "a.csv")
    with pytest.raises(InputError, match="the largest group takes the need to about"):
        clean_out_of_core(tmp_path / "a.csv", tmp_path / "b.csv", memory=1e5)
    with pytest.raises(InputError, match="memory must be a positive number of bytes, got -1"):
        clean_out_of_core(tmp_path / "a.csv", tmp_path / "b.csv", memory=-1)
    with pytest.raises(InputError, match="format 'npz' is not written in parts"):
        clean_out_of_core(tmp_path / "a.csv", tmp_path / "b.npz", memory=1e9)
    io.write(PROBLEM, tmp_path / "a.npz")
    with pytest.raises(InputError, match="which is not read in parts; only tables of matches, datasets and"):
        clean_out_of_core(tmp_path / "a.npz", tmp_path / "b.csv", memory=1e9)
