"""Match lines between pairs of images, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.plotting.canvas import INK, QUIET, RIGHT, WRONG, blank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Polygon", "match_lines"]

Polygon = tuple[NDArray[np.float64], float, str]
"""A shape to paint under the lines: (n, 2) pixels, its shade from 0 to 1, and its kind."""

_PAINT = {
    "wall": (0.93, 0.90, 0.84),
    "roof": (0.80, 0.74, 0.72),
    "window": (0.62, 0.67, 0.74),
    "door": (0.66, 0.58, 0.50),
}
GAP = 0.04  # between the two images of a pair, as a share of their width


@typed
def match_lines(
    before: Matchings,
    after: Matchings,
    truth: ArrayLike,
    pairs: Sequence[tuple[int, int]],
    *,
    drawings: Sequence[Sequence[Polygon]] | None = None,
    size: tuple[int, int] | None = None,
    title: str = "",
) -> Figure:
    """Draw the matches of image pairs, before on the left and after on the right: right ones green, wrong ones red.

    Parameters
    ----------
    before, after
        Matchings of the same objects; `before` has coordinates.
    truth : (m,) int
        True labels; a match is right when its ends carry the same one.
    pairs
        The object pairs to show, one per row.
    drawings
        For every object the polygons to paint under the lines.
    size
        Width and height of every image in pixels; the coordinates' bounding box when absent.
    title
        Headline of the picture.

    Examples
    --------
    >>> from stiefelsync.datasets.cameras import camera_scene
    >>> scene = camera_scene(cameras=3, rng=0)
    >>> len(match_lines(scene.matchings, scene.matchings, scene.truth, [(0, 1)]).axes)
    2
    """
    if before.coordinates is None:
        raise InputError("match lines need the coordinates of the points, which this problem does not have")
    if not np.array_equal(before.sizes, after.sizes):
        raise InputError("before and after must be matchings of the same objects")
    flat = np.asarray(truth)
    width, height = size if size is not None else before.coordinates.max(axis=0) + 1
    figure = blank(13, 0.9 + len(pairs) * 13 / 2 * height / (width * (2 + GAP)) + 0.25 * len(pairs))
    axes = figure.subplots(len(pairs), 2, squeeze=False)
    for row, pair in zip(axes, pairs, strict=True):
        for ax, shown, when in zip(row, (before, after), ("before", "after"), strict=True):
            _draw_pair(ax, before, shown, flat, pair, when, (float(width), float(height)), drawings)
    figure.suptitle(title, fontsize=12.5, color=INK)
    _legend(figure)
    return figure


def _draw_pair(
    ax: Any,
    problem: Matchings,
    shown: Matchings,
    truth: NDArray[Any],
    pair: tuple[int, int],
    when: str,
    size: tuple[float, float],
    drawings: Sequence[Sequence[Polygon]] | None,
) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Rectangle

    assert problem.coordinates is not None
    width, height = size
    shift = np.array([[0.0, 0.0], [width * (1 + GAP), 0.0]])
    for side, o in enumerate(pair):
        ax.add_patch(Rectangle(tuple(shift[side]), width, height, facecolor="#F6F8FA", edgecolor=QUIET, linewidth=0.6))
        for polygon, shade, kind in drawings[o] if drawings is not None else ():
            _paint(ax, polygon + shift[side], shade, kind)
        x = problem.coordinates[problem.offsets[o] : problem.offsets[o + 1]] + shift[side]
        ax.plot(*x.T, "o", markersize=1.8, color=INK, markeredgewidth=0, zorder=3)
        name = str(o) if problem.names is None else problem.names[o]
        ax.text(*(shift[side] + (8, height - 8)), name, fontsize=7.5, color=QUIET, va="bottom")
    block = shown.pair(*pair)
    ends = block + problem.offsets[list(pair)]
    right = (truth[ends[:, 0]] == truth[ends[:, 1]]) & (truth[ends[:, 0]] >= 0)
    lines = problem.coordinates[ends] + shift
    ax.add_collection(LineCollection(list(lines[right]), colors=RIGHT, linewidths=0.8, alpha=0.75, zorder=4))
    ax.add_collection(
        LineCollection(list(lines[~right]), colors=WRONG, linewidths=1.3, linestyles=(0, (5, 2)), alpha=0.95, zorder=5)
    )
    ax.set_title(
        f"{when}: {len(right)} matches, {int(right.sum())} right, {int((~right).sum())} wrong",
        fontsize=10, color=INK, loc="left", pad=4,
    )  # fmt: skip
    ax.set_xlim(-5, width * (2 + GAP) + 5)
    ax.set_ylim(height + 5, -5)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_xticks([])
    ax.set_yticks([])


def _paint(ax: Any, polygon: NDArray[np.float64], shade: float, kind: str) -> None:
    from matplotlib.patches import Polygon as Patch

    colour = np.array(_PAINT.get(kind, (0.9, 0.9, 0.9))) * (0.78 + 0.22 * shade)
    ax.add_patch(Patch(polygon, facecolor=colour, edgecolor="#9A938C", linewidth=0.4, zorder=2))


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=RIGHT, linewidth=1.6, label="right: both ends show the same corner"),
        Line2D([], [], color=WRONG, linewidth=1.6, linestyle=(0, (5, 2)), label="wrong: two corners that look alike"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
