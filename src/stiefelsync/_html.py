"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["facts", "rows"]


def facts(title: str, told: Mapping[str, object]) -> str:
    """Return a table of names and values; what is None is left out.

    Examples
    --------
    >>> facts("A <b>", {"n": 1, "m": None})
    '<table><caption>A &lt;b&gt;</caption><tr><th>n</th><td>1</td></tr></table>'
    """
    lines = (
        f"<tr><th>{escape(name)}</th><td>{escape(_shown(value))}</td></tr>"
        for name, value in told.items()
        if value is not None
    )
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def rows(columns: Sequence[str], cells: Iterable[Sequence[object]]) -> str:
    """Return a table with a header; what is None is an empty cell.

    Examples
    --------
    >>> rows(["a"], [[0.25], [None]])
    '<table><tr><th>a</th></tr><tr><td>0.25</td></tr><tr><td></td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = (
        "<tr>" + "".join(f"<td>{'' if cell is None else escape(_shown(cell))}</td>" for cell in row) + "</tr>"
        for row in cells
    )
    return f"<table><tr>{head}</tr>{''.join(body)}</table>"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
