"""From a name to a page: run what is missing, evaluate, draw, write the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stiefelsync.datasets.house import house
from stiefelsync.experiments.catalogue import EXPERIMENTS, find_experiments
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict
from stiefelsync.experiments.index import Section, page
from stiefelsync.experiments.records import Store, versions
from stiefelsync.experiments.runner import count_steps, run
from stiefelsync.experiments.tasks import Task
from stiefelsync.io.files import check_outputs, outputs
from stiefelsync.plotting.canvas import blank, save_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Finding", "Plan", "plan", "reproduce"]


PNG_DPI = 160  # legible on a screen; the committed figures are below 100 kB each


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


def reproduce(
    plan: Plan,
    *,
    client: Any = None,
    progress: Callable[[int, str], object] | None = None,
    force: bool = False,
) -> list[Finding]:
    """Carry out a plan: records to ``records.jsonl``, figures as PDF and PNG, findings to ``index.html``.

    Everything the index shows comes from the records, so a folder whose records are complete is
    drawn anew at once. The index has a section for every experiment whose records and figures are
    in the folder, also from earlier runs.

    Parameters
    ----------
    client
        A Dask client whose workers run the instances; plan with two or more workers for it, as for
        many processes.
    progress
        Called with the number of instances done, of ``plan.steps``, and what was done last.
    force
        Whether the figures and the index of an earlier run are replaced; its records are kept in
        any case.

    Returns
    -------
    list of Finding
        Of the planned experiments.
    """
    # What is missing, matplotlib or the data, is said before the long run and before anything is
    # written.
    blank(1, 1)
    if any(task.problem["data"] == "house" and not plan.store.has_result(task) for task in plan.tasks):
        house(1)
    if plan.output.exists():
        names = [name for experiment in plan.experiments for name in experiment.figures]
        check_outputs([plan.output / "index.html", *_files(plan, names)], force=force)
    plan.output.mkdir(parents=True, exist_ok=True)
    run(plan.tasks, plan.store, workers=plan.workers, client=client, progress=progress)
    sections, figures = [], dict[str, "Figure"]()
    for experiment in EXPERIMENTS.values():
        tasks = experiment.tasks(plan.settings)
        records = plan.store.select(tasks)
        if len(records) < len(tasks):
            continue
        planned = experiment in plan.experiments
        if not planned and not all((plan.output / f"{name}.png").exists() for name in experiment.figures):
            continue
        if planned:
            figures |= experiment.plot(records, plan.settings)
        sections.append(Section(experiment, tuple(experiment.evaluate(records)), len(records)))
    _write(plan, figures, page(sections, plan.settings, versions()), force)
    return [
        Finding(section.experiment.name, verdict)
        for section in sections
        if section.experiment in plan.experiments
        for verdict in section.verdicts
    ]


def _files(plan: Plan, names: Iterable[str]) -> list[Path]:
    return [plan.output / f"{name}.{ending}" for name in names for ending in ("pdf", "png")]


def _write(plan: Plan, figures: Mapping[str, Figure], index: str, force: bool) -> None:
    """Write all figures and the page that shows them, so that an interrupted run leaves records alone."""
    last = plan.output / "index.html"
    with outputs(*_files(plan, figures), last, force=force) as staged:
        for path, temporary in staged.items():
            if path.suffix == ".pdf":
                save_to(temporary, figures[path.stem])
            elif path.suffix == ".png":
                _save_png(figures[path.stem], temporary)
        staged[last].write_text(index, encoding="utf-8")


def _save_png(figure: Figure, path: Path) -> None:
    """Write a picture with a palette of 256 colours, which is all that drawings need and a third of the size."""
    from PIL import Image

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DPI)
    with Image.open(buffer) as picture:
        palette = picture.convert("RGB").quantize(256, kmeans=1, dither=Image.Dither.NONE)
        palette.save(path, format="PNG", optimize=True)
