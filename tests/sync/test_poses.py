"""Cameras reconstructed from cleaned matches, judged by the true ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import poses
from benchmarks.true_cameras import auc, camera, pose_errors


@pytest.mark.data
@pytest.mark.slow
def test_entry_has_better_cameras(data_dir: Path) -> None:
    pytest.importorskip("pycolmap", reason="needs the extra colmap")
    before, after = (
        poses.run(data_dir, poses.Cell("entry", "verified", recipe, "incremental", 0))
        for recipe in ("original", "sync")
    )
    assert before["images"] == after["images"] == 10
    assert after["auc1"] >= 0.9 > before["auc1"]
    assert after["points3"] >= 0.99 * before["points3"]
    assert after["recall"] >= 0.97
    assert after["precision"] > before["precision"]


class _Pose:
    def __init__(self, R: np.ndarray, C: np.ndarray) -> None:
        self.translation = -R @ C
        self.rotation = self
        self._R = R

    def matrix(self) -> np.ndarray:
        return self._R


class _Image:
    has_pose = True

    def __init__(self, name: str, R: np.ndarray, C: np.ndarray) -> None:
        self.name, self._pose = name, _Pose(R, C)

    def cam_from_world(self) -> _Pose:
        return self._pose


class _Model:
    def __init__(self, images: list[_Image]) -> None:
        self.images = dict(enumerate(images))


def test_pose_errors_are_those_that_were_made(tmp_path: Path) -> None:
    rng, truth, images = np.random.default_rng(0), {}, []
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    for name in "abcd":
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        R *= np.sign(np.linalg.det(R))
        C = rng.normal(size=3)
        text = [np.diag([1500.0, 1500, 1]), np.zeros((1, 3)), R.T, C[None], np.array([[3072.0, 2048, 0]])]
        (tmp_path / f"{name}.jpg.camera").write_text(
            "\n".join(" ".join(map(repr, row)) for row in np.vstack(text).tolist())
        )
        truth[name] = camera(tmp_path / f"{name}.jpg.camera", 1000)
        angle = np.radians(2.0) if name == "d" else 0.0
        off = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        # The model in another frame, three times as large, its last camera turned by two degrees.
        images.append(_Image(f"{name}.jpg", off @ R @ turn.T, 3 * turn @ C + 5))
    assert truth["a"].K[0, 0] == pytest.approx(1500 * 1000 / 3072)
    relative, rotation, centre = pose_errors(_Model(images), truth)
    np.testing.assert_allclose(rotation, [0, 0, 2, 0, 2, 2], atol=1e-4)
    np.testing.assert_allclose(relative[[0, 1, 3]], 0, atol=1e-4)
    np.testing.assert_allclose(centre, 0, atol=1e-9)
    assert auc(relative, 4.0) == pytest.approx(np.maximum(0, 1 - relative / 4).mean())
    missing = pose_errors(_Model(images[:3]), truth)
    assert np.isinf(missing[0]).sum() == 3
    assert np.isinf(pose_errors(None, truth)[0]).all()
