"""``stiefelsync methods``: what there is to choose from."""

from __future__ import annotations

from dataclasses import fields

from stiefelsync.cli.options import Json, Unused
from stiefelsync.cli.terminal import show, show_json, table
from stiefelsync.sync import METHODS

__all__ = ["run"]


def run(json: Json = False, seed: Unused = 0) -> None:
    """List the methods with what they guarantee, what they cost and when to choose them."""
    if json:
        show_json([
            {f.name: getattr(method, f.name) for f in fields(method) if f.name != "run"} | {"options": method.options}
            for method in METHODS.values()
        ])  # fmt: skip
        return
    rows = [
        [m.name, "yes" if m.consistent else "no", m.cost, m.choose + (f" [extra: {m.extra}]" if m.extra else "")]
        for m in METHODS.values()
    ]
    show(
        table("Methods for --method and compare", ["method", "consistent", "cost", "choose it"], rows, left=4),
        "\nconsistent: every answer is cycle-consistent, so its matches form tracks. References: --json",
    )
