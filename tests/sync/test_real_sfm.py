"""Structure from motion: synthetic scenes with true tracks, Herz-Jesu-P8 with true cameras, Sceaux reconstructed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import herz_jesu, reconstruction
from stiefelsync import io, synchronise
from stiefelsync.matching.graph import conflicts


@pytest.fixture(scope="module")
def pycolmap() -> Any:
    module = pytest.importorskip("pycolmap", reason="needs the extra colmap")
    module.logging.minloglevel = module.logging.Level.FATAL.value
    return module


def whole(labels: np.ndarray, truth: np.ndarray) -> int:
    """Return how many true tracks carry one label that nothing else carries."""
    count = 0
    for point in np.unique(truth[truth >= 0]):
        found = np.unique(labels[truth == point])
        count += len(found) == 1 and found[0] >= 0 and (labels == found[0]).sum() == (truth == point).sum()
    return count


@pytest.mark.parametrize(("ratio", "wrong", "least"), [(0.96, 0.01, 0.97), (0.85, 0.05, 0.90)])
def test_tracks_of_a_synthetic_scene(pycolmap: Any, tmp_path: Path, ratio: float, wrong: float, least: float) -> None:
    pycolmap.set_random_seed(0)
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=1, num_cameras_per_rig=1, num_frames_per_rig=20, num_points3D=300, inlier_match_ratio=ratio
    )
    database = pycolmap.Database.open(str(tmp_path / "scene.db"))
    scene = pycolmap.synthesize_dataset(options, database)
    database.close()
    problem = io.read(tmp_path / "scene.db", source="matches")
    truth = np.full(problem.n_points, -1)
    for image in scene.images.values():
        first = problem.offsets[problem.names.index(image.name)]
        for at, point in enumerate(image.points2D):
            if point.has_point3D():
                truth[first + at] = point.point3D_id
    a, b = problem.endpoints.T
    assert ((truth[a] != truth[b]) | (truth[a] < 0)).mean() >= wrong
    assert whole(synchronise(problem, method="tracks").labels, truth) >= least * 300
    assert whole(synchronise(problem, method="union-find").labels, truth) <= 15


@pytest.mark.data
@pytest.mark.parametrize("source", ["matches", "two_view_geometries"])
def test_herz_jesu_with_true_cameras(data_dir: Path, source: str) -> None:
    problem, true = herz_jesu.load(data_dir / "herz-jesu-p8", source)
    assert true.mean() == pytest.approx({"matches": 0.975, "two_view_geometries": 0.999}[source], abs=5e-4)
    given, discarded, cycles, apart, tracks, near = (
        herz_jesu.rates(keep, true) for _, keep in herz_jesu.answers(problem)
    )
    for precision, recall, fscore in (cycles, apart, tracks, near):
        assert precision > given[0]
        assert recall >= 0.98
        assert fscore > discarded[2]
    if source == "matches":  # of verified matches hardly any is wrong, and keypoints found twice cost more than that
        assert tracks[2] > given[2] > cycles[2]
        assert tracks[2] >= 0.992


@pytest.mark.data
@pytest.mark.slow
def test_sceaux_is_reconstructed_as_well(pycolmap: Any, data_dir: Path, tmp_path: Path) -> None:
    original = data_dir / "sceaux" / "database.db"
    clean = reconstruction.clean(original, tmp_path / "clean.db")
    before, after = io.read(original), io.read(clean)
    assert conflicts(before).count > 200
    assert conflicts(after).count == 0
    assert after.n_matches >= 0.97 * before.n_matches
    old, new = (
        reconstruction.medians([reconstruction.reconstruct(database, seed) for seed in range(3)])
        for database in (original, clean)
    )
    assert old.images == new.images == 11
    assert new.points >= 0.99 * old.points
    assert new.length >= old.length
    assert new.views == new.length > old.views  # the original has tracks in which an image occurs twice
