"""How good and how quick the answers are on problems of the shapes users have: sequences, crowds, few large ones.

    python -m benchmarks.shapes --methods input accurate fast tracks --output shapes.jsonl
    python -m benchmarks.shapes --output shapes.jsonl --table          # from the lines that are there

Instances are the seeds 0 to 4 of every shape of `stiefelsync.datasets.shapes.SHAPES`, never picked (`--seeds` for
others: development used 100 to 104). One JSON line is written per instance and method as soon as it is made; a second
run adds what is missing. The universe is estimated unless `--universe true`.

Three methods are not of the package: "input" is the raw matches; "truth" is the true labels; "limit" is what the local
moves of `accurate` make of the true labels, accepting only likelier ones: no search by this likelihood can be expected
to do better. The log-likelihood of all three and of the answers shows whether a gap is one of search (the limit is
likelier than the answer) or lies in the data (the answer is likelier than the truth).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync import score, synchronise
from stiefelsync.datasets.shapes import SHAPES
from stiefelsync.errors import InputError
from stiefelsync.matching.universe import estimate_universe
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood
from stiefelsync.sync.methods.accurate import improve

SEEDS = range(5)
OWN = ("truth", "limit")


@dataclass(frozen=True)
class Line:
    """One method on one instance; `cpu` are seconds of processor time over all threads."""

    shape: str
    seed: int
    universe: str
    method: str
    fscore: float
    precision: float
    recall: float
    seconds: float
    cpu: float
    size: int
    true_size: int
    log_likelihood: float | None
    expected: float | None
    status: str

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What the line is about."""
        return self.shape, self.seed, self.universe, self.method


def measure(shape: str, seed: int, universe: str, method: str) -> Line:
    """Run one method on one instance."""
    problem, truth = SHAPES[shape](rng=seed)
    d = int(truth.max()) + 1
    wall, cpu = time.perf_counter(), time.process_time()
    answer: Any = truth
    size, value, expected, status = d, None, None, "done"
    if method == "input":
        answer = problem
    elif method == "limit":
        answer = improve(MatchTable.of(problem, d), truth)
    elif method == "universe":
        size = estimate_universe(problem).size
    elif method != "truth":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = synchronise(problem, "auto" if universe == "auto" else d, method=method, rng=seed)
            except InputError as error:
                return Line(shape, seed, universe, method, 0, 0, 0, 0, 0, 0, d, None, None, f"refused: {error}")
        answer = result.labels if result.consistent else result.matchings()
        size, status = result.universe_size, result.status
        expected = expectation(result)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if method in OWN or (method in ("accurate", "fast", "tracks")):
        value = likelihood(problem, answer, d)
    s = score(answer, truth)
    return Line(
        shape, seed, universe, method, s.fscore, s.precision, s.recall, wall, cpu, size, d, value, expected, status
    )


def likelihood(problem: Any, labels: Any, d: int) -> float | None:
    """Return the log-likelihood of labels, or None where its table would be too large."""
    d = max(d, int(labels.max()) + 1)
    if d * problem.n_objects > 50_000_000:
        return None
    return log_likelihood(MatchTable.of(problem, d), labels)


def expectation(result: Any) -> float | None:
    """Return the fscore that the method itself expects, where it says so."""
    return getattr(result.outcome.details, "expected_fscore", None)


def read(path: Path) -> list[Line]:
    """Return the lines of a file, none when it does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [Line(**json.loads(text)) for text in file]


def run(path: Path, shapes: list[str], seeds: list[int], universe: str, methods: list[str]) -> None:
    """Make the missing lines and append each as soon as it is there."""
    done = {line.key for line in read(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for key in [(s, n, universe, m) for m in methods for s in shapes for n in seeds]:
            if key in done:
                continue
            line = {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(measure(*key)).items()}
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(f"{key[0]:18} {key[1]:4} {key[3]:14} {line['fscore']:.3f} {line['seconds']:8.2f} s", flush=True)


def table(lines: list[Line], value: str = "fscore") -> str:
    """Return the means of a value per shape and method, over all seeds there are, as Markdown."""
    cell: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in lines:
        found = getattr(line, value)
        if found is not None and not line.status.startswith("refused"):
            cell[line.shape, line.method].append(found)
    methods = list(dict.fromkeys(line.method for line in lines))
    rows = ["| shape | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    digits = {"fscore": ".3f", "seconds": ".2f", "size": ".0f"}.get(value, ".1f")
    for shape in [s for s in SHAPES if any(line.shape == s for line in lines)]:
        means = [f"{np.mean(cell[shape, m]):{digits}}" if cell[shape, m] else "–" for m in methods]
        rows.append(f"| {shape} | " + " | ".join(means) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["input", "limit", "accurate", "fast", "tracks"])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--universe", default="auto", choices=["auto", "true"])
    parser.add_argument("--output", type=Path, default=Path("shapes.jsonl"))
    parser.add_argument("--table", action="store_true", help="only print the tables of the lines that are there")
    options = parser.parse_args()
    if not options.table:
        run(options.output, options.shapes, options.seeds, options.universe, options.methods)
    lines = read(options.output)
    for value in ("fscore", "seconds", "log_likelihood", "size"):
        print(f"\n{value}\n\n{table(lines, value)}")


if __name__ == "__main__":
    main()
