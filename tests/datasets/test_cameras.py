"""The demo's scene is what it claims: hidden corners are not seen, matches are mutual, look-alikes are confused."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from stiefelsync import InputError, score
from stiefelsync.datasets._castle import castle
from stiefelsync.datasets.cameras import camera_scene, cameras

module = importlib.import_module("stiefelsync.datasets.cameras")


@pytest.fixture(scope="module")
def scene():
    return camera_scene(rng=0)


def test_shape_and_determinism(scene):
    problem, truth = cameras(rng=0)
    assert problem == scene.matchings
    assert np.array_equal(truth, scene.truth)
    assert problem.n_objects == 20
    assert len(set(problem.names)) == 20
    assert cameras(rng=1)[0] != problem


def test_no_photograph_shows_a_corner_twice(scene):
    for a, b in zip(scene.matchings.offsets[:-1], scene.matchings.offsets[1:], strict=True):
        assert len(np.unique(scene.truth[a:b])) == b - a


def test_keypoints_lie_in_the_picture(scene):
    x = scene.matchings.coordinates
    margin = 5 * module.BLUR
    assert (x > -margin).all()
    assert (x < (scene.width + margin, scene.height + margin)).all()


def test_hidden_corners_are_not_seen():
    """An independent check of visibility: the ray from the camera to a corner crosses no face on its way."""
    corners = module._Corners.of(castle())
    rng = np.random.default_rng(0)
    triangles = np.array([
        [face.polygon[0], face.polygon[n], face.polygon[n + 1]]
        for part in castle() for face in part.faces for n in range(1, len(face.polygon) - 1)
    ])  # fmt: skip
    for azimuth in np.linspace(-3, 3, 13):
        view = module._View.on_arc(azimuth, rng)
        visible = module._visible(corners, view, module._drawing(corners.parts, view))
        hit = _crosses(view.C, corners.X, triangles)
        assert 10 < visible.sum() < len(visible)
        assert not (visible & hit).any()


def _crosses(C, X, triangles):
    """Mark the points X whose segment from C crosses a triangle well before its end (Möller and Trumbore)."""
    direction = X - C
    a, e1, e2 = triangles[:, 0], triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    p = np.cross(direction[:, None], e2)
    det = (p * e1).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (p * (C - a)).sum(axis=2) / det
        q = np.cross(C - a, e1)
        v = (direction[:, None] * q).sum(axis=2) / det
        t = (e2 * q).sum(axis=1) / det
    edge = 1e-6
    return ((u > edge) & (v > edge) & (u + v < 1 - edge) & (t > edge) & (t < 1 - 1e-6)).any(axis=1)


def test_matches_are_confused_but_mostly_right(scene):
    quality = score(scene.matchings, scene.truth)
    assert 0.75 < quality.precision < 0.95
    assert 0.6 < quality.recall < 0.9
    ends = scene.truth[scene.matchings.endpoints]
    wrong = ends[ends[:, 0] != ends[:, 1]]
    kind = module._Corners.of(castle()).kind
    alike = np.equal(*kind[wrong].T).mean()
    assert alike > 0.5  # most confusions are between corners of one kind, as windows are


def test_fewer_points_and_bad_numbers():
    problem, truth = cameras(points=30, cameras=5, rng=0)
    assert len(np.unique(truth)) <= 30
    assert problem.n_objects == 5
    with pytest.raises(InputError, match="points must lie between 1 and"):
        cameras(points=10_000)
    with pytest.raises(InputError, match="at least 2 cameras, got 1"):
        cameras(cameras=1)
