"""Problems to report on, with a known answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from stiefelsync.datasets import synthetic
from stiefelsync.datasets.cameras import CameraScene, camera_scene
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Outcome
from stiefelsync.sync.result import Synchronisation
from tests.report.browsers import browser as browser  # a fixture
from tests.report.browsers import show as show  # another


def solved(problem: Matchings, labels) -> Synchronisation:
    """The result a perfect method would return."""
    return Synchronisation(problem, "truth", Outcome(labels=labels), int(labels.max()) + 1, timings={"solve": 0.5})


@pytest.fixture(scope="session")
def plain() -> Synchronisation:
    """Nine objects without names or coordinates, a third of the matches wrong."""
    return solved(*synthetic(12, 9, 0.7, 0.3, rng=3))


@pytest.fixture(scope="session")
def castle() -> CameraScene:
    return camera_scene(cameras=6, rng=0)


@pytest.fixture(scope="session")
def photographed(castle: CameraScene) -> Synchronisation:
    """Six drawn photographs of a castle with keypoints."""
    return solved(castle.matchings, castle.truth)


@pytest.fixture(scope="session")
def photographs(castle: CameraScene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photographs")
    shades = {"wall": (214, 196, 160), "roof": (150, 72, 58), "window": (70, 96, 130), "door": (96, 64, 44)}
    for name, polygons in zip(castle.matchings.names, castle.drawings, strict=True):
        image = Image.new("RGB", (castle.width, castle.height), (176, 208, 235))
        for polygon, _, kind in polygons:
            ImageDraw.Draw(image).polygon([tuple(p) for p in polygon.tolist()], fill=shades[kind])
        image.save(folder / name)
    return folder
