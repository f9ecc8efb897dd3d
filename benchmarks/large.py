"""Large universes against union-find: ``python -m benchmarks.large`` (``--quick`` leaves out the million points).

``--weights`` shows instead what weights of matches do to the fscore and the time of `tracks`, ``--positions`` what
positions of points cost. ``--json FILE`` also writes the figures to a file.

Times are processor seconds, the best of several runs that alternate, so that they can be compared. *SciPy* is
union-find as one would write it with SciPy's connected components, with the construction of the graph and the dropping
of conflicted tracks; *union-find* is this package's method of that name, which finds components without a graph.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.database import strip, with_positions
from stiefelsync import Matchings, datasets, score
from stiefelsync.matching.graph import conflicts
from stiefelsync.sync.method import find_method

WRONG = (0.0, 0.1, 0.3, 0.5)
REPEATS = 5
ALTERNATIONS = 3
MOST_TIMES, MOST_FOR_WEIGHTS, MOST_FOR_POSITIONS = 6.0, 1.5, 2.0
LEAST_FSCORE = {0.0: 0.999, 0.1: 0.99, 0.3: 0.96, 0.5: 0.85}
Figures = dict[str, float]


def scene(scale: int, wrong: float) -> tuple[Matchings, Any]:
    """Return a scene of scale · 200,000 keypoints."""
    return datasets.scene(20_000 * scale, 200 * scale, 1_000, 2_000, wrong=wrong, missing=0.3, rng=0)


def fresh(problem: Matchings) -> Matchings:
    """Return a copy without cached views, so that every run pays for them."""
    return problem.with_weights(problem.weights)


def timed(name: str, problem: Matchings, **options: Any) -> tuple[float, Any]:
    """Return the processor seconds of one run of a method, and its outcome."""
    run: Callable[..., Any] = find_method(name).run
    given = fresh(problem)
    start = time.process_time()
    outcome = run(given, problem.n_points, rng=np.random.default_rng(0), **options)
    return time.process_time() - start, outcome


def with_scipy(problem: Matchings) -> float:
    """Return the processor seconds of union-find by SciPy."""
    given = fresh(problem)
    start = time.process_time()
    a, b = given.endpoints.T
    graph = sparse.coo_array((np.ones(len(a), dtype=np.int8), (a, b)), shape=(given.n_points,) * 2)
    n, labels = sparse.csgraph.connected_components(graph, directed=False)
    bad = np.zeros(n, dtype=bool)
    bad[conflicts(given, labels).which] = True
    good = ~bad & (np.bincount(labels, minlength=n) > 1)
    np.where(good, np.cumsum(good) - 1, -1)[labels]
    return time.process_time() - start


def compare(wrong: float) -> tuple[bool, Figures]:
    """Print one row; return whether it meets the targets, and the figures."""
    problem, truth = scene(1, wrong)
    runs = [(with_scipy(problem), timed("union-find", problem), timed("tracks", problem)) for _ in range(REPEATS)]
    scipy = min(run[0] for run in runs)
    theirs, ours = (min(run[side][0] for run in runs) for side in (1, 2))
    before, after = (score(runs[0][side][1].labels, truth) for side in (1, 2))
    print(
        f"| {wrong:.0%} | {before.fscore:.4f} | {after.precision:.4f} | {after.recall:.4f} | {after.fscore:.4f}"
        f" | {scipy:.3f} | {theirs:.3f} | {ours:.3f} | {ours / scipy:.1f} | {ours / theirs:.1f} |",
        flush=True,
    )
    figures = {"fscore": after.fscore, "scipy": scipy, "union-find": theirs, "tracks": ours}
    return after.fscore >= LEAST_FSCORE[wrong] and ours <= MOST_TIMES * scipy, figures


def told(wrong: float) -> tuple[bool, Figures]:
    """Print one row: no weights, weights at random, and weights that are mostly larger for right matches."""
    problem, truth = scene(1, wrong)
    rng, (a, b) = np.random.default_rng(0), truth[problem.endpoints].T
    random = rng.uniform(0.2, 1.0, len(a))
    knowing = np.where(a == b, rng.beta(6, 2, len(a)), rng.beta(2, 4, len(a))) + 0.01
    row, figures = f"| {wrong:.0%} |", {}
    for name, weights in (("none", None), ("random", random), ("knowing", knowing)):
        runs = [timed("tracks", problem.with_weights(weights)) for _ in range(ALTERNATIONS)]
        figures[name] = min(seconds for seconds, _ in runs)
        row += f" {score(runs[0][1].labels, truth).fscore:.4f} | {figures[name]:.2f} |"
    print(row, flush=True)
    return max(figures["random"], figures["knowing"]) <= MOST_FOR_WEIGHTS * figures["none"], figures


def placed(scale: int, wrong: float) -> tuple[bool, Figures]:
    """Print one row: what positions cost, by processor and by clock, and what they do to the fscore."""
    problem, truth = scene(scale, wrong)
    known = with_positions(problem, strip(problem, truth))
    row, figures, fscores = f"| {problem.n_points:,} | {wrong:.0%} |", dict[str, float](), dict[str, float]()
    for _ in range(ALTERNATIONS):
        for name, options in (("without", {"neighbours": 0, "copies": 0.0}), ("with", {})):
            start = time.perf_counter()
            seconds, outcome = timed("tracks", known, **options)
            for what, taken in ((name, seconds), (f"{name}, clock", time.perf_counter() - start)):
                figures[what] = min(taken, figures.get(what, math.inf))
            fscores[name] = score(outcome.labels, truth).fscore
    for name, fscore in fscores.items():
        row += f" {fscore:.4f} | {figures[name]:.2f} | {figures[f'{name}, clock']:.2f} |"
    print(f"{row} {figures['with'] / figures['without']:.1f} |", flush=True)
    return figures["with"] <= MOST_FOR_POSITIONS * figures["without"], figures


def alone(scale: int) -> tuple[float, float, int, float]:
    """Return seconds, peak gigabytes, matches and SciPy's seconds of a scene, 30 % wrong, from a process of its own."""
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.large", "--alone", str(scale)], check=True, capture_output=True, text=True
    ).stdout.split()
    return float(output[0]), float(output[1]), int(output[2]), float(output[3])


def growth() -> tuple[bool, Figures]:
    """Print time and memory at 200,000 and 1,000,000 keypoints; return whether they meet the targets."""
    runs = [(alone(1), alone(5)) for _ in range(ALTERNATIONS)]
    small, large = (min(run[side][0] for run in runs) for side in (0, 1))
    scipy = min(run[1][3] for run in runs)
    _, memory, matches, _ = max((run[1] for run in runs), key=lambda run: run[1])
    exponent = math.log(large / small) / math.log(5)
    print(f"\n1,000,000 keypoints, {matches:,} matches, 30 % wrong: {large:.1f} s, {memory:.2f} GB at most,")
    print(f"{large / scipy:.1f} times SciPy; 200,000 keypoints: {small:.2f} s; time grows like n^{exponent:.2f}")
    figures = {"million": large, "memory": memory, "scipy": scipy, "exponent": exponent}
    return memory < 3 and exponent <= 1.2, figures


def tables(options: argparse.Namespace) -> dict[str, tuple[bool, Figures]]:
    """Print the tables that were asked for; return for each row whether it meets the targets, and its figures."""
    if options.weights:
        print("| wrong matches | no weights | s | weights at random | s | weights that know | s |")
        print("|---|---|---|---|---|---|---|")
        return {f"weights {wrong:.0%}": told(wrong) for wrong in WRONG}
    if options.positions:
        print("| keypoints | wrong | without positions | s | clock | with positions | s | clock | times |")
        print("|---|---|---|---|---|---|---|---|---|")
        sizes = ((1, 0.1), (1, 0.3)) if options.quick else ((1, 0.1), (1, 0.3), (5, 0.3))
        return {f"positions {scale * 200_000} {wrong:.0%}": placed(scale, wrong) for scale, wrong in sizes}
    print(
        "| wrong matches | union-find fscore | precision | recall | fscore | SciPy s | union-find s | tracks s"
        " | times SciPy | times union-find |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    rows = {f"wrong {wrong:.0%}": compare(wrong) for wrong in WRONG}
    return rows if options.quick else rows | {"growth": growth()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--weights", action="store_true")
    parser.add_argument("--positions", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        problem, _ = scene(options.alone, 0.3)
        best = min(timed("tracks", problem)[0] for _ in range(3))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(best, memory, problem.n_matches, min(with_scipy(problem) for _ in range(3)))
        return 0
    rows = tables(options)
    if options.json is not None:
        options.json.write_text(json.dumps({name: figures for name, (_, figures) in rows.items()}, indent=1))
    return 0 if all(met for met, _ in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
