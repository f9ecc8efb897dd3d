"""How several methods did: means as points, standard deviations as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.plotting.canvas import INK, KEPT, QUIET, blank, tidy
from stiefelsync.sync.comparison import NUMBERS, Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["comparison"]


@typed
def comparison(rows: Sequence[Comparison], number: str | None = None) -> Figure:
    """Draw what :func:`~stiefelsync.compare` returned, one line per method, the first at the top.

    A bar reaches one standard deviation to either side where there were several runs. Methods that
    did not run are left out.

    Parameters
    ----------
    number
        What to draw: ``"fscore"`` where the truth was known, else ``"objective"``, if nothing is
        said.

    Examples
    --------
    >>> row = Comparison("mine", True, fscore=0.9, sd={"fscore": 0.02}, runs=5)
    >>> comparison([row]).axes[0].get_xlabel()
    'fscore, mean ± standard deviation of 5 runs'
    """
    ran = [row for row in rows if row.error is None]
    if number is None:
        number = "fscore" if any(row.fscore is not None for row in ran) else "objective"
    if number not in NUMBERS:
        raise InputError(f"there is no number {number!r} to draw; there are {', '.join(NUMBERS)}")
    drawn = [(row, value) for row in ran if (value := getattr(row, number)) is not None]
    if not drawn:
        raise InputError(f"no method that ran has a number {number!r} to draw")
    figure = blank(6.5, 1.1 + 0.32 * len(drawn))
    ax = figure.subplots()
    runs = max(row.runs for row, _ in drawn)
    told = f", mean ± standard deviation of {runs} runs" if runs > 1 else ""
    tidy(ax, xlabel=number.replace("_", " ") + told)
    for place, (row, value) in enumerate(drawn):
        spread = row.sd.get(number)
        ax.errorbar(value, place, xerr=spread, fmt="o", color=KEPT, ecolor=KEPT, capsize=3, markersize=5)
    ax.set_yticks(range(len(drawn)), [row.method + ("" if row.consistent else " *") for row, _ in drawn])
    ax.tick_params(axis="y", labelcolor=INK, length=0)
    ax.set_ylim(len(drawn) - 0.5, -0.5)
    ax.grid(axis="x", color=QUIET, alpha=0.25, linewidth=0.6)
    ax.margins(x=0.08)
    return figure
