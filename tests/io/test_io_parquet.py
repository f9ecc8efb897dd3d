"""Parquet datasets: round trips, reading in parts, and what is wrong with a folder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from stiefelsync import FormatError, InputError, Matchings, datasets, io, synchronise
from stiefelsync.io.parquet import ParquetSource, Piece, read_labels, write_pieces
from tests.io.problems import problems

pytest.importorskip("pyarrow", reason="needs the extra distributed")

RELAXED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@RELAXED
@given(problem=problems())
def test_round_trip(tmp_path_factory, problem):
    path = tmp_path_factory.mktemp("data") / "a.dataset"
    io.write(problem, path)
    assert io.detect(path).name == "dataset"
    assert io.read(path) == problem


def test_indices_past_16_bits(tmp_path):
    problem = Matchings.from_pairs({(0, 2): [[70_000, 65_536], [65_535, 70_001]]}, [70_001, 0, 70_002])
    io.write(problem, tmp_path / "a.dataset")
    assert io.read(tmp_path / "a.dataset") == problem


def test_any_pairs_can_be_read_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("stiefelsync.io.parquet._ROWS_PER_GROUP", 100)
    monkeypatch.setattr("stiefelsync.io.parquet._ROWS_PER_FILE", 1_000)
    rng = np.random.default_rng(0)
    problem, _ = datasets.scene(500, 20, 80, 150, 0.3, 0.3, rng=0)
    problem = problem.with_weights(rng.random(problem.n_matches) + 0.1)
    counts = np.diff(problem.pair_start)
    cuts = [0, 5, 6, 50, len(counts)]
    pieces = [
        Piece(problem.pair_objects[a:b], counts[a:b], problem.indices[i:j], problem.weights[i:j])
        for a, b, i, j in zip(cuts, cuts[1:], problem.pair_start[cuts], problem.pair_start[cuts[1:]], strict=False)
    ]
    write_pieces(tmp_path / "a.dataset", problem.sizes, pieces)
    assert len(list((tmp_path / "a.dataset" / "matches").iterdir())) > 1
    source = ParquetSource.open(tmp_path / "a.dataset")
    for share in (0.0, 0.1, 0.5, 1.0):
        pairs = np.flatnonzero(rng.random(len(counts)) < share)
        for part, numbers in ((source, pairs), (source.only(pairs), np.arange(len(pairs)))):
            n, indices, weights = part.read(numbers)
            rows = np.isin(problem.match_pairs, pairs)
            np.testing.assert_array_equal(n, counts[pairs])
            np.testing.assert_array_equal(indices, problem.indices[rows])
            np.testing.assert_array_equal(weights, problem.weights[rows])


def test_labels_are_kept(tmp_path):
    problem, _ = datasets.scene(300, 20, 100, 200, 0.1, 0.2, rng=0)
    result = synchronise(problem, method="tracks")
    io.write(result, tmp_path / "a.dataset")
    np.testing.assert_array_equal(read_labels(tmp_path / "a.dataset"), result.labels)


def test_a_folder_is_never_replaced(tmp_path):
    problem = Matchings.from_labels([0, 0], [1, 1])
    io.write(problem, tmp_path / "a.dataset")
    for force in (False, True):
        with pytest.raises(InputError, match="is a folder"):
            io.write(problem, tmp_path / "a.dataset", force=force)


@pytest.mark.parametrize("name", ["objects.parquet", "pairs.parquet", "matches/part-00000.parquet"])
def test_damaged_files_are_named(tmp_path, name):
    io.write(Matchings.from_labels([0, 1, 0, 1], [2, 2]), tmp_path / "a.dataset")
    file = tmp_path / "a.dataset" / name
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"is not a complete Parquet file .*; was it cut short\?"):
        io.read(tmp_path / "a.dataset")


@pytest.mark.parametrize(
    ("pairs", "counts", "indices", "words"),
    [
        ([[0, 1]], [2], [[0, 0]], "announces 2 matches in pairs.parquet and holds 1"),
        ([[1, 0]], [1], [[0, 0]], "must hold pairs of objects object_a < object_b"),
        ([[0, 5]], [1], [[0, 0]], "must hold pairs of objects object_a < object_b"),
        ([[0, 1]], [1], [[0, 7]], r"the match \[0, 7\] is beyond objects of \[2, 2\]"),
        ([[0, 1]], [1], [[-1, 0]], "a point below 0 or beyond 32 bits"),
    ],
)
def test_contradictions_are_named(tmp_path, pairs, counts, indices, words):
    piece = Piece(np.array(pairs), np.array(counts), np.array(indices, dtype=np.int32))
    write_pieces(tmp_path / "a.dataset", [2, 2], [piece])
    with pytest.raises(FormatError, match=words):
        io.read(tmp_path / "a.dataset")
