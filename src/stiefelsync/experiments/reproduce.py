"""From a name to a page: run what is missing, evaluate, draw, write the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from stiefelsync.datasets.house import house
from stiefelsync.experiments.catalogue import EXPERIMENTS, find_experiments
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict
from stiefelsync.experiments.index import Section, write_index
from stiefelsync.experiments.records import Store, versions
from stiefelsync.experiments.runner import count_steps, run
from stiefelsync.experiments.tasks import Task
from stiefelsync.io.files import replacing
from stiefelsync.plotting.canvas import blank, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Finding", "Plan", "plan", "reproduce"]


PNG_DPI = 160


@dataclass(frozen=True)
class Finding:
    """One claim of one experiment and what became of it."""

    experiment: str
    verdict: Verdict


@dataclass(frozen=True)
class Plan:
    """What there is to do.

    Attributes
    ----------
    steps
        Instances that have no record yet.
    """

    experiments: tuple[Experiment, ...]
    tasks: tuple[Task, ...]
    store: Store
    settings: Settings
    output: Path
    workers: int
    steps: int


def plan(name: str, output: Path, settings: Settings, *, workers: int = 1) -> Plan:
    """Return what `reproduce` would do in a folder, which may hold records of an earlier run."""
    experiments = tuple(find_experiments(name))
    store = Store(output / "records.jsonl")
    tasks = tuple(task for experiment in experiments for task in experiment.tasks(settings))
    return Plan(experiments, tasks, store, settings, output, workers, count_steps(tasks, store, workers=workers))


def reproduce(plan: Plan, *, progress: Callable[[int, str], object] | None = None) -> list[Finding]:
    """Carry out a plan: records to ``records.jsonl``, figures as PDF and PNG, findings to ``index.html``.

    Everything the index shows comes from the records, so a folder whose records are complete is drawn anew at once. The
    index has a section for every experiment whose records and figures are in the folder, also from earlier runs.

    Parameters
    ----------
    progress
        Called with the number of instances done, of ``plan.steps``, and what was done last.

    Returns
    -------
    list of Finding
        Of the planned experiments.
    """
    # What is missing, matplotlib or the data, is said before the long run and before anything is written.
    blank(1, 1)
    if any(task.problem["data"] == "house" and not plan.store.has_result(task) for task in plan.tasks):
        house(1)
    plan.output.mkdir(parents=True, exist_ok=True)
    run(plan.tasks, plan.store, workers=plan.workers, progress=progress)
    sections = []
    for experiment in EXPERIMENTS.values():
        tasks = experiment.tasks(plan.settings)
        records = plan.store.select(tasks)
        if len(records) < len(tasks):
            continue
        planned = experiment in plan.experiments
        if not planned and not all((plan.output / f"{name}.png").exists() for name in experiment.figures):
            continue
        if planned:
            for name, figure in experiment.plot(records, plan.settings).items():
                save(figure, plan.output / f"{name}.pdf")
                _save_png(figure, plan.output / f"{name}.png")
        sections.append(Section(experiment, tuple(experiment.evaluate(records)), len(records)))
    write_index(plan.output / "index.html", sections, plan.settings, versions())
    return [
        Finding(section.experiment.name, verdict)
        for section in sections
        if section.experiment in plan.experiments
        for verdict in section.verdicts
    ]


def _save_png(figure: Figure, path: Path) -> None:
    """Write a picture with a palette of 256 colours, which is all that drawings need and a third of the size."""
    from PIL import Image

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DPI)
    with Image.open(buffer) as picture, replacing(path) as temporary:
        palette = picture.convert("RGB").quantize(256, kmeans=1, dither=Image.Dither.NONE)
        palette.save(temporary, format="PNG", optimize=True)
