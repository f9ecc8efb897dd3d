"""Nanoseconds and bytes per match for building Matchings from 5 million matches over 500 objects.

Run ``python -m benchmarks.matchings``; ends with exit code 1 if a row needs 1 GB or more. Each row runs in a process of
its own, so that its peak is its own: the largest resident memory, interpreter, libraries and input arrays included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from stiefelsync.matching import Matchings

OBJECTS, POINTS = 500, 10_000
LIMIT = 1e9


def flat(matches: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw so many matches, the same number for every pair of objects, one-to-one, sorted by pair."""
    i, j = np.triu_indices(OBJECTS, 1)
    per_pair = max(matches // len(i), 1)
    # Consecutive points modulo POINTS from random starts are one-to-one and cost no sorting.
    start = rng.integers(POINTS, size=(len(i), 1, 2))
    points = (start + np.arange(per_pair)[:, None]) % POINTS
    objects = np.repeat(np.stack([i, j], axis=1), per_pair, axis=0)
    return objects.astype(np.int32), points.reshape(-1, 2).astype(np.int32)


def sorted_arrays(objects: np.ndarray, points: np.ndarray) -> Callable[[], Matchings]:
    return lambda: Matchings.from_arrays(objects, points, np.full(OBJECTS, POINTS))


def shuffled_arrays(objects: np.ndarray, points: np.ndarray) -> Callable[[], Matchings]:
    order = np.random.default_rng(1).permutation(len(objects))
    flip = order % 2 == 0
    objects, points = objects[order], points[order]
    objects[flip], points[flip] = objects[flip, ::-1], points[flip, ::-1]
    return lambda: Matchings.from_arrays(objects, points, np.full(OBJECTS, POINTS))


def pair_dict(objects: np.ndarray, points: np.ndarray) -> Callable[[], Matchings]:
    i, j = np.triu_indices(OBJECTS, 1)
    keys = zip(i.tolist(), j.tolist(), strict=True)
    pairs = dict(zip(keys, points.reshape(len(i), -1, 2), strict=True))
    return lambda: Matchings.from_pairs(pairs, np.full(OBJECTS, POINTS))


def repaired(objects: np.ndarray, points: np.ndarray) -> Callable[[], Matchings]:
    points = points.copy()
    points[::100, 1] = points[1::100, 1][: len(points[::100])]
    return lambda: Matchings.from_arrays(objects, points, np.full(OBJECTS, POINTS), one_to_many="repair")


ROWS: dict[str, Callable[[np.ndarray, np.ndarray], Callable[[], Matchings]]] = {
    "flat arrays, sorted": sorted_arrays,
    "flat arrays, shuffled and flipped": shuffled_arrays,
    "dict of pairs": pair_dict,
    "flat arrays, one in 100 in conflict": repaired,
}


def measure(name: str, matches: int) -> dict[str, Any]:
    """Build once in this process and return its row."""
    build = ROWS[name](*flat(matches, np.random.default_rng(0)))
    start = time.perf_counter()
    built = build()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"row": name, "matches": built.n_matches, "ns_per_match": 1e9 * seconds / built.n_matches, "peak": peak}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matches", type=int, default=5_000_000)
    parser.add_argument("--row", choices=ROWS, help="measure one row in this process and print it as JSON")
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(measure(arguments.row, arguments.matches)))
        return 0
    print(f"{'input':38}{'matches':>10}{'ns/match':>10}{'peak MB':>9}")
    ok = True
    for name in ROWS:
        command = [sys.executable, "-m", "benchmarks.matchings", "--row", name, "--matches", str(arguments.matches)]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        ok &= row["peak"] < LIMIT
        print(f"{name:38}{row['matches']:>10,}{row['ns_per_match']:>10.0f}{row['peak'] / 1e6:>9.0f}")
    if not ok:
        print("a row needs 1 GB or more", file=sys.stderr)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
