"""Tracks of points through a video, as trackers' arrays hold them, and on to COLMAP."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import FormatError, InputError, Matchings, io
from stiefelsync.io.tables.files import write_columns

T, N = 4, 3
XY = np.arange(T * N * 2, dtype=np.float32).reshape(T, N, 2)
SEEN = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=bool)


def expected(shift=0.5):
    """Return the matches as one would write them by hand."""
    frame, track = np.nonzero(SEEN)
    return Matchings.from_labels(track, SEEN.sum(axis=1), coordinates=XY[frame, track].astype(float) + shift)


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


LAYOUTS = {
    "our own": ({"tracks": XY, "visibility": SEEN}, {}),
    "CoTracker": ({"pred_tracks": XY[None], "pred_visibility": SEEN[None, ..., None]}, {}),
    "CoTracker, no batch": ({"pred_tracks": XY, "pred_visibility": SEEN[..., None]}, {}),
    "TAPIR": ({"tracks": XY.swapaxes(0, 1)[None], "visibles": SEEN.T[None]}, {"order": "NT"}),
    "holes": ({"tracks": np.where(SEEN[..., None], XY, np.nan)}, {}),
    "numbers": ({"tracks": XY, "visibility": SEEN.astype(np.uint8)}, {}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_trackers(layout, tmp_path):
    arrays, options = LAYOUTS[layout]
    path = save(tmp_path / "a.npz", **arrays)
    assert io.detect(path).name == "frames"
    assert io.read(path, origin="centre", **options) == expected()
    assert io.read(path, origin="corner", **options) == expected(0.0)


def test_the_origin_is_asked_for_unless_the_file_says_it(tmp_path):
    with pytest.raises(InputError, match="say origin=centre or origin=corner"):
        io.read(save(tmp_path / "a.npz", tracks=XY))
    told = save(tmp_path / "b.npz", tracks=XY, visibility=SEEN, origin=np.array("centre"))
    assert io.read(told) == expected()
    assert io.read(told, origin="corner") == expected(0.0)


def test_names_from_the_file_or_a_folder(tmp_path):
    named = save(tmp_path / "a.npz", tracks=XY, names=np.array(["p", "q", "r", "s"]))
    assert io.read(named, origin="corner").names == ("p", "q", "r", "s")
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("2.jpg", "0.jpg", "1.jpg"):
        (folder / name).touch()
    with pytest.raises(InputError, match="has 4 frames, and there are names of 3"):
        io.read(named, origin="corner", frames=folder)
    (folder / "3.jpg").touch()
    assert io.read(named, origin="corner", frames=folder).names == ("0.jpg", "1.jpg", "2.jpg", "3.jpg")
    with pytest.raises(InputError, match="frames must name a folder"):
        io.read(named, origin="corner", frames=tmp_path / "nowhere")


def test_a_window_takes_near_frames_only(tmp_path):
    many = save(tmp_path / "a.npz", tracks=np.zeros((30, 2, 2)))
    assert io.read(many, origin="corner").n_matches == 2 * 30 * 29 // 2
    near = io.read(many, origin="corner", window=5)
    apart = np.diff(near.pair_objects, axis=1).ravel()
    assert ((apart <= 5) | (near.pair_objects % 5 == 0).all(axis=1)).all()
    assert near.n_matches < 2 * 30 * 8


BAD = {
    "no positions": ({"tracks": np.zeros((2, 3))}, r"must hold numbers and have the shape \(frames, tracks, 2\)"),
    "three coordinates": ({"tracks": np.zeros((2, 3, 3))}, r"it holds float64 and has \(2, 3, 3\)"),
    "text": ({"tracks": np.full((2, 3, 2), "x")}, "must hold numbers"),
    "two videos": ({"tracks": np.zeros((2, 2, 3, 2))}, r"has \(2, 2, 3, 2\)"),
    "visibility of others": ({"tracks": XY, "visibility": SEEN.T}, r"as \(4, 3\) truth values"),
    "scores": ({"tracks": XY, "visibility": SEEN * 0.5}, "truth values; it holds float64"),
    "logits": ({"tracks": XY, "visibility": SEEN * 2 - 1}, "truth values"),
}


@pytest.mark.parametrize("case", BAD)
def test_arrays_that_do_not_fit(case, tmp_path):
    arrays, message = BAD[case]
    with pytest.raises(FormatError, match=message):
        io.read(save(tmp_path / "a.npz", **arrays), "frames", origin="corner")
    with pytest.raises(InputError, match="unknown order 'TNX'"):
        io.read(save(tmp_path / "b.npz", tracks=XY), origin="corner", order="TNX")


def test_round_trip(tmp_path):
    problem = expected()
    io.write(problem, tmp_path / "a.npz", "frames")
    assert io.detect(tmp_path / "a.npz").name == "frames"
    assert io.read(tmp_path / "a.npz") == problem
    io.write(problem, tmp_path / "b.npz")
    assert io.detect(tmp_path / "b.npz").name == "npz"


def test_on_to_colmap(tmp_path):
    pytest.importorskip("pycolmap")
    path = save(tmp_path / "a.npz", pred_tracks=XY[None], pred_visibility=SEEN[None], names=np.array(list("pqrs")))
    cameras = tmp_path / "cameras.csv"
    cameras.write_text("name,model,width,height,params\n*,SIMPLE_PINHOLE,64,48,50 32 24\n")
    io.convert(path, tmp_path / "new.db", origin="centre", cameras=cameras)
    back = io.read(tmp_path / "new.db")
    assert back.n_matches == expected().n_matches
    assert np.array_equal(back.coordinates, expected().coordinates)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("called", ["frame,track_id", "Image,particle", "t,ID", "camera,tracks"])
def test_tables_of_trackers_are_known_by_their_own_names(tmp_path, called, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    frame, track = called.split(",")
    rows = {"track": [7, 7, 3, 3, 3], "object": [0, 1, 0, 1, 2], "x": [5.0, 6, 9, 8, 7], "y": [1.0, 2, 3, 4, 5]}
    usual, own = tmp_path / f"usual.{ending}", tmp_path / f"own.{ending}"
    write_columns(usual, {name: np.array(column) for name, column in rows.items()})
    write_columns(own, {{"track": track, "object": frame}.get(n, n): np.array(column) for n, column in rows.items()})
    assert io.detect(own).name == "tracks"
    one, other = (io.read(path, origin="corner") for path in (usual, own))
    assert one.endpoints.tolist() == other.endpoints.tolist()
    assert np.array_equal(one.coordinates, other.coordinates)
