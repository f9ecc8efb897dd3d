"""The demo's scene: a castle with repeated windows, photographed by a walker and matched by descriptors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._castle import Face, Part
from stiefelsync.datasets._castle import castle as _castle
from stiefelsync.datasets._drawn import drawn
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["CameraScene", "camera_scene", "cameras", "photograph"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDTH, HEIGHT, FOCAL = 640, 480, 700.0
ARC = np.deg2rad(160.0)  # the photographer walks so far around the castle's front
DETECTED = 0.9  # chance that a visible corner becomes a keypoint
BLUR = 0.7  # standard deviation of a keypoint's position, in pixels
DIMENSION = 32  # of a descriptor
INDIVIDUAL = 0.8  # how far a corner looks different from its look-alikes, relative to the kind's own norm
DRIFT = 0.2  # how far a corner's look changes with the viewing direction
NOISE = 0.95  # how far it changes from photograph to photograph
SIMILAR = 0.3  # least cosine similarity of a match


@dataclass(frozen=True)
class CameraScene:
    """Photographs of the castle, matched: the problem, its truth, and what is needed to draw it.

    Attributes
    ----------
    matchings
        Descriptor matches with keypoint coordinates in pixels, one object per photograph.
    truth : (m,) int64
        The corner of the castle each keypoint shows.
    drawings
        For every photograph the visible polygons, far to near, each as ((n, 2) pixels, shade, kind).
    width, height
        Of every photograph, in pixels.
    """

    matchings: Matchings
    truth: Ints
    drawings: tuple[tuple[tuple[Floats, float, str], ...], ...]
    width: int = WIDTH
    height: int = HEIGHT


def cameras(
    points: int | None = None, cameras: int = 20, *, rng: int | np.random.Generator | None = 0
) -> tuple[Matchings, Ints]:
    """Return descriptor matches among photographs of a castle, with coordinates, and the true labels.

    Parameters
    ----------
    points
        How many of the castle's corners take part, chosen at random; all of them when None.
    cameras
        How many photographs are taken, at least 2.
    rng
        Seed or generator.

    Returns
    -------
    matchings
        Mutual nearest neighbours among noisy descriptors; windows look alike, so many matches are wrong.
    truth : (m,) int64
        The corner of the castle each keypoint shows.

    Notes
    -----
    O(cameras² · points² · 32). The cameras stand on an arc around the front, so the first and the last share few
    corners: what they match is mostly confusion, as it is with real photographs.

    Examples
    --------
    >>> problem, truth = cameras(cameras=4, rng=0)
    >>> problem.n_objects, len(truth) == problem.n_points, problem.coordinates.shape[1]
    (4, True, 2)
    """
    scene = camera_scene(points, cameras, rng=rng)
    return scene.matchings, scene.truth


@drawn
def camera_scene(
    points: int | None = None, cameras: int = 20, *, rng: int | np.random.Generator | None = 0
) -> CameraScene:
    """Return the same problem as :func:`cameras` together with drawings of the photographs.

    Examples
    --------
    >>> scene = camera_scene(cameras=3, rng=0)
    >>> len(scene.drawings), scene.width
    (3, 640)
    """
    corners = _Corners.of(_castle())
    n = len(corners.X)
    if points is not None and not 1 <= points <= n:
        raise InputError(f"the castle has {n} corners; points must lie between 1 and {n}, got {points}")
    if cameras < 2:
        raise InputError(f"matching needs at least 2 cameras, got {cameras}")
    rng = generator(rng)
    chosen = rng.choice(n, n if points is None else points, replace=False)
    return photograph(np.zeros(cameras, dtype=np.int64), chosen, rng=rng)


def photograph(
    castle: Ints,
    chosen: Ints | None = None,
    *,
    differ: float = 0.0,
    noise: float = NOISE,
    rng: np.random.Generator,
) -> CameraScene:
    """Photograph castles that look alike on a walk along an arc, each photograph showing one of them; match all.

    Parameters
    ----------
    castle : (k,) int
        Which castle each photograph shows; in the truth the corners of one follow those of another.
    chosen
        The corners that take part, all when None.
    differ
        How far corresponding corners of two castles look different.
    noise
        How far a corner's look changes from photograph to photograph.

    Notes
    -----
    `differ` and `noise` are relative to what corners of a kind have in common.
    """
    corners = _Corners.of(_castle())
    n, cameras = len(corners.X), len(castle)
    taking_part = np.ones(n, dtype=bool) if chosen is None else np.isin(np.arange(n), chosen)
    looks = [_Looks.draw(corners.kind, rng)]
    looks += [looks[0].changed(differ, rng) for _ in range(int(castle.max()))]
    truth, places, descriptors, drawings = [], [], [], []
    for c in range(cameras):
        view = _View.on_arc(ARC * ((c + rng.uniform(0.2, 0.8)) / cameras - 0.5), rng)
        polygons = _drawing(corners.parts, view)
        detected = taking_part & _visible(corners, view, polygons) & (rng.random(n) < DETECTED)
        seen = rng.permutation(np.flatnonzero(detected))
        truth.append(seen + n * castle[c])
        places.append(view.project(corners.X[seen]) + BLUR * rng.standard_normal((len(seen), 2)))
        descriptors.append(looks[castle[c]].seen(seen, view.azimuth, noise, rng))
        drawings.append(tuple((polygon, shade, kind) for _, polygon, shade, kind in polygons))
    pairs = {(i, j): _mutual(descriptors[i], descriptors[j]) for i in range(cameras) for j in range(i + 1, cameras)}
    matchings = Matchings.from_pairs(
        {key: block for key, block in pairs.items() if len(block)},
        [len(seen) for seen in truth],
        names=[f"photo-{c + 1:02d}.jpg" for c in range(cameras)],
        coordinates=np.concatenate(places),
    )
    return CameraScene(matchings, np.concatenate(truth), tuple(drawings))


@dataclass(frozen=True)
class _View:
    """A pinhole camera: centre C, rotation R (its rows point right, down and forward), and where it stands."""

    C: Floats
    R: Floats
    azimuth: float

    @classmethod
    def on_arc(cls, azimuth: float, rng: np.random.Generator) -> _View:
        """Stand on an ellipse around the castle, in front of it at azimuth 0, and look at its middle."""
        height, distance = rng.uniform(2.0, 4.5), rng.uniform(0.95, 1.1)
        C = distance * np.array([11.0 * np.sin(azimuth), -9.5 * np.cos(azimuth), height])
        forward = np.array([0.0, 0.0, 1.9]) + rng.uniform(-0.15, 0.15, 3) - C
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        return cls(C, np.stack([right, np.cross(forward, right), forward]), azimuth)

    def project(self, X: Floats) -> Floats:
        """Return pixels, shape (n, 2), of points X, shape (n, 3)."""
        x, y, z = ((X - self.C) @ self.R.T).T
        return np.stack([WIDTH / 2 + FOCAL * x / z, HEIGHT / 2 + FOCAL * y / z], axis=1)

    def faces(self, face: Face) -> bool:
        """Whether the camera stands in front of a face."""
        return bool(face.normal @ (self.C - face.polygon[0]) > 0)


@dataclass(frozen=True)
class _Corners:
    """Every corner of the castle once: where it is, what it looks like, and the faces it belongs to."""

    parts: tuple[Part, ...]
    X: Floats
    kind: Ints
    part: Ints
    faces: tuple[tuple[Face, ...], ...]

    @classmethod
    def of(cls, parts: tuple[Part, ...]) -> _Corners:
        """Collect the corners of all walls, roofs, windows and doors; mirrored corners are of one kind."""
        found: dict[tuple[int, tuple[float, ...]], tuple[object, list[Face]]] = {}
        for number, part in enumerate(parts):
            for face in part.faces:
                for x in face.polygon.round(6).tolist():
                    kind = (part.name, *np.abs(x).tolist())
                    found.setdefault((number, tuple(x)), (kind, []))[1].append(face)
                for opening in face.painted:
                    for at, x in enumerate(opening.polygon.round(6).tolist()):
                        found.setdefault((number, tuple(x)), ((part.name, opening.kind, at), []))[1].append(face)
        kinds = {kind: n for n, kind in enumerate(dict.fromkeys(kind for kind, _ in found.values()))}
        return cls(
            parts,
            np.array([x for _, x in found]),
            np.array([kinds[kind] for kind, _ in found.values()]),
            np.array([number for number, _ in found]),
            tuple(tuple(faces) for _, faces in found.values()),
        )


@dataclass(frozen=True)
class _Looks:
    """What each corner looks like from anywhere: a constant and two parts that turn with the camera, (3, n, D)."""

    vectors: Floats

    @classmethod
    def draw(cls, kind: Ints, rng: np.random.Generator) -> _Looks:
        """Draw a look for every corner: mostly its kind's, a little its own."""
        n, scale = len(kind), DIMENSION**-0.5
        common = scale * rng.standard_normal((int(kind.max()) + 1, DIMENSION))
        own = scale * rng.standard_normal((3, n, DIMENSION))
        return cls(np.stack([common[kind] + INDIVIDUAL * own[0], DRIFT * own[1], DRIFT * own[2]]))

    def changed(self, differ: float, rng: np.random.Generator) -> _Looks:
        """Return looks that differ from these by so much, corner by corner."""
        D = self.vectors.shape[2]
        own = differ * D**-0.5 * rng.standard_normal(self.vectors.shape[1:])
        return _Looks(self.vectors + np.stack([own, np.zeros_like(own), np.zeros_like(own)]))

    def seen(self, corners: Ints, azimuth: float, noise: float, rng: np.random.Generator) -> Floats:
        """Return unit descriptors, shape (n, D), of corners photographed from one direction."""
        still, cosine, sine = self.vectors[:, corners]
        change = noise * DIMENSION**-0.5 * rng.standard_normal(still.shape)
        look = still + np.cos(azimuth) * cosine + np.sin(azimuth) * sine + change
        return np.asarray(look / np.linalg.norm(look, axis=1, keepdims=True))


def _drawing(parts: tuple[Part, ...], view: _View) -> list[tuple[int, Floats, float, str]]:
    """Return what the camera sees as (part, polygon in pixels, shade, kind), far to near.

    Within a convex part the faces turned to the camera hide nothing of one another; of two parts divided by a plane
    x = constant, the one on the camera's side hides the other.
    """
    x = view.C[0]
    order = sorted(range(len(parts)), key=lambda n: -max(parts[n].span[0] - x, x - parts[n].span[1], 0.0))
    sun = np.array([-0.45, -0.75, 0.5])
    polygons = []
    for number in order:
        for face in filter(view.faces, parts[number].faces):
            shade = 0.5 + 0.5 * float(face.normal @ sun)
            polygons += [(number, view.project(f.polygon), shade, f.kind) for f in (face, *face.painted)]
    return polygons


def _visible(corners: _Corners, view: _View, polygons: list[tuple[int, Floats, float, str]]) -> NDArray[np.bool_]:
    """Mark the corners on a face turned to the camera that no nearer part covers and that lie inside the picture."""
    x = view.project(corners.X)
    visible: NDArray[np.bool_] = np.array([any(map(view.faces, faces)) for faces in corners.faces])
    visible &= (x > 0).all(axis=1) & (x < (WIDTH, HEIGHT)).all(axis=1)
    nearness = {number: place for place, (number, *_) in enumerate(polygons)}
    depth = np.array([nearness.get(number, -1) for number in range(len(corners.parts))])
    for number, polygon, _, _ in polygons:
        visible &= ~(_inside(x, polygon) & (depth[corners.part] < depth[number]))
    return visible


def _inside(x: Floats, polygon: Floats) -> NDArray[np.bool_]:
    """Mark the points x, shape (n, 2), inside a convex polygon, shape (c, 2), of either orientation."""
    edge = np.roll(polygon, -1, axis=0) - polygon
    to = x[:, None] - polygon
    side = edge[:, 0] * to[..., 1] - edge[:, 1] * to[..., 0]
    return np.asarray((side > 0).all(axis=1) | (side < 0).all(axis=1))


def _mutual(A: Floats, B: Floats) -> Ints:
    """Return the mutual nearest neighbours, shape (K, 2), among unit descriptors A (a, D) and B (b, D)."""
    if not len(A) or not len(B):
        return np.empty((0, 2), dtype=np.int64)
    similarity = A @ B.T
    best = similarity.argmax(axis=1)
    a = np.flatnonzero(similarity.argmax(axis=0)[best] == np.arange(len(A)))
    a = a[similarity[a, best[a]] >= SIMILAR]
    return np.stack([a, best[a]], axis=1)
