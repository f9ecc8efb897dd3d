"""A whole synchronisation on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.matching.difference import Difference
from stiefelsync.plotting.canvas import blank
from stiefelsync.plotting.matrices import draw_changes
from stiefelsync.plotting.relaxed import colour_bar, draw_convergence, draw_heatmap
from stiefelsync.sync.result import Synchronisation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["overview"]


@typed
def overview(result: Synchronisation, found: Difference | None = None) -> Figure:
    """Draw W before and after and, where the method has them, the relaxed solution U and its convergence.

    Rows are shown in the order of the labels within each object, and columns of U in the order of
    the universe points, so that a good answer shows as diagonals.

    Parameters
    ----------
    found
        What changed, where that is less than all of ``result.difference``: without what would only
        follow from it.

    Examples
    --------
    >>> from stiefelsync import Matchings, synchronise
    >>> result = synchronise(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2, method="sparse-stiefel")
    >>> len(overview(result).axes)
    6
    """
    labels = result.labels if result.consistent else None
    U, history = result.outcome.U, result.outcome.history
    extra = [part for part in (U, history) if part is not None]
    figure = blank(11, 6.5 + (4.3 if extra else 0))
    rows: Any = figure.subfigures(2 if extra else 1, 1, height_ratios=[6.5, 4.3] if extra else None, squeeze=False)
    left, right = rows[0, 0].subplots(1, 2)
    draw_changes(left, right, result.difference if found is None else found, labels)
    if extra:
        axes = list(rows[1, 0].subplots(1, len(extra), squeeze=False)[0])
        if U is not None:
            _draw_relaxed(axes.pop(0), rows[1, 0], U, result)
        if history is not None:
            draw_convergence(axes.pop(0), history)
    return figure


def _draw_relaxed(ax: Any, figure: Any, U: NDArray[Any], result: Synchronisation) -> None:
    """Draw U with its rows by label within each object, and each column where the label of its largest entry lies."""
    labels = result.labels if result.consistent else np.arange(len(U))
    rows = np.lexsort((labels, result.input.point_objects))
    columns = np.argsort(labels[np.abs(U).argmax(axis=0)], kind="stable")
    image = draw_heatmap(ax, U[np.ix_(rows, columns)], "relaxed solution U")
    colour_bar(figure, image, ax)
