"""Files made to do harm: always a typed error, never a crash, never a change of any other file."""

from __future__ import annotations

import gzip
import io as streams
import pickle
import sqlite3
import struct
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from stiefelsync import FormatError, InputError, Matchings, io
from stiefelsync.io.colmap import database as colmap
from stiefelsync.io.sparse_arrays import from_parts
from tests.io.colmap_schemas import build, pair_id

SOUND = {
    "sizes": np.array([2, 2]),
    "pair_objects": np.array([[0, 1]]),
    "pair_start": np.array([0, 2]),
    "indices": np.array([[0, 0], [1, 1]]),
}
PROBLEM = Matchings.from_labels([0, 1, 0, 1], [2, 2], names=["a", "b"], coordinates=np.zeros((4, 2)))


def refused(path: Path, message: str, **options: object) -> FormatError:
    """Read a file that must be refused with an error that names it."""
    with pytest.raises(FormatError) as caught:
        io.read(path, **options)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    return caught.value


def npz(folder: Path, **arrays: object) -> Path:
    merged = {name: value for name, value in {**SOUND, **arrays}.items() if value is not None}
    np.savez(folder / "a.npz", **{name: np.asarray(value) for name, value in merged.items()})
    return folder / "a.npz"


def matrix(folder: Path, kind: str, **arrays: object) -> Path:
    """Write the parts of a sound sparse matrix of two points, some replaced."""
    made = getattr(sparse, f"{kind}_array")(np.array([[1.0, 1.0], [1.0, 1.0]]))
    sparse.save_npz(folder / "W.npz", made)
    with np.load(folder / "W.npz") as parts:
        merged = {**parts, "sizes": np.array([1, 1]), **arrays}
    np.savez(folder / "W.npz", **{name: value for name, value in merged.items() if value is not None})
    return folder / "W.npz"


# ---------------------------------------------------------------- sparse matrices


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
def test_sound_sparse_matrices_are_read(tmp_path, kind):
    assert io.read(matrix(tmp_path, kind)) == Matchings.from_labels([0, 0], [1, 1])


@pytest.mark.parametrize(
    ("kind", "arrays", "message"),
    [
        (
            "csr",
            {"indptr": np.array([0, 10**8, 0]), "data": np.ones(2), "indices": np.array([0, 1])},
            "must rise from 0",
        ),
        ("csc", {"indptr": np.array([0, 10**8, 4])}, "must rise from 0"),
        ("csr", {"indptr": np.array([-4, 0, 4])}, "must rise from 0"),
        ("csr", {"indptr": np.array([0, 2, 3])}, "must rise from 0"),
        ("csr", {"indptr": np.array([0, 4])}, "2 pointers and 4 indices do not fit 4 entries in 2 rows"),
        ("csr", {"indices": np.array([0, 1, 0, 9])}, "an index is out of range: they run from 0 to 1"),
        ("csr", {"indices": np.array([0, 1, 0, -9])}, "an index is out of range"),
        ("csr", {"indices": np.array([0.0, 1, 0, 1])}, "indices must be whole numbers, got float64"),
        ("csr", {"indptr": np.array([0, 2**63 + 1, 4], dtype=np.uint64)}, "which is out of range"),
        ("csr", {"data": np.ones(4) * 1j}, "its entries must be real numbers, got complex128"),
        ("csr", {"data": np.ones((2, 2))}, "the entries must be one array"),
        ("csr", {"data": None}, "its array 'data' is missing"),
        ("csr", {"shape": np.array([2])}, "a matrix of shape [2] cannot be one of matches"),
        ("csr", {"shape": np.array([2, 2**40])}, "cannot be one of matches"),
        ("csr", {"shape": np.array([-2, 2])}, "cannot be one of matches"),
        ("bsr", {"data": np.ones((1, 0, 2))}, "must have the shape (n, r, c)"),
        ("bsr", {"data": np.ones((1, 3, 2))}, "do not fill a matrix of shape (2, 2)"),
        ("bsr", {"indptr": np.array([0, 10**8, 1])}, "pointers"),
        ("coo", {"row": np.array([0, 1, 0, 10**9])}, "do not fit together or are out of range"),
        ("coo", {"col": np.array([0, 1])}, "do not fit together or are out of range"),
        ("dia", {"offsets": np.array([-1, 0, 10**9])}, "a diagonal is out of range"),
        ("dia", {"offsets": np.array([0, 0, 1])}, "diagonals and offsets do not fit"),
        ("csr", {"format": np.array(b"lil")}, "unknown kind 'lil'; save it as CSR"),
    ],
)
def test_structure_is_checked_before_scipy_sees_it(tmp_path, kind, arrays, message):
    """Column pointers of [0, 100000000, 2] made SciPy read far outside its arrays: the process crashed."""
    path = matrix(tmp_path, kind, **arrays)
    refused(path, message)
    refused(path, "holds a broken")


@pytest.mark.parametrize("pointer", [[0, 100_000_000, 4], [0, -5, 4], [0, 3, 2]])
def test_structure_of_a_matlab_matrix_is_checked(tmp_path, pointer):
    W = sparse.csc_matrix(np.ones((2, 2)))
    scipy_io.savemat(tmp_path / "a.mat", {"W": W, "dimVector": [1, 1]})
    whole = (tmp_path / "a.mat").read_bytes()
    sound = struct.pack("<3i", 0, 2, 4)
    assert whole.count(sound) == 1
    (tmp_path / "a.mat").write_bytes(whole.replace(sound, struct.pack("<3i", *pointer)))
    refused(tmp_path / "a.mat", "")


def test_parts_of_a_matrix_in_python():
    with pytest.raises(InputError, match="must rise from 0 to the number of entries, 2"):
        from_parts(
            "csr",
            np.array([2, 2]),
            {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 10**8, 0])},
        )


# ---------------------------------------------------------------- NPZ


def header(shape: str, descr: str = "<i8", extra: str = "") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, {extra}}}".ljust(118) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def raw(folder: Path, **members: bytes) -> Path:
    """Write an NPZ archive whose members are given as bytes."""
    with zipfile.ZipFile(npz(folder), "a") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return folder / "a.npz"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header("(99999999999,)"), "bytes where its shape (99999999999,) needs 800,000,000,"),
        (header("(-1,)") + bytes(8), "bytes where its shape (-1,) needs"),
        (header("(2,)") + bytes(8), "bytes where its shape (2,) needs"),
        (header("(1"), "cannot be read as 'npz'"),
        (header("(1,)", extra="'x': 1")+ bytes(8), "cannot be read as 'npz'"),
        (header("1", "<i8") + bytes(8), "cannot be read as 'npz'"),
        (header("(1,)", "no type") + bytes(8), "cannot be read as 'npz'"),
        (header("(1,)", "|O") + bytes(8), "pickled Python objects, which could run code"),
        (b"\x93NUMPY\x09\x00" + bytes(200), "a.npz"),
        (b"", "a.npz"),
    ],
)  # fmt: skip
def test_npz_headers_that_lie(tmp_path, content, message):
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = raw(tmp_path, sizes=content)
    refused(path, message)


def test_members_that_nobody_needs_are_not_unpacked(tmp_path, monkeypatch):
    """A bomb of 9 GB beside a sound problem used to be unpacked too."""
    with zipfile.ZipFile(npz(tmp_path), "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.npy", bytes(10**6))
    opened = []
    real = zipfile.ZipFile.open
    monkeypatch.setattr(
        zipfile.ZipFile, "open", lambda self, info, *a, **k: opened.append(info.filename) or real(self, info, *a, **k)
    )
    assert io.read(tmp_path / "a.npz").n_matches == 2
    assert sorted(opened) == ["indices.npy", "pair_objects.npy", "pair_start.npy", "sizes.npy"]


def test_a_bomb_in_a_member_that_is_needed(tmp_path):
    """Before memory is taken: what an archive declares is compared with its size."""
    zeros = streams.BytesIO()
    np.lib.format.write_array(zeros, np.zeros((40_000_000, 2), dtype=np.int32))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("indices.npy", zeros.getvalue())
    assert (tmp_path / "a.npz").stat().st_size < 400_000
    refused(tmp_path / "a.npz", "its arrays would take 320,000,128 bytes, which a file of")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"sizes": [2**63 - 1, 2**63 - 1, 5]}, "mentions at most 4 points of 18,446,744,073,709,551,619"),
        ({"sizes": [2_000_000_000, 2]}, "mentions at most 4 points of 2,000,000,002"),
        ({"sizes": np.array([2**64 - 1, 2], dtype=np.uint64)}, "sizes holds 18446744073709551615, which is"),
        ({"sizes": "two"}, "sizes must be whole numbers"),
        ({"sizes": 2}, "sizes must be one number per object"),
        ({"weights": [1 + 1j, 1]}, "weights must be real numbers, got complex128"),
        ({"weights": ["heavy", "light"]}, "weights must be real numbers, got <U5"),
        ({"names": "ab"}, "names must be one text per object, got <U2 of shape ()"),
        ({"names": [1, 2]}, "names must be one text per object, got int64 of shape (2,)"),
        ({"names": [b"\xff", b"a"]}, "is not UTF-8 text"),
        ({"pair_start": [0, 2**62]}, "contradicts itself"),
        ({"pair_start": [[0, 2]]}, "contradicts itself"),
        ({"pair_start": []}, "contradicts itself"),
        ({"pair_start": np.array([0, 2**64 - 1], dtype=np.uint64)}, "out of range"),
        ({"pair_objects": [["a", "b"]]}, "must be whole numbers"),
        ({"coordinates": [[1j, 0]] * 4}, "coordinates must be real numbers, got complex128"),
        ({"coordinates": [["x", "y"]] * 4}, "coordinates must be real numbers, got <U1"),
        ({"W": np.eye(4) * 1j, "pair_start": None}, "complex128"),
        ({"W": "matrix", "pair_start": None}, "a.npz"),
    ],
)  # fmt: skip
def test_npz_arrays_of_the_wrong_kind(tmp_path, arrays, message):
    refused(npz(tmp_path, **arrays), message)


def test_npz_arrays_of_other_widths(tmp_path):
    """Unsigned pointers, and names as bytes, are sound."""
    start, words = np.array([0, 2], dtype=np.uint64), np.array([b"a", "é".encode()])
    read = io.read(npz(tmp_path, pair_start=start, names=words, sizes=np.array([2, 2], dtype=np.uint8)))
    assert (read.n_matches, read.names) == (2, ("a", "é"))


def test_truth_of_the_wrong_kind(tmp_path):
    for truth in ([0, 1], [0.5] * 4, ["x"] * 4):
        with pytest.raises(FormatError, match="4 points need 4 whole numbers as true labels"):
            io.read_truth(npz(tmp_path, truth=truth))
    with pytest.raises(FormatError, match="whole numbers"):
        io.read_truth(npz(tmp_path, truth=[0], sizes=["x"]))


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# sizes,-5,1\n0,0,1,0\n", "line 1: an object has from 0 to 2,147,483,647 points, not -5"),
        ("# sizes,9223372036854775808,1\n0,0,1,0\n", "line 1: an object has from 0 to 2,147,483,647 points"),
        ("# sizes,100000000000,1\n0,0,1,0\n", "line 1: an object has from 0 to"),
        (f"# sizes,{'9' * 5000},1\n0,0,1,0\n", "line 1: '999"),
        ("# sizes,2000000000,1\n0,0,1,0\n", "mentions at most 2 points of 2,000,000,001"),
        ("# sizes,1_0,1\n0,0,1,0\n", "line 1: '1_0' is not a whole number"),
        ("a,1_0,b,0\n", "line 2: point_a is '1_0'; it must be a whole number"),
        ("a,١,b,0\n", "line 2: point_a is '١'; it must be a whole number"),
        ("a,99999999999999999999,b,0\n", "line 2: point_a is '99999999999999999999'; points are numbered from 0"),
        ("a,0,b," + "1" * 5000 + "\n", "line 2: point_b is '1111"),
    ],
)
def test_numbers_that_are_none(tmp_path, text, message):
    rows = text.splitlines(keepends=True)
    header = ["object_a,point_a,object_b,point_b\n"]
    at = int(text.startswith("#"))
    (tmp_path / "a.csv").write_text("".join(rows[:at] + header + rows[at:]), encoding="utf-8")
    refused(tmp_path / "a.csv", message)
    columns = "track,object,point\n"
    tracks = [f"0,{row.split(',')[0]},{row.split(',')[1]}\n" for row in rows[at:]]
    (tmp_path / "t.csv").write_text("".join([*rows[:at], columns, *tracks]), encoding="utf-8")
    if at or "point_a" in message:
        refused(tmp_path / "t.csv", message.replace("point_a", "point").replace("most 2", "most 1"))


def test_weights_that_are_none(tmp_path):
    (tmp_path / "a.csv").write_text("object_a,point_a,object_b,point_b,weight\na,0,b,0,1_0.5\n")
    refused(tmp_path / "a.csv", "line 2: weight is '1_0.5'; it must be a number")


def test_sizes_in_python_that_do_not_fit(tmp_path):
    (tmp_path / "t.csv").write_text("track,object,point\n0,0,0\n0,1,0\n")
    refused(tmp_path / "t.csv", "2 objects are mentioned, but the sizes of 1 given", sizes=[1])
    refused(tmp_path / "t.csv", "sizes must be one number per object", sizes="many")


def test_tracks_too_long_to_be_matches(tmp_path):
    """A megabyte of one track would make 20 GB of matches."""
    k = 30_000
    (tmp_path / "t.csv").write_text("track,object,point\n" + "".join(f"7,{o},0\n" for o in range(k)))
    refused(tmp_path / "t.csv", "tracks so long that they make more than 268,435,456 matches")


@pytest.mark.parametrize("begin", [b"", b"object_a,point_a,object_b,point_b\n", b"track,object,point\n"])
def test_zero_bytes_are_no_table(tmp_path, begin):
    """Of a file of 3 GB (of which the disk holds nothing) no line is read whole."""
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(3 * 2**30)
    for format in (None, "csv", "tracks", "dd"):
        refused(path, str(path), format=format)


def test_a_header_is_not_looked_for_without_end(tmp_path):
    (tmp_path / "a.csv").write_text("#\n" * 20_000 + "object_a,point_a,object_b,point_b\n")
    refused(tmp_path / "a.csv", "has no header line", format="csv")


# ---------------------------------------------------------------- .dd


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gm 0 1000000000\np 1 1 1 0\na 0 0 0 -1\n", "mentions 2 objects by numbers up to 1,000,000,000; number them"),
        ("gm 0 1\np 2000000000 1 0 0\n", "mentions at most 0 points of 2,000,000,001"),
        ("gm 0 1\np 99999999999 1 0 0\n", "line 2: object 0 cannot have 99999999999 points"),
        ("gm 0 1\np -1 1 0 0\n", "line 2: object 0 cannot have -1 points"),
        ("gm 0 1\np 1_0 1 0 0\n", "line 2: '1_0' is not a whole number"),
        ("gm 0 1\np 1 1 1 0\na 0 0 0 -1_0\n", "line 3: '-1_0' is not a number"),
        ("gm 0 1\np 1 1 1 0\na 0 0 0 -1\np 1 1 0 0\n", "line 4: a second line p for the pair (0, 1)"),
    ],
)
def test_dd_that_asks_for_too_much(tmp_path, text, message):
    (tmp_path / "a.dd").write_text(text)
    refused(tmp_path / "a.dd", message)


def test_a_large_pair_needs_no_dense_table(tmp_path):
    """10⁶ × 10⁶ points with a few candidates: 7 TiB once, and the best choice of all now."""
    rows = [(5, 999_999, -3.0), (5, 7, -2.5), (6, 999_999, -2.9), (6, 8, -0.1), (5, 9, 1.0), (5, 7, -2.0)]
    lines = "".join(f"a {t} {a} {b} {cost}\n" for t, (a, b, cost) in enumerate(rows))
    (tmp_path / "a.dd").write_text(f"gm 0 1\np 1000000 1000000 {len(rows)} 0\n{lines}")
    read = io.read(tmp_path / "a.dd")
    assert read.pair(0, 1).tolist() == [[5, 7], [6, 999_999]]
    assert read.weights.tolist() == [2.5, 2.9]


def test_the_choice_among_candidates_is_the_best(tmp_path):
    """As the Hungarian algorithm on the dense table finds it."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(0)
    for trial in range(30):
        n, count = int(rng.integers(2, 8)), int(rng.integers(1, 25))
        rows = [(*rng.integers(0, n, 2).tolist(), float(rng.normal())) for _ in range(count)]
        lines = "".join(f"a {t} {a} {b} {c!r}\n" for t, (a, b, c) in enumerate(rows))
        (tmp_path / f"{trial}.dd").write_text(f"gm 0 1\np {n} {n} {count} 0\n{lines}")
        dense = np.zeros((n, n))
        for a, b, cost in rows:
            dense[a, b] = min(dense[a, b], cost)
        least = dense[linear_sum_assignment(dense)].sum()
        read = io.read(tmp_path / f"{trial}.dd")
        assert -(read.match_weights * bool(read.n_matches)).sum() == pytest.approx(least, abs=n * 1e-14)


# ---------------------------------------------------------------- MATLAB


def test_matlab_keeps_account_of_what_it_repairs(tmp_path):
    """With coordinates in the file the account of dropped matches was lost."""
    W = np.eye(3)
    W[0, 1] = W[1, 0] = W[0, 2] = W[2, 0] = 1
    variables = {"W": W, "dimVector": [1, 2], "coordinates": np.zeros((3, 2))}
    scipy_io.savemat(tmp_path / "a.mat", variables)
    read = io.read(tmp_path / "a.mat", one_to_many="repair")
    assert (read.n_matches, read.repair.dropped) == (1, 1)
    assert read.coordinates is not None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"W": np.eye(2) * 1j}, "'W' holds complex numbers; real ones are expected"),
        ({"W": sparse.csc_matrix(np.eye(2) * 1j)}, "'W' holds complex numbers"),
        ({"W": np.ones((2, 2, 2))}, "W is not a matrix of real numbers"),
        ({"dimVector": [1e300, 1]}, "sizes of the objects must be whole numbers"),
        ({"dimVector": [np.nan, 1]}, "sizes of the objects must be whole numbers"),
        ({"dimVector": ["a", "b"]}, "sizes of the objects must be whole numbers"),
        ({"dimVector": None, "m": 1, "k": 10**9}, "k is 1000000000; it must be the number of objects, of 2 points"),
        ({"dimVector": None, "m": 1, "k": "many"}, "k is many; it must be the number of objects"),
        ({"coordinates": "here"}, "a.mat"),
    ],
)
def test_matlab_variables_of_the_wrong_kind(tmp_path, variables, message):
    merged = {"W": np.ones((2, 2)), "dimVector": [1, 1], **variables}
    scipy_io.savemat(tmp_path / "a.mat", {name: value for name, value in merged.items() if value is not None})
    refused(tmp_path / "a.mat", message)


def test_a_bomb_in_matlab(tmp_path):
    scipy_io.savemat(tmp_path / "a.mat", {"W": np.zeros((10_000, 10_000), dtype=bool)}, do_compression=True)
    refused(tmp_path / "a.mat", "its variables would take 100,000,048 bytes, which a file of")


# ---------------------------------------------------------------- hloc


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py")


REFERENCES = {
    "external link": lambda h5py, group: group.__setitem__("matches0", h5py.ExternalLink("victim.h5", "/a/b/matches0")),
    "soft link": lambda h5py, group: group.__setitem__("matches0", h5py.SoftLink("/elsewhere")),
    "dangling score": lambda h5py, group: (
        group.create_dataset("matches0", data=np.array([0, -1])),
        group.__setitem__("matching_scores0", h5py.ExternalLink("victim.h5", "/a/b/matches0")),
    ),
    "external storage": lambda h5py, group: group.create_dataset(
        "matches0", shape=(2,), dtype="i8", external=[("victim.bin", 0, 16)]
    ),
    "virtual": lambda h5py, group: group.create_virtual_dataset("matches0", _layout(h5py)),
}


def _layout(h5py):
    layout = h5py.VirtualLayout(shape=(2,), dtype="i8")
    layout[:] = h5py.VirtualSource("victim.h5", "/a/b/matches0", shape=(2,))
    return layout


@pytest.mark.parametrize("kind", REFERENCES)
def test_references_to_other_files_are_refused(tmp_path, monkeypatch, h5py, kind):
    """`sync x.h5 -o out.h5` used to write through them."""
    monkeypatch.chdir(tmp_path)
    Path("victim.bin").write_bytes(np.array([0, 1]).tobytes())
    with h5py.File("victim.h5", "w") as file:
        file.create_dataset("a/b/matches0", data=np.array([0, 1]))
    with h5py.File("m.h5", "w") as file:
        REFERENCES[kind](h5py, file.create_group("a/b"))
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    refused(Path("m.h5"), "which is not followed" if "link" in kind or "score" in kind else "which are not opened")
    answer = Matchings.from_pairs({}, [2, 2], names=["a", "b"])
    with pytest.raises(FormatError, match="which"):
        io.write(answer, "out.h5", like="m.h5")
    with h5py.File("f.h5", "w") as file:
        REFERENCES[kind](h5py, file.create_group("a"))
    with h5py.File("sound.h5", "w") as file:
        file.create_dataset("a/b/matches0", data=np.array([0, 1]))
    with pytest.raises(FormatError, match=r"f\.h5: .* which"):
        io.read("sound.h5", features="f.h5")
    assert {name: Path(name).read_bytes() for name in before} == before
    assert not Path("out.h5").exists()


def test_unsigned_matches(tmp_path, h5py):
    """An unsigned type has its largest number where -1 is meant."""
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.create_dataset("a/b/matches0", data=np.array([2, 65_535, 0], dtype=np.uint16))
        file.create_dataset("b/c/matches0", data=np.array([0, 2**64 - 1, 1], dtype=np.uint64))
    read = io.read(tmp_path / "m.h5")
    assert read.pair(0, 1).tolist() == [[0, 2], [2, 0]]
    io.write(read.keep([False, True, True, True]), tmp_path / "out.h5", like=tmp_path / "m.h5")
    assert io.read(tmp_path / "out.h5") == read.keep([False, True, True, True])
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["a/b/matches0"].dtype == np.uint16


def test_datasets_larger_than_their_file(tmp_path, h5py):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.create_dataset("a/b/matches0", shape=(10**13,), dtype="i2", chunks=(1024,))
    # For each of its chunks of 2 kB the library takes 4 kB of memory.
    refused(tmp_path / "m.h5", "its datasets would take 40,000,000,000,000 bytes, which a file of")
    with h5py.File(tmp_path / "many.h5", "w") as file:
        for n in range(40):
            file.create_dataset(f"a/{n}/matches0", shape=(10**6,), dtype="i4", chunks=(1024,))
    refused(tmp_path / "many.h5", "its datasets would take")


def test_groups_within_groups(tmp_path, h5py):
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file.create_group("/".join("g" * 3000))
    refused(tmp_path / "deep.h5", "lie too deep, or within themselves")
    with h5py.File(tmp_path / "ring.h5", "w") as file:
        file["a/b/c"] = file.create_group("a")
    refused(tmp_path / "ring.h5", "lie too deep, or within themselves")


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("matches0", "f4", "matches0 of 'a/b' does not hold numbers of the kind expected"),
        ("matches0", "S3", "does not hold numbers"),
        ("matches0", "O", "does not hold numbers"),
        ("matching_scores0", "c8", "matching_scores0 of 'a/b' does not hold numbers"),
        ("matching_scores0", "S3", "does not hold numbers"),
        ("keypoints", "c8", "matches by hloc"),
    ],
)
def test_hloc_datasets_of_the_wrong_kind(tmp_path, h5py, name, dtype, message):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        kind = h5py.string_dtype() if dtype == "O" else dtype
        file.create_dataset(f"a/b/{name}", data=np.zeros(2).astype("S3" if dtype == "O" else dtype), dtype=kind)
        if name == "matching_scores0":
            file.create_dataset("a/b/matches0", data=np.array([0, -1]))
    refused(tmp_path / "m.h5", message)


def test_an_option_that_is_no_file(tmp_path, h5py):
    io.write(PROBLEM, tmp_path / "m.h5")
    with pytest.raises(InputError, match="option features of format 'hloc' must be the name of a file, got 5"):
        io.read(tmp_path / "m.h5", features=5)


# ---------------------------------------------------------------- pickles


def opensfm(folder: Path, content: object) -> Path:
    path = folder / "a.jpg_matches.pkl.gz"
    path.write_bytes(gzip.compress(content if isinstance(content, bytes) else pickle.dumps(content)))
    return path


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("dtype", ["i4", "u2", ">i8", "i1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_every_pickle_are_read(tmp_path, protocol, dtype, order):
    block = np.array([[0, 1], [1, 0]], dtype=dtype, order=order)
    path = opensfm(tmp_path, pickle.dumps({"b.jpg": block, "c.jpg": [[0, 1], (1, 0)], "d.jpg": []}, protocol=protocol))
    read = io.read(path, allow_pickle=True)
    assert read.pair(0, 1).tolist() == [[0, 1], [1, 0]]
    assert read.names == ("a.jpg", "b.jpg", "c.jpg")


def crash() -> bytes:
    """111 bytes: an array of objects whose addresses are b'AAAAAAAA', though its type says that it holds none."""
    return (
        b"\x80\x02}X\x01\x00\x00\x00bcnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00O8K\x00K\x01\x87R"
        b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbU\x08AAAAAAAA\x86Rs."
    )


class Call:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (crash(), "numpy.core.multiarray.scalar is not allowed"),
        ({"b": Call(np.dtype, "O8")}, "given as _Type"),
        ({"b": np.array([[None, 1]], dtype=object)}, "an array"),
        ({"b": np.array([[0.5, 1.0]])}, "an array does not hold whole numbers"),
        ({"b": np.array([["a", "b"]])}, "an array does not hold whole numbers"),
        ({"b": np.zeros((1, 2), dtype=[("x", "O")])}, "holds no matches"),
        ({"b": Call(eval, "1")}, "eval is not allowed"),
        ({"b": Call(np.ndarray, (2, 2))}, "holds no matches"),
        ({"b": [[0, 1.5]]}, "rows of two whole numbers"),
        ({"b": [[0, 1, 2]]}, "rows of two whole numbers"),
        ({"b": [[0, 2**70]]}, "holds no matches"),
        ({"b": "text"}, "given as str"),
        ([1, 2], "holds no matches"),
        (b"\x80\x04r\xff\xff\xff\x7f.", "numbers more objects than it can hold"),
        (b"\x80\x04\x8d" + struct.pack("<Q", 2**60), "holds no matches"),
        (b"P1\n.", "holds no matches"),
        (b"", "holds no matches"),
    ],
)
def test_pickles_that_would_do_harm(tmp_path, content, message):
    refused(opensfm(tmp_path, content), message, allow_pickle=True)


def test_a_bomb_in_a_pickle(tmp_path):
    refused(opensfm(tmp_path, bytes(80_000_000)), "it unpacks to more than 67,108,864 bytes", allow_pickle=True)


# ---------------------------------------------------------------- COLMAP


@pytest.fixture
def database(tmp_path):
    build(tmp_path / "a.db", PROBLEM, PROBLEM)
    return tmp_path / "a.db"


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE keypoints SET data = 5", "the keypoints of 'a' are int where bytes are expected"),
        ("UPDATE keypoints SET data = 0.5", "are float where bytes are expected"),
        ("UPDATE keypoints SET data = 'text'", "are str where bytes are expected"),
        ("UPDATE keypoints SET data = NULL", "take 0 bytes where 2 rows need"),
        ("UPDATE two_view_geometries SET data = 7", "the two_view_geometries of 'a' and 'b' are int where"),
        ("UPDATE keypoints SET rows = 1.5", "have 1.5 rows"),
        ("UPDATE keypoints SET rows = 9223372036854775807", "the database is damaged"),
        ("UPDATE images SET name = x'00ff' WHERE name = 'a'", "named b'\\x00\\xff'; it needs a number and a text"),
        ("PRAGMA ignore_check_constraints = ON; UPDATE images SET image_id = -7 WHERE name = 'a'", "has the image -7"),
        (
            "PRAGMA ignore_check_constraints = ON; UPDATE images SET image_id = 9e15 WHERE name = 'a'",
            "has the image 9000",
        ),
        ("UPDATE two_view_geometries SET pair_id = -3", "has pair -3"),
    ],
)
def test_values_of_the_wrong_kind_in_a_database(database, statement, message):
    change(database, *statement.split("; "))
    refused(database, message)


def test_tables_that_compute_their_values(database):
    change(
        database,
        "DROP TABLE images",
        "CREATE TABLE images (image_id INTEGER, camera_id INTEGER, name TEXT AS (hex(zeroblob(100000000))))",
        "INSERT INTO images (image_id, camera_id) VALUES (1, 1)",
    )
    refused(database, "the table 'images' computes its values instead of holding them")


@pytest.mark.parametrize(
    "trigger",
    [
        "CREATE TRIGGER t AFTER UPDATE ON two_view_geometries BEGIN DELETE FROM images; END",
        "CREATE TRIGGER t AFTER DELETE ON Matches BEGIN DELETE FROM images; END",
        "CREATE TRIGGER t BEFORE INSERT ON matches WHEN (WITH RECURSIVE c(x) AS "
        "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c) BEGIN SELECT 1; END",
    ],
)
def test_triggers_do_not_run(tmp_path, database, trigger):
    change(database, trigger)
    assert io.read(database).n_matches == 2  # reading runs none
    with pytest.raises(FormatError, match="has the trigger 't', which would run as the copy is written"):
        io.write(PROBLEM.keep([True, False]), tmp_path / "out.db", like=database)
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_no_statement_of_the_schema_is_trusted(database, monkeypatch):
    """Where SQLite has switches against hostile schemas they are on, for reading and for writing."""
    seen = []
    real = colmap._check_tables

    def look(connection, path):
        seen.append(connection.execute("PRAGMA trusted_schema").fetchone()[0])
        seen.append(connection.execute("PRAGMA cell_size_check").fetchone()[0])
        real(connection, path)

    monkeypatch.setattr(colmap, "_check_tables", look)
    io.read(database)
    assert seen == [0, 1]


def test_a_match_of_an_image_that_is_not_there(database):
    change(database, f"UPDATE two_view_geometries SET pair_id = {pair_id(1, 2**31 - 2)}")
    refused(database, "no image")


# ---------------------------------------------------------------- anything else


def test_names_that_are_no_text_when_written(tmp_path):
    """File names of other encodings have lone surrogates in Python."""
    odd = Matchings.from_labels([0, 0], [1, 1], names=["a", "b\udce9"], coordinates=np.zeros((2, 2)))
    for ending, format in (("csv", "csv"), ("csv", "tracks"), ("csv", "opensfm"), ("h5", "hloc"), ("mat", "mat")):
        with pytest.raises(InputError, match=r"b\\udce9.* is not text that format"):
            io.write(odd, tmp_path / f"a.{ending}", format)
    io.write(odd, tmp_path / "a.npz")
    assert io.read(tmp_path / "a.npz") == odd
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_whatever_a_reader_meets_has_a_type(tmp_path, monkeypatch):
    path = npz(tmp_path)
    for error in (MemoryError(), OverflowError("too large"), struct.error("too short"), RecursionError(), IndexError()):
        with monkeypatch.context() as patched:

            def fail(*_: object, error: BaseException = error) -> None:
                raise error

            patched.setattr("stiefelsync.io.npz.load", fail)
            caught = refused(path, str(path))
        assert caught.__cause__ is error


@pytest.mark.parametrize("bad", [None, 5, ["a.npz"], "a\0b", b"a.npz"])
def test_names_of_files_that_are_none(tmp_path, bad):
    for call in (io.read, io.detect, lambda path: io.write(PROBLEM, path), lambda path: io.convert(path, "b.csv")):
        with pytest.raises(InputError, match="the name of a file is expected, got"):
            call(bad)


@pytest.mark.parametrize("bad", [["csv"], 5, "", "CSV"])
def test_names_of_formats_that_are_none(tmp_path, bad):
    with pytest.raises(InputError, match="unknown format"):
        io.read(npz(tmp_path), bad)


def test_pipes_and_devices_are_not_read(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(InputError, match="is neither a file nor a folder"):
            io.read(path)


def test_positions_too_large_for_their_type(tmp_path):
    """Found by fuzzing: they became infinite, with a warning."""
    (tmp_path / "a.csv").write_text("image_a,image_b,x_a,y_a,x_b,y_b\na,b,1e300,0,0,0\n")
    refused(tmp_path / "a.csv", "the coordinate 1e+300 is too large")
    (tmp_path / "t.csv").write_text("track,object,point,x,y\n0,a,0,-1e300,0\n0,b,0,0,0\n")
    refused(tmp_path / "t.csv", "the coordinate -1e+300 is too large")
