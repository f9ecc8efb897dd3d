"""COLMAP databases from nothing: COLMAP itself verifies and maps them, whatever they were made of."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stiefelsync import Matchings, clean, io
from stiefelsync.errors import FormatError, InputError

SIZE = (1024, 768)


@pytest.fixture(scope="module")
def pycolmap() -> Any:
    module = pytest.importorskip("pycolmap", reason="needs the extra colmap")
    module.logging.minloglevel = module.logging.Level.FATAL.value
    return module


@pytest.fixture(scope="module")
def scene(pycolmap: Any, tmp_path_factory: pytest.TempPathFactory) -> Matchings:
    """Return the matches of eight synthetic views, 3 % of them wrong."""
    path = tmp_path_factory.mktemp("scene") / "scene.db"
    pycolmap.set_random_seed(0)
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=1, num_cameras_per_rig=1, num_frames_per_rig=8, num_points3D=200, inlier_match_ratio=0.97
    )
    with pycolmap.Database.open(str(path)) as database:
        pycolmap.synthesize_dataset(options, database)
    return io.read(path, source="matches")


def registered(pycolmap: Any, path: Path, folder: Path) -> int:
    """Verify and map a database with one thread; return how many images have a pose."""
    problem = io.read(path, source="matches")
    pairs = folder / "pairs.txt"
    pairs.write_text("".join(f"{problem.names[i]} {problem.names[j]}\n" for i, j in problem.pair_objects))
    pycolmap.verify_matches(path, pairs)
    options = pycolmap.IncrementalPipelineOptions(random_seed=0, num_threads=1, extract_colors=False)
    models = pycolmap.incremental_mapping(path, folder, folder, options)
    return max((model.num_reg_images() for model in models.values()), default=0)


@pytest.fixture
def cameras(tmp_path: Path) -> Path:
    path = tmp_path / "cameras.csv"
    path.write_text("name,model,width,height,params\n*,SIMPLE_PINHOLE,1024,768,1280 512 384\n")
    return path


def write_hloc(scene: Matchings, folder: Path) -> tuple[Path, dict[str, Any]]:
    h5py = pytest.importorskip("h5py", reason="needs the extra hloc")
    with h5py.File(folder / "features.h5", "w") as file:
        for i, name in enumerate(scene.names):
            file.create_group(name)["keypoints"] = scene.coordinates[scene.offsets[i] : scene.offsets[i + 1]]
    io.write(scene, folder / "matches.h5")
    return folder / "matches.h5", {"features": folder / "features.h5"}


def write_correspondences(scene: Matchings, folder: Path) -> tuple[Path, dict[str, Any]]:
    rng = np.random.default_rng(0)
    xy = scene.coordinates[scene.endpoints] + rng.normal(size=(scene.n_matches, 2, 2)) * 0.3
    blocks = np.split(xy.reshape(-1, 4), scene.pair_start[1:-1])
    names = [f"{scene.names[i]}|{scene.names[j]}" for i, j in scene.pair_objects]
    np.savez(folder / "pairs.npz", **dict(zip(names, blocks, strict=True)))
    return folder / "pairs.npz", {}


def write_tracks(scene: Matchings, folder: Path) -> tuple[Path, dict[str, Any]]:
    clean(write_correspondences(scene, folder)[0], folder / "tracks.csv", to="tracks", method="tracks")
    return folder / "tracks.csv", {}


def write_opensfm(scene: Matchings, folder: Path) -> tuple[Path, dict[str, Any]]:
    path, _ = write_tracks(scene, folder)
    io.convert(path, folder / "opensfm.csv", target_format="opensfm", image_size=SIZE)
    return folder / "opensfm.csv", {}


@pytest.mark.slow
@pytest.mark.parametrize("make", [write_hloc, write_correspondences, write_tracks, write_opensfm])
def test_colmap_maps_what_was_made_of(
    make: Any, pycolmap: Any, scene: Matchings, cameras: Path, tmp_path: Path
) -> None:
    path, options = make(scene, tmp_path)
    done = clean(path, tmp_path / "new.db", method="tracks", cameras=cameras, **options)
    assert "geometric_verifier" in done.next_command
    again = io.read(tmp_path / "new.db")
    assert again.names == tuple(sorted(scene.names)) or again.names == scene.names
    assert again.n_matches >= 0.9 * 0.97 * scene.n_matches
    assert registered(pycolmap, tmp_path / "new.db", tmp_path) == scene.n_objects


def test_without_cameras_sizes_are_guessed_from_keypoints(tmp_path: Path) -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], coordinates=[[99.5, 40], [20, 200.2]])
    io.write(problem, tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as database:
        rows = database.execute("SELECT model, width, height, params, prior_focal_length FROM cameras").fetchall()
        names = [name for (name,) in database.execute("SELECT name FROM images ORDER BY image_id")]
    assert [row[:3] + row[4:] for row in rows] == [(2, 101, 41, 0), (2, 21, 202, 0)]
    assert np.frombuffer(rows[1][3]).tolist() == [1.2 * 202, 10.5, 101, 0]
    assert names == ["000000.jpg", "000001.jpg"]
    assert io.read(tmp_path / "new.db") == Matchings.from_pairs(
        {(0, 1): [[0, 0]]}, [1, 1], coordinates=problem.coordinates, names=names
    )


def test_photographs_that_are_not_there_are_missed(tmp_path: Path) -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], coordinates=[[50, 50], [60, 60]])
    with pytest.raises(InputError, match=r"there is no folder .*none of photographs"):
        io.write(problem, tmp_path / "new.db", photos=tmp_path / "none")
    assert not (tmp_path / "new.db").exists()


def test_sizes_and_focal_lengths_come_from_photographs(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs the extra report")
    exif = image.Exif()
    exif[0x8769] = {0xA405: 24}  # the focal length for 35 mm film
    image.new("RGB", (300, 200)).save(tmp_path / "a.jpg", exif=exif)
    image.new("RGB", (120, 240)).save(tmp_path / "b.jpg")
    problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], names=["a.jpg", "b.jpg"], coordinates=[[5, 5], [6, 6]])
    io.write(problem, tmp_path / "new.db", photos=tmp_path, shift=0.5)
    with closing(sqlite3.connect(tmp_path / "new.db")) as database:
        rows = database.execute("SELECT width, height, params, prior_focal_length FROM cameras").fetchall()
    assert [(w, h, np.frombuffer(p).tolist(), k) for w, h, p, k in rows] == [
        (300, 200, [200.0, 150, 100, 0], 1),
        (120, 240, [288.0, 60, 120, 0], 0),
    ]
    np.testing.assert_allclose(io.read(tmp_path / "new.db").coordinates, [[5.5, 5.5], [6.5, 6.5]])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name,model\n", "the first line of a file of cameras is name,model,width,height,params"),
        ("name,model,width,height,params\na,PINHOLE,10,10\n", "line 2: 4 columns where 5 are expected"),
        ("name,model,width,height,params\na,PINHOLE,10,10,1 2 3\n", "PINHOLE takes 4 parameters"),
        ("name,model,width,height,params\na,PINHOLE,x,10,1 2 3 4\n", "size and parameters of a camera are numbers"),
        ("name,model,width,height,params\na,PINOLE,10,10,1 2 3 4\n", "PINOLE"),
    ],
)
def test_bad_cameras_are_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "cameras.csv").write_text(text)
    problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], coordinates=[[5, 5], [6, 6]])
    with pytest.raises((FormatError, InputError), match=told):
        io.write(problem, tmp_path / "new.db", cameras=tmp_path / "cameras.csv")
    assert not (tmp_path / "new.db").exists()


def test_what_a_new_database_cannot_do_without(tmp_path: Path) -> None:
    bare = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1])
    with pytest.raises(InputError, match="needs the positions of keypoints"):
        io.write(bare, tmp_path / "new.db")
    normalised = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], coordinates=[[0.1, 0.2], [0.3, -0.1]])
    with pytest.raises(InputError, match="the positions are normalised, so the size of image"):
        io.write(normalised, tmp_path / "new.db")
    io.write(Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], coordinates=[[5, 5], [6, 6]]), tmp_path / "a.db")
    with pytest.raises(InputError, match="option shift is for a new database"):
        clean(tmp_path / "a.db", tmp_path / "b.db", shift=0.5)


def test_hloc_files_remember_their_features(scene: Matchings, tmp_path: Path) -> None:
    path, options = write_hloc(scene, tmp_path)
    problem = io.read(path, **options)
    assert problem.coordinates is not None
    io.write(problem.keep(np.arange(problem.n_matches) % 3 > 0), tmp_path / "less.h5", like=path)
    assert io.read(tmp_path / "less.h5", **options).n_matches < problem.n_matches
    done = clean(path, tmp_path / "clean.h5", method="tracks", **options)
    assert done.next_command == io.next_command(tmp_path / "clean.h5", images="IMAGES")
    assert done.next_command.startswith("python -m hloc.reconstruction --sfm_dir sfm")
