"""Synthetic problems: fscore and runtime while one of d, k, ρ and σ varies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stiefelsync.experiments.curves import NOTE, Panel, draw
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict, judge
from stiefelsync.experiments.lines import (
    ACCURATE,
    LINES,
    MATCHALS,
    MATCHEIG,
    OURS,
    PAPER,
    SPECTRAL,
    Line,
    fscore,
    runtime,
    values,
)
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import Task
from stiefelsync.experiments.verdicts import best, quickest, seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SYNTHETIC", "Sweep", "setting_of", "sweep_rows", "sweeps", "synthetic_tasks"]

Sweep = tuple[str, str, list[dict[str, Any]]]
"""The parameter that varies, its name on the axis, and the problems."""


def sweeps(settings: Settings) -> list[Sweep]:
    """Return the four columns. The paper's text does not publish its values; these are ours.

    Examples
    --------
    >>> [name for name, _, _ in sweeps(Settings())]
    ['d', 'k', 'rho', 'sigma']
    """
    base: dict[str, Any] = {"d": 25, "k": 12 if settings.quick else 30, "rho": 0.6}
    grid: list[tuple[str, str, float, list[float], list[float]]] = [
        ("d", "universe size d", 0.5, [10, 25, 40, 60, 80], [10, 25]),
        ("k", "number of objects k", 0.5, [5, 10, 20, 30, 50, 80], [5, 20]),
        ("rho", "observation rate ρ", 0.6, [0.3, 0.4, 0.5, 0.6, 0.8, 1.0], [0.4, 0.8]),
        ("sigma", "error rate σ", 0.0, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], [0.0, 0.3, 0.6]),
    ]
    return [
        (
            name,
            label,
            [{"data": "synthetic", **base, "sigma": sigma, name: x} for x in (few if settings.quick else many)],
        )
        for name, label, sigma, many, few in grid
    ]


def synthetic_tasks(settings: Settings, lines: Sequence[Line]) -> list[Task]:
    """Return one task per problem, method and seed.

    MatchALS is left out where there are many points.
    """
    most = 200 if settings.quick else 800
    return [
        line.task(problem, seed)
        for _, _, problems in sweeps(settings)
        for problem in problems
        for line in lines
        if line is not MATCHALS or problem["d"] * problem["k"] * problem["rho"] <= most
        for seed in settings.seed_range(5, 2)
    ]


def setting_of(record: Record) -> tuple[float, ...]:
    """Return the parameters of a record's problem."""
    return tuple(record.task.problem[name] for name in ("d", "k", "rho", "sigma"))


def sweep_rows(records: Sequence[Record], settings: Settings, lines: Sequence[Line]) -> list[list[Panel]]:
    """Return a row of fscores and a row of runtimes, one column per sweep."""
    rows: list[list[Panel]] = [[], []]
    for name, label, problems in sweeps(settings):
        mine = [record for record in records if record.task.problem in problems]

        x = partial(_parameter, name)
        quality, times = ({line: values(mine, line, value, x) for line in lines} for value in (fscore, runtime))
        first = not rows[0]
        rows[0].append(Panel("", "fscore ↑" if first else "", quality))
        rows[1].append(Panel(label, "runtime in s ↓" if first else "", times, log=True))
    return rows


def _parameter(name: str, record: Record) -> Any:
    return record.task.problem[name]


def evaluate(records: Sequence[Record]) -> list[Verdict]:
    """Judge the paper's claims about synthetic data."""
    spectral = (MATCHEIG, SPECTRAL, OURS)
    return seen(
        [
            best(records, OURS, PAPER, fscore, setting_of, "In most settings our method has the top fscore", most=True),
            quickest(
                records, OURS, spectral, setting_of,
                "It is almost as fast as the most efficient methods, which are also spectral (MatchEig and Spectral)",
            ),
            _matchals(records),
            best(
                records, ACCURATE, (*PAPER, ACCURATE), fscore, setting_of,
                "(ours, not the paper's) The preset accurate has the best fscore",
            ),
        ]
    )  # fmt: skip


def _matchals(records: Sequence[Record]) -> Verdict | None:
    slow, ours = (values(records, line, runtime, setting_of) for line in (MATCHALS, OURS))
    ratio = [float(np.median(slow[at]) / np.median(ours[at])) for at in slow if at in ours]
    if not ratio:
        return None
    largest = max((at for at in slow if at in ours), key=lambda at: at[0] * at[1] * at[2])
    last = float(np.median(slow[largest]) / np.median(ours[largest]))
    evidence = (
        f"MatchALS takes {min(ratio):.0f} to {max(ratio):.0f} times as long as ours where it was run, {last:.0f} times"
        " on the largest of them (more than 10 counts)"
    )
    return judge("MatchALS is prohibitively slow on larger instances", [last > 10], False, evidence)


def plot(records: Sequence[Record], settings: Settings) -> dict[str, Figure]:
    """Draw two rows of four panels."""
    return {"synthetic": draw(sweep_rows(records, settings, LINES))}


SYNTHETIC = Experiment(
    "synthetic",
    "Synthetic data",
    "One parameter varies in each column; otherwise d = 25, k = 30, ρ = 0.6 (quick: k = 12), σ = 0.5 (0.6 in the third"
    f" column), row noise. {NOTE} MatchALS is not run on more than about 800 points (quick: 200), where it takes too"
    " long. Row noise permutes rows of a block but leaves the set of matched columns as it is; accurate, which looks at"
    " who is seen by whom, has this to go by where few matches are right, unless everything is seen (ρ = 1).",
    lambda settings: synthetic_tasks(settings, LINES),
    evaluate,
    plot,
    ("synthetic",),
)
