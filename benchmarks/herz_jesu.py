"""Matches of Herz-Jesu-P8 before and after, judged by the true cameras: ``python -m benchmarks.herz_jesu``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync import Matchings, io, synchronise
from stiefelsync.positions.duplicate_keypoints import representatives
from stiefelsync.positions.neighbours import neighbour_support

THRESHOLD = 6.0  # pixels between a point and the true epipolar line of its match
NEAR = 10.0  # pixels within which COLMAP's global mapper takes two keypoints of a track for one

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def projection(path: Path) -> Floats:
    """Return the (3, 4) projection matrix K [R | -RC] of a ``.camera`` file: K, zeros, Rᵀ, C and the image size."""
    numbers = np.array(path.read_text().split(), dtype=float)
    K, R, C = numbers[:9].reshape(3, 3), numbers[12:21].reshape(3, 3).T, numbers[21:24]
    return K @ np.column_stack([R, -R @ C])


def fundamental(P: Floats, Q: Floats) -> Floats:
    """Return F with yᵀ F x = 0 for the images x, y of a point under the projections P and Q."""
    centre = np.linalg.svd(P)[2][-1]
    e = Q @ centre
    cross = np.array([[0, -e[2], e[1]], [e[2], 0, -e[0]], [-e[1], e[0], 0]])
    return cross @ Q @ np.linalg.pinv(P)


def epipolar_distance(matchings: Matchings, cameras: list[Floats]) -> Floats:
    """Return for every match the larger of its two distances to the true epipolar lines, in pixels; shape (M,)."""
    assert matchings.coordinates is not None
    xy = matchings.coordinates.astype(float)
    distance = np.empty(matchings.n_matches)
    bounds = matchings.pair_start
    for s, (i, j) in enumerate(matchings.pair_objects):
        rows = slice(bounds[s], bounds[s + 1])
        F = fundamental(cameras[i], cameras[j])
        x, y = (np.column_stack([xy[ends], np.ones(len(ends))]) for ends in matchings.endpoints[rows].T)
        in_second, in_first = x @ F.T, y @ F
        residual = abs((y * in_second).sum(axis=1))
        lines = [np.hypot(line[:, 0], line[:, 1]) for line in (in_first, in_second)]
        distance[rows] = residual / np.minimum(*lines)
    return distance


def load(folder: Path, source: str) -> tuple[Matchings, Bools]:
    """Return the matches and which of them are true: within THRESHOLD of both true epipolar lines."""
    matchings = io.read(folder / "database.db", source=source)
    assert matchings.names is not None
    cameras = [projection(folder / "cameras" / f"{name}.camera") for name in matchings.names]
    return matchings, epipolar_distance(matchings, cameras) <= THRESHOLD


def answers(matchings: Matchings) -> Iterator[tuple[str, Bools]]:
    """Yield the name of an answer and which matches it keeps."""
    yield "input", np.ones(matchings.n_matches, dtype=bool)
    themselves = np.arange(matchings.n_points)
    yield "union-find, conflicting tracks discarded", kept(matchings, themselves, matchings, method="union-find")
    yield "tracks, without positions", kept(matchings, themselves, matchings, method="tracks", neighbours=0, copies=0)
    yield "tracks, copies=0", kept(matchings, themselves, matchings, method="tracks", copies=0)
    yield "tracks", kept(matchings, themselves, matchings, method="tracks")
    assert matchings.coordinates is not None
    stands = representatives(matchings.coordinates, matchings.sizes, matchings.endpoints, NEAR)
    merged = Matchings.from_endpoints(
        stands[matchings.endpoints], matchings.sizes, weights=matchings.weights, coordinates=matchings.coordinates,
        one_to_many="repair",
    )  # fmt: skip
    yield f"tracks, keypoints within {NEAR:g} px as one", kept(matchings, stands, merged, method="tracks")


def kept(original: Matchings, stands: NDArray[np.int64], problem: Matchings, **options: Any) -> Bools:
    labels = synchronise(problem, **options).labels
    ends = labels[stands[original.endpoints]]
    return (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)


def rates(keep: Bools, true: Bools) -> tuple[float, float, float]:
    """Return precision, recall and fscore of the kept matches."""
    precision, recall = true[keep].mean(), (true & keep).sum() / true.sum()
    return precision, recall, 2 * precision * recall / (precision + recall)


def sensitivity(folder: Path) -> None:
    """Print how many raw matches have no support, by the number of neighbours and the tolerance."""
    matchings, true = load(folder, "matches")
    print("| neighbours | tolerance | wrong ones without support | true ones without support |")
    print("|---|---|---|---|")
    for asked in (4, 8, 16):
        for tolerance in (0.4, 0.5, 0.6):
            alone = neighbour_support(matchings, asked, tolerance=tolerance) == 0
            print(f"| {asked} | {tolerance:g} | {(alone & ~true).sum()} | {(alone & true).sum()} |")


def table(folder: Path) -> None:
    """Print what every answer keeps and removes."""
    print("| matches | answer | kept | wrong ones removed | true ones removed | precision | recall | fscore |")
    print("|---|---|---|---|---|---|---|---|")
    for word, source in (("raw", "matches"), ("verified", "two_view_geometries")):
        matchings, true = load(folder, source)
        for name, keep in answers(matchings):
            counts = f"{keep.sum():,} | {(~keep & ~true).sum()} of {(~true).sum()} | {(~keep & true).sum():,}"
            print(f"| {word} | {name} | {counts} | " + " | ".join(f"{x:.4f}" for x in rates(keep, true)) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sensitivity", action="store_true", help="the choice of neighbours and tolerance instead")
    chosen = sensitivity if parser.parse_args().sensitivity else table
    chosen(Path(os.environ["STIEFELSYNC_DATA"]) / "herz-jesu-p8")


if __name__ == "__main__":
    main()
