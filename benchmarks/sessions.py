"""Cells over days: ours against what other programs do with the same probabilities, by simulated truth.

    python -m benchmarks.sessions                      # the tables of docs/evidence/sessions.md, seeds 3000 to 3004
    python -m benchmarks.sessions --cells 1000         # more complete tracks in a field of equal density
    python -m benchmarks.sessions --seeds 7 8 --json lines.jsonl
    python -m benchmarks.sessions --time               # 20 days of 2,000 cells: seconds and memory

Twelve days of about 280 cells of three difficulties (`stiefelsync.datasets.sessions`). Registration and probabilities
are ours for every method, which flatters the rivals; a rival has the threshold, of `THRESHOLDS`, that is best for each
measure by the truth, which nobody has. Ours is what `stiefelsync sync` does, with its own threshold; "tracks alone" and
"greedy alone" are the two answers that it weighs, at their best thresholds. Development used seeds below 1000.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.day_rivals import CELLS, fscores, hdbscan_missing
from stiefelsync import datasets
from stiefelsync.datasets.imaging import DIFFICULTIES
from stiefelsync.following import follow, follow_sessions

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
DAYS, ALIVE, SIDE = 12, 280, 512
MEASURES = ("F1", "neighbours", "complete")


def measure(difficulty: str, seed: int, cells: int = ALIVE) -> list[dict[str, Any]]:
    """Return one line per method and threshold on one drawn mouse."""
    side = round(SIDE * (cells / ALIVE) ** 0.5)
    days, truth = datasets.sessions(DAYS, cells, difficulty=difficulty, shape=(side, side), rng=seed)
    sizes = np.array([len(day) for day in days])
    lines = []

    def told(method: str, threshold: float | None, labels: Any, seconds: float) -> None:
        where = {"difficulty": difficulty, "seed": seed, "method": method, "threshold": threshold}
        lines.append(where | fscores(labels, truth, sizes) | {"seconds": seconds})

    began = time.perf_counter()
    found = follow_sessions([days]).parts[0]
    told("ours", None, found.labels, time.perf_counter() - began)
    for name, rival in CELLS.items():
        for threshold in THRESHOLDS:
            began = time.perf_counter()
            told(name, threshold, rival(found.candidates, threshold), time.perf_counter() - began)
    return lines


def table(lines: list[dict[str, Any]], measure: str, of: str = "difficulty") -> str:
    """Return one measure, mean ± standard deviation over seeds, as a table of Markdown."""
    columns = list(dict.fromkeys(line["method"] for line in lines))
    rows = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in dict.fromkeys(line[of] for line in lines):
        told = []
        for method in columns:
            own = [line for line in lines if line[of] == row and line["method"] == method]
            by_threshold = [
                [line[measure] for line in own if line["threshold"] == threshold]
                for threshold in dict.fromkeys(line["threshold"] for line in own)
            ]
            # A seed without any complete track says nothing about these.
            best = max((np.array(v)[~np.isnan(v)] for v in by_threshold), key=lambda v: float(np.mean(v)))
            told.append(f"{best.mean():.3f} ± {best.std(ddof=1) if len(best) > 1 else 0:.3f}")
        rows.append(f"| {row} | " + " | ".join(told) + " |")
    return "\n".join(rows)


def large(days: int = 20, cells: int = 2000) -> str:
    """Return the time and the memory that a large mouse takes, from folders to a table and a page."""
    with tempfile.TemporaryDirectory() as folder:
        mouse = Path(folder, "mouse")
        datasets.sessions(days, cells, shape=(1024, 1024), folder=mouse, rng=3000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began, spent_before = time.perf_counter(), time.process_time()
        done = follow(sorted(mouse.iterdir()), Path(folder, "cells.csv"), report=Path(folder, "cells.html"))
        seconds, processor = time.perf_counter() - began, time.process_time() - spent_before
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = Path(folder, "cells.html").stat().st_size
    steps = ", ".join(f"{name} {spent:.1f}" for name, spent in done.seconds.items())
    return (
        f"{days} days, {sum(map(len, done.table.numbers)):,} cells: {seconds:.1f} s ({steps}), {processor:.1f} s of "
        f"processors, at most {after / 2**20:.2f} GB ({before / 2**20:.2f} before), page {size / 2**20:.1f} MB"
    )


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(3000, 3005)))
    parser.add_argument("--difficulties", nargs="+", default=list(DIFFICULTIES), choices=list(DIFFICULTIES))
    parser.add_argument("--cells", type=int, default=ALIVE, help="Cells alive at any time.")
    parser.add_argument("--json", type=Path, help="File for one JSON line per mouse, method and threshold.")
    parser.add_argument("--time", action="store_true", help="Only time 20 days of 2,000 cells.")
    given = parser.parse_args()
    if given.time:
        print(large())
        return
    lines = [
        line
        for difficulty in given.difficulties
        for seed in given.seeds
        for line in measure(difficulty, seed, given.cells)
    ]
    if given.json is not None:
        given.json.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for name, measured in zip(("all pairs", "neighbouring days", "complete tracks"), MEASURES, strict=True):
        print(f"F1 of {name}", table(lines, measured), sep="\n\n", end="\n\n")
    if hdbscan_missing():
        print("fast_hdbscan is not installed: no clusters of HDBSCAN")


if __name__ == "__main__":
    main()
