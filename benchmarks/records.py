"""Records of several sources: clusters of ours against what linkage programs do with the same scored pairs.

    python -m benchmarks.records                     # seeds 0 to 4; docs/evidence/records.md has 200 to 204
    python -m benchmarks.records --seeds 5 6 --json lines.jsonl

Pairs are drawn by `stiefelsync.datasets.records` (600 recordings), saved and read again the way a user does, with and
without duplicates inside sources. Every answer is measured by precision, recall and fscore of all pairs of records of
one entity, those that blocking lost included. Development used seeds 10 to 13.

* components: connected components of the pairs from a threshold on, of which the best threshold is told per table
  (chosen by the truth, which nobody has), Splink's default way;
* greedy one-to-one: pairs in order of probability, joined unless the two clusters share a source, which is what
  "single best links" comes to; thresholds 0.3, 0.5 and the best;
* average linkage: on 1 - p, pairs that were never scored at distance 1, cut at the best threshold;
* ours: the default, chosen as `stiefelsync sync edges.csv -o clusters.csv` chooses.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import average, fcluster
from scipy.spatial.distance import squareform

from stiefelsync import Matchings, clean, datasets
from stiefelsync.datasets import LinkedRecords
from stiefelsync.io.tables.files import write_columns
from stiefelsync.matching.graph import connected

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
SETTINGS: dict[str, dict[str, Any]] = {
    "4 sources": {"sources": 4},
    "5 sources": {"sources": 5},
    "8 sources": {"sources": 8},
    "5 sources, noisier": {"sources": 5, "noise": 0.25},
    "5 sources, 15 % duplicates": {"sources": 5, "duplicates": 0.15},
    "5 sources, 40 % duplicates": {"sources": 5, "duplicates": 0.4},
    "5 sources, 15 % duplicates, noisier": {"sources": 5, "duplicates": 0.15, "noise": 0.25},
}

Ints = NDArray[np.int64]


def quality(labels: Ints, truth: Ints) -> tuple[float, float, float]:
    """Return precision, recall and fscore of the pairs of records that share a label."""

    def pairs(*columns: Ints) -> float:
        count = np.unique(np.stack(columns), axis=1, return_counts=True)[1]
        return float((count * (count - 1) // 2).sum())

    both, found, there = pairs(labels, truth), pairs(labels), pairs(truth)
    precision, recall = both / found if found else 1.0, both / there if there else 1.0
    return precision, recall, 2 * both / (found + there)


def components(problem: Matchings, threshold: float) -> Ints:
    """Return connected components of the pairs at least as probable."""
    return connected(problem.n_points, problem.endpoints[problem.match_weights >= threshold])


def greedy(problem: Matchings, threshold: float) -> Ints:
    """Return clusters joined by the most probable pairs first, never two records of one source."""
    owner = np.arange(problem.n_points)
    members = {n: [n] for n in range(problem.n_points)}
    held = {n: {source} for n, source in enumerate(problem.records.source.tolist())}  # type: ignore[union-attr]
    for t in np.argsort(-problem.match_weights, kind="stable").tolist():
        if problem.match_weights[t] < threshold:
            break
        a, b = owner[problem.endpoints[t]].tolist()
        if a == b or held[a] & held[b]:
            continue
        owner[members[b]] = a
        members[a] += members.pop(b)
        held[a] |= held.pop(b)
    return owner


def linkage(problem: Matchings, threshold: float) -> Ints:
    """Return the clusters of average linkage on 1 - p, each connected component by itself, cut at 1 - threshold."""
    part, ends = components(problem, 0.0), problem.endpoints
    labels, highest = np.arange(problem.n_points), problem.n_points
    order = np.argsort(part[ends[:, 0]], kind="stable")
    cuts = np.flatnonzero(np.diff(part[ends[order, 0]], prepend=-1, append=-1))
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        rows = order[first:last]
        points, compact = np.unique(ends[rows], return_inverse=True)
        distance = np.ones((len(points), len(points)))
        np.fill_diagonal(distance, 0)
        a, b = compact.reshape(-1, 2).T
        distance[a, b] = distance[b, a] = 1 - problem.match_weights[rows]
        found = fcluster(average(squareform(distance)), 1 - threshold, "distance")
        labels[points] = highest + found
        highest += int(found.max()) + 1
    return labels


RIVALS: dict[str, Callable[[Matchings, float], Ints]] = {
    "components": components,
    "greedy one-to-one": greedy,
    "average linkage": linkage,
}


def truth_of(drawn: LinkedRecords, problem: Matchings) -> Ints:
    """Return the entity of every point."""
    assert problem.records is not None
    return drawn.truth_of(*problem.records.columns().values())


def measure(setting: str, seed: int) -> list[dict[str, Any]]:
    """Return one line per method on one drawn table."""
    drawn = datasets.records(rng=seed, **SETTINGS[setting])
    lines = []

    def told(method: str, labels: Ints, truth: Ints, seconds: float) -> None:
        alone = labels < 0
        labels = np.where(alone, labels.max(initial=-1) + np.cumsum(alone), labels)
        numbers = dict(zip(("precision", "recall", "fscore"), quality(labels, truth), strict=True))
        lines.append({"setting": setting, "seed": seed, "method": method, **numbers, "seconds": seconds})

    with tempfile.TemporaryDirectory() as folder:
        write_columns(Path(folder, "edges.csv"), drawn.pairs)
        began = time.perf_counter()
        result = clean(Path(folder, "edges.csv"), Path(folder, "clusters.csv")).result
        told("ours", result.labels, truth_of(drawn, result.input), time.perf_counter() - began)
    pairs = Matchings.from_table(drawn.pairs, duplicates=True)
    truth = truth_of(drawn, pairs)
    for name, rival in RIVALS.items():
        for threshold in THRESHOLDS:
            began = time.perf_counter()
            told(f"{name} {threshold:g}", rival(pairs, threshold), truth, time.perf_counter() - began)
    return lines


def table(lines: list[dict[str, Any]]) -> str:
    """Return fscores, mean ± standard deviation over seeds, as a table of Markdown."""
    seeds = sorted({line["seed"] for line in lines})
    columns = ["ours", "components 0.5", "components", "greedy one-to-one 0.5", "greedy one-to-one", "average linkage"]
    shown = ["ours", "components, .5", "its best", "greedy one-to-one, .5", "its best", "average linkage, its best"]
    rows = ["| | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for setting in dict.fromkeys(line["setting"] for line in lines):
        own = [line for line in lines if line["setting"] == setting]
        by_method: dict[str, list[float]] = {}
        for line in own:
            by_method.setdefault(line["method"], []).append(line["fscore"])
        cells = []
        for column in columns:
            # Without a threshold: the one whose mean over the seeds is highest.
            some = [values for name, values in by_method.items() if name == column or name.startswith(f"{column} 0")]
            best = max(some, key=lambda values: float(np.mean(values)))
            cells.append(f"{np.mean(best):.3f} ± {np.std(best, ddof=1) if len(seeds) > 1 else 0:.3f}")
        rows.append(f"| {setting} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--json", type=Path, help="File for one JSON line per table and method.")
    given = parser.parse_args()
    lines = [line for setting in given.settings for seed in given.seeds for line in measure(setting, seed)]
    if given.json is not None:
        given.json.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    print(table(lines))


if __name__ == "__main__":
    main()
