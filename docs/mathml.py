"""A Sphinx extension that sets formulas as MathML, which browsers draw themselves: no script, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

__all__ = ["setup"]


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def _display(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
