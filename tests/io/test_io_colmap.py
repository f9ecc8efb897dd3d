"""COLMAP databases: every schema, the original untouched whatever happens, every kind of damage named."""

from __future__ import annotations

import hashlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from stiefelsync import FormatError, InputError, Matchings, io, synchronise
from stiefelsync.inspection import inspect
from stiefelsync.io import colmap, sqlite
from stiefelsync.matching.graph import conflicts
from stiefelsync.positions.duplicate_keypoints import representatives
from tests.io.colmap_schemas import SCHEMAS, build, dump, pair_id
from tests.io.problems import problems

RELAXED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = ("a.jpg", "b.jpg", "sub/c.jpg")
RAW = Matchings.from_pairs(
    {(0, 1): [[0, 1], [1, 0], [3, 3]], (1, 2): [[0, 0], [1, 2]], (0, 2): [[0, 2], [1, 1]]},
    [4, 4, 3],
    names=NAMES,
    coordinates=np.arange(22).reshape(11, 2) * 10.0,
)
VERIFIED = RAW.keep([True, True, False, True, True, True, True])
# point 0 of a, 1 of b, 2 of c are one; 1 of a and 0 of b are one; 0 of c is with 0 of b in the matches, not here
CLEAN = Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]], (1, 2): [[1, 2]], (0, 2): [[0, 2]]}, [4, 4, 3])


def digest(folder):
    """Content of every file of a folder: nothing may change, nothing may appear."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


@pytest.fixture
def database(tmp_path):
    folder = tmp_path / "original"
    folder.mkdir()
    build(folder / "database.db", RAW, VERIFIED)
    return folder / "database.db"


# ---------------------------------------------------------------- reading and writing


@pytest.mark.parametrize("cols", [2, 4, 6])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema(tmp_path, schema, cols):
    folder = tmp_path / "original"
    folder.mkdir()
    path = folder / "database.db"
    build(path, RAW, VERIFIED, schema, cols)
    before = digest(folder)
    assert io.detect(path).name == "colmap"
    assert io.read(path) == VERIFIED
    assert io.read(path, source="matches") == RAW
    io.write(CLEAN, tmp_path / "clean.db", like=path)
    assert digest(folder) == before
    expected = Matchings.from_pairs(CLEAN.pairs(), RAW.sizes, names=NAMES, coordinates=RAW.coordinates)
    assert io.read(tmp_path / "clean.db") == expected
    old, new = dump(path), dump(tmp_path / "clean.db")
    for table in old:
        if table != "two_view_geometries":
            assert new[table] == old[table]
    changed = [(a, b) for a, b in zip(old["two_view_geometries"], new["two_view_geometries"], strict=True) if a != b]
    assert [a[0] for a, _ in changed] == [pair_id(2, 8), pair_id(5, 8)]
    for a, b in changed:  # only rows and data change
        assert (a[0], a[2], a[4:]) == (b[0], b[2], b[4:])


@RELAXED
@given(problem=problems(weights=False, min_objects=1))
@pytest.mark.parametrize("schema", ["3.8", "4.2"])
def test_round_trip(tmp_path, problem, schema):
    build(tmp_path / "a.db", problem, problem, schema)
    read = io.read(tmp_path / "a.db")
    assert read.pairs().keys() == problem.pairs().keys()
    assert np.array_equal(read.indices, problem.indices)
    assert np.array_equal(read.sizes, problem.sizes)
    keep = np.arange(problem.n_matches) % 3 > 0
    io.write(read.keep(keep), tmp_path / "b.db", like=tmp_path / "a.db", force=True)
    assert io.read(tmp_path / "b.db", source="two_view_geometries") == read.keep(keep)


def test_indices_past_16_bits(tmp_path):
    problem = Matchings.from_pairs({(0, 1): [[70_000, 65_536], [65_535, 70_001]]}, [70_001, 70_002])
    build(tmp_path / "a.db", problem, problem)
    assert np.array_equal(io.read(tmp_path / "a.db").indices, problem.indices)


def test_large_image_ids(tmp_path):
    problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1])
    build(tmp_path / "a.db", problem, problem, step=2_000_000_000)  # pair ids that a float64 would round
    assert io.read(tmp_path / "a.db").n_matches == 1


def test_raw_matches_when_nothing_is_verified(tmp_path):
    build(tmp_path / "a.db", RAW, {})
    assert io.read(tmp_path / "a.db") == RAW
    assert io.read(tmp_path / "a.db", source="two_view_geometries").n_matches == 0
    with pytest.raises(InputError, match="unknown source 'match'; did you mean 'matches'"):
        io.read(tmp_path / "a.db", source="match")


def test_the_table_written_is_the_one_that_was_read(tmp_path, database):
    answer = RAW.keep(np.arange(7) != 0)
    untouched = {table: dump(database)[table] for table in colmap.TABLES}
    io.write(answer, tmp_path / "raw.db", like=database, source="matches")
    assert io.read(tmp_path / "raw.db", source="matches") == answer
    io.write(answer, tmp_path / "verified.db", like=database)
    assert dump(tmp_path / "verified.db")["matches"] == untouched["matches"]
    io.write(answer, tmp_path / "crossed.db", like=database, source="matches", target="two_view_geometries")
    assert dump(tmp_path / "crossed.db") == dump(tmp_path / "verified.db") != untouched
    build(database, RAW, {})  # nothing verified: raw matches are read, and written
    io.write(answer, tmp_path / "alone.db", like=database)
    assert io.read(tmp_path / "alone.db") == answer


def test_raw_matches_are_written_for_verification(tmp_path, database):
    answer = RAW.keep(np.arange(7) != 0)
    io.write(answer, tmp_path / "clean.db", like=database, target="matches")
    assert io.read(tmp_path / "clean.db", source="matches") == answer
    kept = [row[0] for row in dump(tmp_path / "clean.db")["two_view_geometries"]]
    assert kept == [pair_id(2, 8), pair_id(5, 8)]  # the changed pair is to be verified again


def test_next_command_looks_into_the_file(tmp_path, database):
    def verifies(*given, **options):
        return "geometric_verifier" in io.next_command(*given, **options)

    assert io.next_command("my clean.db").count("'my clean.db'") == 1  # no such file
    assert verifies("x.db", target="matches")
    io.write(RAW.keep(np.arange(7) != 0), tmp_path / "raw.db", like=database, target="matches")
    assert verifies(tmp_path / "raw.db")  # two pairs stay verified, one is to be verified again
    assert not verifies(tmp_path / "raw.db", target="two_view_geometries")
    io.write(CLEAN, tmp_path / "clean.db", like=database)
    assert not verifies(tmp_path / "clean.db")
    assert verifies(str(tmp_path / "clean.db"), target="matches")
    for geometries, expected in (({}, True), ({key: RAW.pair(*key)[:0] for key in RAW.pairs()}, True), (RAW, False)):
        build(database, RAW, geometries)
        assert verifies(database) == expected
    build(database, RAW[:1], {})
    assert not verifies(database)  # nothing to verify
    with pytest.raises(InputError, match="unknown target 'match'; did you mean 'matches'"):
        io.next_command("x.db", target="match")
    (tmp_path / "text.db").write_text("text")
    with pytest.raises(FormatError, match="is not an SQLite database"):
        io.next_command(tmp_path / "text.db")


def test_adding_what_follows(tmp_path, database):
    build(database, RAW, {(0, 1): RAW.pair(0, 1), (1, 2): RAW.pair(1, 2)[:1]})
    io.write(CLEAN, tmp_path / "less.db", like=database)
    assert io.read(tmp_path / "less.db").pairs().keys() == {(0, 1)}
    io.write(CLEAN, tmp_path / "more.db", like=database, add=True)
    assert np.array_equal(io.read(tmp_path / "more.db").indices, CLEAN.indices)
    rows = {row[0]: row for row in dump(tmp_path / "more.db")["two_view_geometries"]}
    assert rows[pair_id(2, 8)][4:] == (3, *[None] * 7)  # a new pair: config uncalibrated, no geometry
    assert rows[pair_id(5, 8)][4:6] == (3, b"F" * 72)
    io.write(CLEAN, tmp_path / "raw.db", like=database, add=True, target="matches")
    assert np.array_equal(io.read(tmp_path / "raw.db", source="matches").indices, CLEAN.indices)


@pytest.mark.data
def test_colmap_uses_what_was_added_and_skips_what_was_emptied(data_dir, tmp_path):
    pycolmap = pytest.importorskip("pycolmap")
    full = io.read(data_dir / "sceaux" / "database.db")
    less = tmp_path / "less.db"
    shutil.copyfile(data_dir / "sceaux" / "database.db", less)
    less.chmod(0o600)
    with closing(sqlite3.connect(less)) as writer, writer:
        ids = [row[0] for row in writer.execute("SELECT pair_id FROM two_view_geometries ORDER BY pair_id")]
        writer.execute("DELETE FROM two_view_geometries WHERE pair_id = ?", (ids[0],))
        failed = "UPDATE two_view_geometries SET rows = 0, data = x'', config = 1, F = NULL, E = NULL WHERE pair_id = ?"
        writer.execute(failed, (ids[1],))
    answer = full.keep(full.match_pairs != 2)
    used = {}
    for add in (False, True):
        out = tmp_path / f"{add}.db"
        io.write(answer, out, like=less, add=add)
        with pycolmap.Database.open(out) as database:
            graph = pycolmap.DatabaseCache.create(database, pycolmap.DatabaseCacheOptions()).correspondence_graph
            used[add] = graph.num_matches_between_all_images()
    counts = {pair: int(n) for pair, n in zip(ids, np.diff(full.pair_start), strict=True)}
    for add, missing in ((False, ids[:3]), (True, ids[2:3])):
        least = pycolmap.DatabaseCacheOptions().min_num_matches
        expected = {pair: n for pair, n in counts.items() if pair not in missing and n >= least}
        assert {pair: n for pair, n in used[add].items() if n} == expected


def test_a_pair_without_matches_keeps_an_empty_row(tmp_path, database):
    io.write(CLEAN.keep(np.zeros(4, dtype=bool)), tmp_path / "none.db", like=database)
    rows = dump(tmp_path / "none.db")["two_view_geometries"]
    assert [row[1:5] for row in rows] == [(0, 2, b"", 1)] * 3
    assert io.read(tmp_path / "none.db", source="two_view_geometries").n_matches == 0


def test_one_to_many_is_repaired_and_reported(tmp_path):
    many = {(0, 1): np.array([[0, 1], [0, 2], [3, 1], [3, 1], [2, 0]])}
    build(tmp_path / "a.db", RAW, many, "3.13")
    problem = io.read(tmp_path / "a.db")
    assert problem.pair(0, 1).tolist() == [[0, 1], [2, 0]]
    assert (problem.repair.duplicates, problem.repair.second_partners) == (1, 2)
    with pytest.raises(FormatError, match="matched to more than one point"):
        io.read(tmp_path / "a.db", one_to_many="error")
    io.write(problem, tmp_path / "b.db", like=tmp_path / "a.db", force=True)
    assert io.read(tmp_path / "b.db", one_to_many="error").pairs().keys() == {(0, 1)}
    assert io.convert(tmp_path / "a.db", tmp_path / "a.npz")[0].startswith("3 matches")


def test_a_match_given_twice_is_written_once(tmp_path):
    build(tmp_path / "a.db", RAW, {(0, 1): np.array([[0, 1], [2, 0], [0, 1]])}, "3.13")
    problem = io.read(tmp_path / "a.db")
    assert problem.repair.duplicates == 1
    io.write(problem, tmp_path / "b.db", like=tmp_path / "a.db")
    assert io.read(tmp_path / "b.db", one_to_many="error").pair(0, 1).tolist() == [[0, 1], [2, 0]]


def test_near_keypoints_are_merged_where_matches_connect_them(tmp_path):
    # a: points 0 and 2 are copies, which b 0 - c 0 connects; point 3 lies as close, but on another track.
    # c: points 1 and 2 are copies of nothing that is connected.
    at = [[0, 0], [50, 0], [0.5, 0], [0, 0.5], [9, 9], [70, 9], [9, 9], [40, 40], [40, 40.4]]
    pairs = {(0, 1): [[0, 0], [3, 1]], (0, 2): [[2, 0], [1, 1]], (1, 2): [[0, 0], [1, 2]]}
    problem = Matchings.from_pairs(pairs, [4, 2, 3], coordinates=np.array(at, dtype=np.float32))
    build(tmp_path / "a.db", problem, problem)
    merged = io.read(tmp_path / "a.db", merge_px=1)
    assert {key: block.tolist() for key, block in merged.pairs().items()} == pairs | {(0, 2): [[0, 0], [1, 1]]}
    assert conflicts(problem).count == 1
    assert conflicts(merged).count == 0
    for result, kept in ((merged, 6), (merged.keep([True, True, False, True, True, True]), 5)):
        io.write(result, tmp_path / "b.db", like=tmp_path / "a.db", merge_px=1, force=True)
        back = io.read(tmp_path / "b.db")
        assert back.n_matches == kept
        assert [2, 0] in back.pair(0, 2).tolist() or kept == 5  # the copy itself, not what stood for it
    assert io.read(tmp_path / "a.db", merge_px=1, one_to_many="error") == merged


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), True, False, "", "10", None])
def test_a_distance_that_is_none(tmp_path, database, bad):
    message = f"option merge_px of format 'colmap' must be a number, 0 or more, got {bad!r}"
    for call in (
        lambda: io.read(database, merge_px=bad),
        lambda: io.write(CLEAN, tmp_path / "clean.db", like=database, merge_px=bad),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == message
        assert not isinstance(caught.value, FormatError)  # the file is all right
    for good in (0, 2, 2.5, np.float32(1)):
        assert io.read(database, merge_px=good) == VERIFIED


def test_copies_are_told_from_the_table_that_was_read(tmp_path):
    """The chain that connects two copies is in the raw matches only."""
    at = np.array([[0, 0], [0.5, 0], [9, 9], [9, 9]], dtype=np.float32)
    raw = Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[1, 0]], (1, 2): [[0, 0]]}, [2, 1, 1], coordinates=at)
    verified = raw.keep([True, True, False])
    build(tmp_path / "a.db", raw, verified)
    for source, kept in (("matches", [True, True, True]), ("two_view_geometries", [True, False, True])):
        answer = Matchings.from_labels([0, -1, 0, 0], [2, 1, 1])
        told = {"source": source, "target": "matches", "merge_px": 1}
        io.write(answer, tmp_path / "b.db", like=tmp_path / "a.db", force=True, **told)
        assert io.read(tmp_path / "b.db", source="matches") == io.read(tmp_path / "a.db", source="matches").keep(kept)


def test_several_partners_that_are_copies_are_one(tmp_path):
    """A match that only makes a second partner still says that the two partners are connected."""
    at = np.array([[0, 0], [0.5, 0], [9, 9]], dtype=np.float32)
    many = {(0, 1): np.array([[0, 0], [1, 0]])}
    build(tmp_path / "a.db", Matchings.from_pairs({}, [2, 1], coordinates=at), many, "3.13")
    merged = io.read(tmp_path / "a.db", merge_px=1)
    assert (merged.n_matches, merged.repair.duplicates, merged.repair.second_partners) == (1, 1, 0)
    io.write(merged, tmp_path / "b.db", like=tmp_path / "a.db", merge_px=1)
    assert dump(tmp_path / "b.db") == dump(tmp_path / "a.db")
    with pytest.raises(FormatError, match="matched to more than one point"):
        io.read(tmp_path / "a.db", merge_px=1, one_to_many="error")


@pytest.mark.data
def test_merging_loses_less_and_leaves_only_copies(data_dir, tmp_path):
    path, clean = data_dir / "sceaux" / "database.db", tmp_path / "clean.db"
    problem, merged = io.read(path), io.read(path, merge_px=10)
    before, at_ten = inspect(problem), inspect(merged)
    assert at_ten.conflicts <= before.conflicts_apart < before.conflicts
    io.write(synchronise(merged, method="tracks"), clean, like=path, merge_px=10)
    found = inspect(io.read(clean))
    assert found.matches > synchronise(problem, method="tracks").kept.sum()
    assert found.conflicts > found.conflicts_apart == 0


def test_representatives_are_near_and_never_chained():
    rng = np.random.default_rng(0)
    at = rng.uniform(0, 100, (500, 2))
    chain = np.stack([np.arange(499), np.arange(1, 500)], axis=1)
    stands = representatives(at, np.array([200, 300]), chain, 10)
    assert np.array_equal(stands[stands], stands)
    assert (stands[:200] < 200).all()
    assert (stands[200:] >= 200).all()
    for one in np.unique(stands):
        together = at[stands == one]
        assert np.linalg.norm(together[:, None] - together, axis=2).max() <= 10
    # Nobody is left alone who could have joined: each is too far from somebody of every earlier group.
    for late in np.flatnonzero(stands == np.arange(500)):
        earlier = np.unique(stands[:late][(np.arange(late) < 200) == (late < 200)])
        assert all(np.linalg.norm(at[(stands == one)] - at[late], axis=1).max() > 10 for one in earlier)


def test_it_needs_its_original_or_positions(tmp_path, database):
    with pytest.raises(InputError, match="needs the positions of keypoints"):
        io.write(CLEAN, tmp_path / "a.db")
    io.write(CLEAN, tmp_path / "a.npz")
    with pytest.raises(InputError, match="needs the positions of keypoints"):
        io.write(CLEAN, tmp_path / "a.db", like=tmp_path / "a.npz")
    with pytest.raises(InputError, match="not about the keypoints of"):
        io.write(CLEAN[:2], tmp_path / "a.db", like=database)
    with pytest.raises(InputError, match="is the input itself"):
        io.write(CLEAN, database, like=database)
    with pytest.raises(InputError, match="unknown target"):
        io.write(CLEAN, tmp_path / "a.db", like=database, target="inliers")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npz", "original"]


@pytest.mark.parametrize("format", ["hloc", "opensfm"])
def test_back_from_a_format_that_forgets_unmatched_keypoints(tmp_path, format):
    """Images in order of ids, not of names, and keypoints after the last matched one."""
    names = ["z.jpg", "a.jpg", "m.jpg"]
    good = Matchings.from_labels(
        [3, 0, 1, -1, 1, 0, -1, -1, -1, 0, 3, -1], [4, 4, 4], names=names, coordinates=np.eye(12, 2)
    )
    wrong = {(0, 1): [[0, 3]], (1, 2): [[3, 0]]}
    database, other = tmp_path / "database.db", tmp_path / "other"
    both = {key: np.concatenate([block, wrong.get(key, block[:0])]) for key, block in good.pairs().items()}
    noisy = Matchings.from_pairs(both, good.sizes, names=names)
    build(database, noisy, noisy)
    io.write(good, other, format)
    read = io.read(other)
    assert read.names != good.names
    assert read.sizes.sum() < good.sizes.sum()
    io.convert(other, tmp_path / "clean.db", like=database)
    assert io.read(tmp_path / "clean.db").pairs().keys() == good.pairs().keys()
    for key, block in io.read(tmp_path / "clean.db").pairs().items():
        assert np.array_equal(block, good.pair(*key))
    io.write(synchronise(read, method="union-find"), tmp_path / "labelled.db", like=database)
    assert io.read(tmp_path / "labelled.db") == io.read(tmp_path / "clean.db")


@pytest.mark.parametrize(
    ("names", "sizes", "message"),
    [
        (("a.jpg", "b.jpg", "d.jpg"), [4, 4, 3], "the database has no image 'd.jpg'"),
        (("a.jpg", "b.jpg"), [4, 4], "they have no image 'sub/c.jpg'"),
        (("a.jpg", "b.jpg", "b.jpg"), [4, 4, 3], "two objects are named 'b.jpg'"),
        (("sub/c.jpg", "b.jpg", "a.jpg"), [4, 4, 3], "'sub/c.jpg' has 3 of them, not 4"),
        (None, [4, 4, 2], "the images or their sizes differ"),
    ],
)
def test_matches_of_other_images(tmp_path, database, names, sizes, message):
    with pytest.raises(InputError, match=message):
        io.write(Matchings.from_pairs({(0, 1): [[0, 1]]}, sizes, names=names), tmp_path / "a.db", like=database)
    assert not (tmp_path / "a.db").exists()


# ---------------------------------------------------------------- the original is never touched


def test_wal_mode_with_an_empty_log(tmp_path, database):
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
    before = digest(database.parent)
    assert list(before) == ["database.db"]
    assert io.read(database) == VERIFIED
    io.write(CLEAN, tmp_path / "clean.db", like=database)
    assert digest(database.parent) == before
    assert np.array_equal(io.read(tmp_path / "clean.db").indices, CLEAN.indices)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["clean.db", "original"]


def test_wal_mode_with_changes_only_in_the_log(tmp_path, database):
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("DELETE FROM two_view_geometries WHERE pair_id = ?", (pair_id(2, 5),))
        writer.commit()
        before = digest(database.parent)
        assert list(before) == ["database.db", "database.db-shm", "database.db-wal"]
        assert io.read(database).pairs().keys() == {(0, 2), (1, 2)}  # the log is read
        io.write(CLEAN, tmp_path / "clean.db", like=database)
        assert digest(database.parent) == before
    assert io.read(tmp_path / "clean.db").pairs().keys() == {(0, 2), (1, 2)}


def test_locked_by_another_process(tmp_path, database, monkeypatch):
    monkeypatch.setattr(sqlite, "TIMEOUT", 0.1)
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, str(database)], **pipes) as other:
        assert other.stdout.readline() == "locked\n"
        before = digest(database.parent)
        with pytest.raises(FormatError, match="is locked by another process; close that program"):
            io.read(database)
        with pytest.raises(FormatError, match="is locked by another process"):
            io.write(CLEAN, tmp_path / "clean.db", like=database)
        assert digest(database.parent) == before
        other.communicate("")
    assert [file.name for file in tmp_path.iterdir()] == ["original"]
    assert io.read(database) == VERIFIED


def test_left_in_the_middle_of_a_change(tmp_path, database):
    other = tmp_path / "broken"
    other.mkdir()
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE keypoints SET data = zeroblob(100000)")  # spills to the file before it is committed
        for name in ("database.db", "database.db-journal"):
            (other / name).write_bytes((database.parent / name).read_bytes())
    before = digest(other)
    with pytest.raises(FormatError, match="left in the middle of a change"):
        io.read(other / "database.db")
    assert digest(other) == before


@contextmanager
def small_disk(size):
    """Let no file grow beyond `size` bytes, as on a disk that is full."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [0, 20_000])
def test_disk_full(tmp_path, database, size):
    before = digest(database.parent)
    assert database.stat().st_size > 20_000
    with small_disk(size), pytest.raises(InputError, match=r"clean\.db cannot be written: .*nothing was written"):
        io.write(CLEAN, tmp_path / "clean.db", like=database)
    assert digest(database.parent) == before
    assert [file.name for file in tmp_path.iterdir()] == ["original"]


def test_interrupted_write(tmp_path, database, monkeypatch):
    before = digest(database.parent)
    (tmp_path / "clean.db").write_text("an older result")

    def interrupt(copy, target, changed):
        copy.execute(f"DELETE FROM {target}")
        raise KeyboardInterrupt

    monkeypatch.setattr(colmap.database, "write_rows", interrupt)
    with pytest.raises(KeyboardInterrupt):
        io.write(CLEAN, tmp_path / "clean.db", like=database, force=True)
    assert digest(database.parent) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["clean.db", "original"]
    assert (tmp_path / "clean.db").read_text() == "an older result"


# ---------------------------------------------------------------- damage


def test_not_a_database(tmp_path):
    (tmp_path / "a.db").write_bytes(b"certainly not" * 100)
    with pytest.raises(FormatError, match="is not an SQLite database"):
        io.read(tmp_path / "a.db", "colmap")
    with pytest.raises(FormatError, match="none of the known formats"):
        io.read(tmp_path / "a.db")
    (tmp_path / "a.db").write_bytes(sqlite.MAGIC + b"garbage" * 1000)
    with pytest.raises(FormatError, match="is damaged: file is not a database"):
        io.read(tmp_path / "a.db")


def cut(path, size):
    """Shorten a file to `size` bytes and return what it should then be called."""
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    return rf"database\.db is cut short: it has {size:,} bytes where {len(whole):,} are needed; copy it again"


@pytest.mark.parametrize("missing", [1, 100, 4095, 4096, 4097, 20_000])
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_cut_short(tmp_path, database, missing, mode):
    """SQLite fills up a partial page with zeros, which would be read as matches of keypoints 0."""
    with closing(sqlite3.connect(database)) as writer:
        writer.execute(f"PRAGMA journal_mode = {mode}")
    message = cut(database, database.stat().st_size - missing)
    before = digest(database.parent)
    with pytest.raises(FormatError, match=message):
        io.read(database)
    with pytest.raises(FormatError, match=message):
        io.write(CLEAN, tmp_path / "clean.db", like=database)
    assert digest(database.parent) == before
    assert not (tmp_path / "clean.db").exists()


def test_cut_short_where_the_header_does_not_count_pages(database):
    """SQLite before 3.7 left the count as it was; then only a partial page shows."""
    data = bytearray(database.read_bytes())
    data[28:32], data[92:96] = bytes(4), bytes(4)
    database.write_bytes(data)
    assert io.read(database) == VERIFIED
    message = cut(database, len(data) - 1)
    with pytest.raises(FormatError, match=message):
        io.read(database)


def test_other_lengths_that_are_fine(tmp_path, database):
    """Pages of 64 KiB, bytes after the end, and pages that only the log holds."""
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA page_size = 65536")
        writer.execute("VACUUM")
    assert database.read_bytes()[16:18] == b"\0\1"
    assert io.read(database) == VERIFIED
    with database.open("ab") as file:
        file.write(b"more")
    assert io.read(database) == VERIFIED
    other = tmp_path / "logged.db"
    with closing(sqlite3.connect(other)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        with closing(sqlite3.connect(database)) as whole:
            writer.executescript("\n".join(whole.iterdump()))
        header = next(frame for frame in frames(tmp_path / "logged.db-wal") if frame.startswith(sqlite.MAGIC))
        other.write_bytes(header)  # what an interrupted checkpoint leaves: a count of pages that are still in the log
        assert int.from_bytes(header[28:32], "big") * 4096 > other.stat().st_size
        assert np.array_equal(io.read(other).indices, VERIFIED.indices)


def frames(log):
    """Pages of a write-ahead log, the last first; each of them follows a header of 24 bytes."""
    data = log.read_bytes()[32:]
    return [data[at + 24 : at + 24 + 4096] for at in range(0, len(data), 24 + 4096)][::-1]


def test_errors_name_the_file_as_typed(tmp_path, database, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = database.read_bytes()
    for damaged, message in (
        (data[:-1], "is cut short"),
        (data[:100] + b"\xff" * 4000 + data[4100:], "is damaged"),
        (b"text", "is not an SQLite database"),
    ):
        database.write_bytes(damaged)
        with pytest.raises(FormatError, match=rf"^original/database\.db {message}"):
            io.read("original/database.db", "colmap")


def test_another_database(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(FormatError, match="is a database of something else"):
        io.read(tmp_path / "a.db")


BAD = b"\0" * 7
PAIR = pair_id(2, 5)


@pytest.mark.parametrize(
    ("statement", "values", "message"),
    [
        ("DROP TABLE keypoints", (), "it has no table 'keypoints'"),
        ("DROP TABLE two_view_geometries", (), "it has no table 'two_view_geometries'"),
        ("UPDATE keypoints SET data = ? WHERE image_id = 5", (BAD,), "'b.jpg' take 7 bytes where 4 rows need 32"),
        ("UPDATE keypoints SET data = NULL WHERE image_id = 5", (), "take 0 bytes where 4 rows need 32"),
        ("UPDATE keypoints SET cols = 3", (), "have 3 columns; COLMAP has 2, 4 or 6"),
        ("UPDATE keypoints SET rows = -1", (), "have -1 rows"),
        ("UPDATE keypoints SET image_id = 77 WHERE image_id = 5", (), "keypoints of image 77, but has no such image"),
        ("UPDATE two_view_geometries SET data = ? WHERE pair_id = ?", (BAD, PAIR), "take 7 bytes where 2 rows need 16"),
        ("UPDATE two_view_geometries SET cols = 3", (), "have 3 columns where 2 are expected"),
        ("UPDATE two_view_geometries SET data = ? WHERE pair_id = ?", (np.array([0, 9, 1, 1], "<u4").tobytes(), PAIR),
         "of 'a.jpg' and 'b.jpg' name keypoint 9 of 'b.jpg', which has only 4"),
        ("UPDATE two_view_geometries SET data = ? WHERE pair_id = ?", (b"\xff" * 16, PAIR), "name keypoint 4294967295"),
        ("UPDATE two_view_geometries SET pair_id = ? WHERE pair_id = ?", (pair_id(2, 6), PAIR), "no image 6"),
        ("UPDATE two_view_geometries SET pair_id = ? WHERE pair_id = ?", (5 * 2147483647 + 2, PAIR),
         "the smaller goes first"),
    ],
)  # fmt: skip
def test_damaged_tables(tmp_path, database, statement, values, message):
    with closing(sqlite3.connect(database)) as writer, writer:
        writer.execute(statement, values)
    before = digest(database.parent)
    with pytest.raises(FormatError) as caught:
        io.read(database)
    assert message in str(caught.value)
    with pytest.raises(FormatError):
        io.write(CLEAN, tmp_path / "clean.db", like=database)
    assert digest(database.parent) == before
    assert [file.name for file in tmp_path.iterdir()] == ["original"]


# ---------------------------------------------------------------- real data


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "images", "points", "raw", "verified"),
    [("sceaux", 11, 78_158, 56_586, 53_108), ("herz-jesu-p8", 8, None, 36_577, 35_691)],
)
def test_real_databases(data_dir, tmp_path, name, images, points, raw, verified):
    path = data_dir / name / "database.db"
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    problem = io.read(path)
    loose = io.read(path, source="matches")
    for read, count in ((problem, verified), (loose, raw)):
        lost = 0 if read.repair is None else read.repair.dropped
        assert read.n_matches + lost == count
    assert problem.n_objects == images
    assert points in (None, problem.n_points)
    io.write(problem.keep(np.arange(problem.n_matches) % 10 > 0), tmp_path / "clean.db", like=path)
    assert io.read(tmp_path / "clean.db") == problem.keep(np.arange(problem.n_matches) % 10 > 0)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
