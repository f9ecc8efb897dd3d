"""How the iteration proceeds with each kind of step, and when it stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stiefelsync.experiments.experiment import Experiment, Settings, Verdict, judge
from stiefelsync.experiments.matrices import draw_matrices
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import Task
from stiefelsync.plotting.canvas import INK, blank, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONVERGENCE"]

STYLES: dict[str, tuple[str, str, Any]] = {
    "none": ("none (Orthogonal Iteration)", "#E69F00", (0, (6, 2))),
    "gradient": ("gradient (the paper)", "#D55E00", "-"),
    "line-search": ("line search", "#56B4E9", "-."),
    "polar": ("polar", "#000000", ":"),
}
CRITERIA = ("primary", "both")


def _tasks(settings: Settings) -> list[Task]:
    """Return one task per step kind and seed, all from the same U_0, and the toy example under both criteria."""
    problem = {"data": "house", "k": 20 if settings.quick else 40}
    seeds = settings.seed_range(5, 2)
    steps = [
        Task(problem, "sparse-stiefel", seed, {"step": step, "tol": 1e-14, "max_iter": 150}, "iterate")
        for step in STYLES
        for seed in seeds
    ]
    toys = [
        Task({"data": "toy"}, "sparse-stiefel", seed, {"criterion": criterion}, "iterate", ("U",))
        for criterion in CRITERIA
        for seed in seeds
    ]
    return steps + toys


def _runs(records: Sequence[Record], step: str) -> list[Record]:
    return [record for record in records if record.task.options.get("step") == step]


def _toys(records: Sequence[Record], criterion: str) -> list[Record]:
    return [record for record in records if record.task.options.get("criterion") == criterion]


def evaluate(records: Sequence[Record]) -> list[Verdict]:
    """Judge what the paper says of convergence, per seed, and the toy example."""
    plain, ours = _runs(records, "none"), _runs(records, "gradient")
    primary, both = (_toys(records, criterion) for criterion in CRITERIA)
    verdicts = _judge_runs(records, plain, ours) if plain and ours else []
    return [*verdicts, _judge_toys(primary, both)] if primary and both else verdicts


def _judge_runs(records: Sequence[Record], plain: Sequence[Record], ours: Sequence[Record]) -> list[Verdict]:
    """Judge the claims on runs with and without the sparsity-promoting rotation, from the same starts."""
    gap = [_difference(a, b) for a, b in zip(plain, ours, strict=True)]
    short = [1 - record.result["objective"][-1] / record.result["optimum"] for record in ours]
    far = [record.result["distance"][-1] for record in ours]
    grown = {
        step: [r.result["secondary"][-1] / abs(max(p.result["secondary"])) for r, p in zip(runs, plain, strict=True)]
        for step in STYLES
        if step != "none" and (runs := _runs(records, step))
    }
    return [
        judge(
            "The algorithm has the same convergence behaviour as the Orthogonal Iteration (Lemma 3)",
            [value < 1e-6 for value in gap],
            False,
            f"largest relative difference of f at any iteration, same start: {max(gap):.1e}",
        ),
        judge(
            "The algorithm finds a globally optimal solution of Problem (1)",
            [value < 1e-6 for value in short],
            False,
            f"1 − f(U)/f(V) after {ours[0].result['iterations']} iterations, V the eigenvectors: at most"
            f" {max(short):.1e} (below 10⁻⁶ asked)",
        ),
        judge(
            "U_t converges to the dominant subspace",
            [value < 1e-2 for value in far],
            False,
            f"sine of the largest angle to it after {ours[0].result['iterations']} iterations:"
            f" {min(far):.1e} to {max(far):.1e} (below 10⁻² asked)",
        ),
        judge(
            "The steps promote sparsity: g ends higher than any g of the Orthogonal Iteration",
            [value > 1 for found in grown.values() for value in found],
            False,
            "g relative to the Orthogonal Iteration's highest: "
            + ", ".join(f"{step} {np.mean(found):.1f}" for step, found in grown.items()),
        ),
    ]


def _judge_toys(primary: Sequence[Record], both: Sequence[Record]) -> Verdict:
    """Judge the claim on the toy example under each stopping criterion."""
    before, after = ([record.result["peak"] for record in runs] for runs in (primary, both))
    return judge(
        "(reference) diag(1, 1, 1, ½, ½, ½), d = 3, stops too early under the primary criterion alone and"
        " becomes sparse under both",
        [a < 0.99 <= b for a, b in zip(before, after, strict=True)],
        bool(np.mean(before) < 0.99 <= np.mean(after)),
        f"share of U's square in the largest entries of its rows: {np.mean(before):.3f} after"
        f" {np.mean([r.result['iterations'] for r in primary]):.0f} iterations, {np.mean(after):.3f} after"
        f" {np.mean([r.result['iterations'] for r in both]):.0f}",
    )


def _difference(a: Record, b: Record) -> float:
    f, g = (np.array(record.result["objective"]) for record in (a, b))
    n = min(len(f), len(g))
    return float(np.abs(f[:n] / g[:n] - 1).max())


def plot(records: Sequence[Record], settings: Settings) -> dict[str, Figure]:
    """Draw the histories of all seeds, and the toy example's U under both criteria (first seed)."""
    figure = blank(7.2, 2.6)
    axes = figure.subplots(1, 3)
    panels = (
        ("objective", "1 − f(U) / f(V)"),
        ("secondary", "g(U)"),
        ("distance", "sine of largest angle"),
    )
    runs = {step: _runs(records, step) for step in STYLES}
    for ax, (name, label) in zip(axes, panels, strict=True):
        for step, (_, colour, dashes) in STYLES.items():
            for record in runs[step]:
                y = np.array(record.result[name])
                if name == "objective":
                    y = np.maximum(1 - y / record.result["optimum"], 1e-7)  # what records resolve
                ax.plot(np.arange(1, len(y) + 1), y, color=colour, linestyle=dashes, linewidth=1.1, alpha=0.8)
        tidy(ax, xlabel="iteration", ylabel=label)
        ax.tick_params(labelsize=7.5)
        ax.grid(axis="y", color=INK, alpha=0.08, linewidth=0.6)
        if name != "secondary":
            ax.set_yscale("log")
            ax.minorticks_off()
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=c, linestyle=dashes, label=label) for label, c, dashes in STYLES.values()]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=8, handlelength=2.6)
    titles = {"primary": "criterion: f settles", "both": "criterion: f and g settle"}
    toys = [(titles[criterion], _toys(records, criterion)[0]) for criterion in CRITERIA]
    return {
        "convergence": figure,
        "convergence-toy": draw_matrices(toys, rows="{} rows of U", columns="{} columns", height=2.2),
    }


CONVERGENCE = Experiment(
    "convergence",
    "Convergence of the step kinds (not in the paper)",
    "Above: how much f is short of its maximum f(V), V the eigenvectors, then g, and the sine of the largest angle to"
    " the dominant subspace, on the house sequence with k = 40 (quick: 20); every seed is a line, and all steps"
    " start from the same U_0. Below: U of the toy example W = diag(1, 1, 1, ½, ½, ½), d = 3, under the two stopping"
    " criteria.",
    _tasks,
    evaluate,
    plot,
    ("convergence", "convergence-toy"),
)
