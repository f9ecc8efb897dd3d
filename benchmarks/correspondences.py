"""Keypoints and tracks from jittered correspondences, against rounding to grids.

``STIEFELSYNC_DATA=DATA python -m benchmarks.correspondences`` takes the verified matches of two scenes, adds noise to
both positions of every match, forgets the keypoints, and asks which positions are found to be of one track. The truth
is what method `tracks` finds with the keypoints known (`doubt=0`), those in the very same place counting as one: SIFT
gives one for each orientation, which no position tells apart.

Two ceilings go with it, of programs that know what no program can: one is told the true positions of all keypoints and
takes every end for the nearest of its image; the other is told all true matches as well, and takes every correspondence
for the nearest of its pair of images.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from stiefelsync import Matchings, io, synchronise
from stiefelsync.sync.keypoints import find_keypoints

SCENES = ("fountain-P11", "entry-P10")
NOISE = (0.25, 0.5, 1.0, 2.0)
CELLS = (2, 4, 8)
SAME_PLACE = 0.05  # pixels

Ints = NDArray[np.int64]


def fscore(labels: Ints, truth: Ints) -> float:
    """Return the fscore of the pairs of positions in one track; -1 is no track."""

    def pairs(numbers: Ints) -> int:
        count = np.unique(numbers, return_counts=True)[1]
        return int((count * (count - 1) // 2).sum())

    both = (labels >= 0) & (truth >= 0)
    right = pairs(labels[both] * (int(truth.max()) + 1) + truth[both])
    return 2 * right / (pairs(labels[labels >= 0]) + pairs(truth[truth >= 0]))


def identities(problem: Matchings) -> tuple[Ints, Matchings]:
    """Return for every keypoint the number of its place, and the problem between places."""
    assert problem.coordinates is not None
    cell = np.round(problem.coordinates.astype(float) / SAME_PLACE).astype(np.int64)
    key = np.column_stack([problem.point_objects, cell])
    _, first, place = np.unique(key, axis=0, return_index=True, return_inverse=True)
    sizes = np.bincount(problem.point_objects[first], minlength=problem.n_objects)
    ends = place.ravel()[problem.endpoints]
    merged = Matchings.from_endpoints(ends, sizes, coordinates=problem.coordinates[first], one_to_many="repair")
    return place.ravel(), merged


def jittered(problem: Matchings, noise: float, seed: int = 0) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Return the matches as positions with noise of their own in every pair."""
    assert problem.coordinates is not None
    xy = problem.coordinates.astype(float)[problem.endpoints]
    xy += np.random.default_rng(seed).normal(size=xy.shape) * noise
    blocks = np.split(xy.reshape(-1, 4), problem.pair_start[1:-1])
    return {(int(i), int(j)): block for (i, j), block in zip(problem.pair_objects, blocks, strict=True)}


def on_grid(problem: Matchings, pairs: dict[tuple[int, int], NDArray[np.float64]], cell: int, rule: str) -> Ints:
    """Return the track of both ends of every match when positions are rounded to cells; shape (M, 2)."""
    xy = np.concatenate(list(pairs.values())).reshape(-1, 2, 2)
    key = np.concatenate([problem.point_objects[problem.endpoints][..., None], np.floor(xy / cell)], axis=2)
    found, point = np.unique(key.reshape(-1, 3), axis=0, return_inverse=True)
    sizes = np.bincount(found[:, 0].astype(np.int64), minlength=problem.n_objects)
    ends = point.reshape(-1, 2)
    rounded = Matchings.from_endpoints(ends, sizes, one_to_many="repair")
    labels = synchronise(rounded, method="union-find").labels if rule == "union-find" else kruskal(rounded)
    return labels[ends]


def kruskal(problem: Matchings) -> Ints:
    """Join along matches in random order, never so that a track has two points of an image."""
    parent = list(range(problem.n_points))
    images = [{owner} for owner in problem.point_objects.tolist()]

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for a, b in np.random.default_rng(0).permutation(problem.endpoints).tolist():
        a, b = root(a), root(b)
        if a != b and not images[a] & images[b]:
            parent[b] = a
            images[a] |= images[b]
    return np.array([root(x) for x in range(problem.n_points)])


def nearest_keypoints(problem: Matchings, xy: NDArray[np.float64], ends: Ints) -> Ints:
    """Return for both ends of every correspondence, shape (M, 2), the nearest of the true keypoints `ends`."""
    assert problem.coordinates is not None
    found = np.empty_like(ends)
    owner = problem.point_objects[ends]
    for image in range(problem.n_objects):
        here = owner == image
        known = np.unique(ends[here])
        found[here] = known[cKDTree(problem.coordinates[known]).query(xy[here])[1]]
    return found


def nearest_matches(problem: Matchings, xy: NDArray[np.float64], ends: Ints, start: Ints) -> Ints:
    """Return for every correspondence, shape (M, 2), the nearest of the true matches `ends` of its pair of images."""
    assert problem.coordinates is not None
    found = np.empty_like(ends)
    for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        true = problem.coordinates[ends[first:last]].reshape(-1, 4)
        found[first:last] = ends[first:last][cKDTree(true).query(xy[first:last].reshape(-1, 4))[1]]
    return found


def row(problem: Matchings, noise: float) -> list[float]:
    """Return the fscores of our tracks, of the two ceilings, and of every rival's."""
    place, merged = identities(problem)
    labels, ends = synchronise(merged, method="tracks", doubt=0).labels, place[problem.endpoints]
    truth = labels[ends].ravel()
    pairs = jittered(problem, noise)
    xy = np.concatenate(list(pairs.values())).reshape(-1, 2, 2)
    told = nearest_keypoints(merged, xy, ends), nearest_matches(merged, xy, ends, problem.pair_start)
    ceilings = [fscore(labels[guess].ravel(), truth) for guess in told]
    found = find_keypoints(pairs, problem.n_objects)
    ours = synchronise(found.matchings, method="tracks", doubt=0).labels[found.of_ends].ravel()
    rivals = [
        fscore(on_grid(problem, pairs, cell, rule).ravel(), truth)
        for rule in ("union-find", "kruskal")
        for cell in CELLS
    ]
    return [fscore(ours, truth), *ceilings, *rivals]


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0]).parse_args()
    grids = " | ".join(f"{rule}, {cell} px" for rule in ("union-find", "Kruskal") for cell in CELLS)
    print(f"| scene | noise, px | ours | keypoints told | matches told | {grids} |")
    print("|---|---|" + "---|" * 9)
    for scene in SCENES:
        problem = io.read(Path(os.environ["STIEFELSYNC_DATA"]) / "strecha" / scene / "verified.db")
        for noise in NOISE:
            print(f"| {scene} | {noise:g} | " + " | ".join(f"{x:.3f}" for x in row(problem, noise)) + " |", flush=True)


if __name__ == "__main__":
    main()
