"""How much faster than plain NumPy the solver is, at equal quality: ``python -m benchmarks.solver`` (``make bench``).

Every figure is a ratio to ``benchmarks.baseline.algorithm1`` measured in the same run. A row whose quality check fails
ends the run with exit code 1 instead of being timed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.baseline import algorithm1
from stiefelsync import ConvergenceWarning, datasets, sparse_stiefel, two_stage
from stiefelsync.stiefel.iterate import WeightedUpdate, iterate, settled
from stiefelsync.stiefel.operators import as_operator
from stiefelsync.stiefel.secondary import secondary
from stiefelsync.stiefel.steps import STEPS

ITERATIONS = 5


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def per_iteration(W: Any, d: int, U0: Any, repeats: int) -> tuple[float, float, float]:
    """Seconds of one iteration, ours and the baseline's (best of several), and how far their iterates differ."""

    def ours() -> Any:
        A = as_operator(W)
        update = WeightedUpdate(A, 0.0, U0)
        return iterate(
            U0, update, step=STEPS["gradient"], p=3, criterion=settled("objective", tol=1e-30), max_iter=ITERATIONS
        )

    def plain() -> Any:
        U = U0
        for _ in range(ITERATIONS):
            h = U.T @ U**2
            skew = h - h.T
            U, R = np.linalg.qr(W @ U @ (np.eye(d) + skew / abs(skew).max()))
            U = U * np.where(np.diag(R) < 0, -1.0, 1.0)
            float(np.sum(U * (W @ U)))
        return U

    mine = theirs = difference = np.inf
    for _ in range(repeats):
        run = ours()
        took, U = seconds(plain)
        # The set-up of ours (checks, the first product) is left out, as the baseline has none.
        mine = min(mine, float(run.history.seconds[-1] - run.history.seconds[0]) / (ITERATIONS - 1))
        theirs, difference = min(theirs, took / ITERATIONS), float(abs(run.U - U).max())
    return mine, theirs, difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=100)
    parser.add_argument("--universe", type=int, default=150)
    parser.add_argument("--error", type=float, default=0.8)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    k, d = arguments.objects, arguments.universe
    problem, _ = datasets.synthetic(d, k, observed=1.0, error=arguments.error, rng=0)
    W = problem.to_matrix()
    console = Console(stderr=True)
    console.print(f"k = {k}, d = {d}: m = {W.shape[0]:,}, nnz = {W.nnz:,}, float64; baseline: plain NumPy Algorithm 1")
    rows: list[tuple[str, float, float, str, bool]] = []

    with console.status("one iteration"):
        U0 = np.random.default_rng(1).standard_normal((W.shape[0], d))
        mine, theirs, difference = per_iteration(W, d, U0, arguments.repeats)
    rows.append(("one iteration", mine, theirs / mine, f"iterates differ by {difference:.0e}", difference < 1e-8))

    with console.status("the baseline to convergence"):
        baseline, (U, n_plain) = seconds(lambda: algorithm1(W, d, np.random.default_rng(2)))
    f_plain, g_plain = float(np.sum(U * (W @ U))), secondary(U)

    with console.status("Algorithm 1"):
        once, run = seconds(lambda: sparse_stiefel(W, d, rng=2))
    close = run.objective > f_plain * (1 - 1e-3)
    rows.append(("Algorithm 1", once, baseline / once, f"f/f_plain = {run.objective / f_plain:.5f}", close))

    with console.status("200 gradient iterations, for their g"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        g_200 = sparse_stiefel(W, d, tol=1e-15, max_iter=200, rng=2).secondary
    # Two digits of f are plenty for g, as the quality column shows.
    for name, dtype in (("two-stage, polar", np.float64), ("two-stage, polar, float32", np.float32)):
        with console.status(name):
            A = W.astype(dtype)
            took, run = seconds(lambda A=A: two_stage(A, d, subspace="block-power", rotation="polar", tol=1e-2, rng=2))
        note = f"g = {run.secondary:.2f}, 200 gradient iterations {g_200:.2f}, baseline {g_plain:.2f}"
        rows.append((name, took, baseline / took, note, run.secondary >= g_200))

    table = Table(title=f"ratio to plain NumPy ({baseline:.1f} s, {n_plain} iterations, in this run)")
    for heading in ("what", "seconds", "times faster", "quality"):
        table.add_column(heading, justify="left" if heading in ("what", "quality") else "right")
    for name, took, ratio, note, good in rows:
        shown = (f"{took:.3f}", f"{ratio:.1f}") if good else ("–", "–")
        table.add_row(name, *shown, note if good else f"[red]too low: {note}")
    Console().print(table)
    if not all(row[-1] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
