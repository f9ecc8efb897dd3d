"""What a file declares is weighed against what it can hold before memory is taken, whatever its format."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import FormatError, Matchings, io

PROBLEM = Matchings.from_labels([0, 1, 0, 1, 1, 0], [2, 2, 2], names=["a", "b", "c"], coordinates=np.zeros((6, 2)))
LIMITED = """
import resource, sys
from stiefelsync import errors, io
import {package}
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    io.read(sys.argv[1])
except errors.FormatError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


def refused(path: Path, message: str, **options: object) -> None:
    began = time.perf_counter()
    with pytest.raises(FormatError) as caught:
        io.read(path, **options)
    assert message in str(caught.value)
    assert time.perf_counter() - began < 10


def refused_in_little_memory(path: Path, message: str, package: str) -> None:
    """Read a file in a process of its own, which may take 2 GB of addresses and must not fill 400 MB."""
    command = [sys.executable, "-c", LIMITED.format(package=package), str(path), str(2 * 2**30)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    kilobytes, _, error = done.stdout.partition(" ")
    assert message in error
    assert int(kilobytes) < 400_000


# ---------------------------------------------------------------- Parquet


def dataset(folder: Path, **tables: dict[str, object]) -> Path:
    """Write a sound dataset of three objects, some of its tables replaced."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sound = {
        "objects": {"size": [2, 2, 2]},
        "pairs": {"object_a": [0, 0, 1], "object_b": [1, 2, 2], "count": [2, 2, 2]},
        "matches/part-0": {"point_a": [0, 1, 0, 1, 0, 1], "point_b": [1, 0, 0, 1, 0, 1]},
    }
    (folder / "d" / "matches").mkdir(parents=True)
    for name, columns in {**sound, **tables}.items():
        pq.write_table(pa.table(columns), folder / "d" / f"{name}.parquet", compression="zstd")
    return folder / "d"


def test_counts_whose_sum_wraps(tmp_path):
    """2⁶³ - 1 twice and 8 are 6 in 64 bits, and there were 6 rows: the process crashed."""
    pairs = {"object_a": [0, 0, 1], "object_b": [1, 2, 2], "count": [2**63 - 1, 2**63 - 1, 8]}
    refused(dataset(tmp_path, pairs=pairs), "announces 18,446,744,073,709,551,622 matches")


def test_numbers_beyond_64_bits(tmp_path):
    pairs = {"object_a": np.array([2**63, 0, 1], np.uint64), "object_b": [1, 2, 2], "count": [2, 2, 2]}
    refused(dataset(tmp_path, pairs=pairs), "out of range")


def test_objects_far_larger_than_their_matches(tmp_path):
    refused_in_little_memory(
        dataset(tmp_path, objects={"size": [400_000_000] * 3}), "mentions at most 12 points", "pyarrow.parquet"
    )


def test_rows_that_repeat_one_number(tmp_path):
    """Run lengths: 20 million rows in some hundred kilobytes."""
    objects = {"size": np.zeros(20_000_000, dtype=np.int64)}
    refused_in_little_memory(dataset(tmp_path, objects=objects), "its columns would take", "pyarrow.parquet")


def test_a_text_that_many_rows_share(tmp_path):
    pa = pytest.importorskip("pyarrow")
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(5_000, np.int32)), pa.array(["A" * 300_000]))
    path = dataset(tmp_path, objects={"size": np.zeros(5_000, np.int64), "name": names})
    refused_in_little_memory(path, "the column 'name' would take", "pyarrow.parquet")


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_page_that_unpacks_to_far_more(tmp_path, dictionary):
    """What Arrow goes by is the header of each page, not what the metadata say of the column."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = dataset(tmp_path)
    table = pa.table({"size": [2, 2, 2], "name": ["a", "b", "A" * 150_000_000]})
    options = {"use_dictionary": dictionary, "compression": "zstd", "write_statistics": False}
    pq.write_table(table, path / "objects.parquet", **options)
    assert (path / "objects.parquet").stat().st_size < 100_000
    refused_in_little_memory(path, "its pages would take", "pyarrow.parquet")


def test_texts_that_begin_alike_are_not_read(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = dataset(tmp_path)
    table = pa.table({"size": [2, 2, 2], "name": ["a", "ab", "abc"]})
    encoded = {"name": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, path / "objects.parquet", use_dictionary=False, column_encoding=encoded)
    refused(path, "write them plainly")


@pytest.mark.parametrize(
    "objects",
    [{"size": [[2], [2], [2]]}, {"size": [{"x": 2}] * 3}, {"size": [2, 2, 2], "name": [["a"], ["b"], ["c"]]}],
)
def test_columns_of_lists(tmp_path, objects):
    refused(dataset(tmp_path, objects=objects), "holds more than one value a row")


def test_weights_that_are_no_numbers(tmp_path):
    matches = {"point_a": [0, 1, 0, 1, 0, 1], "point_b": [1, 0, 0, 1, 0, 1], "weight": ["a"] * 6}
    refused(dataset(tmp_path, **{"matches/part-0": matches}), "as weights")


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_sound_files_of_other_writers(tmp_path, compression, version, dictionary):
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    io.write(PROBLEM, path)
    for part in path.rglob("*.parquet"):
        table = pq.read_table(part, partitioning=None)
        pq.write_table(
            table, part, compression=compression, data_page_version=version, use_dictionary=dictionary, row_group_size=2
        )
    assert io.read(path) == PROBLEM


# ---------------------------------------------------------------- HDF5


def pair(file, chunk: int, stored: bytes | None, values: int = 10) -> None:
    """Add a pair whose matches lie in one chunk of so many values, whose stored bytes are given."""
    group = file.create_group("a.jpg/b.jpg")
    options = {"chunks": (chunk,), "maxshape": (None,), "compression": "gzip"}
    matches = group.create_dataset("matches0", shape=(values,), dtype="i8", **options)
    if stored is not None:
        matches.id.write_direct_chunk((0,), stored)
    group.create_dataset("matching_scores0", data=np.ones(values))


def zeros(megabytes: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(2**20)) for _ in range(megabytes)) + packer.flush()


def test_a_large_chunk_of_few_values(tmp_path):
    """Ten numbers in a chunk of 25 million: 200 MB were unpacked for 80 bytes."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pair(file, 25_000_000, zeros(200))
    assert (tmp_path / "a.h5").stat().st_size < 300_000
    refused(tmp_path / "a.h5", "its datasets would take 200,000,000 bytes")


def test_a_chunk_that_unpacks_to_more_than_it_is(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pair(file, 10, zeros(600))
    refused_in_little_memory(tmp_path / "a.h5", "unpacks to more than its 80 bytes a chunk", "h5py")


def test_many_large_chunks_of_few_values(tmp_path):
    """One chunk at a time, so that none is large; what they take together is."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(40):
            group = file.create_group(f"a.jpg/b{number}.jpg")
            group.create_dataset("matches0", shape=(4,), maxshape=(None,), chunks=(2**19,), dtype="i8")
    refused(tmp_path / "a.h5", "its datasets would take")


def test_sound_chunks_are_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
    partners = np.where(rng.random(300_000) < 0.5, rng.permutation(300_000), -1)
    options = {"compression": "gzip", "shuffle": True, "fletcher32": True}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("a.jpg/b.jpg")
        group.create_dataset("matches0", data=partners, maxshape=(None,), chunks=(250_000,), **options)
    assert io.read(tmp_path / "a.h5").n_matches == (partners >= 0).sum()


def test_very_many_empty_groups_take_little_time(tmp_path):
    """60,000 of them took 19 seconds."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        for number in range(20_000):
            h5py.h5g.create(file.id, f"g{number}".encode())
    refused(tmp_path / "a.h5", "it has no matches0")
