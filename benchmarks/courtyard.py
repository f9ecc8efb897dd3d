"""Cameras of a scene that no rule was chosen on: ``python -m benchmarks.courtyard``.

A courtyard of four walls with rows of equal windows, drawn at random and photographed by a walk inside, so that most
pairs of photographs that match show different windows. Descriptors drift with the direction of view and differ from
photograph to photograph; a tenth of the keypoints are found twice. The databases are those of ``benchmarks.poses``:
ratio tests of .8 (*verified*), .88 and .95, and the same on a grid of 8 pixels, all verified by COLMAP. The table has
AUC@1° and @5°, images and points in three or more of them, originally and after the default recipe.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.poses import MAPPERS, VERIFIED, judge, verify
from benchmarks.true_cameras import Camera, true_matches
from stiefelsync import Matchings, io, synchronise

Floats = NDArray[np.float64]

WIDTH, HEIGHT, FOCAL = 1000, 667, 950.0
HALF = np.array([20.0, 14.0])  # metres from the middle of the courtyard to its walls
HIGH, FLOORS, STOREY, SPACING = 12.0, 3, 3.6, 3.4  # metres, but for the floors
CORNERS, TEXTURE = 40, 60  # keypoints of a window, and others per metre of wall
PHOTOGRAPHS, TURN = 19, np.deg2rad(200.0)
DIMENSION, OWN, DRIFT, NOISE = 32, 0.4, 0.25, 0.55  # of descriptors, relative to what windows have in common
DETECTED, TWICE, BLUR = 0.75, 0.1, 0.6  # chances, and pixels
FARTHEST, FEWEST, CELL = 0.9, 15, 8  # distance of descriptors, matches of a pair, pixels
DATABASES = {"verified": (0.8, False), "ratio88": (0.88, False), "ratio95": (0.95, False), "grid8": (0.8, True),
             "grid8, ratio88": (0.88, True), "grid8, ratio95": (0.95, True)}  # fmt: skip


@dataclass(frozen=True)
class Courtyard:
    """Points of the walls: places (n, 3), outward normals (n, 2), looks (n, D), and how these drift, (2, n, D)."""

    X: Floats
    normal: Floats
    look: Floats
    drift: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Courtyard:
        """Draw windows that are all alike, and texture that is not."""
        window = np.column_stack([rng.uniform(-1, 1, (CORNERS, 2)) * [0.7, 1.0], rng.uniform(-0.25, 0.25, CORNERS)])
        places, normals, kinds = [], [], []
        for axis, side in ((0, -1), (0, 1), (1, -1), (1, 1)):
            length = 2 * HALF[axis]
            columns = (np.arange(int(length / SPACING)) + 0.5) * length / int(length / SPACING)
            at = np.array([(s, 2.0 + STOREY * floor, 0.0) for s in columns for floor in range(FLOORS)])
            n = int(TEXTURE * length)
            texture = np.column_stack([rng.uniform(0, length, n), rng.uniform(0, HIGH, n), rng.uniform(-0.5, 0.2, n)])
            # Along the wall, height, and how far it stands out into the courtyard.
            wall = np.vstack([(at[:, None] + window).reshape(-1, 3), texture])
            X = np.empty_like(wall)
            X[:, axis], X[:, 2] = wall[:, 0] - HALF[axis], wall[:, 1]
            X[:, 1 - axis] = side * (HALF[1 - axis] - wall[:, 2])
            places.append(X)
            normals.append(np.tile(-side * np.eye(2)[1 - axis], (len(wall), 1)))
            kinds.append(np.append(np.tile(np.arange(CORNERS), len(at)), np.full(n, -1)))
        kind, scale = np.concatenate(kinds), DIMENSION**-0.5
        alike = scale * rng.standard_normal((CORNERS, DIMENSION))
        own = scale * rng.standard_normal((len(kind), DIMENSION))
        look = np.where(kind[:, None] >= 0, alike[kind] + OWN * own, own)
        return cls(np.vstack(places), np.vstack(normals), look, DRIFT * scale * rng.standard_normal((2, *own.shape)))


def walk(rng: np.random.Generator) -> dict[str, Camera]:
    """Return cameras that walk around the middle of the courtyard and look at its walls, by name."""
    found = {}
    K = np.array([[FOCAL, 0, WIDTH / 2], [0, FOCAL, HEIGHT / 2], [0, 0, 1]])
    for n, angle in enumerate(np.linspace(-TURN / 2, TURN / 2, PHOTOGRAPHS)):
        C = np.array([-7 * np.cos(angle), -5 * np.sin(angle), 1.7]) + rng.normal(0, [0.3, 0.3, 0.06])
        forward = np.array([np.cos(angle), np.sin(angle), rng.uniform(0.12, 0.22)]) + rng.normal(0, 0.05, 3)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        found[f"{n:04d}"] = Camera(K, np.stack([right, np.cross(forward, right), forward]), C)
    return found


def photograph(scene: Courtyard, camera: Camera, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the positions (n, 2) and unit descriptors (n, D) of what a detector finds in a photograph."""
    away = scene.X - camera.C
    x, y, depth = camera.R @ away.T
    with np.errstate(divide="ignore", invalid="ignore"):
        place = np.array([WIDTH / 2, HEIGHT / 2]) + FOCAL * np.stack([x, y], axis=1) / depth[:, None]
    distance = np.linalg.norm(away, axis=1)
    seen = (depth > 1) & ((scene.normal * -away[:, :2]).sum(axis=1) > 0.15 * distance)
    seen &= (place > 5).all(axis=1) & (place < np.array([WIDTH, HEIGHT]) - 5).all(axis=1)
    seen &= rng.random(len(seen)) < DETECTED * np.clip(14 / distance, 0.3, 1)
    found = np.flatnonzero(seen)
    again = rng.random(len(found)) < TWICE
    found = rng.permutation(np.append(found, found[again]))
    angle = np.arctan2(away[found, 1], away[found, 0])[:, None]
    look = scene.look[found] + np.cos(angle) * scene.drift[0, found] + np.sin(angle) * scene.drift[1, found]
    look += NOISE * DIMENSION**-0.5 * rng.standard_normal(look.shape)
    look /= np.linalg.norm(look, axis=1, keepdims=True)
    return place[found] + rng.normal(0, BLUR, (len(found), 2)), look


def matched(one: Floats, two: Floats, ratio: float) -> NDArray[np.int64]:
    """Return the mutual nearest neighbours among descriptors that pass a ratio test both ways, (K, 2)."""
    distance = np.sqrt(np.maximum(2 - 2 * one @ two.T, 0))
    best = distance.argmin(axis=1)
    first, second = np.partition(distance, 1, axis=1)[:, :2].T
    passed, back = np.partition(distance, 1, axis=0)[:2]
    good = distance.argmin(axis=0)[best] == np.arange(len(best))
    good &= (first < ratio * second) & (passed < ratio * back)[best] & (first < FARTHEST)
    return np.stack([np.flatnonzero(good), best[good]], axis=1)


def draw(seed: int, ratio: float, gridded: bool) -> tuple[Matchings, dict[str, Camera]]:
    """Return the raw matches of all pairs of photographs, and the true cameras."""
    rng = np.random.default_rng(seed)
    scene, truth = Courtyard.draw(rng), walk(rng)
    shots = [photograph(scene, camera, rng) for camera in truth.values()]
    places = [place for place, _ in shots]
    pairs = {(i, j): matched(shots[i][1], shots[j][1], ratio) for i, j in combinations(range(len(shots)), 2)}
    if gridded:
        cells = [np.unique(np.floor(place / CELL), axis=0, return_inverse=True) for place in places]
        places = [(corner + 0.5) * CELL for corner, _ in cells]
        number = [inverse.ravel() for _, inverse in cells]
        pairs = {(i, j): np.stack([number[i][a], number[j][b]], axis=1) for (i, j), (a, b) in
                 ((pair, block.T) for pair, block in pairs.items())}  # fmt: skip
    problem = Matchings.from_pairs(
        {pair: block for pair, block in pairs.items() if len(block) >= FEWEST},
        [len(place) for place in places],
        names=[f"{name}.jpg" for name in truth],
        coordinates=np.concatenate(places),
        one_to_many="repair",
    )
    return problem, truth


def rows(seed: int, database: str) -> None:
    """Print the rows of one database."""
    ratio, gridded = DATABASES[database]
    problem, truth = draw(seed, ratio, gridded)
    with tempfile.TemporaryDirectory() as folder:
        source, clean, cameras = (Path(folder) / name for name in ("source.db", "clean.db", "cameras.csv"))
        camera = f"*,SIMPLE_PINHOLE,{WIDTH},{HEIGHT},{FOCAL} {WIDTH / 2} {HEIGHT / 2}"
        cameras.write_text(f"name,model,width,height,params\n{camera}\n")
        with contextlib.redirect_stderr(None):
            io.write(problem, source, "colmap", cameras=str(cameras))
            verify(source, 0.75 * CELL if gridded else 4.0)
        problem = io.read(source, source=VERIFIED)
        io.write(synchronise(problem, method="tracks"), clean, like=source, source=VERIFIED)
        right, pair = true_matches(problem, truth, (4 if gridded else 1) * WIDTH), problem.match_pairs
        share = np.bincount(pair, right) / np.bincount(pair)
        wrong = f"{np.count_nonzero(share < 0.5)} of {len(share)}"
        for mapper in MAPPERS:
            before, after = (judge(truth, source, path, mapper) for path in (source, clean))
            both = [f"{before[name]:.3f}, {after[name]:.3f}" for name in ("auc1", "auc5")]
            both += [f"{before[name]}, {after[name]}" for name in ("images", "points3")]
            both += [f"{before['precision']:.3f}, {after['precision']:.3f}", f"{after['recall']:.3f}"]
            print(f"| {seed} | {database} | {mapper} | {wrong} | {' | '.join(both)} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--databases", nargs="+", default=list(DATABASES), choices=list(DATABASES))
    chosen = parser.parse_args()
    print("| seed | database | mapper | pairs mostly wrong | AUC@1°: original, sync | AUC@5° | images "
          "| points in ≥ 3 images | precision | recall |")  # fmt: skip
    print("|" + "---|" * 10)
    for seed in chosen.seeds:
        for database in chosen.databases:
            rows(seed, database)


if __name__ == "__main__":
    main()
