"""A few photographs with keypoints in pixels: the default against ``tracks``, judged by true cameras.

``STIEFELSYNC_DATA=DATA python -m benchmarks.few_images`` takes runs of three to six images of three scenes, and some
of their connected sets of matches at random, so that no image has more than some hundred keypoints: where ``accurate``
does not hand over to ``tracks`` by itself. fscore of the matches kept, right ones being near their true epipolar lines;
the last column is what ``stiefelsync sync`` chooses. ``--rewired 0.4`` takes raw matches with more wrong ones instead.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.pose_databases import SCENES, make, rewire
from benchmarks.poses import VERIFIED, larger_side
from benchmarks.true_cameras import cameras, true_matches
from stiefelsync import Matchings, io, synchronise
from stiefelsync.matching.graph import connected
from stiefelsync.positions.neighbours import is_smooth, neighbour_support

METHODS = ("accurate", "fast", "tracks")
COUNTS = (3, 4, 6)
DATABASES = ("verified", "raw", "rewired20")


def part(problem: Matchings, first: int, count: int, most: int, rng: np.random.Generator) -> Matchings:
    """Return images `first` to `first + count − 1` with a random part of the connected sets of matches between them."""
    inside = (problem.pair_objects >= first) & (problem.pair_objects < first + count)
    ends = problem.endpoints[inside.all(axis=1)[problem.match_pairs]]
    component = connected(problem.n_points, ends)
    used = np.unique(ends)
    largest = int(np.bincount(problem.point_objects[used]).max())
    chosen = rng.random(int(component.max()) + 1) < most / largest
    points = used[chosen[component[used]]]
    number = np.full(problem.n_points, -1)
    number[points] = np.arange(len(points))
    sizes = np.bincount(problem.point_objects[points] - first, minlength=count)
    ends = ends[(number[ends] >= 0).all(axis=1)]
    assert problem.names is not None
    assert problem.coordinates is not None
    names = problem.names[first : first + count]
    return Matchings.from_endpoints(number[ends], sizes, names=names, coordinates=problem.coordinates[points])


def fscore(kept: np.ndarray, right: np.ndarray) -> float:
    """Return the harmonic mean of precision and recall of the matches kept."""
    return float(2 * (kept & right).sum() / (kept.sum() + right.sum()))


def main() -> None:
    """Print a line per scene, database and number of images."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--most", type=int, default=400, help="about as many keypoints in the image with most of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rewired", nargs="+", type=float, help="shares of raw matches to rewire")
    chosen = parser.parse_args()
    data, methods = Path(os.environ["STIEFELSYNC_DATA"]), ("as given", *METHODS)
    print("| scene | database | images | matches |", " | ".join(methods), "| seconds | sync |", flush=True)
    for scene in SCENES:
        for database in DATABASES if chosen.rewired is None else chosen.rewired:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "source.db"
                make(data, scene, database if isinstance(database, str) else "raw", path)
                if not isinstance(database, str):
                    rewire(path, database)
                side, whole = larger_side(path), io.read(path, source=VERIFIED)
            truth = cameras(data / SCENES[scene], side)
            for count in COUNTS:
                rng = np.random.default_rng([chosen.seed, count])
                few = part(whole, int(rng.integers(whole.n_objects - count + 1)), count, chosen.most, rng)
                right = true_matches(few, truth, side)
                told, spent = [f"{fscore(np.ones(len(right), dtype=bool), right):.3f}"], []
                for method in METHODS:
                    began = time.process_time()
                    told.append(f"{fscore(synchronise(few, method=method).kept, right):.3f}")
                    spent.append(f"{time.process_time() - began:.1f}")
                best = "tracks" if is_smooth(neighbour_support(few)) else "accurate"
                row = (scene, str(database), str(count), f"{few.n_matches:,}", *told, ", ".join(spent), best)
                print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
