"""What a file declares is weighed against what it can hold before memory is taken, whatever its format."""

from __future__ import annotations

import os
import sqlite3
import struct
import subprocess
import sys
import time
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import FormatError, InputError, Matchings, io
from stiefelsync.io import hdf5
from stiefelsync.io.hdf5_chunks import from_chunks
from stiefelsync.io.sqlite import snapshot
from tests.io.colmap_schemas import build

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
    began = time.process_time()
    with pytest.raises(FormatError) as caught:
        io.read(path, **options)
    assert message in str(caught.value)
    assert time.process_time() - began < 10


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


def test_statistics_that_do_not_fit_the_schema(tmp_path):
    """Found by fuzzing: pyarrow ends the process where a histogram is for a column that may be empty, and this is not.

    In the schema a column follows its name, and 25 2 (field 3, 32 bits, 1) says that values may be missing.
    """
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = dataset(tmp_path)
    pq.write_table(pa.table({"size": [2, 2, 2]}), path / "objects.parquet")
    data = (path / "objects.parquet").read_bytes()
    at = data.rindex(b"\x25\x02\x18\x04size")
    (path / "objects.parquet").write_bytes(data[:at] + b"\x25\x00" + data[at + 2 :])
    refused(path, "objects.parquet")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-8] + struct.pack("<I", 2**31) + b"PAR1", "is not a complete Parquet file"),
        (lambda data: data[:-4] + b"PARE", "is not a complete Parquet file"),
        (lambda data: data[:-8] + bytes(2**23) + struct.pack("<I", 2**23 + 99) + b"PAR1", "objects.parquet"),
    ],
)
def test_metadata_that_are_none(tmp_path, change, message):
    path = dataset(tmp_path)
    (path / "objects.parquet").write_bytes(change((path / "objects.parquet").read_bytes()))
    refused(path, message)


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
    path = tmp_path / "a.dataset"
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
    refused(tmp_path / "a.h5", "its datasets would take 200,004,096 bytes")


def test_a_chunk_that_unpacks_to_more_than_it_is(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pair(file, 10, zeros(600))
    refused_in_little_memory(tmp_path / "a.h5", "has a chunk that does not unpack to its 80 bytes", "h5py")


def test_a_chunk_that_is_packed_twice(tmp_path):
    """Deflated twice, 400 bytes stand for 200 MB; three times for as many gigabytes."""
    h5py = pytest.importorskip("h5py")
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((10,))
    plan.set_deflate(9)
    plan.set_deflate(9)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("a.jpg/b.jpg")
        space = h5py.h5s.create_simple((10,))
        made = h5py.h5d.create(group.id, b"matches0", h5py.h5t.NATIVE_INT64, space, plan)
        made.write_direct_chunk((0,), zlib.compress(zeros(200), 9))
    assert (tmp_path / "a.h5").stat().st_size < 10_000
    refused_in_little_memory(tmp_path / "a.h5", "is packed more than once", "h5py")


def test_many_large_chunks_of_few_values(tmp_path, monkeypatch):
    """One chunk at a time, so that none is large; what they take together is."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(40):
            group = file.create_group(f"a.jpg/b{number}.jpg")
            group.create_dataset("matches0", shape=(4,), maxshape=(None,), chunks=(2**19,), dtype="i8")
    # None of them is unpacked first.
    monkeypatch.setattr(hdf5, "from_chunks", lambda *_: pytest.fail("a chunk was unpacked"))
    refused(tmp_path / "a.h5", "its datasets would take")


@pytest.mark.parametrize(
    ("stored", "options"),
    [
        (bytes(400), {}),
        (bytes(12), {}),
        (b"ab", {"fletcher32": True}),
        (zlib.compress(bytes(8)), {"compression": "gzip"}),
        (zlib.compress(bytes(20))[:-3], {"compression": "gzip"}),
        (bytes(26), {"fletcher32": True, "compression": "gzip", "filter_mask": 1}),
    ],
)
def test_chunks_of_another_length(tmp_path, stored, options):
    """Found by fuzzing: a checksum of two bytes ended the process, behind a short chunk memory was read, behind a long
    one that is not packed it was written.
    """
    h5py = pytest.importorskip("h5py")
    mask = options.pop("filter_mask", 0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("a.jpg/b.jpg")
        made = group.create_dataset("matches0", shape=(10,), maxshape=(None,), chunks=(10,), dtype="i2", **options)
        made.id.write_direct_chunk((0,), stored, filter_mask=mask)
    refused(tmp_path / "a.h5", "has a chunk that does not unpack to its 20 bytes")


def test_ways_of_packing_that_are_not_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    for options, name in (({"compression": "lzf"}, "lzf"), ({"scaleoffset": 0}, "scaleoffset")):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            group = file.create_group("a.jpg/b.jpg")
            group.create_dataset("matches0", data=np.arange(9), chunks=(3,), **options)
        refused(tmp_path / "a.h5", f"is packed by {name}, which is not read; pack it by gzip")


@pytest.mark.parametrize("kind", ["i2", "i4", "i8", "u2", "u8", ">i4"])
@pytest.mark.parametrize("shape", [((9,), (4,)), ((100,), (100,)), ((5,), (64,)), ((1001,), (10,))])
@pytest.mark.parametrize("newest", [False, True])
def test_chunks_hold_what_the_library_finds_in_them(tmp_path, kind, shape, newest):
    """All ways of packing that are read, with chunks that are not stored."""
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
    for number in range(8):
        ways = {"compression": "gzip" if number & 1 else None, "shuffle": bool(number & 2), "fletcher32": number > 3}
        with h5py.File(tmp_path / "a.h5", "w", libver="latest" if newest else "earliest") as file:
            made = file.create_dataset("d", shape[0], kind, chunks=shape[1], maxshape=(None,), fillvalue=7, **ways)
            made[3:] = rng.integers(0, 100, shape[0][0] - 3)
        with h5py.File(tmp_path / "a.h5") as file:
            np.testing.assert_array_equal(from_chunks(file["d"], tmp_path / "a.h5", "d"), file["d"][()])


def test_very_many_small_chunks(tmp_path):
    """Found by fuzzing: a million numbers in chunks of three, none of them stored, took 1.4 GB and six seconds."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("a.jpg/b.jpg")
        group.create_dataset("matches0", shape=(2**20,), maxshape=(None,), chunks=(3,), dtype="i4")
    assert (tmp_path / "a.h5").stat().st_size < 10_000
    refused_in_little_memory(tmp_path / "a.h5", "its datasets would take", "h5py")


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
    begun = time.process_time()
    refused(tmp_path / "a.h5", "it has no matches0")
    assert time.process_time() - begun < 5  # some 1.5; it was 6


# ---------------------------------------------------------------- SQLite


PAGE = 4096
INTERIOR, LEAF = 5, 13  # kinds of pages of a table


def varint(number: int) -> bytes:
    digits = [number & 127]
    while number := number >> 7:
        digits.append(number & 127 | 128)
    return bytes(reversed(digits))


def page(kind: int, cells: list[bytes], right: int = 0) -> bytes:
    """Return a page of a B-tree; an interior one has a child on the right besides those of its cells."""
    made, at, start = bytearray(PAGE), PAGE, 12 if kind == INTERIOR else 8
    for number, cell in enumerate(cells):
        at -= len(cell)
        made[at : at + len(cell)] = cell
        made[start + 2 * number : start + 2 * number + 2] = struct.pack(">H", at)
    made[0], made[3:7] = kind, struct.pack(">HH", len(cells), at)
    if kind == INTERIOR:
        made[8:12] = struct.pack(">I", right)
    return bytes(made)


def child(number: int, key: int = 5) -> bytes:
    return struct.pack(">I", number) + varint(key)


class Pages:
    """A sound database, of which pages can be replaced and to which others can be added."""

    def __init__(self, path: Path, *statements: str) -> None:
        self.path = path
        build(path, PROBLEM, PROBLEM)
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            assert database.execute("PRAGMA page_size").fetchone() == (PAGE,)
            for statement in statements:
                database.execute(statement)
            roots = database.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'")
            self.roots = dict(roots.fetchall())
        self.data = bytearray(path.read_bytes())

    def __getitem__(self, number: int) -> bytes:
        return bytes(self.data[(number - 1) * PAGE : number * PAGE])

    def __setitem__(self, number: int, content: bytes) -> None:
        self.data[(number - 1) * PAGE : number * PAGE] = content

    def add(self, content: bytes) -> int:
        self.data += content
        return len(self.data) // PAGE

    def save(self) -> Path:
        self.data[28:32] = struct.pack(">I", len(self.data) // PAGE)
        self.path.write_bytes(self.data)
        return self.path


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("table", ["two_view_geometries", "images", "keypoints", "matches"])
def test_pages_that_are_children_of_many(tmp_path, table, levels):
    """A table of three levels, each page of which has 400 times the same child: 45 kB, and no end."""
    pages = Pages(tmp_path / "a.db")
    last = pages.add(pages[pages.roots[table]])
    for _ in range(levels - 1):
        last = pages.add(page(INTERIOR, [child(last)] * 400, last))
    pages[pages.roots[table]] = page(INTERIOR, [child(last)] * 400, last)
    refused(pages.save(), "damaged", source="matches" if table == "matches" else None)


def shared_chain(path: Path, rows: int, megabytes: int) -> Path:
    """Return a database of that many rows of keypoints whose bytes all lie in the same pages."""
    points = megabytes * 2**17
    images = "INSERT INTO images (image_id, name, camera_id) VALUES " + ",".join(
        f"({n}, 'i{n}', 1)" for n in range(1, rows + 1)
    )
    empty = [f"DELETE FROM {table}" for table in ("images", "keypoints", "matches", "two_view_geometries")]
    row = f"INSERT INTO keypoints (image_id, rows, cols, data) VALUES (1, {points}, 2, zeroblob({8 * points}))"
    pages = Pages(path, *empty, images, row)
    root = pages[pages.roots["keypoints"]]
    (at,) = struct.unpack(">H", root[8:10])
    length = next(n for n in range(1, 10) if root[at + n - 1] < 128)
    cells = [root[at : at + length] + varint(n) + root[at + length + 1 :] for n in range(1, rows + 1)]
    room = (PAGE - 12) // (len(cells[-1]) + 2)
    leaves = [cells[n : n + room] for n in range(0, rows, room)]
    numbers = [pages.add(page(LEAF, leaf)) for leaf in leaves]
    keys = np.cumsum([len(leaf) for leaf in leaves]).tolist()
    inner = [child(number, key) for number, key in zip(numbers[:-1], keys, strict=False)]
    pages[pages.roots["keypoints"]] = page(INTERIOR, inner, numbers[-1])
    return pages.save()


def test_rows_that_share_their_bytes(tmp_path):
    """100 rows of 4 MB in a file of 4.3 MB took 2.1 GB."""
    path = shared_chain(tmp_path / "a.db", 100, 4)
    assert path.stat().st_size < 5 * 2**20
    refused_in_little_memory(path, "rows of 'keypoints' hold 419,430,400 bytes in a file of", "sqlite3")


def test_no_value_is_longer_than_the_file(tmp_path):
    """Found by fuzzing: SQLite has no memory for the name of a table that is two gigabytes long, as its row begins."""
    pages = Pages(tmp_path / "a.db")
    with snapshot(pages.path) as connection, pytest.raises(sqlite3.DataError, match="too big"):
        connection.execute("SELECT zeroblob(10000000)").fetchone()


def test_memory_that_sqlite_does_not_get_is_damage(tmp_path):
    pages = Pages(tmp_path / "a.db")
    with pytest.raises(FormatError, match="is damaged: it asks for more memory than there is"), snapshot(pages.path):
        raise MemoryError


def test_the_same_in_parts(tmp_path):
    pytest.importorskip("distributed")
    from stiefelsync.distributed.sources import ColmapSource

    with pytest.raises(FormatError, match="rows of 'keypoints' hold"):
        ColmapSource.open(shared_chain(tmp_path / "a.db", 100, 4))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE keypoints SET rows = 1000000000000",
        "UPDATE keypoints SET rows = 'many'",
        "UPDATE matches SET rows = 7",
        "UPDATE two_view_geometries SET cols = 3",
    ],
)
def test_numbers_of_rows_that_lie_in_parts(tmp_path, statement):
    pytest.importorskip("distributed")
    from stiefelsync.distributed.sources import ColmapSource

    pages = Pages(tmp_path / "a.db", statement)
    with pytest.raises(FormatError, match="another length than their rows need"):
        ColmapSource.open(pages.save())


def test_a_large_sound_database_is_read(tmp_path):
    """The bounds on rows, bytes and steps are far from what is usual: many pairs of one match each are the worst."""
    labels = np.zeros(600, dtype=np.int64)
    problem = Matchings.from_labels(labels, [1] * 600, coordinates=np.ones((600, 2)))
    build(tmp_path / "a.db", problem, problem)
    assert io.read(tmp_path / "a.db").n_matches == 600 * 599 // 2


# ---------------------------------------------------------------- what is no file


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
class TestPipes:
    """A pipe keeps its reader waiting for good."""

    @pytest.mark.parametrize("format", [name for name in io.FORMATS if name != "dataset"])
    def test_as_input_of_a_named_format(self, pipe, format):
        with pytest.raises(FormatError, match="is a pipe or a device, not a file"):
            io.read(pipe, format)

    @pytest.mark.parametrize("part", ["matches/z", "points", "objects", "pairs"])
    def test_in_a_dataset(self, tmp_path, part):
        path = dataset(tmp_path)
        (path / f"{part}.parquet").unlink(missing_ok=True)
        os.mkfifo(path / f"{part}.parquet")
        refused(path, "is a pipe or a device")

    def test_as_features(self, tmp_path, pipe):
        pytest.importorskip("h5py")
        io.write(PROBLEM, tmp_path / "a.h5")
        refused(tmp_path / "a.h5", "is a pipe or a device", features=pipe)

    def test_as_model_and_cameras(self, tmp_path, pipe):
        with pytest.raises(InputError, match="is a pipe or a device"):
            io.write(PROBLEM, tmp_path / "a.db", like=pipe)
        with pytest.raises(InputError, match="is a pipe or a device"):
            io.write(PROBLEM, tmp_path / "a.db", cameras=pipe)

    def test_in_a_folder_of_correspondences(self, tmp_path):
        for ending in ("csv", "npz"):
            (tmp_path / ending).mkdir()
            os.mkfifo(tmp_path / ending / f"a__b.{ending}")
            refused(tmp_path / ending, "is a pipe or a device")

    def test_among_pickles(self, tmp_path):
        os.mkfifo(tmp_path / "a_matches.pkl.gz")
        refused(tmp_path, "is a pipe or a device", allow_pickle=True)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_what_says_that_it_is_empty_is_not_opened(tmp_path, monkeypatch):
    """As do files of the kernel's, of which /proc/kmsg keeps its reader waiting."""
    (tmp_path / "a.csv").touch()
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("it was opened"))
    for format in (None, *io.FORMATS):
        with pytest.raises(FormatError, match=r"is empty|is not a folder|folder"):
            io.read(tmp_path / "a.csv", format)


def test_a_device_in_a_dataset(tmp_path):
    path = dataset(tmp_path)
    (path / "matches" / "z.parquet").symlink_to("/dev/zero")
    refused(path, "is a pipe or a device")
