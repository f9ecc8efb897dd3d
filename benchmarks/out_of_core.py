"""Problems larger than memory: ``python -m benchmarks.out_of_core FOLDER --scale 50`` (200,000 keypoints a unit).

Draws a scene of the shape of ``datasets.scene(20_000·scale, 200·scale, 1_000, 2_000, wrong, missing=0.3)`` camera by
camera into a Parquet dataset in FOLDER, which never is in memory whole, solves it out of core in a process of its own,
and prints wall-clock and processor seconds, peak memory and fscore. ``--scale 50`` is ten million keypoints, ``--scale
500`` a hundred million (3.5 GB of disk). A dataset that is there is used again; ``--workers N`` solves it on a local
Dask cluster and also gives the processor seconds of the workers, ``--in-memory`` reads all of it and runs method
"tracks" on the whole.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stiefelsync import distributed, io, score, synchronise
from stiefelsync.distributed.cluster import cluster
from stiefelsync.io.parquet import Piece, write_pieces

SEEN, WINDOW, MISSING, FEWEST, STEP = 1_000, 2_000, 0.3, 15, 100
REACH = int(0.8 * WINDOW) // STEP  # cameras on either side that a camera is matched with
CAMERAS_PER_PIECE = 50


def observed(camera: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where in its window a camera sees points, (seen,), and which point is at each place, (window,), or -1."""
    at = np.random.default_rng([seed, camera]).permutation(WINDOW)[:SEEN]
    place = np.full(WINDOW, -1)
    place[at] = np.arange(SEEN)
    return at, place


def matches(i: int, j: int, cameras: int, seen: dict[int, tuple], wrong: float, seed: int) -> NDArray[np.int32]:
    """Return the matches of two cameras, (K, 2)."""
    rng = np.random.default_rng([seed, i, j])
    apart = (
        j - i if j - i <= cameras // 2 else j - i - cameras
    ) * STEP  # how far the window of j starts after that of i
    ahead = seen[i][0] - apart
    common = np.flatnonzero((ahead >= 0) & (ahead < WINDOW))
    target = seen[j][1][ahead[common]]
    both = np.flatnonzero((target >= 0) & (rng.random(len(target)) >= MISSING))
    pairs = np.stack([common[both], target[both]], axis=1).astype(np.int32)
    if len(pairs) < FEWEST:
        return pairs[:0]
    chosen = rng.permutation(len(pairs))[: round(wrong * len(pairs))]
    pairs[np.sort(chosen), 1] = pairs[chosen, 1]
    return pairs


def pieces(cameras: int, wrong: float, seed: int) -> Iterator[Piece]:
    """Yield the matches of some cameras at a time."""
    for first in range(0, cameras, CAMERAS_PER_PIECE):
        seen: dict[int, tuple] = {}
        objects, blocks = [], []
        for i in range(first, min(first + CAMERAS_PER_PIECE, cameras)):
            near = sorted({(i + step) % cameras for step in range(-REACH, REACH + 1)})
            for camera in {i, *near} - seen.keys():
                seen[camera] = observed(camera, seed)
            for j in (j for j in near if j > i):
                block = matches(i, j, cameras, seen, wrong, seed)
                if len(block):
                    objects.append((i, j))
                    blocks.append(block)
        yield Piece(np.array(objects), np.array(list(map(len, blocks))), np.concatenate(blocks))


def generate(folder: Path, scale: int, wrong: float, seed: int = 0) -> None:
    """Write the dataset and, beside it, the true labels."""
    cameras = 200 * scale
    start = time.perf_counter()
    truth = np.empty(cameras * SEEN, dtype=np.int32)
    for camera in range(cameras):
        seen = observed(camera, seed)[0] + camera * STEP
        truth[camera * SEEN : (camera + 1) * SEEN] = seen % (cameras * STEP)
    unfinished = folder.with_name(folder.name + ".part")
    write_pieces(unfinished, np.full(cameras, SEEN), pieces(cameras, wrong, seed))
    np.save(unfinished / "truth.npy", truth)
    unfinished.rename(folder)
    print(f"drawn in {time.perf_counter() - start:.0f} s", flush=True)


def solve(folder: Path, group: int, workers: int, in_memory: bool, checkpoint: Path | None) -> None:
    """Solve a dataset, print the figures as JSON, and leave the labels beside it."""
    problem = io.read(folder) if in_memory else None
    with cluster(workers=workers) if workers else nullcontext() as client:
        start, spent = time.perf_counter(), time.process_time()
        before = sum(client.run(time.process_time).values()) if workers else 0.0
        if problem is not None:
            answer = synchronise(problem, method="tracks")
        else:
            answer = distributed.synchronise(folder, client=client, group=group, checkpoint=checkpoint)
        seconds, spent = time.perf_counter() - start, time.process_time() - spent
        elsewhere = sum(client.run(time.process_time).values()) - before if workers else 0.0
    figures = {
        "seconds": seconds,
        "processor_seconds": spent,
        "processor_seconds_of_workers": elsewhere,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "points": len(answer.labels),
        "matches": answer.input.n_matches if in_memory else answer.n_matches,
    }
    np.save(folder / "labels.npy", answer.labels.astype(np.int32))
    print(json.dumps(figures))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=50)
    parser.add_argument("--wrong", type=float, default=0.3)
    parser.add_argument("--group", type=int, default=distributed.GROUP)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        solve(options.folder, options.group, options.workers, options.in_memory, options.checkpoint)
        return 0
    if not options.folder.exists():
        generate(options.folder, options.scale, options.wrong)
    command = [sys.executable, "-m", "benchmarks.out_of_core", *sys.argv[1:], "--alone"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    labels, truth = (np.load(options.folder / f"{name}.npy").astype(np.int64) for name in ("labels", "truth"))
    figures["fscore"] = score(labels, truth).fscore
    print(json.dumps(figures), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
