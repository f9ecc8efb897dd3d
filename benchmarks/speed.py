"""How long the presets take: against plain-NumPy Algorithm 1, and against k and d with fitted exponents.

    python -m benchmarks.speed ratio                      # house k=111; k=100, d=150; k=200, d=300 (extrapolated)
    python -m benchmarks.speed scale --plot docs/images/speed.png

Ratios are taken in one run, baseline first, presets after, both by the clock (on an otherwise idle machine) and in
processor seconds, which counts every thread of the presets against them and does not mind other programs. The
baseline at k=200, d=300 is not run to its end: five of its iterations are measured and the iteration count of k=100,
d=150 assumed.
"""

from __future__ import annotations

import argparse
import csv
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy import instance
from benchmarks.baseline import algorithm1

CASES = {"house": "house 111 30 1 0", "middle": "row 100 150 1 .8", "large": "row 200 300 1 .8"}
SCALE = [(20, 50), (40, 50), (80, 50), (160, 50), (40, 25), (40, 100), (40, 200)]


def timed(function: Any) -> tuple[NDArray[np.float64], Any]:
    """Return seconds by the clock and of all processors together, and the result."""
    start = time.perf_counter(), time.process_time()
    result = function()
    return np.array([time.perf_counter() - start[0], time.process_time() - start[1]]), result


def ratio(case: str, n_iter: int | None) -> int:
    """Print the time of Algorithm 1 with projection over the presets' on one problem; return its iterations."""
    from stiefelsync import score, synchronise
    from stiefelsync.sync.rounding import project

    problem, truth, d = instance(CASES[case], 0)
    W, rng = problem.to_matrix(), np.random.default_rng(0)
    if n_iter is None:
        seconds, (U, n_iter) = timed(lambda: algorithm1(W, d, rng))
        projection, labels = timed(lambda: project(U, problem.sizes))
        base, note, f = seconds + projection, f"{n_iter} iterations", score(labels, truth).fscore
    else:
        one, _ = timed(lambda: algorithm1(W, d, rng, max_iter=1))
        six, _ = timed(lambda: algorithm1(W, d, rng, max_iter=6, tol=-np.inf))
        base, note = one + (six - one) / 5 * (n_iter - 1), f"extrapolated from 5 to {n_iter} iterations"
        f = float("nan")
    print(f"{CASES[case]}: Algorithm 1 in plain NumPy {_both(base)} s ({note}), fscore {f:.4f}", flush=True)
    for method in ("fast", "accurate"):
        synchronise(*_warm(), method=method)
        seconds, result = timed(partial(synchronise, problem, d, method=method))
        quality = score(result.labels, truth).fscore
        print(f"  {method}: {_both(seconds)} s, ratio {_both(base / seconds)}, fscore {quality:.4f}", flush=True)
    return n_iter


def _both(values: NDArray[np.float64]) -> str:
    return f"{values[0]:.2f} (processor {values[1]:.2f})"


def _warm() -> tuple[Any, int]:
    """Return a small problem; the first call pays for imports."""
    from stiefelsync import datasets

    return datasets.synthetic(10, 20, 1.0, 0.3, rng=0)[0], 10


def scale(repeats: int) -> list[dict[str, float]]:
    """Measure time and peak memory of the presets over k and d (full permutations, σ = .5)."""
    from stiefelsync import datasets, synchronise

    rows = []
    for k, d in SCALE:
        problem, _ = datasets.synthetic(d, k, 1.0, 0.5, rng=0)
        nnz, m = 2 * problem.n_matches, problem.n_points
        row: dict[str, float] = {"k": k, "d": d, "cost": float(nnz * d + m * d * d)}
        for method in ("fast", "accurate"):
            run = partial(synchronise, problem, d, method=method)
            row[f"{method} s"] = min(float(timed(run)[0][0]) for _ in range(repeats))
            tracemalloc.start()
            run()
            row[f"{method} MB"] = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
        rows.append(row)
        print({name: round(value, 3) for name, value in row.items()}, flush=True)
    return rows


def exponents(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the slope of log time over log(nnz·d + m·d²) for each preset, by least squares."""
    x = np.log([row["cost"] for row in rows])
    return {m: float(np.polyfit(x, np.log([row[f"{m} s"] for row in rows]), 1)[0]) for m in ("fast", "accurate")}


def plot(rows: list[dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.4), dpi=110)
    rows = sorted(rows, key=lambda row: row["cost"])
    slopes = exponents(rows)
    x = np.array([row["cost"] for row in rows])
    for method, marker in (("fast", "o"), ("accurate", "s")):
        y = [row[f"{method} s"] for row in rows]
        axes.loglog(x, y, marker, label=f"{method}, exponent {slopes[method]:.2f}")
    axes.loglog(x, rows[-1]["accurate s"] * x / x[-1], "k:", linewidth=1, label="exponent 1")
    axes.set(xlabel="nnz·d + m·d²", ylabel="seconds")
    axes.legend(frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ratio", "scale"])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, help="CSV for the scaling measurements")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.what == "ratio":
        middle = None
        for case in options.cases:
            n_iter = ratio(case, (middle or 30) if case == "large" else None)
            middle = n_iter if case == "middle" else middle
        return
    rows = scale(options.repeats)
    print("exponents of time over nnz·d + m·d²:", {m: round(v, 2) for m, v in exponents(rows).items()})
    if options.output:
        with options.output.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows({n: round(v, 4) for n, v in row.items()} for row in rows)
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
