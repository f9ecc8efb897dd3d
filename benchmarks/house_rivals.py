"""Fscore of the rivals on the house sequence beside their authors' programs: ``python -m benchmarks.house_rivals``.

Needs the data (``STIEFELSYNC_DATA``) and, for the column "authors", the folder `reference` beside it.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync import Matchings
from stiefelsync.datasets import house
from stiefelsync.matching.metrics import score
from stiefelsync.sync import methods  # noqa: F401  registers them
from stiefelsync.sync.registry import METHODS, Outcome

# Names in the table of the authors' results.
AUTHORS = {
    "input": "Input",
    "spectral": "Spectral",
    "matcheig": "MatchEig",
    "matchals": "MatchALS",
    "nmfsync": "NmfSync",
    "sparse-stiefel": "Ours",
}
# What the authors of the comparison set on this data.
OPTIONS: dict[str, dict[str, Any]] = {"matchals": {"rank": 60, "selection": 0.7, "max_iter": 100}}
FRAMES = (20, 40, 60, 80, 100, 111)
LANCZOS = (61, 120)  # what ARPACK takes for d = 30 eigenvalues when nothing is said, and 4d


def solve(method: str, matchings: Matchings, seed: int = 0, **options: Any) -> Outcome:
    """Run a method with the options the authors of the comparison used on the house sequence."""
    return METHODS[method].run(matchings, 30, rng=np.random.default_rng(seed), **{**OPTIONS.get(method, {}), **options})


def fscore(outcome: Outcome, truth: Any) -> float:
    return score(outcome.matchings if outcome.labels is None else outcome.labels, truth).fscore


def authors(folder: Path) -> dict[tuple[int, str], float]:
    path = folder / "house_authors_code.csv"
    if not path.is_file():
        return {}
    with path.open() as file:
        return {(int(row["k"]), row["method"]): float(row["fscore"]) for row in csv.DictReader(file)}


def agreement(frames: list[int], seeds: int) -> None:
    known = authors(Path(os.environ.get("STIEFELSYNC_DATA", ".")).parent / "reference")
    print("| k | method | ours | authors | difference | range | iterations | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for k in frames:
        matchings, truth = house(k, shuffle=False)
        for method in ("spectral", "matcheig", "matchals", "nmfsync"):
            start = time.perf_counter()
            # Only MatchALS starts from random numbers here: the mean over seeds is what can be compared.
            outcomes = [solve(method, matchings, seed) for seed in range(seeds if method == "matchals" else 1)]
            seconds = (time.perf_counter() - start) / len(outcomes)
            reached, theirs = [fscore(outcome, truth) for outcome in outcomes], known.get((k, AUTHORS[method]), np.nan)
            ours, n_iter = float(np.mean(reached)), max(outcome.n_iter for outcome in outcomes)
            spread = f"{min(reached):.4f}–{max(reached):.4f}" if len(reached) > 1 else ""
            row = f"| {k} | {method} | {ours:.6f} | {theirs:.6f} | {ours - theirs:+.4f} | {spread} | {n_iter or ''} |"
            print(f"{row} {seconds:.2f} |", flush=True)


# Without our own presets, which have tables of their own, and MatchALS, which takes minutes.
def everything(frames: list[int], seeds: int) -> None:
    names = sorted(set(METHODS) - {"accurate", "fast", "tracks", "matchals"})
    print("| method | " + " | ".join(f"k = {k}" for k in frames) + " |")
    print("|---" * (len(frames) + 1) + "|")
    problems = [[house(k, rng=seed) for seed in range(seeds)] for k in frames]
    for method in names:
        cells = []
        for some in problems:
            reached = [fscore(solve(method, matchings, seed), truth) for seed, (matchings, truth) in enumerate(some)]
            cells.append(f"{np.mean(reached):.3f} ({min(reached):.3f}–{max(reached):.3f})")
        print(f"| {method} | " + " | ".join(cells) + " |", flush=True)


def lanczos(frames: list[int], seeds: int) -> None:
    print("| k | ncv | wrong subspaces of plain ARPACK | fscore there | fscore elsewhere | eigs-manopt | eig-manopt |")
    print("|---|---|---|---|---|---|---|")
    for k in frames:
        problems = [house(k, rng=seed) for seed in range(seeds)]
        checked = [solve("eigs-manopt", matchings, seed) for seed, (matchings, _) in enumerate(problems)]
        exact = solve("eig-manopt", problems[0][0])  # dense and slow, and indifferent to the order of the points
        for ncv in LANCZOS:
            by_loss: dict[bool, list[float]] = {True: [], False: []}
            for seed, (matchings, truth) in enumerate(problems):
                plain = solve("eigs-manopt", matchings, seed, ncv=ncv)
                missing = checked[seed].details["eigenvalues"].sum() - plain.details["eigenvalues"].sum()
                by_loss[bool(missing > 0.1)].append(fscore(plain, truth))
            ours = [fscore(outcome, truth) for outcome, (_, truth) in zip(checked, problems, strict=True)]
            columns = (by_loss[True], by_loss[False], ours, [fscore(exact, problems[0][1])])
            cells = [f"{np.mean(some):.3f}" if some else "–" for some in columns]
            print(f"| {k} | {ncv} | {len(by_loss[True])} of {seeds} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=list(FRAMES), help="numbers of frames k")
    parser.add_argument("--table", choices=["agreement", "all", "lanczos"], default="agreement")
    parser.add_argument("--seeds", type=int, default=5, help="shuffles, and starts of MatchALS")
    args = parser.parse_args()
    if args.table == "agreement":
        agreement(args.frames, args.seeds)
    elif args.table == "all":
        everything(args.frames, args.seeds)
    else:
        lanczos(args.frames, args.seeds)


if __name__ == "__main__":
    main()
