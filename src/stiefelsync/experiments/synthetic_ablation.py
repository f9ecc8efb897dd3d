"""Ours against two-stage approaches on synthetic problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stiefelsync.experiments.curves import NOTE, draw
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict
from stiefelsync.experiments.lines import ABLATION, OURS, STAGES, STAGES_BT, fscore
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.synthetic import setting_of, sweep_rows, synthetic_tasks
from stiefelsync.experiments.verdicts import best, comparable, quickest, seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SYNTHETIC_ABLATION"]


def evaluate(records: Sequence[Record]) -> list[Verdict]:
    """Judge the appendix's claims about synthetic data."""
    largest = _largest(records)
    return seen(
        [
            comparable(
                records, OURS, ABLATION, fscore, setting_of, "In fscore all methods are comparable in most cases",
                most=True,
            ),
            best(
                largest, OURS, ABLATION, fscore, setting_of,
                "On the largest problems Ours has the best fscore on average (here: the two settings with most points)",
            ),
            quickest(records, OURS, ABLATION, setting_of, "In runtime Ours is among the fastest"),
            quickest(largest, OURS, ABLATION, setting_of, "… also on the largest problems"),
            quickest(largest, STAGES, ABLATION, setting_of, "… where Ours/2-stage is, too"),
            comparable(
                records, OURS, (OURS, STAGES_BT), fscore, setting_of,
                "No line search is needed: Ours is as good as Ours/2-stage/bt",
            ),
        ]
    )  # fmt: skip


def _largest(records: Sequence[Record]) -> list[Record]:
    """Return the records of the two settings with the most points, d·k·ρ."""
    settings = {setting_of(record) for record in records}
    chosen = sorted(settings, key=lambda at: at[0] * at[1] * at[2])[-2:]
    return [record for record in records if setting_of(record) in chosen]


def plot(records: Sequence[Record], settings: Settings) -> dict[str, Figure]:
    """Draw two rows of four panels."""
    return {"synthetic-ablation": draw(sweep_rows(records, settings, ABLATION))}


SYNTHETIC_ABLATION = Experiment(
    "synthetic-ablation",
    "Ours against two-stage approaches, synthetic data (appendix)",
    f"The problems of the synthetic experiment. {NOTE}",
    lambda settings: synthetic_tasks(settings, ABLATION),
    evaluate,
    plot,
    ("synthetic-ablation",),
)
