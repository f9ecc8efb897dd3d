"""Pictures of relaxed solutions U kept in records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import load, unpack
from stiefelsync.plotting.canvas import blank
from stiefelsync.plotting.relaxed import colour_bar, draw_heatmap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_matrices"]


def draw_matrices(
    panels: Sequence[tuple[str, Record]],
    *,
    rows: str = "{} points, by true label",
    columns: str = "{} universe points",
    height: float = 3.4,
) -> Figure:
    """Draw the matrices U side by side on one scale, rows by true label and columns by the label each stands for.

    In this order a perfect U shows a straight staircase.
    """
    matrices = [(title, _ordered(record)) for title, record in panels]
    figure = blank(7.2, height)
    axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    limit = max(float(np.abs(U).max()) for _, U in matrices)
    for ax, (title, U) in zip(axes, matrices, strict=True):
        image = draw_heatmap(ax, U, title, limit=limit)
        ax.title.set_size(9)
        ax.set_ylabel(rows.format(len(U)) if ax is axes[0] else "", fontsize=8)
        ax.set_xlabel(columns.format(U.shape[1]), fontsize=8)
    colour_bar(figure, image, axes)
    return figure


def _ordered(record: Record) -> NDArray[np.float64]:
    U = unpack(record.result["U"])
    if record.task.problem["data"] == "toy":
        return U
    _, truth, d = load(record.task.problem, record.task.seed)
    energy = np.zeros((d, U.shape[1]))
    np.add.at(energy, truth, U**2)
    return U[np.ix_(np.argsort(truth, kind="stable"), np.argsort(energy.argmax(axis=0), kind="stable"))]
