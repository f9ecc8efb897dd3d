"""Does motion over three views tell wrong matches apart that pairs do not? ``python -m benchmarks.three_views``.

Among the matches that tracks keep without doubts, judged by true cameras: the area under the ROC curve of the odds that
`doubt` gives, of these together with the support of the match's triangles (the smaller support of the two other matches
of each, summed), and with the mean support of the other matches of its two points; and the share of wrong ones among as
many of the worst as `doubt=1.5` removes.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.doubts import problems
from stiefelsync import Matchings, synchronise
from stiefelsync.positions.doubt import doubt
from stiefelsync.positions.neighbours import neighbour_support

Floats = NDArray[np.float64]

HARM = 1.5
WEIGHTS = {"odds alone": (0, 0), "and triangles": (1, 0), "and other matches": (0, 3)}


def area(score: Floats, wrong: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve, or the chance that a wrong match has the larger score."""
    rank = np.empty(len(score))
    rank[np.argsort(score)] = np.arange(len(score))
    n = int(wrong.sum())
    return float((rank[wrong].mean() - (n - 1) / 2) / (len(score) - n))


def features(problem: Matchings, kept: NDArray[np.bool_], support: Floats) -> tuple[Floats, Floats]:
    """Return the summed support of every kept match's triangles, and the mean one of its points' other matches."""
    ends, own = problem.endpoints[kept], np.nan_to_num(support[kept], nan=0.5)
    partners: dict[int, dict[int, int]] = defaultdict(dict)
    for t, (a, b) in enumerate(ends.tolist()):
        partners[a][b] = partners[b][a] = t
    triangles = np.array([
        sum(min(own[partners[a][c]], own[partners[b][c]]) for c in partners[a].keys() & partners[b].keys())
        for a, b in ends.tolist()
    ])  # fmt: skip
    total = np.bincount(ends.ravel(), np.repeat(own, 2), problem.n_points)
    count = np.bincount(ends.ravel(), minlength=problem.n_points)
    others = np.where(count[ends] > 1, (total[ends] - own[:, None]) / np.maximum(count[ends] - 1, 1), own.mean())
    return triangles, others.mean(axis=1)


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0]).parse_args()
    titles = [f"{what}: {name}" for what in ("area", "wrong of the worst") for name in WEIGHTS]
    print("| scene | database | wrong | " + " | ".join(titles) + " |")
    print("|" + "---|" * (3 + len(titles)))
    for name, problem, true in problems(Path(os.environ["STIEFELSYNC_DATA"])):
        kept = synchronise(problem, method="tracks", doubt=0).kept
        support, wrong = neighbour_support(problem), ~true[kept]
        odds = doubt(problem, kept, support).odds[kept]
        triangles, others = features(problem, kept, support)
        worst = int((odds * HARM > 1).sum())
        scores = [np.log(odds + 1e-6) - a * triangles - b * others for a, b in WEIGHTS.values()]
        cells = [f"{area(score, wrong):.3f}" for score in scores]
        cells += [f"{wrong[np.argsort(-score)[:worst]].mean():.3f}" for score in scores]
        print(f"| {name} | {wrong.mean():.3f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
