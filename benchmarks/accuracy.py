"""How good the answers are: 20 synthetic settings and the house sequence, five seeds each, any set of methods.

    python -m benchmarks.accuracy --methods accurate fast sparse-stiefel --output accuracy.csv
    python -m benchmarks.accuracy --output accuracy.csv --table          # from the lines that are there

One line is written per instance and method as soon as it is made; a second run adds what is missing. Instances are
the seeds 0 to 4 of every setting, never picked. The method's own randomness is seeded with the instance's seed.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

SYNTHETIC = [
    "row 30 25 .6 0", "row 30 25 .6 .3", "row 30 25 .6 .6", "row 30 25 .6 .7", "row 30 25 .6 .8",
    "row 30 25 .3 .6", "row 30 25 .4 .6", "row 30 25 1 .8", "row 5 25 .6 .5", "row 10 25 .6 .5",
    "row 60 25 .6 .7", "row 5 30 .9 .3", "row 25 50 .4 .3", "edge 30 25 .6 .5", "edge 30 25 .6 .7",
    "edge 30 25 1 .7", "edge 15 25 .6 .5", "mix 30 25 .6 .5", "mix 30 25 .6 .7", "mix 10 25 .6 .4",
]  # fmt: skip
HOUSE = [f"house {k} 30 1 0" for k in (20, 40, 60, 80, 111)]
SUITE = SYNTHETIC + HOUSE
SEEDS = range(5)
TIE = 0.001  # a difference in fscore up to this is a tie


@dataclass(frozen=True)
class Line:
    """One method on one instance. `universe` is "true", "auto", or a factor such as "1.5"."""

    setting: str
    seed: int
    universe: str
    method: str
    precision: float
    recall: float
    fscore: float
    objective: float
    labels: int
    seconds: float

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What the line is about."""
        return self.setting, self.seed, self.universe, self.method


def instance(setting: str, seed: int) -> tuple[Any, Any, int]:
    """Return the problem, its true labels and its universe size."""
    from stiefelsync import datasets

    noise, k, d, observed, error = setting.split()
    if noise == "house":
        return *datasets.house(int(k), rng=seed), int(d)
    problem, truth = datasets.synthetic(int(d), int(k), float(observed), float(error), noise=noise, rng=seed)
    return problem, truth, int(d)


def measure(setting: str, seed: int, universe: str, method: str) -> Line:
    """Run one method on one instance; the method "input" is the raw matches."""
    from stiefelsync import score, synchronise
    from stiefelsync.matching.metrics import objective

    problem, truth, d = instance(setting, seed)
    start = time.perf_counter()
    if method == "input":
        answer, value, labels = problem, float("nan"), 0
    else:
        size: Any = {"true": d, "auto": "auto"}.get(universe) or round(float(universe) * d)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = synchronise(problem, size, method=method, rng=seed)
        found = result.outcome.labels
        answer = result.outcome.matchings if found is None else found
        value = float("nan") if found is None else objective(found, problem)
        labels = 0 if found is None else len(np.unique(found[found >= 0]))
    seconds = time.perf_counter() - start
    s = score(answer, truth)
    return Line(setting, seed, universe, method, s.precision, s.recall, s.fscore, value, labels, seconds)


def read(path: Path) -> list[Line]:
    """Return the lines of a CSV file, none when it does not exist."""
    if not path.exists():
        return []
    kinds = {f.name: {"str": str, "int": int, "float": float}[str(f.type)] for f in fields(Line)}
    with path.open(newline="", encoding="utf-8") as file:
        return [Line(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(file)]


def forget(path: Path, methods: list[str]) -> None:
    """Leave the lines of some methods out of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] not in methods]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Line)])
        writer.writeheader()
        writer.writerows(rows)


@contextmanager
def workers(jobs: int, scheduler: str | None) -> Iterator[Executor]:
    """Yield who does the work: processes on this machine, or the workers of a Dask scheduler."""
    if scheduler is None:
        with ProcessPoolExecutor(jobs) as pool:
            yield pool
        return
    from stiefelsync.distributed.cluster import cluster

    with cluster(scheduler=scheduler) as client:
        yield client.get_executor()


def run(
    path: Path, settings: list[str], universes: list[str], methods: list[str], jobs: int, scheduler: str | None = None
) -> None:
    """Make the missing lines, several instances at a time, and append each as soon as it is there."""
    done = {line.key for line in read(path)}
    todo = [(s, seed, u, m) for m in methods for u in universes for s in settings for seed in SEEDS]
    todo = [key for key in todo if key not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file, workers(jobs, scheduler) as pool:
        writer = csv.DictWriter(file, [f.name for f in fields(Line)])
        if fresh:
            writer.writeheader()
        for future in as_completed([pool.submit(measure, *key) for key in todo]):
            row = {n: round(v, 6) if isinstance(v, float) else v for n, v in asdict(future.result()).items()}
            writer.writerow(row)
            file.flush()


def table(lines: list[Line], champion: str = "accurate") -> str:
    """Return mean fscores per setting, and how often the champion wins, ties and loses, as Markdown."""
    cell: dict[tuple[str, str], list[float]] = defaultdict(list)
    methods = list(dict.fromkeys(f"{line.method}" + _suffix(line) for line in lines))
    for line in lines:
        cell[line.setting, line.method + _suffix(line)].append(line.fscore)
    settings = sorted({line.setting for line in lines}, key=SUITE_AND_MORE.index)
    rows = ["| setting | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for s in settings:
        means = [f"{np.mean(cell[s, m]):.3f}" if cell[s, m] else "–" for m in methods]
        rows.append(f"| {s} | " + " | ".join(means) + " |")
    suite = [s for s in settings if s in SUITE]
    means = []
    for m in methods:
        values = [f for s in suite for f in cell[s, m]]
        whole = len(values) == len(SUITE) * len(SEEDS)
        some = f"({np.mean(values):.3f} of {len(values)})" if values else "–"
        means.append(f"**{np.mean(values):.4f}**" if whole else some)
    rows.append("| **mean of the suite** | " + " | ".join(means) + " |")
    return "\n".join([*rows, "", *_duels(lines, champion)])


def _suffix(line: Line) -> str:
    return "" if line.universe == "true" else f" (universe {line.universe})"


def _duels(lines: list[Line], champion: str) -> list[str]:
    f: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for line in lines:
        if line.universe == "true" and line.setting in SUITE:
            f[line.method][line.setting, line.seed] = line.fscore
    if champion not in f:
        return []
    own = ("accurate", "fast", "input")
    best: dict[tuple[str, int], float] = {}
    for method, scores in f.items():
        if method not in own:
            for key, value in scores.items():
                best[key] = max(best.get(key, 0.0), value)
    rows = [f"| `{champion}` against | win | tie | loss |", "|---|---|---|---|"]
    for name, other in [*((m, f[m]) for m in f if m != champion), ("the best rival of each instance", best)]:
        gap = np.array([f[champion][key] - other[key] for key in f[champion] if key in other])
        if len(gap):
            wins, losses = int((gap > TIE).sum()), int((gap < -TIE).sum())
            rows.append(f"| {name} | {wins} | {len(gap) - wins - losses} | {losses} |")
    return rows


EXTRA = ["row 30 25 .6 .9"]
SUITE_AND_MORE = SUITE + EXTRA


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["input", "accurate", "fast", "sparse-stiefel"])
    parser.add_argument("--universe", nargs="+", default=["true"], help='"true", "auto", or a factor such as 1.5')
    parser.add_argument("--settings", nargs="+", default=SUITE, help='such as "row 30 25 .6 .5"')
    parser.add_argument("--output", type=Path, default=Path("accuracy.csv"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of Dask workers that can import this package")
    parser.add_argument("--again", action="store_true", help="forget the lines of these methods and make them anew")
    parser.add_argument("--table", action="store_true", help="only print the table of the lines that are there")
    options = parser.parse_args()
    if options.again and options.output.exists():
        forget(options.output, options.methods)
    if not options.table:
        run(options.output, options.settings, options.universe, options.methods, options.jobs, options.scheduler)
    print(table(read(options.output)))


if __name__ == "__main__":
    main()
