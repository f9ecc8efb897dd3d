"""p = 3, p = 4 and the Riemannian subgradient method: curves, and the three matrices U."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stiefelsync.experiments.curves import NOTE, draw
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict, judge
from stiefelsync.experiments.house import curve_rows, house_tasks, k_of
from stiefelsync.experiments.lines import OURS, POWER4, SUBGRADIENT, Line, fscore, objective
from stiefelsync.experiments.matrices import draw_matrices
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import Task
from stiefelsync.experiments.verdicts import best, seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["POWERS"]

POWER3 = replace(OURS, label="Ours, p = 3")
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
            best(curves, POWER3, COMPARED, fscore, k_of, "Ours with p = 3 outperforms the two alternatives: fscore"),
            best(curves, POWER3, COMPARED, objective, k_of, "… objective"),
            _signs(curves, POWER3, "Ours (p = 3) obtains a sparse and (mostly) nonnegative solution", nonnegative=True),
            _signs(curves, POWER4, "Ours (p = 4) obtains a sparse solution with both signs", nonnegative=False),
            _signs(
                [record for record in records if "U" in record.task.keep], SUBGRADIENT,
                "The subgradient method obtains a sparse solution with both signs", nonnegative=False,
            ),
        ]
    )  # fmt: skip


def _signs(records: Sequence[Record], line: Line, claim: str, *, nonnegative: bool) -> Verdict | None:
    """Judge sparsity (most of each row's square in one entry) and sign (the square that negative entries carry)."""
    mine = [record.result for record in records if line.owns(record)]
    if not mine:
        return None
    peak, negative = (np.array([result[name] for result in mine]) for name in ("peak", "negative"))
    signs = (negative < 0.1) if nonnegative else (negative > 0.25)
    each = [bool(flag) for flag in (peak > 0.5) & signs]
    evidence = (
        f"the largest entry of each row carries {peak.mean():.0%} of its square (more than half counts as sparse),"
        f" negative entries {negative.mean():.1%} of all ({'less than 10' if nonnegative else 'more than 25'} % asked)"
    )
    average = peak.mean() > 0.5 and (negative.mean() < 0.1 if nonnegative else negative.mean() > 0.25)
    return judge(claim, each, bool(average), evidence)


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
    " The subgradient method fixes the signs of its columns before projection; p = 4 is projected as it is.",
    _tasks,
    evaluate,
    plot,
)
