"""Answers that share objects become one; nothing is lost that nothing contradicts."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import Constraints, InputError, Matchings, datasets, io, merge, synchronise
from tests.io.colmap_schemas import SCHEMAS, build
from tests.matching.parts import keys, named


@pytest.fixture
def scene() -> Matchings:
    problem, _ = datasets.synthetic(30, 9, 0.7, 0.3, rng=0)
    return named(problem, coordinates=np.random.default_rng(0).uniform(0, 600, (problem.n_points, 2)))


def test_tables_of_tracks(tmp_path: Path, scene: Matchings):
    parts = [scene[list(range(6))], scene[list(range(3, 9))]]
    for name, part in zip("ab", parts, strict=True):
        io.write(synchronise(part), tmp_path / f"{name}.csv", "tracks")
    done = merge([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "all.csv", to="tracks")
    whole = io.read(tmp_path / "all.csv")
    assert sorted(whole.names) == sorted(scene.names)
    assert [part.shared for part in done.parts] == [3, 3]
    assert done.result.consistent
    # A track across both is one: with points in the first three and in the last three images.
    labels, owner = done.result.labels, done.result.input.point_objects
    first, last = (set(labels[np.isin(owner, of) & (labels >= 0)].tolist()) for of in ([0, 1, 2], [6, 7, 8]))
    assert len(first & last) > 10
    # What a file says and the answer does not hold is counted.
    held = keys(whole)
    for part, name in zip(done.parts, "ab", strict=True):
        assert part.lost == len(keys(io.read(tmp_path / f"{name}.csv")) - held)


def test_constraints_hold(tmp_path: Path):
    problem = named(Matchings.from_labels([0, 0, 0], [1, 1, 1]), ["a", "b", "c"])
    io.write(problem[[0, 1]], tmp_path / "one.csv")
    io.write(problem[[1, 2]], tmp_path / "two.csv")
    io.write_constraints(Constraints(cannot=[[0, 0, 2, 0]]), problem, tmp_path / "known.csv")
    done = merge([tmp_path / "one.csv", tmp_path / "two.csv"], tmp_path / "all.csv", constraints=tmp_path / "known.csv")
    assert done.result.labels[0] != done.result.labels[2]


@pytest.mark.parametrize("schemas", [("4.2", "4.2"), ("3.6", "4.2"), ("4.2", "3.11")])
def test_databases(tmp_path: Path, scene: Matchings, schemas: tuple[str, str]):
    """Images of both, under one number each, with their keypoints; matches that the answer holds."""
    order = [8, 5, 7, 3, 6, 4]  # so that pairs are turned
    parts = [scene[list(range(6))], scene[order]]
    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    for path, part, schema in zip(paths, parts, schemas, strict=True):
        build(path, part, part, schema)
    before = [path.read_bytes() for path in paths]
    done = merge(paths, tmp_path / "all.db")
    assert [path.read_bytes() for path in paths] == before
    found = io.read(tmp_path / "all.db")
    assert sorted(found.names) == sorted(scene.names)
    assert keys(found) <= keys(parts[0]) | keys(parts[1])
    labels = dict(
        zip(done.result.input.names, np.split(done.result.labels, done.result.input.offsets[1:-1]), strict=True)
    )
    right = {
        pair for pair in keys(parts[0]) | keys(parts[1])
        if labels[pair[0][0]][pair[0][1]] == labels[pair[1][0]][pair[1][1]] >= 0
    }  # fmt: skip
    assert keys(found) == right
    assert sum(part.lost for part in done.parts) > 0
    for path, name in zip(paths, ("00.jpg", "08.jpg"), strict=True):
        known, there = io.read(path), [io.read(path).names.index(name), found.names.index(name)]
        one, two = (x.coordinates[x.offsets[i] : x.offsets[i + 1]] for x, i in zip((known, found), there, strict=True))
        np.testing.assert_array_equal(one, two)
    with closing(sqlite3.connect(tmp_path / "all.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_databases_of_two_detections(tmp_path: Path, scene: Matchings):
    build(tmp_path / "a.db", scene, scene, next(iter(SCHEMAS)))
    fewer = Matchings.from_endpoints(
        np.empty((0, 2), dtype=int), scene.sizes - 1, names=scene.names,
        coordinates=np.delete(scene.coordinates, scene.offsets[:-1], axis=0),
    )  # fmt: skip
    build(tmp_path / "b.db", fewer, fewer)
    with pytest.raises(InputError, match=r"has other keypoints in|not the same"):
        merge([tmp_path / "a.db", tmp_path / "b.db"], tmp_path / "all.db")
    assert not (tmp_path / "all.db").exists()


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stiefelsync", "merge", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_verb(tmp_path: Path, scene: Matchings):
    for name, part in (("a", scene[list(range(6))]), ("b", scene[list(range(3, 9))]), ("c", scene[[0, 1]])):
        io.write(synchronise(part), tmp_path / f"{name}.csv", "tracks")
    done = run(tmp_path, "a.csv", "b.csv", "-o", "all.csv", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [part["shared"] for part in told["inputs"]] == [3, 3]
    plain = run(tmp_path, "a.csv", "b.csv", "-o", "again.csv")
    assert "3 shared objects" in " ".join(plain.stdout.split())
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "all.csv").read_bytes()
    for words, said in (
        (["b.csv", "c.csv", "-o", "new.csv"], "shares no image"),
        (["a.csv", "-o", "new.csv"], "merging takes two files or more"),
        (["a.csv", "b.csv", "-o", "all.csv"], "is there already"),
        (["a.csv", "nowhere.csv", "-o", "new.csv"], "nowhere.csv does not exist"),
    ):
        bad = run(tmp_path, *words)
        assert bad.returncode == 2
        assert said in " ".join(bad.stderr.split())
        assert not (tmp_path / "new.csv").exists()
