"""Keypoints of real correspondences: better than rounding to grids."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import correspondences
from stiefelsync import io


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("scene", correspondences.SCENES)
def test_tracks_of_jittered_matches(data_dir: Path, scene: str) -> None:
    problem = io.read(data_dir / "strecha" / scene / "verified.db")
    ours, keypoints, matches, *rivals = correspondences.row(problem, 0.5)
    assert ours >= 0.97
    assert max(rivals) < ours - 0.2
    assert ours < keypoints <= 1
    assert ours < matches <= 1
