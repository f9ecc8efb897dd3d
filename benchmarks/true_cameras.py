"""Judge reconstructions and matches by the true cameras of the Strecha et al. benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.herz_jesu import epipolar_distance
from stiefelsync import Matchings

__all__ = ["Camera", "auc", "cameras", "pose_errors", "true_matches"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

THRESHOLD = 0.002  # of the larger side of an image: how far a true match may be from its true epipolar lines


@dataclass(frozen=True)
class Camera:
    """A true camera: the matrix K in the pixels of the images that were matched, world-to-camera R, the centre C."""

    K: Floats
    R: Floats
    C: Floats

    @property
    def P(self) -> Floats:
        """The (3, 4) projection matrix K [R | -RC]."""
        return self.K @ np.column_stack([self.R, -self.R @ self.C])


def camera(path: Path, larger_side: float | None = None) -> Camera:
    """Read a ``.camera`` file: K, zeros, Rᵀ, C and the image size; K is scaled to images of that larger side."""
    numbers = np.array(path.read_text().split(), dtype=float)
    K, R, C, size = numbers[:9].reshape(3, 3), numbers[12:21].reshape(3, 3).T, numbers[21:24], numbers[24:26]
    scale = 1.0 if larger_side is None else larger_side / size.max()
    return Camera(np.diag([scale, scale, 1.0]) @ K, R, C)


def cameras(folder: Path, larger_side: float | None = None) -> dict[str, Camera]:
    """Return the true cameras of a scene by the stem of the image's name."""
    return {path.name.split(".")[0]: camera(path, larger_side) for path in sorted((folder / "cameras").iterdir())}


def true_matches(matchings: Matchings, truth: dict[str, Camera], larger_side: float) -> Bools:
    """Return which matches lie within `THRESHOLD` of both their true epipolar lines; shape (M,)."""
    assert matchings.names is not None
    P = [truth[name.split(".")[0]].P for name in matchings.names]
    return epipolar_distance(matchings, P) <= THRESHOLD * larger_side


def _angle(cosine: float) -> float:
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def pose_errors(model: Any, truth: dict[str, Camera]) -> tuple[Floats, Floats, Floats]:
    """Return the errors of relative poses of all pairs of true cameras in degrees, infinite where one is missing.

    Parameters
    ----------
    model
        A ``pycolmap.Reconstruction``, or None if there is none.

    Returns
    -------
    relative : (k(k-1)/2,)
        The larger of the angle of the rotation's error and that between the directions of translation.
    rotation : (k(k-1)/2,)
        The former alone.
    centre : (k,)
        Distance of the centres after the best similarity, as a share of the extent of the true ones.
    """
    found = {}
    for image in model.images.values() if model is not None else ():
        if image.has_pose:
            pose = image.cam_from_world()
            R = pose.rotation.matrix()
            found[image.name.split(".")[0]] = R, -R.T @ np.asarray(pose.translation)
    relative, rotation = [], []
    for a, b in combinations(sorted(truth), 2):
        if a not in found or b not in found:
            relative.append(np.inf)
            rotation.append(np.inf)
            continue
        (Ra, Ca), (Rb, Cb), A, B = found[a], found[b], truth[a], truth[b]
        turn = _angle((np.trace((Rb @ Ra.T).T @ (B.R @ A.R.T)) - 1) / 2)
        ours, theirs = Ra @ (Cb - Ca), A.R @ (B.C - A.C)
        way = _angle(ours @ theirs / max(np.linalg.norm(ours) * np.linalg.norm(theirs), 1e-300))
        relative.append(max(turn, way))
        rotation.append(turn)
    return np.array(relative), np.array(rotation), _centre_errors(found, truth)


def _centre_errors(found: dict[str, tuple[Floats, Floats]], truth: dict[str, Camera]) -> Floats:
    names = [name for name in sorted(truth) if name in found]
    error = np.full(len(truth), np.inf)
    if len(names) < 3:
        return error
    X = np.array([found[name][1] for name in names])
    Y = np.array([truth[name].C for name in names])
    x, y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(y.T @ x)
    sign = np.diag([1, 1, np.sign(np.linalg.det(U @ Vt))])
    scale = (s * np.diag(sign)).sum() / (x**2).sum()
    distance = np.linalg.norm(scale * x @ (U @ sign @ Vt).T - y, axis=1)
    error[: len(names)] = distance / np.ptp(np.array([camera.C for camera in truth.values()]), axis=0).max()
    return np.sort(error)


def auc(errors: Floats, threshold: float) -> float:
    """Return the area under the curve of recall by error up to the threshold, as a share.

    Examples
    --------
    >>> auc(np.array([0.0, 0.5, np.inf]), 1.0)
    0.5
    """
    return float(np.maximum(0, 1 - errors / threshold).mean())
