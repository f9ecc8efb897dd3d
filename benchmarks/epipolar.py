"""Matches judged by true epipolar lines, as MatchFAME's authors judge them: ``python -m benchmarks.epipolar``.

Their protocol: SIFT matches of images at a fifth of their size, wrong if farther than a threshold from their true
epipolar lines, pairs of images with two matches or more; precision, recall and time of what each method keeps. Here
the databases of two scenes (and of Herz-Jesu) stand for the images, which are not part of the data: keypoints of images
of 1000 pixels, of which those stay that a detector at a fifth of the original's size would see, that is of scale
``_SCALE`` or more in these images. The threshold is a hundredth of the focal length: .01 in normalised coordinates.

``STIEFELSYNC_DATA=DATA python -m benchmarks.epipolar`` prints the table; a method that takes longer than ``--limit``
seconds is stopped and told as such.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.herz_jesu import epipolar_distance
from benchmarks.pose_databases import SCENES, make
from benchmarks.poses import RAW, larger_side
from benchmarks.true_cameras import cameras
from stiefelsync import METHODS, Matchings, io, synchronise
from stiefelsync.sync.choose import fits

Bools = NDArray[np.bool_]

THRESHOLD = 0.01  # of the focal length
SHARE = 0.2  # of the original's size
ORIGINAL = 3072.0  # pixels on the larger side of the photographs
LEAST_SCALE = 1.6  # of SIFT's keypoints in the image they are found in
FEWEST = 2  # matches of a pair
DATABASES = ("verified", "ratio95", "rewired20")


def coarse_keypoints(path: Path, least: float) -> Bools:
    """Return which keypoints of a database, image after image, have at least this scale."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT rows, cols, data FROM keypoints ORDER BY image_id").fetchall()
    blocks = [np.frombuffer(data, dtype="<f4").reshape(count, cols) for count, cols, data in rows]
    # Columns 2 to 5 are an affine shape (or scale and orientation, where there are four).
    scales = [
        np.sqrt(np.abs(block[:, 2] * block[:, 5] - block[:, 3] * block[:, 4])) if block.shape[1] == 6 else block[:, 2]
        for block in blocks
    ]
    return np.concatenate(scales) >= least


def restricted(problem: Matchings, points: Bools) -> Matchings:
    """Return the problem of some points, with pairs of `FEWEST` matches or more."""
    number = np.cumsum(points) - 1
    ends = problem.endpoints[points[problem.endpoints].all(axis=1)]
    sizes = np.bincount(problem.point_objects[points], minlength=problem.n_objects)
    assert problem.coordinates is not None
    names, at = problem.names, problem.coordinates[points]
    found = Matchings.from_endpoints(number[ends], sizes, names=names, coordinates=at)
    return found.keep(np.bincount(found.match_pairs)[found.match_pairs] >= FEWEST)


def problems(
    data: Path, scenes: Sequence[str] = tuple(SCENES), databases: Sequence[str] = DATABASES
) -> Iterator[tuple[str, str, Matchings, Bools]]:
    """Yield scene, database, problem, and which matches are right."""
    for scene in scenes:
        for database in databases:
            if scene == "herz-jesu" and database == "ratio95":
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "database.db"
                make(data, scene, database, path)
                side, whole = larger_side(path), io.read(path, source=RAW)
                least = LEAST_SCALE * side / (SHARE * ORIGINAL)
                problem = restricted(whole, coarse_keypoints(path, least))
            truth = cameras(data / SCENES[scene], side)
            assert problem.names is not None
            of_images = [truth[name.split(".")[0]] for name in problem.names]
            focal = float(np.mean([camera.K[0, 0] for camera in of_images]))
            far = epipolar_distance(problem, [camera.P for camera in of_images])
            yield scene, database, problem, far <= THRESHOLD * focal


def _answer(method: str, problem: Matchings, queue: Any) -> None:
    began = time.process_time()
    answer = synchronise(problem, method=method)
    queue.put((answer.kept, time.process_time() - began))


def answer(method: str, problem: Matchings, limit: float) -> tuple[Bools, float] | str:
    """Return which matches a method keeps and its seconds of processor time, or why there is no answer."""
    if METHODS[method].sized and method not in ("accurate", "fast") and not fits(problem, int(problem.sizes.max())):
        return "too large"
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_answer, args=(method, problem, queue))
    process.start()
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if not queue.empty():
            found: tuple[Bools, float] = queue.get()
            process.join()
            return found
        if not process.is_alive() and queue.empty():
            return "no answer"
        time.sleep(0.02)
    process.kill()
    process.join()
    return f"over {limit:g} s"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), choices=list(SCENES))
    parser.add_argument("--databases", nargs="+", default=list(DATABASES), choices=DATABASES)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one answer")
    chosen = parser.parse_args()
    print("| scene | database | method | precision | recall | fscore | seconds |")
    print("|---|---|---|---|---|---|---|")
    for scene, database, problem, right in problems(
        Path(os.environ["STIEFELSYNC_DATA"]), chosen.scenes, chosen.databases
    ):
        given = f"{problem.n_points:,} keypoints, {problem.n_matches:,} matches"
        share = right.mean()
        print(f"| {scene} | {database} | *input*: {given} | {share:.3f} | 1 | {2 * share / (1 + share):.3f} | |")
        for method in chosen.methods:
            found = answer(method, problem, chosen.limit)
            if isinstance(found, str):
                print(f"| {scene} | {database} | {method} | {found} | | | |", flush=True)
                continue
            kept, seconds = found
            both = int((kept & right).sum())
            precision, recall = both / max(kept.sum(), 1), both / right.sum()
            fscore = 2 * both / (kept.sum() + right.sum())
            print(
                f"| {scene} | {database} | {method} | {precision:.3f} | {recall:.3f} | {fscore:.3f} | {seconds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
