"""No verb replaces a file unless told so, none touches what it reads, and a full disk leaves nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from stiefelsync import Matchings, datasets, io
from tests.io.colmap_schemas import build

PLACED = Matchings.from_labels(
    [0, 1, 2, 0, 1, 2, 0, 1, 2], [3, 3, 3], names=["a", "b", "c"], coordinates=np.linspace(-0.4, 0.4, 18).reshape(9, 2)
)


def refused(run, output, *command) -> None:
    """Run a verb over a file that is there, without and with ``--force``."""
    output.write_text("<!doctype html>precious" if output.suffix == ".html" else "precious")
    before = output.read_bytes()
    said = run(*command, code=2).stderr
    assert f"{output} is there already; choose another output" in said
    assert "--force" in said
    assert output.read_bytes() == before
    run(*command, "--force")
    assert output.read_bytes() != before
    assert not [path.name for path in output.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("verb", ["sync", "convert", "report", "synth", "compare"])
def test_no_verb_replaces_a_file_unless_told_so(run, problem, tmp_path, verb):
    out, page, table = tmp_path / "out.npz", tmp_path / "page.html", tmp_path / "table.csv"
    command = {
        "sync": (out, "sync", problem, "-o", out, "--method", "union-find"),
        "convert": (out, "convert", problem, out),
        "report": (page, "report", problem, problem, "-o", page),
        "synth": (out, "synth", out, "--objects", 3),
        "compare": (table, "compare", problem, "--methods", "union-find", "--csv", table),
    }[verb]
    refused(run, *command)


@pytest.mark.parametrize("option", ["--report", "--plot"])
def test_neither_page_nor_picture_of_sync_replaces_a_file(run, problem, tmp_path, option):
    extra = tmp_path / ("page.html" if option == "--report" else "picture.png")
    refused(run, extra, "sync", problem, "-o", tmp_path / "out.npz", "--method", "union-find", option, extra)


def test_the_demo_replaces_nothing_unless_told_so(run, tmp_path):
    (tmp_path / "castle.npz").write_text("precious")
    assert "castle.npz is there already" in run("demo", "--output", tmp_path, code=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["castle.npz"]


def test_swapped_names_destroy_no_database(run, tmp_path):
    """`convert clean.db database.db` once replaced the only copy."""
    database, clean = tmp_path / "database.db", tmp_path / "clean.db"
    build(database, PLACED, PLACED)
    shutil.copy(database, clean)
    before = database.read_bytes()
    assert "is there already" in run("convert", clean, database, code=2).stderr
    assert database.read_bytes() == before


def test_files_named_by_options_are_inputs(run, tmp_path):
    """`sync in.h5 -o feat.h5 --option features=feat.h5` once destroyed the features."""
    h5py = pytest.importorskip("h5py")
    source, features = tmp_path / "in.h5", tmp_path / "feat.h5"
    io.write(PLACED, source)
    with h5py.File(features, "w") as file:
        for name in "abc":
            file.create_dataset(f"{name}/keypoints", data=np.zeros((3, 2)))
    before = features.read_bytes()
    option = ("--option", f"features={features}", "--force")
    for command in (
        ("sync", source, "-o", features),
        ("sync", source, "-o", tmp_path / "out.h5", "--report", features),
        ("convert", source, features),
        ("compare", source, "--csv", features),
        ("report", source, source, "-o", features),
    ):
        said = run(*command, *option, code=2).stderr
        assert "is the input itself, which is never modified" in said or "is not a web page" in said
    assert features.read_bytes() == before


def test_the_log_of_a_database_is_an_input(run, tmp_path):
    """`sync w.db -o w.db-wal --to csv` once destroyed what the log held."""
    database, log = tmp_path / "w.db", tmp_path / "w.db-wal"
    build(database, PLACED, PLACED)
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE more (x)")
        before = log.read_bytes()
        for name in ("w.db-wal", "w.db-shm", "w.db-journal"):
            command = ("sync", database, "-o", tmp_path / name, "--to", "csv", "--force")
            assert "is where SQLite keeps a log of" in run(*command, code=2).stderr
        assert log.read_bytes() == before


def test_photographs_and_truth_are_inputs(run, problem, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    photo = photos / "a.html"
    photo.write_text("<!doctype html>")
    command = ("sync", problem, "-o", tmp_path / "out.npz", "--report", photo, "--images", photos, "--force")
    assert "is one of the files of" in run(*command, code=2).stderr
    truth = tmp_path / "truth.csv"
    io.write(io.read(problem), truth)
    command = ("compare", problem, "--truth", truth, "--csv", truth, "--force")
    assert "is the input itself" in run(*command, code=2).stderr


LIMITED = """
import resource, sys
import matplotlib.figure, jinja2, h5py
from stiefelsync.cli import main
import stiefelsync.cleaning
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
main()
"""


def on_a_small_disk(limit: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIMITED, str(limit), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MPLCONFIGDIR": os.devnull})


@pytest.mark.parametrize("ending", ["h5", "db", "npz", "csv", "mat", "dd"])
def test_a_full_disk_is_an_error_for_every_format(tmp_path, ending):
    """HDF5 once ended the process with signal 11 and left a file."""
    database = tmp_path / "in.db"
    build(database, PLACED, PLACED)
    done = on_a_small_disk(100, "convert", database, tmp_path / f"out.{ending}")
    assert done.returncode == 2, done.stderr
    assert "cannot be written: " in done.stderr
    assert "nothing was written" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.db"]


def test_answer_and_page_appear_together_or_not_at_all(tmp_path):
    """Once the answer was written when the page did not fit, and the error said that nothing was."""
    made, _ = datasets.synthetic(12, 8, 0.8, 0.2, rng=3)
    source = tmp_path / "in.npz"
    io.write(made, source)
    out, page = tmp_path / "out.npz", tmp_path / "page.html"
    command = ("sync", source, "-o", out, "--report", page, "--method", "union-find")
    assert on_a_small_disk(10**8, *command).returncode == 0
    sizes = out.stat().st_size, page.stat().st_size
    assert sizes[0] < sizes[1]
    out.unlink()
    page.unlink()
    done = on_a_small_disk(sum(sizes) // 2, *command)
    assert done.returncode == 2, done.stderr
    assert "nothing was written" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.npz"]


def test_a_disk_that_is_really_small(run, problem):
    """A file system of 64 kB, where one may be mounted."""
    folder = problem.parent / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        big = Matchings.from_labels(np.tile(np.arange(60_000), 2), [60_000] * 2)
        io.write(big, problem.parent / "big.npz")
        said = run("convert", problem.parent / "big.npz", folder / "out.h5", code=2).stderr
        assert "No space left on device; nothing was written" in said
        assert not any(folder.iterdir())
    finally:
        subprocess.run(["umount", folder], check=True)
