"""Plots of the evidence: named rows with a mark for each method, and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["curves", "dots"]

COLOURS = ["#1f6fb4", "#888888", "#d9822b", "#2a9d5c", "#b0413e", "#7a5fb0", "#333333"]
MARKS = "osD^vPX"


def dots(axes: Any, names: Sequence[str], series: Mapping[str, Sequence[float]], label: str) -> None:
    """Draw a row for every name and a mark for every series, the first name on top."""
    for (title, values), colour, mark in zip(series.items(), COLOURS, MARKS, strict=False):
        axes.plot(values, range(len(names)), mark, color=colour, label=title, markersize=5, alpha=0.85)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.grid(alpha=0.3)
    if len(series) > 1:
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2, frameon=False, fontsize=8)


def curves(axes: Any, x: Sequence[float], series: Mapping[str, Sequence[float]], xlabel: str, ylabel: str) -> None:
    """Draw a curve for every series."""
    for (title, values), colour, mark in zip(series.items(), COLOURS, MARKS, strict=False):
        axes.plot(x, values, "-" + mark, color=colour, label=title, markersize=4)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(alpha=0.3)
    if len(series) > 1:
        axes.legend(frameon=False)
