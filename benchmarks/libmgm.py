"""Against libmgm's Python package, where that is installed: ``pip install pylibmgm && python -m benchmarks.libmgm``.

The house sequence, k = 20: the objective is the number of matches that agree, which libmgm minimises with sign changed
(cost -1 for every match, 0 for every other assignment). Both by the clock and in processor seconds, in one run. The
package itself never imports libmgm.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations
from typing import Any

import numpy as np

from stiefelsync import Matchings, datasets, score, synchronise


def model(problem: Matchings) -> Any:
    """Return the problem as libmgm has it."""
    import pylibmgm as mgm

    whole = mgm.MgmModel()
    graphs = [mgm.Graph(i, int(n)) for i, n in enumerate(problem.sizes)]
    for i, j in combinations(range(problem.n_objects), 2):
        matched = {(int(a), int(b)) for a, b in problem.pair(i, j)}
        n, l = int(problem.sizes[i]), int(problem.sizes[j])
        part = mgm.GmModel(graphs[i], graphs[j], n * l, 0)
        for a in range(n):
            for b in range(l):
                part.add_assignment(a, b, -1.0 if (a, b) in matched else 0.0)
        whole.add_model(part)
    return whole


def labels(solution: Any, problem: Matchings) -> Any:
    """Return the labels, (m,), of a consistent solution: points matched with each other have one."""
    from stiefelsync.matching.graph import connected, numbered

    start = np.append(0, np.cumsum(problem.sizes))
    ends = [
        (start[i] + a, start[j] + b)
        for (i, j), found in solution.to_dict_with_none().items()
        for a, b in enumerate(found)
        if b is not None
    ]
    return numbered(connected(problem.n_points, np.array(ends)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=20)
    options = parser.parse_args()
    from pylibmgm import solver

    problem, truth = datasets.house(options.objects, rng=0)
    synchronise(problem, 30)
    whole = model(problem)
    runs = {m: (lambda m=m: synchronise(problem, 30, method=m).labels) for m in ("fast", "accurate")}
    runs |= {f"libmgm {level.name}": (lambda level=level: labels(solver.solve_mgm(whole, level), problem))
             for level in solver.OptimizationLevel}  # fmt: skip
    for name, run in runs.items():
        clock, processor = time.perf_counter(), time.process_time()
        found = run()
        took = time.perf_counter() - clock, time.process_time() - processor
        agreed = int(problem.agreeing(found).sum())
        f = score(found, truth).fscore
        print(
            f"{name:24s} {took[0]:.3f} s (processor {took[1]:.3f}), {agreed} matches agree, fscore {f:.4f}", flush=True
        )


if __name__ == "__main__":
    main()
