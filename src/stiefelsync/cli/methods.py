"""``stiefelsync methods``: what there is to choose from."""

from __future__ import annotations

from dataclasses import fields

from stiefelsync.cli.options import Json, Unused
from stiefelsync.cli.terminal import show, show_json, table
from stiefelsync.sync import METHODS

__all__ = ["run"]

OURS = ("accurate", "fast", "sparse-stiefel", "tracks")  # listed before the rivals


def run(json: Json = False, seed: Unused = 0) -> None:
    """List the methods with what they guarantee, what they cost and when to choose them."""
    if json:
        show_json([
            {f.name: getattr(method, f.name) for f in fields(method) if f.name != "run"} | {"options": method.options}
            for method in METHODS.values()
        ])  # fmt: skip
        return
    rows = [
        [
            method.name + (f" [{method.extra}]" if method.extra else ""),
            method.summary,
            "yes" if method.consistent else "no",
            method.cost,
            method.choose,
        ]
        for method in sorted(METHODS.values(), key=lambda method: (method.name not in OURS, method.name))
    ]
    columns = ["method [extra it needs]", "what it does", "consistent", "cost", "choose it"]
    show(
        table("Methods for --method and compare", columns, rows, left=5),
        "\nconsistent: every answer is cycle-consistent, so its matches form tracks. References: --json",
    )
