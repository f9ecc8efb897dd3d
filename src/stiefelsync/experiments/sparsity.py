"""What the secondary objective does: U of Orthogonal Iteration beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stiefelsync.experiments.experiment import Experiment, Settings, Verdict, judge
from stiefelsync.experiments.lines import OURS, Line
from stiefelsync.experiments.matrices import draw_matrices
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SPARSITY"]

PLAIN = Line("Orthogonal Iteration", "orthogonal-iteration", "#0072B2", "s")
PROBLEM = {"data": "synthetic", "d": 30, "k": 5, "rho": 0.9, "sigma": 0.3}


def _tasks(settings: Settings) -> list[Task]:
    seeds = settings.seed_range(10, 3)
    return [line.task(PROBLEM, seed, ("U",) if seed == seeds[0] else ()) for line in (PLAIN, OURS) for seed in seeds]


def evaluate(records: Sequence[Record]) -> list[Verdict]:
    """Judge the appendix's claims about sparsity, per seed."""
    found = {
        line: {
            name: np.array([r.result[name] for r in records if line.owns(r)])
            for name in ("peak", "negative", "sparsity")
        }
        for line in (PLAIN, OURS)
    }
    if not all(len(figures["peak"]) for figures in found.values()):
        return []
    plain, ours = found[PLAIN], found[OURS]
    numbers = ", ".join(f"{line.label} {figures['peak'].mean():.0%}" for line, figures in found.items())
    small = ", ".join(f"{figures['sparsity'].mean():.0%}" for figures in found.values())
    negative = ours["negative"].mean()
    return [
        judge(
            "Our method results in a significantly sparser solution than the Orthogonal Iteration",
            [bool(flag) for flag in ours["peak"] > plain["peak"] + 0.1],
            bool(ours["peak"].mean() > plain["peak"].mean() + 0.1),
            f"share of a row's square in its largest entry: {numbers}; entries below a tenth of the largest: {small}",
        ),
        judge(
            "Our method gives a mostly nonnegative U",
            [bool(flag) for flag in ours["negative"] < 0.25],
            bool(negative < 0.25),
            f"negative entries carry {negative:.1%} of the square of U (less than a quarter asked), with Orthogonal"
            f" Iteration {plain['negative'].mean():.1%}",
        ),
    ]


def plot(records: Sequence[Record], settings: Settings) -> dict[str, Figure]:
    """Draw the two matrices of the first seed."""
    shown = [(line.label, r) for line in (PLAIN, OURS) for r in records if line.owns(r) and "U" in r.task.keep]
    return {"sparsity": draw_matrices(shown)}


SPARSITY = Experiment(
    "sparsity",
    "The effect of the secondary objective (appendix)",
    "U before projection, k = 5, d = 30, ρ = 0.9, σ = 0.3, first seed; points in the order of their true labels,"
    " columns sorted by the label they are nearest to.",
    _tasks,
    evaluate,
    plot,
    ("sparsity",),
)
