"""What only a real process shows: signals that end it, and terminals that lack letters."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from stiefelsync import Matchings, io
from tests.io.colmap_schemas import build

PROGRAM = Path(sys.executable).with_name("stiefelsync")

# The program, but a writer (or reader) that says so and then takes its time where it holds unfinished files.
SLOW = """
import sys, time
import numpy as np
import stiefelsync.io.colmap.database as colmap
from stiefelsync.cli import main

def rest(*_, **__):
    print("busy", file=sys.stderr, flush=True)
    while True:
        time.sleep(0.01)

def write(file, **arrays):
    file.write(b"half")
    file.flush()
    rest()

np.savez_compressed = write
colmap._check_tables = rest
main()
"""


def ended(number: int, folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Start the slow program, send it a signal when it is busy, and return what it said."""
    command = [sys.executable, "-c", SLOW, *map(str, arguments)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    assert process.stderr.readline() == "busy\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_leaves_nothing_behind(problem, tmp_path, number, code):
    done = ended(number, tmp_path, "sync", problem, "-o", tmp_path / "out.npz", "--method", "union-find")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert [*tmp_path.iterdir()] == [problem]


def test_a_signal_leaves_no_copy_of_a_database(tmp_path):
    """A database with a log is copied to the temporary folder to be read."""
    made = Matchings.from_labels([0, 0], [1, 1], names=["a", "b"], coordinates=[[1, 1], [2, 2]])
    folder = tmp_path / "temporary"
    folder.mkdir()
    build(tmp_path / "a.db", made, made)
    with closing(sqlite3.connect(tmp_path / "a.db")) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE more (x)")
        done = ended(signal.SIGTERM, folder, "inspect", tmp_path / "a.db")
    assert done.returncode == 143, done.stderr
    assert [*folder.iterdir()] == []


def test_a_second_signal_does_not_hinder_the_cleaning(problem, tmp_path):
    code = (
        SLOW.replace("main()", "").replace("while True:\n        time.sleep(0.01)", "time.sleep(60)")
        + """
import shutil
slow = shutil.rmtree
def rmtree(*arguments, **options):
    print("cleaning", file=sys.stderr, flush=True)
    time.sleep(1)
    slow(*arguments, **options)
shutil.rmtree = rmtree
main()
"""
    )
    command = [
        sys.executable,
        "-c",
        code,
        "sync",
        str(problem),
        "-o",
        str(tmp_path / "o.npz"),
        "--method",
        "union-find",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline() == "busy\n"
    process.terminate()
    assert process.stderr.readline() == "cleaning\n"
    process.terminate()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert [*tmp_path.iterdir()] == [problem]


def test_reproduce_ends_when_told_and_goes_on_later(tmp_path):
    output = tmp_path / "run"
    command = [PROGRAM, "reproduce", "sparsity", "--quick", "--workers", "2", "--output", str(output)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (output / "records.jsonl").exists() and process.poll() is None:
        time.sleep(0.02)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert [path.name for path in output.iterdir()] == ["records.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "index.html" in {path.name for path in output.iterdir()}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_that_is_not_utf_8(tmp_path, encoding):
    names = ["← left.jpg", "right \udce9.jpg"]
    source = tmp_path / "p.npz"
    io.write(Matchings.from_labels([0, 1, 0, 1], [2, 2], names=names), source)
    environment = {**os.environ, "PYTHONIOENCODING": encoding}

    def call(*arguments: object) -> str:
        command = [PROGRAM, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(encoding)

    told = call("sync", source, "-o", tmp_path / "o.npz", "--method", "union-find")
    assert "p.npz -> " in told
    assert re.search(r"matches +2 -> 2", told)
    assert "Draw a random problem" in call("synth", "--help")
    accents = tmp_path / "→é.npz"
    source.rename(accents)
    assert json.loads(call("inspect", accents, "--json"))["input"] == str(accents)
