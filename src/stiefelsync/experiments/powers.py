"""p = 3, p = 4 and the Riemannian subgradient method: curves, and the three matrices U."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stiefelsync.experiments.curves import NOTE, draw
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict, judge
from stiefelsync.experiments.house import curve_rows, house_tasks, k_of
from stiefelsync.experiments.lines import OURS, POWER4, SUBGRADIENT, Line, figure, fscore, means, objective
from stiefelsync.experiments.matrices import draw_matrices
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import Task
from stiefelsync.experiments.verdicts import best, seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["POWERS"]

POWER3 = replace(OURS, label="Ours, p = 3")
MOSTLY = 0.25  # share of negative weight below which U counts as mostly nonnegative
COMPARED = (POWER3, POWER4, SUBGRADIENT)


def _tasks(settings: Settings) -> list[Task]:
    pictures = [line.task({"data": "house", "k": 20}, settings.first_seed, ("U",)) for line in COMPARED]
    return house_tasks(settings, COMPARED) + pictures


def _curves(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if "U" not in record.task.keep]


def evaluate(records: Sequence[Record]) -> list[Verdict]:
    """Judge the appendix's claims about powers and the subgradient method."""
    curves = _curves(records)
    return seen(
        [
            _unsigned(curves),
            best(
                curves, POWER3, COMPARED, fscore, k_of,
                "… also if the signs of the subgradient method's columns are fixed before projection", strict=True,
            ),
            best(curves, POWER3, (POWER3, POWER4), objective, k_of, "… and p = 4 in the objective", strict=True),
            _signs(curves, POWER3, "Ours (p = 3) obtains a sparse and (mostly) nonnegative solution", nonnegative=True),
            _signs(curves, POWER4, "Ours (p = 4) obtains a sparse solution with both signs", nonnegative=False),
            _signs(
                curves, SUBGRADIENT, "The subgradient method obtains a sparse solution with both signs",
                nonnegative=False,
            ),
        ]
    )  # fmt: skip


def _signs(records: Sequence[Record], line: Line, claim: str, *, nonnegative: bool) -> Verdict | None:
    """Judge sparsity (most of each row's square in one entry) and sign (the square that negative entries carry)."""
    mine = [record.result for record in records if line.owns(record)]
    if not mine:
        return None
    peak, negative = (np.array([result[name] for result in mine]) for name in ("peak", "negative"))
    each = [bool(flag) for flag in (peak > 0.5) & ((negative < MOSTLY) == nonnegative)]
    average = peak.mean() > 0.5 and (negative.mean() < MOSTLY) == nonnegative
    evidence = (
        f"the largest entry of each row carries {peak.mean():.0%} of its square (more than half counts as sparse),"
        f" negative entries {negative.mean():.0%} of all (less than a quarter counts as mostly nonnegative)"
    )
    return judge(claim, each, bool(average), evidence)


def _unsigned(records: Sequence[Record]) -> Verdict | None:
    """Judge p = 3 against p = 4 and the subgradient method with the signs its columns happen to have."""
    fscores = [
        means(records, line, value, k_of)
        for line, value in ((POWER3, fscore), (POWER4, fscore), (SUBGRADIENT, figure("fscore_unsigned")))
    ]
    if not all(fscores):
        return None
    ours, *theirs = fscores
    each = [all(ours[k] > found[k] for found in theirs) for k in ours]
    mean = [float(np.mean(list(found.values()))) for found in fscores]
    evidence = f"mean fscores: p = 3 {mean[0]:.3f}, p = 4 {mean[1]:.3f}, Riemannian subgradient {mean[2]:.3f}"
    claim = "Since nonnegative solutions are wanted, Ours with p = 3 outperforms the two alternatives"
    return judge(claim, each, mean[0] > max(mean[1:]), evidence)


def plot(records: Sequence[Record], settings: Settings) -> dict[str, Figure]:
    """Draw the curves, and the three matrices at k = 20."""
    shown = [
        (line.label, record) for line in COMPARED for record in records if line.owns(record) and "U" in record.task.keep
    ]
    return {"powers": draw(curve_rows(_curves(records), COMPARED)), "powers-U": draw_matrices(shown)}


POWERS = Experiment(
    "powers",
    "Different p, and the Riemannian subgradient method (appendix)",
    f"Above: fscore, objective divided by k², and runtime on the house sequence. {NOTE} Below: the matrices U before"
    " projection at k = 20, points in the order of their true labels, columns sorted by the label they are nearest to."
    " Signs of columns are as each method found them; for the curves our subgradient method turns columns"
    " over before projection so that their cubes sum to more than zero, whereas p = 4 is projected as it is.",
    _tasks,
    evaluate,
    plot,
    ("powers", "powers-U"),
)
