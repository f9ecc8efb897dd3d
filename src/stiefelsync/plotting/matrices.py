"""The matrix of all matches, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.matching.difference import Difference, difference
from stiefelsync.matching.matchings import Matchings
from stiefelsync.plotting.canvas import ADDED, INK, KEPT, PAPER, QUIET, REMOVED, blank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_changes", "matrices"]

# At most so many cells per side, so that a single match is seen; larger matrices are binned.
CELLS = 330


@typed
def matrices(before: Matchings, after: Matchings, labels: ArrayLike | None = None) -> Figure:
    """Draw W = [P_ij] before and after a synchronisation, side by side.

    Parameters
    ----------
    before, after
        Matchings of the same objects.
    labels : (m,) int, optional
        Points of each object are shown in the order of their labels, so that consistent matches lie
        on the blocks' diagonals; in their own order when absent.

    Notes
    -----
    O(M + 330²); a matrix with more rows than the picture has pixels is binned, never densified.

    Examples
    --------
    >>> before = Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]]}, [2, 2])
    >>> len(matrices(before, before.keep([True, False])).axes)
    2
    """
    figure = blank(11, 6.5)
    left, right = figure.subplots(1, 2)
    if not np.array_equal(before.sizes, after.sizes):
        raise InputError("before and after must be matchings of the same objects")
    draw_changes(left, right, difference(before, after), labels)
    return figure


def draw_changes(left: Any, right: Any, found: Difference, labels: ArrayLike | None = None) -> None:
    """Draw W before into one axes and W after into another, with what was kept, removed and added in colour."""
    problem, counts = found.input, found.counts
    place = _order(problem, labels)
    kept, removed = problem.endpoints[found.kept], problem.endpoints[~found.kept]
    added = found.added.endpoints if found.adds else kept[:0]
    _draw(
        left,
        problem,
        place,
        [("kept", kept, KEPT), ("removed", removed, REMOVED)],
        f"before: {counts.before:,} matches",
    )
    _draw(right, problem, place, [("kept", kept, KEPT), ("added", added, ADDED)], f"after: {counts.after:,} matches")


def _order(problem: Matchings, labels: ArrayLike | None) -> NDArray[np.int64]:
    """Return the row of every point: objects one after another, within an object by label, unmatched ones last."""
    m = problem.n_points
    place = np.arange(m)
    if labels is not None:
        flat = np.asarray(labels, dtype=np.int64)
        place[np.lexsort((np.where(flat < 0, np.iinfo(np.int64).max, flat), problem.point_objects))] = np.arange(m)
    return place


def _draw(
    ax: Any, shown: Matchings, place: NDArray[np.int64], groups: list[tuple[str, NDArray[np.int64], str]], title: str
) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D

    m = max(shown.n_points, 1)
    cells = min(m, CELLS)
    picture = np.ones((cells, cells, 3))
    for _, ends, colour in groups:
        a, b = (place[ends.T] * cells) // m
        count = np.bincount(np.concatenate([a * cells + b, b * cells + a]), minlength=cells**2).reshape(cells, cells)
        strength = np.minimum(count / max(1.0, float(np.quantile(count[count > 0], 0.9)) if len(a) else 1.0), 1.0)
        strength = np.where(count > 0, 0.25 + 0.75 * strength, 0.0)[..., None]
        picture = (1 - strength) * picture + strength * np.array(to_rgb(colour))
    ax.imshow(picture, extent=(0, m, m, 0), interpolation="nearest" if cells == m else "antialiased")
    if shown.n_objects <= 40:
        for edge in shown.offsets[1:-1]:
            ax.axhline(edge, color=QUIET, linewidth=0.3, alpha=0.5)
            ax.axvline(edge, color=QUIET, linewidth=0.3, alpha=0.5)
    ax.set_title(title, fontsize=11, color=INK, loc="left")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color(QUIET)
    handles = [
        Line2D([], [], linestyle="", marker="s", color=colour, label=f"{len(ends):,} {name}")
        for name, ends, colour in groups
    ]
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, -0.01),
        ncols=2,
        frameon=False,
        fontsize=9,
        borderpad=0.2,
        handletextpad=0.1,
        facecolor=PAPER,
    )
