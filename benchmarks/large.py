"""Large universes against union-find: ``python -m benchmarks.large`` (``--quick`` leaves out the million points).

``--weights`` shows instead what weights of matches do to the fscore and the time of `tracks`.

Times are processor seconds (both are single-threaded), the best of several runs that alternate between both, so that
they can be compared. Union-find is the registered method: SciPy's connected components, with the construction of the
graph and the dropping of conflicted tracks.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from stiefelsync import Matchings, datasets, score
from stiefelsync.sync.method import find_method

WRONG = (0.0, 0.1, 0.3, 0.5)
REPEATS = 5
ALTERNATIONS = 3
MOST_TIMES = 15.0
LEAST_FSCORE = {0.0: 0.999, 0.1: 0.99, 0.3: 0.96, 0.5: 0.85}


def scene(scale: int, wrong: float) -> tuple[Matchings, Any]:
    """Return a scene of scale · 200,000 keypoints."""
    return datasets.scene(20_000 * scale, 200 * scale, 1_000, 2_000, wrong=wrong, missing=0.3, rng=0)


def fresh(problem: Matchings) -> Matchings:
    """Return a copy without cached views, so that every run pays for them."""
    return problem.with_weights(problem.weights)


def timed(name: str, problem: Matchings) -> tuple[float, Any]:
    run: Callable[..., Any] = find_method(name).run
    start = time.process_time()
    outcome = run(fresh(problem), problem.n_points, rng=np.random.default_rng(0))
    return time.process_time() - start, outcome


def compare(wrong: float) -> bool:
    """Print one row; return whether it meets the targets."""
    problem, truth = scene(1, wrong)
    runs = [(timed("union-find", problem), timed("tracks", problem)) for _ in range(REPEATS)]
    theirs, ours = (min(run[side][0] for run in runs) for side in (0, 1))
    before, after = (score(runs[0][side][1].labels, truth) for side in (0, 1))
    print(
        f"| {wrong:.0%} | {before.fscore:.4f} | {after.precision:.4f} | {after.recall:.4f} | {after.fscore:.4f}"
        f" | {theirs:.3f} | {ours:.3f} | {ours / theirs:.1f} |",
        flush=True,
    )
    return after.fscore >= LEAST_FSCORE[wrong] and ours <= MOST_TIMES * theirs


def told(wrong: float) -> None:
    """Print one row: no weights, weights at random, and weights that are mostly larger for right matches."""
    problem, truth = scene(1, wrong)
    rng, (a, b) = np.random.default_rng(0), truth[problem.endpoints].T
    random = rng.uniform(0.2, 1.0, len(a))
    knowing = np.where(a == b, rng.beta(6, 2, len(a)), rng.beta(2, 4, len(a))) + 0.01
    row = f"| {wrong:.0%} |"
    for weights in (None, random, knowing):
        seconds, outcome = timed("tracks", problem.with_weights(weights))
        row += f" {score(outcome.labels, truth).fscore:.4f} | {seconds:.2f} |"
    print(row, flush=True)


def alone(scale: int) -> tuple[float, float, int]:
    """Return seconds, peak gigabytes and matches of one scene with 30 % wrong matches, from a process of its own."""
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.large", "--alone", str(scale)], check=True, capture_output=True, text=True
    ).stdout.split()
    return float(output[0]), float(output[1]), int(output[2])


def growth() -> bool:
    """Print time and memory at 200,000 and 1,000,000 keypoints; return whether they meet the targets."""
    runs = [(alone(1), alone(5)) for _ in range(ALTERNATIONS)]
    small, large = (min(run[side][0] for run in runs) for side in (0, 1))
    _, memory, matches = max((run[1] for run in runs), key=lambda run: run[1])
    exponent = math.log(large / small) / math.log(5)
    print(f"\n1,000,000 keypoints, {matches:,} matches, 30 % wrong: {large:.1f} s, {memory:.2f} GB at most;")
    print(f"200,000 keypoints: {small:.2f} s; time grows like n^{exponent:.2f}")
    return memory < 3 and exponent <= 1.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--weights", action="store_true")
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        problem, _ = scene(options.alone, 0.3)
        best = min(timed("tracks", problem)[0] for _ in range(3))
        print(best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, problem.n_matches)
        return 0
    if options.weights:
        print("| wrong matches | no weights | s | weights at random | s | weights that know | s |")
        print("|---|---|---|---|---|---|---|")
        for wrong in WRONG:
            told(wrong)
        return 0
    print("| wrong matches | union-find fscore | precision | recall | fscore | union-find s | tracks s | times |")
    print("|---|---|---|---|---|---|---|---|")
    met = [compare(wrong) for wrong in WRONG]
    if not options.quick:
        met.append(growth())
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
