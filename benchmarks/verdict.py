"""How often `inspect` is right about whether synchronising is worth while.

    python -m benchmarks.verdict --seeds 0 1 2 --output docs/results/verdict.csv

On every shape of `stiefelsync.datasets.shapes`, and on nearly clean problems, of which those say little: the fscore of
the matches as they are, that of the tracks they form by themselves (union-find), and that of the answer, beside the
verdict. It is wrong where it is not "yes" and the answer differs from the matches by more than .01, and where it is
"yes" and the answer differs by no more than that from both. The thresholds were chosen on seed 100.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync import Matchings, datasets, inspect, score, synchronise
from stiefelsync.datasets.shapes import SHAPES, cells, independent, merging, photos, reid, ring, window_detected
from stiefelsync.matching.graph import components

__all__ = ["PROBLEMS", "is_wrong", "measure"]

CHANGE = 0.01
COLUMNS = ("problem", "seed", "matches", "tracks", "answer", "verdict")

_CLEAN: dict[str, Callable[..., Any]] = {
    f"{name} {wrong:g}": partial(draw, **options, **{called: wrong})
    for wrong in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    for name, draw, called, options in (
        ("row 3", partial(datasets.synthetic, 25, 3, 0.7), "error", {}),
        ("row 10", partial(datasets.synthetic, 25, 10, 0.7), "error", {}),
        ("row 30", partial(datasets.synthetic, 25, 30, 0.7), "error", {}),
        ("ring", ring, "error", {}),
        ("complete", partial(independent, 30, 25), "wrong", {"hit": 1.0}),
        ("incomplete", partial(independent, 30, 25), "wrong", {"hit": 0.7}),
        ("eight", partial(independent, 8, 40), "wrong", {"hit": 0.7}),
        ("window", window_detected, "wrong", {"hit": 0.8}),
        ("photos", photos, "wrong", {}),
        ("scene", partial(datasets.scene, 1_000, 40, 200, 400), "wrong", {}),
    )
}
PROBLEMS: dict[str, Callable[..., Any]] = {
    **SHAPES,
    **_CLEAN,
    **{f"cells {jitter:g}": partial(cells, jitter=jitter) for jitter in (0.001, 0.004, 0.008)},
    **{f"reid {noise:g}": partial(reid, noise=noise) for noise in (0.1, 0.3, 0.5)},
    **{f"merging {noise:g}": partial(merging, noise=noise) for noise in (0.1, 0.3, 0.5)},
    "scene large .3": partial(datasets.scene, 20_000, 200, 1_000, 2_000, wrong=0.3),
}
"""Problems by name; called with ``rng=seed``."""


def measure(name: str, seed: int) -> dict[str, Any]:
    """Return a line of the table."""
    problem, truth = PROBLEMS[name](rng=seed)
    return {
        "problem": name,
        "seed": seed,
        "matches": score(problem, truth).fscore,
        "tracks": _fscore_of_components(problem, truth),
        "answer": _fscore_of_answer(problem, truth),
        "verdict": inspect(problem).worth.partition(":")[0],
    }


def is_wrong(line: dict[str, Any]) -> bool:
    """Return whether the verdict of a line is wrong."""
    answer, matches, tracks = (float(line[name]) for name in ("answer", "matches", "tracks"))
    if line["verdict"] == "yes":
        return max(abs(answer - matches), abs(answer - tracks)) <= CHANGE
    return abs(answer - matches) > CHANGE


def _fscore_of_answer(problem: Matchings, truth: np.ndarray[Any, Any]) -> float:
    """Return the fscore of the default, NaN where LAPACK finds no eigenvectors, of which nothing can be said."""
    try:
        return score(synchronise(problem), truth).fscore
    except np.linalg.LinAlgError:
        return float("nan")


def _fscore_of_components(problem: Matchings, truth: np.ndarray[Any, Any]) -> float:
    """Return the fscore of what union-find makes of matches, whose tracks may hold several points of an object."""
    labels = components(problem)[1]

    def pairs(*key: np.ndarray[Any, Any]) -> int:
        counts = np.unique(np.stack(key, axis=1), axis=0, return_counts=True)[1].astype(np.int64)
        return int((counts * (counts - 1) // 2).sum())

    found = pairs(labels) - pairs(labels, problem.point_objects)
    true = pairs(truth)
    return 2 * pairs(labels, truth) / (found + true) if found + true else 1.0


def main() -> int:
    """Measure what is asked for; 1 if a verdict was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--problems", choices=PROBLEMS, nargs="+", default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    lines = []
    for seed in given.seeds:
        for name in given.problems:
            lines.append(measure(name, seed))
            told = {key: f"{value:.4f}" if isinstance(value, float) else str(value) for key, value in lines[-1].items()}
            print(*told.values(), "WRONG" if is_wrong(lines[-1]) else "", sep="\t", flush=True)
            lines[-1] = told
    if given.output is not None:
        with given.output.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    wrong = sum(map(is_wrong, lines))
    worth = sum(line["verdict"] == "yes" for line in lines)
    print(f"{len(lines)} problems, {worth} told to be worth it, {wrong} wrongly judged")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
