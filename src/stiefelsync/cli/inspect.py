"""``stiefelsync inspect``: what is in a file, and how consistent it is."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from stiefelsync import io
from stiefelsync.cli.days import inspect_days
from stiefelsync.cli.options import (
    Columns,
    Duplicates,
    Features,
    Format,
    Inputs,
    Json,
    Options,
    Quiet,
    Seed,
    Threshold,
    Verbose,
    parse_options,
)
from stiefelsync.cli.terminal import facts, number, percent, program, show, show_json
from stiefelsync.cli.usage import advice
from stiefelsync.errors import counted
from stiefelsync.following import is_followed
from stiefelsync.inspection import Inspection, inspect
from stiefelsync.io.dispatch import reader_of

__all__ = ["run"]

FINDING = 1  # the exit code where something was found
_BRIEF = ("matches", "dropped", "conflicts", "doubtful")
"""What is told without --verbose, if there is something to tell; without positions the share of wrong matches."""


def run(
    ctx: typer.Context,
    inputs: Inputs,
    format: Format = None,
    max_conflicts: Annotated[
        int | None,
        typer.Option("--max-conflicts", metavar="N", min=0, help="Exit with code 1 if there are more conflicts."),
    ] = None,
    features: Features = None,
    columns: Columns = None,
    duplicates: Duplicates = None,
    threshold: Threshold = None,
    option: Options = [],  # noqa: B006  typer copies it
    verbose: Verbose = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Say whether synchronising a file of matches is worth while, and why; nothing is written.

    A conflict is a set of connected matches that holds two points of one object: it cannot be one
    track. --verbose prints everything, line by line.

    Several inputs are sessions: they are laid over each other and their cells followed, and cycles,
    exclusivity and transitivity are told.

    Example: stiefelsync inspect database.db --max-conflicts 0
    Example: stiefelsync inspect mouse/*/
    """
    if is_followed(inputs, sessions=any(setting.startswith("sessions=") for setting in option)):
        unused = {
            "format": format,
            "max-conflicts": max_conflicts,
            "features": features,
            "columns": columns,
            "duplicates": duplicates,
        }
        inspect_days(inputs, options=parse_options(option, threshold=threshold), unused=unused, quiet=quiet, json=json)
        return
    input, began = inputs[0], time.perf_counter()
    given = parse_options(option, features, columns=columns, duplicates=duplicates, threshold=threshold)
    found = inspect(io.read(input, format, **given), rng=seed)
    known = reader_of(input, format, given)
    advised = [] if known.advice is None else known.advice(input, given)
    # Where nothing is added to a file of that kind, it does not matter that something follows.
    worth = found.verdict(adds=known.adds or known.whole)
    exceeded = max_conflicts is not None and found.conflicts > max_conflicts
    if json:
        told = {"worth": worth, "advice": advised, "max_conflicts": max_conflicts, "exceeded": exceeded}
        show_json({"input": str(input), **asdict(found), **told})
    elif not quiet:
        lines, taken = _lines(found), number(time.perf_counter() - began, 2)
        if not verbose:
            brief = _BRIEF if "doubtful" in lines else (*_BRIEF, "wrong matches")
            lines = {name: lines[name] for name in brief if name in lines}
        show(facts(f"{input}, {taken} s in all", {"worth it": worth} | lines), *advice(advised, ctx))
        if exceeded:
            show(f"more conflicts than {number(max_conflicts)}; repair them with: {program()} sync {input} -o OUTPUT")
    if exceeded:
        raise typer.Exit(FINDING)


def _lines(found: Inspection) -> dict[str, str]:
    lines = {
        "objects": number(found.objects),
        "points": f"{number(found.points)}, {number(found.unmatched)} of them unmatched",
        "matches": f"{number(found.matches)} in {number(found.pairs)} of {counted(found.possible_pairs, 'pair')}",
    }
    if found.repair is not None:
        twice, rivals = found.repair.duplicates, found.repair.second_partners
        lines["dropped"] = (
            f"{counted(twice + rivals, 'match')} to make them one-to-one: {number(twice)} given twice, "
            f"{number(rivals)} to a second partner"
        )
    lines["components"] = (
        f"{number(found.components)}, the largest has {counted(found.largest_component, 'point')}"
        if found.components
        else "none"
    )
    lines["conflicts"] = f"{number(found.conflicts)} (components with two points of one object)"
    if found.conflicts_apart is not None:
        lines[f"at {found.near:g} px"] = (
            f"{number(found.conflicts_apart)} (with two such points farther apart than that)"
        )
    if found.conflict_share:
        lines["in conflict"] = f"{percent(found.conflict_share)} of the matched points lie in such components"
    if found.transitivity is not None:
        lines["transitivity"] = f"{percent(found.transitivity)} of the ways of two matches have a direct match, too"
    if found.cycle_error is None:
        nothing = f"unknown (no cycle of three {'matches' if found.triplets else 'objects'})"
        return lines | {"cycle error": nothing, "wrong matches": nothing} | _doubts(found)
    basis = f"{counted(found.cycles, 'cycle')} in {counted(found.triplets, 'triplet')} of objects"
    lines["cycle error"] = f"{percent(found.cycle_error)} of the cycles of three matches do not close ({basis})"
    lines["wrong matches"] = (
        f"unknown (only {counted(found.cycles, 'cycle')} of three matches)"
        if found.wrong_share is None
        else f"about {percent(found.wrong_share)}, if errors are independent"
    )
    return lines | _doubts(found)


def _doubts(found: Inspection) -> dict[str, str]:
    lines = {}
    if found.alone_share is not None and found.doubtful_share is not None and found.hopeless_pairs is not None:
        lines["doubtful"] = (
            f"{percent(found.alone_share)} of the matches move unlike their neighbours, "
            f"{percent(found.doubtful_share)} more contradict the others or are doubtful; "
            f"{counted(found.hopeless_pairs, 'pair')} doubted as a whole"
        )
    return lines
