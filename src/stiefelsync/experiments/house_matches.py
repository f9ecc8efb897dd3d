"""Matches between the first and the last frame of the house sequence, drawn over the photographs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets.fetch import RemoteFile, find
from stiefelsync.errors import InputError
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict, judge
from stiefelsync.experiments.house import HOUSE_LINES, HOUSE_PAPER, frames, house_tasks, k_of
from stiefelsync.experiments.lines import OURS, Line
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import Task, load
from stiefelsync.plotting.canvas import INK, QUIET, RIGHT, WRONG, blank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HOUSE_MATCHES"]

WIDTH, HEIGHT, GAP = 576, 384, 24  # of a photograph, and between two of them, in pixels


def _tasks(settings: Settings) -> list[Task]:
    """Return the tasks at the largest k, which the house experiment runs too."""
    last = frames(settings)[-1]
    return [task for task in house_tasks(settings, HOUSE_LINES) if task.problem["k"] == last]


def _judged(record: Record) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the matches of first and last frame, shape (n, 2), and whether each is right."""
    _, truth, d = load(record.task.problem, record.task.seed)
    ends = np.array(record.result["ends"], dtype=np.int64).reshape(-1, 2)
    return ends, truth[ends[:, 0]] == truth[len(truth) - d + ends[:, 1]]


def evaluate(records: Sequence[Record]) -> list[Verdict]:
    """Judge which method matches the two frames best."""
    # By seed, since loading a problem takes longer than judging an answer to it.
    in_order = sorted(records, key=lambda record: record.task.seed)
    counts_by_task = {record.task.key: int(_judged(record)[1].sum()) for record in in_order}
    right = {line: [counts_by_task[r.task.key] for r in records if line.owns(r)] for line in HOUSE_LINES}
    mean = {line: float(np.mean(found)) for line, found in right.items() if found}
    if OURS not in mean:
        return []
    counts = ", ".join(f"{line.label} {value:.1f}" for line, value in mean.items())
    evidence = f"right matches of 30 at k = {k_of(records[0])}, mean over seeds: {counts}"
    each = [mean[OURS] >= mean[line] for line in HOUSE_PAPER if line in mean and line is not OURS]
    verdict = judge("Overall, our approach obtains the best matchings between first and last image", each, False, "")
    return [Verdict(verdict.claim, verdict.finding, evidence + verdict.evidence.replace("settings", "rivals"))]


def plot(records: Sequence[Record], settings: Settings) -> dict[str, Figure]:
    """Draw one panel per method, of the first seed."""
    first = {line: next((r for r in records if line.owns(r)), None) for line in HOUSE_LINES}
    shown = [(line, record) for line, record in first.items() if record is not None]
    width = 7.2
    rows = -(-len(shown) // 2)
    figure = blank(width, 0.35 + rows * (width / 2 * HEIGHT / (2 * WIDTH + GAP) + 0.22))
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for ax, (line, record) in zip(axes, shown, strict=False):
        _draw(ax, line, record, photographs=settings.photographs)
    for ax in axes[len(shown) :]:
        ax.axis("off")
    _legend(figure)
    return {"house-matches": figure}


def _draw(ax: Any, line: Line, record: Record, *, photographs: bool) -> None:
    import matplotlib
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Rectangle

    problem, truth, d = load(record.task.problem, record.task.seed)
    assert problem.coordinates is not None
    shift = np.array([[0.0, 0.0], [WIDTH + GAP, 0.0]])
    both = np.array([problem.coordinates[:d], problem.coordinates[-d:]]) + shift[:, None]
    for side, frame in enumerate((0, 110)):
        x = shift[side, 0]
        if photographs:
            ax.imshow(_photograph(frame), cmap="gray", vmin=-0.25, vmax=1.0, extent=(x, x + WIDTH, HEIGHT, 0))
        else:
            ax.add_patch(Rectangle((x, 0), WIDTH, HEIGHT, facecolor="#F6F8FA", edgecolor=QUIET, linewidth=0.6))
    ends, right = _judged(record)
    segments = np.stack([both[0][ends[:, 0]], both[1][ends[:, 1]]], axis=1)
    ax.add_collection(LineCollection(list(segments[right]), colors=RIGHT, linewidths=0.9, zorder=3))
    ax.add_collection(LineCollection(list(segments[~right]), colors=WRONG, linewidths=1.1, linestyles="--", zorder=4))
    colours = matplotlib.colormaps["turbo"](np.linspace(0.03, 0.97, d))
    for side, labels in enumerate((truth[:d], truth[-d:])):
        ax.scatter(*both[side].T, s=9, c=colours[labels], edgecolors="white", linewidths=0.3, zorder=5)
    ax.set_title(f"{line.label}: {int(right.sum())} right, {int((~right).sum())} wrong", fontsize=8.5, color=INK, pad=3)
    ax.set_xlim(0, 2 * WIDTH + GAP)
    ax.set_ylim(HEIGHT, 0)
    ax.set_aspect("equal")
    ax.axis("off")


@lru_cache(maxsize=2)
def _photograph(frame: int) -> NDArray[np.float64]:
    """Return a frame of the sequence, shape (384, 576), from 0 to 1."""
    from matplotlib.image import imread

    name = f"house/images/house.seq{frame}.png"
    try:
        path = find(RemoteFile(name, "the CMU VASC image database", ""))
    except InputError:
        raise InputError(
            f"{name} is not below STIEFELSYNC_DATA; put the frames of the CMU house sequence there, or draw without"
            " them: photographs=False",
            setting="photographs",
        ) from None
    picture = np.asarray(imread(path), dtype=np.float64)
    return picture if picture.ndim == 2 else picture[..., :3].mean(axis=2)


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=RIGHT, linewidth=1.4, label="right"),
        Line2D([], [], color=WRONG, linewidth=1.4, linestyle="--", label="wrong"),
        Line2D([], [], color="#666666", linestyle="", marker="o", markersize=4, label="dots: colour = ground truth"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=8)


HOUSE_MATCHES = Experiment(
    "house-matches",
    "Matches between the first and the last frame",
    "What each method says about frames 0 and 110 when all frames of the largest k are synchronised together (first"
    " seed). Dots are coloured by ground truth; green lines are right, dashed red ones wrong.",
    _tasks,
    evaluate,
    plot,
    ("house-matches",),
)
