"""``stiefelsync methods``: what there is to choose from."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from stiefelsync.cli.options import Json, Unused
from stiefelsync.cli.terminal import facts, show, show_json, table
from stiefelsync.sync import METHODS
from stiefelsync.sync.method import Method, find_method

__all__ = ["run"]


def run(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One method, to see its options.")] = None,
    json: Json = False,
    seed: Unused = 0,
) -> None:
    """List the methods with what they guarantee, what they cost and when to choose them; or one, with its options.

    Example: stiefelsync methods sparse-stiefel
    """
    if name is not None:
        _show_one(find_method(name), json)
        return
    if json:
        show_json([_about(method) | {"options": method.options} for method in METHODS.values()])
        return
    rows = [
        [
            method.name + (f" [{method.extra}]" if method.extra else ""),
            method.summary,
            "yes" if method.consistent else "no",
            method.cost,
            method.choose,
        ]
        for method in sorted(METHODS.values(), key=lambda method: (not method.ours, method.name))
    ]
    columns = ["method [extra it needs]", "what it does", "consistent", "cost", "choose it"]
    show(
        table("Methods for --method and compare", columns, rows, left=5),
        "\nconsistent: every answer is cycle-consistent, so its matches form tracks. References: --json",
        "options of a method: stiefelsync methods NAME",
    )


def _about(method: Method) -> dict[str, Any]:
    shown_elsewhere = ("run", "settings", "defaults", "options")
    return {f.name: getattr(method, f.name) for f in fields(method) if f.name not in shown_elsewhere}


def _show_one(method: Method, json: bool) -> None:
    """Show one method with its options, their defaults and what they mean."""
    options = {
        name: {"default": getattr(value, "__name__", value), "meaning": method.meanings.get(name, "")}
        for name, value in method.defaults.items()
    }
    if json:
        show_json(_about(method) | {"options": options})
        return
    about = {
        "consistent": "every answer is cycle-consistent"
        if method.consistent
        else "answers need not be cycle-consistent",
        "cost": method.cost,
        "choose it": method.choose,
        "reference": method.reference,
    }
    show(facts(f"{method.name}: {method.summary}", about | ({"extra": method.extra} if method.extra else {})))
    if not options:
        show("", "It has no options.")
        return
    rows = [[name, str(option["default"]), option["meaning"]] for name, option in options.items()]
    show("", table("Options, set by --option NAME=VALUE", ["option", "default", "meaning"], rows, left=3))
