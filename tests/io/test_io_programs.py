"""Formats of other programs: MATLAB, hloc, OpenSfM, .dd; types in memory; the GTSfM adapter."""

from __future__ import annotations

import gzip
import pickle
import sys

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import io as scipy_io

from stiefelsync import FormatError, InputError, Matchings, MissingExtraError, StiefelSyncError, io
from stiefelsync.io import gtsfm, in_memory
from tests.io.colmap_schemas import build
from tests.io.problems import NAMES, labellings, problems

RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SMALL = Matchings.from_pairs(
    {(0, 1): [[0, 1], [1, 0]], (1, 2): [[0, 0]]}, [2, 2, 1], names=["a/1.jpg", "b.jpg", "c.jpg"]
)


# ---------------------------------------------------------------- MATLAB


@RELAXED
@given(problem=problems(name=st.text("abcxyz_.0123 é", min_size=1, max_size=6).map(str.strip).filter(bool)))
def test_mat_round_trip(tmp_path, problem):
    io.write(problem, tmp_path / "a.mat", force=True)
    assert io.detect(tmp_path / "a.mat").name == "mat"
    assert io.read(tmp_path / "a.mat") == problem


def test_mat_indices_past_16_bits(tmp_path):
    problem = Matchings.from_pairs({(0, 1): [[70_000, 65_536], [65_535, 70_001]]}, [70_001, 70_002])
    io.write(problem, tmp_path / "a.mat", force=True)
    assert io.read(tmp_path / "a.mat") == problem


def test_mat_as_the_authors_write_it(tmp_path):
    labels = np.array([0, 1, 1, 0, 0, 1])
    problem = Matchings.from_labels(labels, [2, 2, 2])
    scipy_io.savemat(tmp_path / "a.mat", {"Wnoise": problem.to_matrix().toarray().astype(np.uint8), "m": 2, "k": 3})
    assert io.read(tmp_path / "a.mat") == problem
    scipy_io.savemat(tmp_path / "b.mat", {"W": problem.to_matrix().toarray(), "dimVector": [2.0, 2.0, 2.0]})
    assert io.read(tmp_path / "b.mat") == problem


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": 1}, "holds no matrix 'W' or 'Wnoise'"),
        ({"W": np.eye(2)}, "it needs dimVector, or m and k"),
        ({"W": np.eye(2), "dimVector": [1.5, 0.5]}, "must be whole numbers"),
        ({"W": np.eye(2), "dimVector": [1, 2]}, "sizes add up to 3 points but the matrix has 2 rows"),
        ({"W": np.eye(2), "m": 1, "k": 0.5}, "k is 0.5"),
        ({"W": "text", "dimVector": [1]}, "W is not a matrix of real numbers"),
        ({"W": np.array([[1, 1], [0, 1]]), "dimVector": [1, 1]}, "must be symmetric"),
        ({"W": np.array([[1, 2], [2, 1]]), "dimVector": [1, 1]}, "must be binary"),
    ],
)
def test_bad_mat(tmp_path, variables, message):
    scipy_io.savemat(tmp_path / "a.mat", variables)
    with pytest.raises(FormatError, match=message):
        io.read(tmp_path / "a.mat")


def test_mat_cut_short_or_too_new(tmp_path):
    io.write(SMALL, tmp_path / "a.mat")
    data = (tmp_path / "a.mat").read_bytes()
    (tmp_path / "a.mat").write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(FormatError, match="not a complete MAT file"):
        io.read(tmp_path / "a.mat")
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8) + b"\x00\x02IM"
    (tmp_path / "a.mat").write_bytes(header.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(FormatError, match=r"version 7\.3; save it in MATLAB with"):
        io.read(tmp_path / "a.mat")


@pytest.mark.data
def test_house(data_dir):
    problem = io.read(data_dir / "house" / "house_sync_data.mat")
    assert (problem.n_objects, problem.n_points) == (111, 3330)
    assert problem.n_matches == 30 * 111 * 110 // 2


# ---------------------------------------------------------------- .dd


@RELAXED
@given(problem=problems(names=False, coordinates=False, min_objects=2))
def test_dd_round_trip(tmp_path, problem):
    io.write(problem, tmp_path / "a.dd", force=True)
    assert io.detect(tmp_path / "a.dd").name == "dd"
    again = io.read(tmp_path / "a.dd")
    assert again.with_weights(None) == problem.with_weights(None)
    assert np.array_equal(again.match_weights, problem.match_weights)


def test_dd_by_hand(tmp_path):
    text = (
        "c comment\ngm 0 1\np 2 3 4 1\na 0 0 0 -3\na 1 0 1 -2\na 2 1 0 -2\na 3 1 2 5\ne 0 1 -1.5\n\ngm 1 2\np 3 1 0 0\n"
    )
    (tmp_path / "a.dd").write_text(text)
    problem = io.read(tmp_path / "a.dd")
    assert problem.sizes.tolist() == [2, 3, 1]
    assert problem.pairs()[0, 1].tolist() == [[0, 1], [1, 0]]  # −2 −2 beats −3, and a cost of 5 is no match
    assert problem.weights.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gm 0 1\np 1 1 1 0\na 0 0 5 -1\n", "line 3: point 0 or 5 does not exist"),
        ("gm 0 1\np 1 1 2 0\na 0 0 0 -1\n", "line 3: pair (0, 1) announces 2 assignments and has 1"),
        ("gm 0 0\np 1 1 0 0\n", "line 1: a pair of two different objects"),
        ("gm 0 1\np 1 1 0 0\ngm 1 2\np 2 1 0 0\n", "line 4: object 1 has 2 points here and 1 before"),
        ("gm 0 1\na 0 0 0 -1\n", "line 2: an assignment before"),
        ("gm 0 1\np 1 1 0 0\nhello\n", "line 3: 'hello' is not understood"),
        ("gm 0 1\np 1 x 0 0\n", "line 2: 'x' is not a whole number"),
        ("gm 0 1\np 1 1 1 0\na 0 0 0 nan\n", "not a finite number"),
    ],
)
def test_bad_dd(tmp_path, text, message):
    (tmp_path / "a.dd").write_text(text)
    with pytest.raises(FormatError) as caught:
        io.read(tmp_path / "a.dd")
    assert message in str(caught.value)


def test_dd_needs_two_objects(tmp_path):
    with pytest.raises(InputError, match="at least two objects"):
        io.write(Matchings.from_pairs({}, [3]), tmp_path / "a.dd")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- hloc


def save_features(path, problem):
    with h5py.File(path, "w") as file:
        for i, name in enumerate(problem.names):
            points = np.zeros((problem.sizes[i], 2), dtype=np.float32)
            if problem.coordinates is not None:
                points = problem.coordinates[problem.offsets[i] : problem.offsets[i + 1]]
            file.create_group(name).create_dataset("keypoints", data=points)


def save_pair(path, name, matches, dtype=np.int16, scores=None):
    with h5py.File(path, "a") as file:
        group = file.create_group(name)
        group.create_dataset("matches0", data=np.array(matches, dtype=dtype))
        if scores is not None:
            group.create_dataset("matching_scores0", data=np.array(scores, dtype=np.float16))


@RELAXED
@given(problem=problems(name=NAMES.filter(lambda name: name != ".")))
def test_hloc_round_trip(tmp_path, problem):
    names = problem.names or [f"image{i}" for i in range(problem.n_objects)]
    coordinates = problem.coordinates if problem.coordinates is not None else np.zeros((problem.n_points, 2))
    named = Matchings.from_pairs(problem.pairs(), problem.sizes, names=names, coordinates=coordinates)
    named = named.with_weights(problem.weights)
    if not named.n_matches:
        return
    save_features(tmp_path / "features.h5", named)
    io.write(named, tmp_path / "matches.h5", force=True)
    again = io.read(tmp_path / "matches.h5", features=tmp_path / "features.h5")
    order = sorted(range(named.n_objects), key=lambda i: names[i])
    assert again == named[order]


@pytest.mark.parametrize("size", [32_768, 32_769, 70_000])
def test_hloc_indices_never_wrap(tmp_path, size):
    problem = Matchings.from_pairs(
        {(0, 1): [[0, size - 1]], (1, 2): [[size - 1, 0]]}, [1, size, 1], names=["a", "b", "c"]
    )
    io.write(problem, tmp_path / "matches.h5", force=True)
    with h5py.File(tmp_path / "matches.h5") as file:
        assert file["a/b/matches0"].dtype == (np.int16 if size <= 32_768 else np.int32)
    assert io.read(tmp_path / "matches.h5") == problem


def test_hloc_wrapped_indices_are_refused(tmp_path):
    save_pair(tmp_path / "m.h5", "a/b", [5, -1])
    save_pair(tmp_path / "m.h5", "b/c", np.full(40_000, -1), np.int32)
    with pytest.raises(FormatError, match="16-bit indices that have wrapped, as 'b' has more than 32,768 keypoints"):
        io.read(tmp_path / "m.h5")
    save_pair(tmp_path / "n.h5", "a/b", [5, -20_000])
    with pytest.raises(FormatError, match="have wrapped"):
        io.read(tmp_path / "n.h5")


def test_hloc_conventions(tmp_path):
    save_features(tmp_path / "f.h5", SMALL)
    save_pair(tmp_path / "new.h5", "a-1.jpg/b.jpg", [1, 0])
    save_pair(tmp_path / "new.h5", "c.jpg/b.jpg", [0])  # the other order
    save_pair(tmp_path / "old.h5", "a-1.jpg_b.jpg", [1, 0])
    save_pair(tmp_path / "old.h5", "b.jpg_c.jpg", [0, -1])
    save_pair(tmp_path / "raw.h5", "a/1.jpg/b.jpg", [1, 0])
    save_pair(tmp_path / "raw.h5", "b.jpg/c.jpg", [0, -1])
    for name in ("new", "old", "raw"):
        problem = io.read(tmp_path / f"{name}.h5", features=tmp_path / "f.h5")
        assert problem.names == SMALL.names
        assert {key: block.tolist() for key, block in problem.pairs().items()} == {
            (0, 1): [[0, 1], [1, 0]],
            (1, 2): [[0, 0]],
        }
    assert io.read(tmp_path / "old.h5").names == ("a-1.jpg", "b.jpg", "c.jpg")
    with pytest.raises(FormatError, match="cannot be split into two names for sure; pass features="):
        io.read(tmp_path / "raw.h5")


def test_hloc_scores(tmp_path):
    save_pair(tmp_path / "m.h5", "a/b", [1, 0, -1], scores=[0.5, 0, 0])
    assert io.read(tmp_path / "m.h5").weights.tolist() == [0.5, 1e-6]
    assert io.read(tmp_path / "m.h5", scores=False).weights is None


def test_hloc_copy_keeps_every_pair(tmp_path):
    save_pair(tmp_path / "m.h5", "b/a", [1, 0, -1], scores=[0.5, 0.25, 0])
    save_pair(tmp_path / "m.h5", "b/c", [0, -1, -1])
    problem = io.read(tmp_path / "m.h5")
    before = (tmp_path / "m.h5").read_bytes()
    answer = problem.keep(problem.indices[:, 0] == 1)  # a1 – b0 alone
    io.write(answer, tmp_path / "clean.h5", like=tmp_path / "m.h5")
    assert (tmp_path / "m.h5").read_bytes() == before
    with h5py.File(tmp_path / "clean.h5") as file:
        assert file["b/a/matches0"][:].tolist() == [1, -1, -1]
        assert file["b/a/matching_scores0"][:].tolist() == [0.5, 0, 0]
        assert file["b/c/matches0"][:].tolist() == [-1, -1, -1]
    more = Matchings.from_pairs({(0, 1): [[1, 0], [0, 2]], (0, 2): [[1, 0]]}, problem.sizes)
    io.write(more, tmp_path / "more.h5", like=tmp_path / "m.h5", add=True)
    with h5py.File(tmp_path / "more.h5") as file:
        assert file["b/a/matches0"][:].tolist() == [1, -1, 0]
        assert file["b/a/matching_scores0"][:].tolist() == [0.5, 0, 1]
        assert file["a/c/matches0"][:].tolist() == [-1, 0]
    with pytest.raises(InputError, match="not about the keypoints"):
        io.write(SMALL, tmp_path / "x.h5", like=tmp_path / "m.h5")
    assert not (tmp_path / "x.h5").exists()


def test_hloc_says_what_is_missed_without_features(tmp_path):
    problem = Matchings.from_labels([0, 1, 0, 1], [2, 2], names=["a", "b"], coordinates=np.arange(8.0).reshape(4, 2))
    io.write(problem, tmp_path / "m.h5")
    (said,) = io.FORMATS["hloc"].advice(tmp_path / "m.h5", {})
    assert said == "Without the file of features positions are unknown: no match is judged by its neighbours."
    assert io.FORMATS["hloc"].advice(tmp_path / "m.h5", {"features": tmp_path / "f.h5"}) == []


def test_bad_hloc(tmp_path):
    save_features(tmp_path / "f.h5", SMALL)
    with pytest.raises(FormatError, match="it holds features, name the file of matches"):
        io.read(tmp_path / "f.h5")
    save_pair(tmp_path / "m.h5", "a-1.jpg/b.jpg", [1, 7])
    with pytest.raises(FormatError, match=r"names keypoint 7 of 'b\.jpg', which has 2"):
        io.read(tmp_path / "m.h5", features=tmp_path / "f.h5")
    save_pair(tmp_path / "n.h5", "a-1.jpg/b.jpg", [1, 0, -1])
    with pytest.raises(FormatError, match=r"has 3 entries but 'a/1\.jpg' has 2 keypoints"):
        io.read(tmp_path / "n.h5", features=tmp_path / "f.h5")
    save_pair(tmp_path / "o.h5", "a-1.jpg/z.jpg", [1, 0])
    with pytest.raises(FormatError, match="is not of two images in the features file"):
        io.read(tmp_path / "o.h5", features=tmp_path / "f.h5")
    save_pair(tmp_path / "p.h5", "a/b", [1.5, 0], np.float32)
    with pytest.raises(FormatError, match="matches0 of 'a/b' does not hold numbers of the kind expected"):
        io.read(tmp_path / "p.h5")
    data = (tmp_path / "m.h5").read_bytes()
    (tmp_path / "q.h5").write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match="not a complete HDF5 file"):
        io.read(tmp_path / "q.h5")
    with pytest.raises(InputError, match=r"hloc writes both 'x/y' and 'x-y' as 'x-y'"):
        io.write(Matchings.from_labels([0, 0], [1, 1], names=["x/y", "x-y"]), tmp_path / "r.h5")


def test_hloc_without_h5py(tmp_path, monkeypatch):
    save_pair(tmp_path / "m.h5", "a/b", [1, 0])
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r'pip install "stiefelsync\[hloc\]"'):
        io.read(tmp_path / "m.h5")
    with pytest.raises(MissingExtraError):
        io.write(SMALL, tmp_path / "n.h5")
    assert [file.name for file in tmp_path.iterdir()] == ["m.h5"]


# ---------------------------------------------------------------- OpenSfM


def same_up_to_unlisted(a, b):
    """Equal, where coordinates of points the file does not list are unknown."""
    known = np.isfinite(a.coordinates).all(axis=1)
    return (
        np.array_equal(a.indices, b.indices)
        and np.array_equal(a.pair_objects, b.pair_objects)
        and np.array_equal(a.coordinates[known], b.coordinates[known])
    )


@RELAXED
@given(problem=labellings(weights=False, coordinates=False))
def test_opensfm_round_trip(tmp_path, problem):
    rng = np.random.default_rng(problem.n_points)
    names = [f"{i}_{name}" for i, name in enumerate(problem.names or "abcde"[: problem.n_objects])]
    at = rng.uniform(-0.5, 0.5, (problem.n_points, 2)).astype(np.float32)
    placed = Matchings.from_pairs(problem.pairs(), problem.sizes, names=names, coordinates=at)
    io.write(placed, tmp_path / "tracks.csv", "opensfm", force=True)
    assert io.detect(tmp_path / "tracks.csv").name == "opensfm"
    if len(placed.pair_objects) == 0:
        return
    first = io.read(tmp_path / "tracks.csv")
    listed = [placed.names.index(name) for name in first.names]
    sizes = placed.sizes.copy()
    assert all(first.sizes[a] <= sizes[o] for a, o in enumerate(listed))
    full = io.read(tmp_path / "tracks.csv", sizes=sizes[listed])
    assert same_up_to_unlisted(full, placed[listed])
    io.write(full, tmp_path / "again.csv", like=tmp_path / "tracks.csv", force=True)
    assert sorted((tmp_path / "again.csv").read_text().split("\n")) == sorted(
        (tmp_path / "tracks.csv").read_text().split("\n")
    )


def test_opensfm_keeps_scale_and_colour(tmp_path):
    rows = ["a.jpg\t7\t3\t0.25\t-0.125\t0.01\t10\t20\t30\t-1\t-1", "b.jpg\t7\t0\t0.5\t0.5\t0.02\t1\t2\t3\t4\t5"]
    rows += ["b.jpg\t9\t1\t0.1\t0.1\t0.02\t1\t2\t3\t4\t5", "c.jpg\t9\t0\t0.1\t0.2\t0.02\t1\t2\t3\t4\t5"]
    (tmp_path / "tracks.csv").write_text("\n".join(["OPENSFM_TRACKS_VERSION_v2", *rows, ""]))
    problem = io.read(tmp_path / "tracks.csv")
    assert problem.sizes.tolist() == [4, 2, 1]
    assert problem.pair(0, 1).tolist() == [[3, 0]]
    assert problem.coordinates[3].tolist() == [0.25, -0.125]
    io.write(problem.keep([True, False]), tmp_path / "clean.csv", like=tmp_path / "tracks.csv")
    assert (tmp_path / "clean.csv").read_text().splitlines() == [
        "OPENSFM_TRACKS_VERSION_v2", rows[0].replace("\t7\t", "\t0\t", 1), rows[1].replace("\t7\t", "\t0\t", 1),
    ]  # fmt: skip


def test_bad_opensfm(tmp_path):
    (tmp_path / "t.csv").write_text("OPENSFM_TRACKS_VERSION_v1\n")
    with pytest.raises(FormatError, match="only OPENSFM_TRACKS_VERSION_v2 is read"):
        io.read(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("OPENSFM_TRACKS_VERSION_v2\na.jpg\t1\t2\n")
    with pytest.raises(FormatError, match="line 2: 3 fields where the header has 11"):
        io.read(tmp_path / "t.csv")
    with pytest.raises(InputError, match="these matches have none"):
        io.write(Matchings.from_labels([0, 0], [1, 1]), tmp_path / "o.csv", "opensfm")
    pixels = Matchings.from_labels([0, 0], [1, 1], coordinates=[[640, 360], [0, 0]])
    with pytest.raises(InputError, match="pass image_size="):
        io.write(pixels, tmp_path / "o.csv", "opensfm")
    io.write(pixels, tmp_path / "o.csv", "opensfm", image_size=(1280, 720))
    assert io.read(tmp_path / "o.csv").coordinates.tolist() == [[0, 0], [-0.5, -0.28125]]


def test_opensfm_positions_lie_in_the_image(tmp_path):
    pixels = Matchings.from_labels([0, 0], [1, 1], names=["a.jpg", "b.jpg"], coordinates=[[99.5, 20], [2800, 1000]])
    for size, message in (
        ((100, 100), "point 0 of 'b.jpg' lies at (2800, 1000), outside an image of 100 × 100 pixels; pass image_size="),
        ((3000, 998), "outside an image of 3000 × 998 pixels"),
        ((2798, 1000), "outside an image of 2798 × 1000 pixels"),
        (100, "image_size must be a width and a height in pixels, got 100"),
        ("wide", "image_size must be a width and a height in pixels, got 'wide'"),
        ((3000, 0), "image_size must be a width and a height in pixels, got (3000, 0)"),
        ((3000, 2000, 3), "image_size must be a width and a height in pixels, got (3000, 2000, 3)"),
    ):
        with pytest.raises(InputError) as caught:
            io.write(pixels, tmp_path / "o.csv", "opensfm", image_size=size)
        assert message in str(caught.value)
        assert not list(tmp_path.iterdir())
    io.write(pixels, tmp_path / "o.csv", "opensfm", image_size=(2799.5, 1000), force=True)  # refined positions


class Evil:
    def __reduce__(self):
        return print, ("code has run",)


def test_opensfm_pickles_only_on_request(tmp_path, capsys):
    folder = tmp_path / "matches"
    folder.mkdir()
    with gzip.open(folder / "a.jpg_matches.pkl.gz", "wb") as file:
        pickle.dump({"b.jpg": np.array([[0, 1], [2, 0]]), "c.jpg": []}, file)
    for path in (folder, folder / "a.jpg_matches.pkl.gz"):
        for options in ({}, {"allow_pickle": False}, {"allow_pickle": "false"}, {"allow_pickle": 1}):
            with pytest.raises(FormatError, match="could run code; pass allow_pickle=True"):
                io.read(path, **options)
        problem = io.read(path, allow_pickle=True)
        assert problem.names == ("a.jpg", "b.jpg")
        assert problem.pair(0, 1).tolist() == [[0, 1], [2, 0]]
    with gzip.open(folder / "b.jpg_matches.pkl.gz", "wb") as file:
        pickle.dump({"c.jpg": Evil()}, file)
    with pytest.raises(FormatError, match=r"builtins\.print is not allowed"):
        io.read(folder, allow_pickle=True)
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------- types in memory


@RELAXED
@given(problem=problems(coordinates=False))
def test_exchange_round_trips(problem):
    bare = problem.with_weights(None)
    if problem.names is None:
        assert Matchings.from_pairs(bare.pairs(), bare.sizes) == bare
    else:
        sizes = dict(zip(problem.names, problem.sizes.tolist(), strict=True))
        order = sorted(range(bare.n_objects), key=lambda i: bare.names[i])
        assert in_memory.from_dict(in_memory.to_dict(bare), sizes) == bare[order]
    unnamed = Matchings.from_pairs(bare.pairs(), bare.sizes)
    assert in_memory.from_tensor(in_memory.to_tensor(unnamed), unnamed.sizes) == unnamed
    weighted = unnamed.with_weights(problem.weights)
    if weighted.weights is not None:
        assert in_memory.from_tensor(in_memory.to_tensor(weighted), weighted.sizes, weighted=True) == weighted


def test_permutations():
    labels = np.array([0, 2, 1, 2, 0, -1])
    vectors = in_memory.to_permutations(labels, [2, 3, 1])
    assert in_memory.from_permutations(vectors) == Matchings.from_labels(labels, [2, 3, 1])
    for bad in ([[0.5]], [[-2]], [[[0]]]):
        with pytest.raises(InputError, match="a permutation must be a vector"):
            in_memory.from_permutations(bad)
    with pytest.raises(InputError, match=r"3 points need 3 labels, got shape \(6,\)"):
        in_memory.to_permutations(labels, [3])


def test_bad_exchange():
    with pytest.raises(InputError, match="all by number or all by name"):
        in_memory.from_dict({("a", 1): [[0, 0]]})
    with pytest.raises(InputError, match=r"shape \(k, k, n, n\)"):
        in_memory.from_tensor(np.zeros((2, 3, 2, 2)))
    with pytest.raises(InputError, match="beyond the sizes"):
        in_memory.from_tensor(np.ones((2, 2, 2, 2)), [1, 1])


# ---------------------------------------------------------------- GTSfM


class Keypoints:
    def __init__(self, coordinates):
        self.coordinates = coordinates


def test_gtsfm_adapter_keeps_what_union_find_discards():
    n, k = 12, 6
    matches = {(i, j): np.stack([np.arange(n)] * 2, axis=1) for i in range(k) for j in range(i + 1, k)}
    matches[0, 1] = matches[0, 1].copy()
    matches[0, 1][:2, 1] = [1, 0]  # two wrong matches join two tracks, which union-find would discard
    points = [Keypoints(np.arange(2 * n).reshape(n, 2) + 100.0 * i) for i in range(k)]
    tracks = gtsfm.TracksEstimator().run(matches, points)
    assert len(tracks) == n
    for track in tracks:
        assert sorted(measurement.i for measurement in track.measurements) == list(range(k))
        assert len({tuple(measurement.uv - 100 * measurement.i) for measurement in track.measurements}) == 1
    made = gtsfm.TracksEstimator(make_track=list, make_measurement=lambda i, uv: (i, *uv)).run(matches, points)
    assert made[0][0][0] == 0


def test_gtsfm_adapter_uses_positions_and_options():
    """The last match closes no cycle; only its neighbours, which all move to the right, say that it is wrong."""
    at = np.random.default_rng(0).uniform(0, 1000, (31, 2))
    points = [Keypoints(at), Keypoints(at + np.array([50.0, 0.0]))]
    points[1].coordinates[30] = [-900.0, 2000.0]
    matches = {(0, 1): np.stack([np.arange(31)] * 2, axis=1)}
    assert len(gtsfm.TracksEstimator(method="tracks").run(matches, points)) == 30
    plain = gtsfm.TracksEstimator(method="tracks", neighbours=0)
    assert len(plain.run(matches, points)) == 31
    assert pickle.loads(pickle.dumps(plain)) == plain != gtsfm.TracksEstimator(method="tracks")
    assert hash(plain) == hash(gtsfm.TracksEstimator(method="tracks", neighbours=0))
    with pytest.raises(InputError, match="did you mean 'neighbours'"):
        gtsfm.TracksEstimator(method="tracks", neighbors=0)
    with pytest.raises(InputError, match=r"the keypoints of image 1 must be of shape \(N, 2\), got \(31, 3\)"):
        plain.run(matches, [at, np.zeros((31, 3))])


@pytest.mark.parametrize("pairs", [{}, {(0, 1): np.empty((0, 2), dtype=int)}, {(0, 1): []}])
@pytest.mark.parametrize("points", [[np.zeros((3, 2))] * 2, [[], []]])
def test_gtsfm_adapter_without_matches(pairs, points):
    assert gtsfm.TracksEstimator().run(pairs, points) == []
    assert gtsfm.TracksEstimator().run({}, []) == []


# ---------------------------------------------------------------- the registry


def test_every_format_says_what_it_loses(tmp_path):
    problem = Matchings.from_labels([0, -1, 0], [2, 1], names=["a", "b"], coordinates=np.zeros((3, 2))).with_weights(
        [0.5]
    )
    lost = {name: " ".join(known.loses(problem)) for name, known in io.FORMATS.items()}
    assert lost["npz"] == lost["mat"] == ""
    assert "coordinates" in lost["csv"]
    assert "weights" in lost["tracks"]
    assert "weights" in lost["colmap"]
    assert "needs the features file" in lost["hloc"]
    assert "1 unmatched points" in lost["opensfm"]
    assert "names" in lost["dd"]


def test_no_format_takes_another_for_its_own(tmp_path):
    at = np.zeros((4, 2))
    problem = Matchings.from_labels([0, 1, 1, 0], [2, 2], names=["a", "b"], coordinates=at)
    for name, known in io.FORMATS.items():
        if name != "colmap":
            io.write(problem, tmp_path / ("file" + known.suffixes[0]), name, force=True)
            assert [
                other for other in io.FORMATS if io.FORMATS[other].sniff(tmp_path / ("file" + known.suffixes[0]))
            ] == [name]


@pytest.mark.parametrize("name", io.FORMATS)
def test_damaged_files_of_every_kind_give_typed_errors(tmp_path, name):
    rng = np.random.default_rng(0)
    problem = Matchings.from_labels(
        [0, 1, 2, -1, 1, 0, 2, 5], [4, 4], names=["a", "b"], coordinates=rng.uniform(-0.5, 0.5, (8, 2))
    )
    path = tmp_path / ("file" + io.FORMATS[name].suffixes[0])
    if name == "colmap":
        build(path, problem, problem)
    else:
        io.write(problem, path, name)
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    whole = {file: file.read_bytes() for file in files}
    refused = 0
    for trial in range(150):
        file = files[trial % len(files)]
        data = bytearray(whole[file])
        at = int(rng.integers(len(data)))
        if trial % 3 == 0:
            del data[at:]
        elif trial % 3 == 1:
            data[at] = rng.integers(256)
        else:
            del data[at : at + int(rng.integers(1, 20))]
        file.write_bytes(data)
        try:
            io.read(path, name)
        except StiefelSyncError:
            refused += 1
        file.write_bytes(whole[file])
    assert refused > 50
