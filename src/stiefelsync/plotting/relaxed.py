"""The relaxed solution U and how the iteration reached it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.plotting.canvas import INK, KEPT, QUIET, REMOVED, blank, tidy
from stiefelsync.stiefel.result import History

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["colour_bar", "convergence", "draw_convergence", "draw_heatmap", "heatmaps"]

CELLS = 900  # at most so many rows or columns of U are drawn, evenly chosen


@typed
def heatmaps(panels: Sequence[tuple[str, ArrayLike]]) -> Figure:
    """Draw matrices U side by side on one colour scale, white at zero.

    Parameters
    ----------
    panels
        Titles and matrices, each (m, d).

    Examples
    --------
    >>> len(heatmaps([("plain", np.eye(3)), ("sparse", np.eye(3))]).axes)
    3
    """
    if not panels:
        raise InputError("there is no matrix to draw")
    figure = blank(1.2 + 3.3 * len(panels), 6.4)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    limit = max(_limit(np.asarray(U)) for _, U in panels)
    for ax, (title, U) in zip(axes, panels, strict=True):
        image = draw_heatmap(ax, np.asarray(U), title, limit=limit)
    colour_bar(figure, image, axes)
    return figure


@typed
def convergence(history: History) -> Figure:
    """Draw the primary and the secondary objective over the iterations.

    Examples
    --------
    >>> history = History(np.array([1.0, 2.0]), np.array([0.1, 0.3]), np.array([0.0, 0.1]))
    >>> len(convergence(history).axes)
    2
    """
    figure = blank(6, 4)
    draw_convergence(figure.subplots(), history)
    return figure


def draw_heatmap(ax: Any, U: NDArray[Any], title: str, *, limit: float | None = None) -> Any:
    """Draw one matrix U into axes and return the image, for a colour bar."""
    m, d = U.shape
    limit = _limit(U) if limit is None else limit
    shown = U[np.ix_(_sample(m), _sample(d))]
    image = ax.imshow(
        shown, aspect="auto", cmap="PuOr_r", vmin=-limit, vmax=limit, extent=(0, d, m, 0), interpolation="nearest"
    )
    tidy(ax, title, xlabel=f"{d} universe points", ylabel=f"{m:,} points, object by object")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(QUIET)
    return image


def colour_bar(figure: Any, image: Any, axes: Any) -> None:
    """Add the scale of a heat map beside its axes."""
    bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=QUIET, labelcolor=INK)


def draw_convergence(ax: Any, history: History, title: str = "convergence") -> None:
    """Draw both objectives, each on its own side and in its own colour, into axes."""
    steps = np.arange(1, len(history.objective) + 1)
    marker = "o" if len(steps) < 60 else None
    tidy(ax, title, xlabel="iteration")
    for axis, values, colour, name, style in (
        (ax, history.objective, KEPT, "objective  tr(UᵀWU)", "-"),
        (ax.twinx(), history.secondary, REMOVED, "sparsity  g(U)", "--"),
    ):
        axis.plot(steps, values, style, color=colour, linewidth=1.6, marker=marker, markersize=3)
        axis.set_ylabel(name, fontsize=9, color=colour)
        axis.tick_params(axis="y", labelsize=8, colors=colour)
        axis.spines[:].set_color(QUIET)
        axis.spines["top"].set_visible(False)
        axis.ticklabel_format(axis="y", style="plain", useOffset=False)
    ax.spines["right"].set_visible(False)
    ax.margins(x=0.02)
    ax.xaxis.get_major_locator().set_params(integer=True)


def _limit(U: NDArray[Any]) -> float:
    return float(np.abs(U).max(initial=0.0)) or 1.0


def _sample(n: int) -> NDArray[np.int64]:
    return np.arange(n) if n <= CELLS else np.linspace(0, n - 1, CELLS).astype(np.int64)
