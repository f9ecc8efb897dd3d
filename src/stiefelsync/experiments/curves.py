"""Curves over a parameter: mean lines, bands of the middle half of the seeds, the legend above the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.experiments.lines import Line
from stiefelsync.plotting.canvas import INK, blank, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NOTE", "Panel", "draw"]

NOTE = (
    "Lines show the mean over the seeds (runtime: the median), bands the middle half of the seeds. Dashed lines: cycle"
    " consistency is not guaranteed. Runtimes are CPU seconds of one instance alone."
)


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes
    ----------
    data
        For every line, by x, the values over the seeds.
    log
        Logarithmic ordinate, and medians instead of means: for runtimes.
    """

    xlabel: str
    ylabel: str
    data: Mapping[Line, Mapping[float, NDArray[np.float64]]]
    log: bool = False
    title: str = ""


def draw(rows: Sequence[Sequence[Panel]]) -> Figure:
    """Draw panels in rows with one legend above them all.

    Examples
    --------
    >>> from stiefelsync.experiments.lines import OURS
    >>> panel = Panel("k", "fscore", {OURS: {20: np.array([0.9, 0.95])}})
    >>> len(draw([[panel, panel]]).axes)
    2
    """
    columns = max(len(row) for row in rows)
    lines = list(dict.fromkeys(line for row in rows for panel in row for line in panel.data if panel.data[line]))
    legend_rows = -(-len(lines) // 4)
    figure = blank(max(2.4 * columns, 7.2), 0.25 * legend_rows + 2.15 * len(rows))
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for row, panels in zip(axes, rows, strict=True):
        for ax, panel in zip(row, panels, strict=True):
            _draw_panel(ax, panel)
    figure.legend(
        handles=[_handle(line) for line in lines], loc="outside upper center", ncols=min(len(lines), 4), frameon=False,
        fontsize=8, handlelength=2.6,
    )  # fmt: skip
    return figure


def style(line: Line) -> dict[str, Any]:
    """Return how a line is drawn."""
    return {
        "color": line.colour,
        "marker": line.marker,
        "linestyle": "-" if line.consistent else "--",
        "markersize": 3.5,
        "linewidth": 1.3,
    }


def _handle(line: Line) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=line.label, **style(line))


def _draw_panel(ax: Any, panel: Panel) -> None:
    for line, found in panel.data.items():
        if not found:
            continue
        x = np.array(list(found))
        centre = [np.median(y) if panel.log else y.mean() for y in found.values()]
        low, high = np.array([np.quantile(y, [0.25, 0.75]) for y in found.values()]).T
        ax.fill_between(x, low, high, color=line.colour, alpha=0.15, linewidth=0)
        ax.plot(x, centre, **style(line))
    tidy(ax, panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
    ax.title.set_size(9)
    ax.tick_params(labelsize=7.5)
    ax.xaxis.label.set_size(8.5)
    ax.yaxis.label.set_size(8.5)
    if all(float(x).is_integer() for found in panel.data.values() for x in found):
        ax.xaxis.get_major_locator().set_params(integer=True)
    if panel.log:
        _log_seconds(ax)
    ax.grid(axis="y", color=INK, alpha=0.08, linewidth=0.6)
    ax.margins(x=0.04)


def _log_seconds(ax: Any) -> None:
    """Label a logarithmic ordinate in plain numbers, twice per decade, so that short ranges have labels, too."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    ax.set_yscale("log")
    ax.minorticks_off()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
