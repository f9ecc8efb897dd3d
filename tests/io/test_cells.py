"""Sessions of five programs are read as they are, and tables go back to them."""

from __future__ import annotations

import csv
import json
import pickle

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from stiefelsync import datasets
from stiefelsync.errors import FormatError, InputError
from stiefelsync.following import follow
from stiefelsync.io.cells import is_session, read_matrix, read_sessions, read_unitmatch, write_table
from stiefelsync.io.cells.objects import read_npy
from stiefelsync.registration import Trust, table_of


@pytest.fixture
def mouse(tmp_path):
    """Three days as suite2p writes them, and what was drawn."""
    days, truth = datasets.sessions(3, 40, difficulty="easy", shape=(160, 160), folder=tmp_path / "mouse", rng=6)
    return tmp_path / "mouse", days, truth


def table_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def same(a, b):
    return a.shape == b.shape and abs(a.footprints - b.footprints).max() < 1e-6 and (a.numbers == b.numbers).all()


def test_suite2p_is_named_in_four_ways(mouse):
    folder, days, _ = mouse
    for below in ("", "suite2p", "suite2p/plane0", "suite2p/plane0/stat.npy"):
        (found,) = read_sessions([folder / "day01" / below])[0]
        assert found.name == "day01"
        assert same(found, days[0])
        assert found.image.shape == (160, 160)


def test_what_counts_as_a_cell_is_chosen(mouse):
    folder, days, _ = mouse
    ((whole,),) = read_sessions([folder / "day01"], iscell=False)
    ((sure,),) = read_sessions([folder / "day01"], iscell=0.8)
    table = np.load(folder / "day01/suite2p/plane0/iscell.npy")
    assert whole.numbers.tolist() == list(range(days[0].total))
    assert sure.numbers.tolist() == np.flatnonzero(table[:, 1] > 0.8).tolist()
    with pytest.raises(InputError, match="probability"):
        read_sessions([folder / "day01"], iscell=3)


def test_planes_are_followed_apart(mouse, tmp_path):
    folder, _, _ = mouse
    for day in ("day01", "day02", "day03"):
        (folder / day / "suite2p" / "plane0").rename(folder / day / "suite2p" / "plane1")
    datasets.sessions(3, 30, difficulty="easy", shape=(160, 160), folder=tmp_path / "other", rng=7)
    for day in ("day01", "day02", "day03"):
        (tmp_path / "other" / day / "suite2p/plane0").rename(folder / day / "suite2p/plane0")
    done = follow(sorted(folder.iterdir()), tmp_path / "cells.csv")
    rows = table_rows(tmp_path / "cells.csv")
    assert list(rows[0]) == ["cell", "confidence", "plane", "day01", "day02", "day03"]
    assert {row["plane"] for row in rows} == {"0", "1"}
    assert len(done.parts) == 2
    only = follow(sorted(folder.iterdir()), plane=1)
    assert len(only.parts) == 1
    with pytest.raises(InputError, match="no plane 7"):
        follow(sorted(folder.iterdir()), plane=7)
    with pytest.raises(InputError, match="one plane"):
        follow(sorted(folder.iterdir()), tmp_path / "a.npy")


def test_a_converters_folder_without_weights_and_sizes_is_read(tmp_path):
    plane = tmp_path / "day" / "suite2p" / "plane0"
    plane.mkdir(parents=True)
    stat = np.array([{"ypix": np.array([1, 2], dtype=np.int32), "xpix": np.array([3, 4], dtype=np.int32)}, None])[:1]
    np.save(plane / "stat.npy", stat, allow_pickle=True)
    np.save(plane / "iscell.npy", np.array([[1, 1]]))
    ((day,),) = read_sessions([tmp_path / "day"])
    assert day.shape == (3, 5)
    assert day.centroids.tolist() == [[3.5, 1.5]]


def test_a_session_without_cells_is_read(tmp_path):
    plane = tmp_path / "plane0"
    plane.mkdir()
    np.save(plane / "stat.npy", np.empty(0, dtype=object), allow_pickle=True)
    np.save(plane / "iscell.npy", np.empty((0, 2)))
    ((day,),) = read_sessions([plane])
    assert len(day) == 0


class Evil:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def test_nothing_that_a_file_brings_along_is_run(mouse, tmp_path):
    folder, _, _ = mouse
    path, trap = folder / "day01/suite2p/plane0/stat.npy", tmp_path / "trap"
    stat = np.load(path, allow_pickle=True)
    stat[0]["evil"] = Evil(trap)
    np.save(path, stat, allow_pickle=True)
    ((day,),) = read_sessions([folder / "day01"])  # the stranger is a stand-in, and nobody looks at it
    assert len(day) > 0
    assert not trap.exists()
    stat[0]["ypix"] = Evil(trap)
    np.save(path, stat, allow_pickle=True)
    with pytest.raises(FormatError, match="Stranger where an array is expected"):
        read_sessions([folder / "day01"], iscell=False)
    assert not trap.exists()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_of_every_protocol_are_equal_to_numpys(tmp_path, protocol):
    inside = {"a": np.arange(6, dtype=">i4").reshape(2, 3), "b": np.float32(2.5), "c": np.array([True]), "d": [1, "x"]}
    array = np.array([inside, {"e": np.array(["aé", "b"])}], dtype=object)
    path = tmp_path / "o.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": (2,)})
        pickle.dump(array, file, protocol=protocol)
    from stiefelsync.io.cells.objects import as_array

    found = read_npy(path)
    np.testing.assert_array_equal(as_array(found[0]["a"], path), inside["a"])
    assert found[0]["b"] == 2.5
    np.testing.assert_array_equal(as_array(found[0]["c"], path), inside["c"])
    assert found[0]["d"] == [1, "x"]
    assert as_array(found[1]["e"], path).tolist() == ["aé", "b"]


@pytest.mark.parametrize("head", [b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", b"\x93NUMPY\x12\x34\xa0\x1b\xf1\xf2"])
def test_heads_that_claim_gigabytes_are_refused(tmp_path, head):
    (tmp_path / "a.npy").write_bytes(head + b"{'descr'")
    with pytest.raises(FormatError, match="not an NPY file"):
        read_npy(tmp_path / "a.npy")


def test_numbers_beyond_single_precision_are_refused(tmp_path):
    for ending in ("npy", "mat"):
        masks = footprints()
        masks[0, masks[0] > 0] = 1e300
        path = tmp_path / f"a.{ending}"
        if ending == "npy":
            np.save(path, masks)
        else:
            scipy_io.savemat(path, {"a": masks})
        with pytest.raises(InputError, match="numbers"):
            read_sessions([path])


def test_an_image_larger_than_its_file_is_refused(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((90, 90), dtype=np.uint8)).save(tmp_path / "a.tif", compression="tiff_deflate")
    monkeypatch.setattr("stiefelsync.io.cells.masks.MOST_PIXELS", 8000)
    monkeypatch.setattr("stiefelsync.io.cells.masks.EXPANSION", 1)
    with pytest.raises(FormatError, match="8,100 pixels"):
        read_sessions([tmp_path / "a.tif"])


def footprints(n=5, height=20, width=24, seed=0):
    rng = np.random.default_rng(seed)
    masks = np.zeros((n, height, width))
    for cell in range(n):
        y, x = rng.integers(2, height - 5), rng.integers(2, width - 5)
        masks[cell, y : y + 3, x : x + 4] = rng.random((3, 4)) + 0.1
    return masks


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "u1"])
def test_cellregs_arrays_are_read(tmp_path, compressed, dtype):
    masks = (footprints() * 9).astype(dtype)
    path = tmp_path / "a.mat"
    scipy_io.savemat(path, {"allFiltersMat": masks, "other": [1]}, do_compression=compressed)
    ((found,),) = read_sessions([path])
    np.testing.assert_allclose(found.footprints.toarray().reshape(masks.shape), masks, rtol=1e-6)
    assert found.numbers.tolist() == [1, 2, 3, 4, 5]
    assert found.base == 1


def test_cellregs_cells_of_sparse_matrices_are_read(tmp_path):
    masks = footprints()
    cells = np.empty((1, 5), dtype=object)
    for at, mask in enumerate(masks):
        cells[0, at] = sparse.csc_matrix(mask)
    path = tmp_path / "a.mat"
    scipy_io.savemat(path, {"f": cells})
    ((found,),) = read_sessions([path])
    np.testing.assert_allclose(found.footprints.toarray().reshape(masks.shape), masks, rtol=1e-6)


def newer(path, build):
    """Write an HDF5 file as MATLAB 7.3 does: behind a head of 512 bytes."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        build(h5py, file)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def test_files_of_matlab_7_3_are_read(tmp_path):
    masks, path = footprints(), tmp_path / "a.mat"
    newer(path, lambda _, file: file.create_dataset("allFiltersMat", data=masks.transpose(2, 1, 0), compression="gzip"))
    ((found,),) = read_sessions([path])
    np.testing.assert_allclose(found.footprints.toarray().reshape(masks.shape), masks, rtol=1e-6)


def test_sparse_cells_of_matlab_7_3_are_read(tmp_path):
    masks, path = footprints(), tmp_path / "a.mat"

    def build(h5py, file):
        cells = file.create_dataset("f", (5, 1), dtype=h5py.ref_dtype)
        for at, mask in enumerate(masks):
            matrix = sparse.csc_matrix(mask)
            group = file.create_group(f"#refs#/{chr(97 + at)}")
            group["data"], group["ir"] = matrix.data, matrix.indices.astype("u8")
            group["jc"] = matrix.indptr.astype("u8")
            group.attrs["MATLAB_sparse"] = np.uint64(mask.shape[0])
            cells[at, 0] = group.ref

    newer(path, build)
    ((found,),) = read_sessions([path])
    np.testing.assert_allclose(found.footprints.toarray().reshape(masks.shape), masks, rtol=1e-6)


def caiman(path, masks, accepted=None, **more):
    h5py = pytest.importorskip("h5py")
    n, height, width = masks.shape
    A = sparse.csc_matrix(masks.reshape(n, height, width).transpose(2, 1, 0).reshape(-1, n))
    with h5py.File(path, "w") as file:
        for name in ("data", "indices", "indptr"):
            file[f"estimates/A/{name}"] = getattr(A, name)
        file["estimates/A/shape"] = np.array(A.shape)
        file["dims"] = np.array([height, width])
        file["estimates/dims"] = b"NoneType"
        file["estimates/idx_components"] = b"NoneType" if accepted is None else np.array(accepted)
        for name, value in more.items():
            file[f"estimates/{name}"] = value


@pytest.mark.parametrize("accepted", [None, [0, 3, 4]])
def test_caimans_results_are_read(tmp_path, accepted):
    masks = footprints()
    caiman(tmp_path / "a.hdf5", masks, accepted)
    ((found,),) = read_sessions([tmp_path / "a.hdf5"])
    kept = list(range(5)) if accepted is None else accepted
    np.testing.assert_allclose(found.footprints.toarray().reshape(-1, 20, 24), masks[kept], rtol=1e-6)
    assert found.numbers.tolist() == kept
    assert found.total == 5


@pytest.mark.parametrize("ending", [".npy", ".npz", ".tif"])
def test_label_images_are_read(tmp_path, ending):
    labels = np.zeros((30, 40), dtype=np.int32)
    labels[3:8, 4:9], labels[20:25, 10:15] = 7, 2
    path = tmp_path / f"a{ending}"
    if ending == ".npy":
        np.save(path, labels)
    elif ending == ".npz":
        np.savez(path, labels=labels)
    else:
        image = pytest.importorskip("PIL.Image")
        image.fromarray(labels.astype(np.uint16)).save(path)
    ((found,),) = read_sessions([path])
    assert found.numbers.tolist() == [2, 7]
    assert found.centroids.tolist() == [[12, 22], [6, 5]]


def test_files_of_no_session_are_told(tmp_path, mouse):
    folder, _, _ = mouse
    (tmp_path / "a.csv").write_text("hello")
    assert not is_session(tmp_path / "a.csv")
    for paths, message in [
        ([tmp_path / "a.csv", folder / "day01"], "none of these: suite2p folders"),
        ([tmp_path / "absent"], "does not exist"),
        ([folder / "day01", folder / "day01/suite2p"], "named twice"),
        ([folder], "several sessions"),
    ]:
        with pytest.raises(InputError, match=message):
            read_sessions(paths)


def unitmatch(folder, p, recording, ids, pickled=False):
    folder.mkdir()
    np.save(folder / "MatchProb.npy", p)
    if pickled:
        about = {"session_id": recording, "original_ids": ids[:, None], "good_units": [ids]}
        (folder / "ClusInfo.pickle").write_bytes(pickle.dumps(about))
        return
    n = len(p)
    with (folder / "MatchTable.csv").open("w") as file:
        file.write("ID1,ID2,RecSes 1,RecSes 2,UM Probabilities\n")
        for i in range(n):
            for j in range(n):
                file.write(f"{ids[j]}.0,{ids[i]}.0,{recording[j] + 1}.0,{recording[i] + 1}.0,{p[i, j]}\n")


@pytest.mark.parametrize("pickled", [False, True])
def test_folders_of_unitmatch_are_read_and_written(tmp_path, pickled):
    p, recording, _ = datasets.units(3, 10, rng=1)
    ids = np.arange(30) * 3 % 41
    unitmatch(tmp_path / "um", p, recording, ids, pickled)
    found = read_unitmatch(tmp_path / "um")
    assert [of.tolist() for of in found.numbers] == [ids[:10].tolist(), ids[10:20].tolist(), ids[20:].tolist()]
    follow([tmp_path / "um"], tmp_path / "units.csv")
    rows = table_rows(tmp_path / "units.csv")
    assert len(rows) == 30
    assert list(rows[0]) == ["session", "unit", "UID", "confidence"]
    assert {(row["session"], row["unit"]) for row in rows} == {
        (f"session {r + 1}", str(i)) for r, i in zip(recording, ids, strict=True)
    }


def test_matrices_need_a_vector_of_sessions(tmp_path):
    p, recording, _ = datasets.units(3, 10, rng=1)
    np.save(tmp_path / "p.npy", p)
    np.save(tmp_path / "days.npy", recording)
    (tmp_path / "days.txt").write_text("\n".join(f"d{r}" for r in recording))
    with pytest.raises(FormatError, match="sessions="):
        read_matrix(tmp_path / "p.npy")
    a, b = (follow([tmp_path / "p.npy"], sessions=tmp_path / name).table for name in ("days.npy", "days.txt"))
    assert b.names == ("d0", "d1", "d2")
    assert (a.index == b.index).all()
    np.savez(tmp_path / "p.npz", scores=p, session=recording)
    assert (follow([tmp_path / "p.npz"]).table.index == a.index).all()


def test_matrices_and_sessions_are_read_as_people_write_them(tmp_path):
    from typer.testing import CliRunner

    from stiefelsync.cli.app import app

    p, recording, _ = datasets.units(3, 10, rng=1)
    np.save(tmp_path / "p.npy", p)
    np.savetxt(tmp_path / "p.csv", p, delimiter=",")
    np.savetxt(tmp_path / "days.txt", recording)  # 0.000000000000000000e+00
    (tmp_path / "header.csv").write_text("day\n" + "\n".join(map(str, recording)))
    np.save(tmp_path / "days.npy", recording.astype(float))
    whole = follow([tmp_path / "p.npy"], sessions=tmp_path / "days.npy").table
    assert whole.names == ("0", "1", "2")
    for days in ("days.txt", "header.csv"):
        for matrix in ("p.npy", "p.csv"):
            found = follow([tmp_path / matrix], sessions=tmp_path / days).table
            assert found.names == whole.names
            assert (found.index == whole.index).all()
    output, days = tmp_path / "units.csv", f"sessions={tmp_path / 'days.txt'}"
    ran = CliRunner().invoke(app, ["sync", str(tmp_path / "p.csv"), "-o", str(output), "--option", days])
    assert ran.exit_code == 0
    assert len(table_rows(output)) == 30


def test_sessions_with_names_come_in_the_order_in_which_they_are_named(tmp_path):
    p, recording, _ = datasets.units(3, 10, rng=1)
    (tmp_path / "days.txt").write_text("\n".join(("day 9", "day 10", "day 11")[r] for r in recording))
    np.save(tmp_path / "p.npy", p)
    assert follow([tmp_path / "p.npy"], sessions=tmp_path / "days.txt").table.names == ("day 9", "day 10", "day 11")


def test_what_is_wrong_with_a_matrix_is_said(tmp_path):
    p, recording, _ = datasets.units(2, 5, rng=1)
    (tmp_path / "days.txt").write_text("\n".join(map(str, recording)))
    with_nan = p.copy()
    with_nan[0, 7] = np.nan
    for wrong, message in [
        (with_nan, "some scores are NaN; write 0"), (2 * p - 1, "scores from -.* to 1 are no probabilities"),
        (np.zeros((4, 6, 2)), "tracks of points are an NPZ file"), (p[:-1], "not a square matrix"),
    ]:  # fmt: skip
        np.save(tmp_path / "p.npy", wrong)
        with pytest.raises(InputError, match=message):
            follow([tmp_path / "p.npy"], sessions=tmp_path / "days.txt")
    for content, message in [("a,b\n0,1\n", "line 1: .* without names"), ("0,1\n", "not a square matrix")]:
        (tmp_path / "p.csv").write_text(content)
        with pytest.raises(FormatError, match=message):
            follow([tmp_path / "p.csv"], sessions=tmp_path / "days.txt")


@pytest.fixture
def small():
    """Two cells over two sessions of suite2p: rows 5 and 3, 8 and none."""
    trust = Trust(np.array([0.9, np.nan, 0.7]), np.array([0.8, np.nan]))
    numbers = [np.array([5, 8]), np.array([3])]
    return table_of(np.array([0, 1, 0]), ["mon", "tue"], numbers, trust, totals=np.array([9, 4]))


def test_tables_go_back_to_their_programs(tmp_path, small):
    write_table(small, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "cell,confidence,mon,tue\n0,0.8000,5,3\n1,,8,\n"
    write_table(small, tmp_path / "b.csv", "places")
    assert (tmp_path / "b.csv").read_text().splitlines()[1:] == ["0,mon,5,0.9000", "0,tue,3,0.7000", "1,mon,8,"]
    write_table(small, tmp_path / "c.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), [[5, 3], [8, np.nan]])
    write_table(small, tmp_path / "d.mat")
    struct = scipy_io.loadmat(tmp_path / "d.mat")["cell_registered_struct"][0, 0]
    assert struct["cell_to_index_map"].tolist() == [[6, 4], [9, 0]]
    write_table(small, tmp_path / "e.csv", "track2p")
    assert (tmp_path / "e.csv").read_text() == "mon;tue\n5;3\n8;NaN\n"
    write_table(small, tmp_path / "f.json")
    told = json.loads((tmp_path / "f.json").read_text())
    assert told["labels_bySession"] == [[-1, -1, -1, -1, -1, 0, -1, -1, -1], [-1, -1, -1, 0]]
    assert told["labels"] == [label for of in told["labels_bySession"] for label in of]
    assert told["labels_dict"]["0"] == [5, 12]


def test_pandas_opens_every_table_without_options(tmp_path, small):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for name, format in (("a", None), ("b", "places"), ("c", "units")):
        for ending in ("csv", "parquet"):
            write_table(small, tmp_path / f"{name}.{ending}", format)
    cells, places, units = (pandas.read_csv(tmp_path / f"{name}.csv") for name in "abc")
    assert cells.convert_dtypes()["tue"].tolist() == [3, pandas.NA]
    assert places.pivot(index="cell", columns="session", values="roi")["mon"].tolist() == [5, 8]
    assert units.groupby("UID")["session"].nunique().tolist() == [2, 1]
    for name, text in zip("abc", (cells, places, units), strict=True):
        assert (pandas.read_parquet(tmp_path / f"{name}.parquet").fillna(-1) == text.fillna(-1)).all(axis=None)


def test_a_parquet_table_has_whole_numbers(tmp_path, small):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(small, tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["cell", "confidence", "mon", "tue"]
    assert table.column("tue").to_pylist() == [3, None]
    assert str(table.schema.field("tue").type) == "int64"


def test_tables_say_what_made_them(mouse, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    folder, _, _ = mouse
    days = sorted(folder.iterdir())
    for ending in ("parquet", "mat", "json"):
        follow(days, tmp_path / f"a.{ending}", threshold=0.25)
    told = json.loads((tmp_path / "a.json").read_text())["made_by"]
    assert json.loads(parquet.read_schema(tmp_path / "a.parquet").metadata[b"stiefelsync"]) == told
    assert json.loads(scipy_io.loadmat(tmp_path / "a.mat")["made_by"].item()) == told
    assert told["program"] == "stiefelsync"
    assert told["options"] == {"iscell": True, "threshold": 0.25}
    assert [day["name"] for day in told["inputs"]] == ["day01", "day02", "day03"]
    before = told["inputs"][1]["sha256"]
    table = np.load(days[1] / "suite2p/plane0/iscell.npy")
    table[0, 0] = 1 - table[0, 0]
    np.save(days[1] / "suite2p/plane0/iscell.npy", table)
    follow(days, tmp_path / "b.json", threshold=0.25)
    after = json.loads((tmp_path / "b.json").read_text())["made_by"]["inputs"]
    assert after[1]["sha256"] != before
    assert after[0] == told["inputs"][0]


def test_sessions_that_are_called_like_columns_keep_apart(mouse, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    folder, days, _ = mouse
    (folder / "day01").rename(folder / "cell")
    (folder / "day02").rename(folder / "Plane; 2, 'é'")
    inputs = [folder / "cell", folder / "Plane; 2, 'é'", folder / "day03"]
    for name, to in (("a.csv", None), ("a.parquet", None), ("t.csv", "track2p")):
        follow(inputs, tmp_path / name, to=to)
    names = ["mouse/cell", "mouse/Plane; 2, 'é'", "mouse/day03"]
    text, flat = pandas.read_csv(tmp_path / "a.csv"), pandas.read_parquet(tmp_path / "a.parquet")
    assert list(text) == list(flat) == ["cell", "confidence", *names]
    for name, day in zip(names, days, strict=True):
        assert sorted(text[name].dropna()) == sorted(flat[name].dropna()) == day.numbers.tolist()
    assert list(pandas.read_csv(tmp_path / "t.csv", sep=";")) == names


def test_a_recording_that_is_called_like_a_column_is_refused(tmp_path):
    trust = Trust(np.array([0.9, 0.9]), np.array([0.9]))
    table = table_of(np.array([0, 0]), ["a", "Confidence"], [np.array([1]), np.array([2])], trust)
    with pytest.raises(InputError, match="session 'Confidence' is called like another column"):
        write_table(table, tmp_path / "a.csv", "cells")


def test_tables_never_replace_files_unasked(tmp_path, small):
    (tmp_path / "a.csv").write_text("precious")
    with pytest.raises(InputError, match="there already"):
        write_table(small, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "precious"
    with pytest.raises(InputError, match=r"ends in .npy, but tables of the format cells in .csv or .parquet"):
        write_table(small, tmp_path / "b.npy", "cells")
    with pytest.raises(InputError, match="unknown format of tables 'matlab'"):
        write_table(small, tmp_path / "b.csv", "matlab")


@pytest.mark.data
def test_the_real_files_lead_back_to_their_numbers(data_dir):
    ((day,),) = read_sessions([data_dir / "suite2p"])
    stat = np.load(data_dir / "suite2p/plane0/stat.npy", allow_pickle=True)
    assert day.total == len(stat) == 23
    for at, row in enumerate(day.numbers.tolist()):
        y, x = np.divmod(day.footprints[[at]].indices, day.shape[1])
        assert sorted(zip(y, x, strict=True)) == sorted(set(zip(stat[row]["ypix"], stat[row]["xpix"], strict=True)))


@pytest.mark.data
@pytest.mark.slow
def test_cellregs_five_sessions(data_dir, tmp_path):
    files = sorted((data_dir / "cells").glob("*.mat"))
    done = follow(files, tmp_path / "map.mat", max_distance=14 / 2.35)
    told = done.parts[0].judgement
    assert 770 <= told.cells <= 800  # CellReg finds 787
    assert told.active == pytest.approx(0.71, abs=0.015)
    assert told.exclusivity > 0.985
    table = scipy_io.loadmat(tmp_path / "map.mat")["cell_registered_struct"][0, 0]["cell_to_index_map"]
    assert table.max(axis=0).tolist() == [598, 552, 548, 594, 495]
