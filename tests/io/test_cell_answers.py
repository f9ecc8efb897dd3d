"""Answers of programs that follow cells, read back from what we and they write, and judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import FormatError, InputError, datasets
from stiefelsync.following import Followed, follow, follow_units
from stiefelsync.io.cells import units_of, write_table
from stiefelsync.io.cells.answers import read_cells
from stiefelsync.judging import judge_files

ENDINGS = {"cells": "csv", "places": "csv", "caiman": "npy", "cellreg": "mat", "track2p": "csv", "roicat": "json"}


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Followed, np.ndarray]:
    """Sessions in folders, our answer, and the truth."""
    folder = tmp_path_factory.mktemp("mouse")
    _, truth = datasets.sessions(4, 60, shape=(200, 200), folder=folder, rng=0)
    days = sorted(folder.iterdir())
    return days, follow(days), truth


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two labellings join the same points; points alone are in no track."""
    alone = [
        np.where((x >= 0) & (np.bincount(x[x >= 0], minlength=1)[x] > 1), x, -1 - np.arange(len(x))) for x in (a, b)
    ]
    return len(np.unique(np.stack(alone), axis=1).T) == len(np.unique(alone[0])) == len(np.unique(alone[1]))


@pytest.mark.parametrize("name", ENDINGS)
def test_what_each_program_would_have_is_what_was_written(week, tmp_path: Path, name: str):
    days, followed, _ = week
    path = tmp_path / f"answer.{ENDINGS[name]}"
    write_table(followed.table, path, name)
    assert same(read_cells(path, followed.table), followed.parts[0].labels)
    verdict = judge_files(path, days)
    assert verdict.fscore == verdict.own_fscore
    assert verdict.conflicts == 0


@pytest.mark.parametrize("name", ["cells", "places"])
def test_tables_that_went_through_pandas_are_what_they_were(week, tmp_path: Path, name: str):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    _, followed, _ = week
    write_table(followed.table, tmp_path / "a.csv", name)
    write_table(followed.table, tmp_path / "a.parquet", name)
    pandas.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "b.csv")  # numbers as 5.0, and a column without a name
    pandas.read_parquet(tmp_path / "a.parquet").to_parquet(tmp_path / "b.parquet")
    for file in ("a.parquet", "b.csv", "b.parquet"):
        assert same(read_cells(tmp_path / file, followed.table), followed.parts[0].labels)


def test_the_file_that_cellreg_itself_writes(week, tmp_path: Path):
    """Version 7.3, which is HDF5 with its axes reversed."""
    h5py = pytest.importorskip("h5py", reason="CellReg's files are HDF5")
    _, followed, _ = week
    with h5py.File(tmp_path / "cellRegistered.mat", "w", userblock_size=512) as file:
        numbers = followed.table.from_zero() + 1
        file["cell_registered_struct/cell_to_index_map"] = numbers.T.astype(np.float64)
    with (tmp_path / "cellRegistered.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: PCWIN64")
    assert same(read_cells(tmp_path / "cellRegistered.mat", followed.table), followed.parts[0].labels)


def test_units(tmp_path: Path):
    p, recording, _ = datasets.units(4, 20, rng=0)
    followed = follow_units(units_of(p, recording))
    write_table(followed.table, tmp_path / "units.csv", "units")
    assert same(read_cells(tmp_path / "units.csv", followed.table), followed.parts[0].labels)


def test_a_worse_answer_is_told_from_a_better_one(week, tmp_path: Path):
    days, followed, _ = week
    numbers = followed.table.from_zero().astype(np.float64)
    numbers[numbers < 0] = np.nan
    np.save(tmp_path / "ours.npy", numbers)
    shuffled = numbers.copy()
    shuffled[:20, 2] = np.roll(shuffled[:20, 2], 1)
    np.save(tmp_path / "theirs.npy", shuffled)
    verdict = judge_files(tmp_path / "theirs.npy", days, against=tmp_path / "ours.npy")
    assert verdict.fscore.value < verdict.own_fscore.value - 0.05
    assert verdict.against is not None
    assert verdict.against.better < 0.05
    assert verdict.against.disputes


@pytest.mark.parametrize(
    ("name", "content", "error", "said"),
    [
        ("a.csv", "x,y\n1,2\n", FormatError, "is none of these: CellReg's"),
        ("a.csv", "cell,confidence,nowhere\n0,,3\n", InputError, "has the session 'nowhere'; there are day01"),
        ("a.csv", "day01;day02\n1;NaN\n", InputError, "not one column for each of 4 sessions"),
        ("a.csv", "day01;day02;day03;day04\n1;x;2;3\n", FormatError, "'x' is not a whole number"),
        ("a.json", json.dumps({"labels": [1]}), FormatError, "no labels_bySession"),
        ("a.json", json.dumps({"labels_bySession": [[0], [0]]}), InputError, "2 sessions where 4 are expected"),
        ("a.csv", "day01;day02;day03;day04\n0;NaN;NaN;NaN\n0;1;NaN;NaN\n", InputError, "detection 0 of 'day01' twice"),
        ("a.csv", "day01;day02;day03;day04\n9999;1;NaN;NaN\n", InputError, "has detection 9999 of 'day01', which has"),
    ],
)
def test_answers_that_cannot_be(week, tmp_path: Path, name: str, content: str, error: type, said: str):
    _, followed, _ = week
    (tmp_path / name).write_text(content)
    with pytest.raises(error) as raised:
        read_cells(tmp_path / name, followed.table)
    assert said in str(raised.value)


def test_the_verb(week, tmp_path: Path):
    days, followed, _ = week
    write_table(followed.table, tmp_path / "answer.mat")
    words = [word for day in days for word in ("--of", str(day))]
    command = [sys.executable, "-m", "stiefelsync", "judge", str(tmp_path / "answer.mat"), *words]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["basis"].startswith("how probable every place")
    refused = subprocess.run([*command, "--report", "page.html"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "pages are about matches" in " ".join(refused.stderr.split())
