"""Dense matches as hloc writes them, on their way to COLMAP: names, photographs, and half a pixel."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import clean, io
from stiefelsync.errors import InputError
from stiefelsync.io.route import convert

h5py = pytest.importorskip("h5py", reason="needs the extra hloc")
Image = pytest.importorskip("PIL.Image", reason="needs the extra report")

POINTS = np.random.default_rng(0).uniform(20, 200, (40, 2))
NAMES = ["db/0.jpg", "db/1.jpg", "query-2.jpg"]


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    """Correspondences between three photographs, two of them in a folder."""
    path = tmp_path / "dense.h5"
    with h5py.File(path, "w") as file:
        for i, a in enumerate(NAMES):
            for j, b in enumerate(NAMES[i + 1 :], start=i + 1):
                group = file.create_group(f"{a.replace('/', '-')}/{b.replace('/', '-')}")
                group["keypoints0"], group["keypoints1"] = POINTS + 5 * i, POINTS + 5 * j
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "db").mkdir(parents=True)
    for name in NAMES:
        Image.new("RGB", (320, 240)).save(folder / name)
    return folder


def rows(path: Path, what: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute(what).fetchall()


def positions(path: Path) -> np.ndarray:
    blocks = rows(path, "SELECT data FROM keypoints ORDER BY image_id")
    return np.concatenate([np.frombuffer(data, dtype="<f4").reshape(-1, 2) for (data,) in blocks])


def test_names_get_their_folders_back_and_sizes_are_those_of_the_photographs(
    dense: Path, photos: Path, tmp_path: Path
) -> None:
    assert io.read(dense).names == ("db-0.jpg", "db-1.jpg", "query-2.jpg")
    clean(dense, tmp_path / "new.db", photos=str(photos))
    assert [name for (name,) in rows(tmp_path / "new.db", "SELECT name FROM images ORDER BY name")] == NAMES
    assert rows(tmp_path / "new.db", "SELECT DISTINCT width, height FROM cameras") == [(320, 240)]


def test_names_that_two_photographs_have_are_refused(dense: Path, photos: Path) -> None:
    (photos / "db-0.jpg").write_bytes((photos / "db" / "0.jpg").read_bytes())
    with pytest.raises(InputError, match=r"'db-0.jpg' may be 'db/0.jpg' or 'db-0.jpg' in"):
        io.read(dense, photos=photos)
    with pytest.raises(InputError, match="there is no folder"):
        io.read(dense, photos=photos / "none")


def test_a_folder_without_any_of_the_photographs_is_warned_of(dense: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.warns(UserWarning, match="none of the 3 images is in .*empty, 'db-0.jpg' for example"):
        clean(dense, tmp_path / "new.db", photos=str(tmp_path / "empty"))
    assert (tmp_path / "new.db").exists()


def test_positions_of_hloc_are_moved_by_half_a_pixel(dense: Path, tmp_path: Path) -> None:
    at = {}
    for shift in (None, 0.0, 0.5):
        given = {} if shift is None else {"shift": shift}
        clean(dense, tmp_path / f"{shift}.db", **given)
        at[shift] = positions(tmp_path / f"{shift}.db")
    np.testing.assert_array_equal(at[None], at[0.5])
    np.testing.assert_allclose(at[0.5] - at[0.0], 0.5, atol=1e-4)


def test_only_files_of_hloc_are_moved(tmp_path: Path) -> None:
    np.savez(tmp_path / "pairs.npz", **{"a|b": np.hstack([POINTS, POINTS + 5]), "b|c": np.hstack([POINTS + 5, POINTS])})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert(tmp_path / "pairs.npz", tmp_path / "new.db")
    np.testing.assert_allclose(positions(tmp_path / "new.db"), io.read(tmp_path / "pairs.npz").coordinates, atol=1e-4)


def test_matches_with_features_are_moved_too_and_copies_are_not(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "features.h5", "w") as features, h5py.File(tmp_path / "matches.h5", "w") as matches:
        for name in ("a", "b"):
            features[f"{name}/keypoints"] = POINTS
        matches["a/b/matches0"] = np.arange(40)
    clean(tmp_path / "matches.h5", tmp_path / "new.db", features=str(tmp_path / "features.h5"))
    np.testing.assert_allclose(positions(tmp_path / "new.db"), np.vstack([POINTS, POINTS]) + 0.5, atol=1e-4)
    # A copy of a database is never moved by it.
    clean(
        tmp_path / "matches.h5", tmp_path / "copy.db", features=str(tmp_path / "features.h5"), like=tmp_path / "new.db"
    )
    np.testing.assert_array_equal(positions(tmp_path / "copy.db"), positions(tmp_path / "new.db"))
