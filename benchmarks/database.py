"""A large COLMAP database from end to end: ``python -m benchmarks.database [FOLDER]``.

Draws 2,000 images of a strip of surface (4 million keypoints with positions, 4 million matches, a tenth of them wrong),
writes them as a COLMAP database, runs ``stiefelsync sync`` on it in a process of its own, with and without positions,
and prints clock and processor seconds and peak memory. A database that is in FOLDER is used again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stiefelsync import Matchings, datasets, io

MOST_SECONDS, MOST_GB = 30.0, 2.0
HEIGHT, NOISE, TURN = 2_000.0, 0.5, 0.1  # of the strip, of positions and of the angles and scales of images


def strip(problem: Matchings, truth: NDArray[np.int64], *, rng: int = 0) -> NDArray[np.float32]:
    """Return positions of the points of a scene: a strip of surface in images that are turned and scaled a little."""
    draw, universe, k = np.random.default_rng(rng), int(truth.max()) + 1, problem.n_objects
    across, image = draw.uniform(0, HEIGHT, universe), problem.point_objects
    along = (truth - image * (universe / k) + universe / 2) % universe - universe / 2
    turned = np.exp(draw.normal(0, TURN, k) + 1j * draw.normal(0, TURN, k))[image]
    z = (along + 1j * across[truth]) * turned
    noise = draw.normal(0, NOISE, (len(z), 2))
    place: NDArray[np.float32] = (np.stack([z.real, z.imag], axis=1) + noise).astype(np.float32)
    return place - place.min(axis=0)


def with_positions(problem: Matchings, places: NDArray[np.float32]) -> Matchings:
    """Return the same matches between points with positions."""
    return Matchings.from_endpoints(problem.endpoints, problem.sizes, weights=problem.weights, coordinates=places)


def draw(folder: Path, images: int) -> None:
    """Write the database and, beside it, the true labels."""
    problem, truth = datasets.scene(565 * images, images, 2_000, 4_000, wrong=0.1, missing=0.3, rng=0)
    io.write(with_positions(problem, strip(problem, truth)), folder / "database.db")
    np.save(folder / "truth.npy", truth)
    print(f"{problem.n_objects:,} images, {problem.n_points:,} keypoints, {problem.n_matches:,} matches", flush=True)


def sync(folder: Path, *options: str) -> dict[str, float]:
    """Return the figures of one run of the command line."""
    clean = folder / "clean.db"
    clean.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-c",
        "from stiefelsync.cli import main; main()",
        "sync",
        str(folder / "database.db"),
        "-o",
        str(clean),
        "--json",
    ]
    start = time.perf_counter()
    run = subprocess.Popen([*command, "--method", "tracks", *options], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    json.loads(run.stdout.read())
    _, status, used = os.wait4(run.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "peak_gb": used.ru_maxrss / 1e6,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--images", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(exist_ok=True)
        if not (folder / "database.db").exists():
            draw(folder, options.images)
        found = {}
        for name, more in (("positions", []), ("none", ["--option", "neighbours=0", "--option", "copies=0"])):
            found[name] = sync(folder, *more)
            print(name, json.dumps(found[name]), flush=True)
        (folder / "clean.db").unlink(missing_ok=True)
    return 0 if found["positions"]["seconds"] <= MOST_SECONDS and found["positions"]["peak_gb"] <= MOST_GB else 1


if __name__ == "__main__":
    sys.exit(main())
