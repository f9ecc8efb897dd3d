"""Quantitative results on the house sequence: fscore, objective and runtime over the number of frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stiefelsync.experiments.curves import NOTE, Panel, draw
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict, judge
from stiefelsync.experiments.lines import (
    ACCURATE,
    LINES,
    MATCHALS,
    MATCHEIG,
    NMF,
    OURS,
    SPECTRAL,
    UNSYNCHRONISED,
    Line,
    figure,
    fscore,
    means,
    objective,
    runtime,
    values,
)
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import Task
from stiefelsync.experiments.verdicts import best, quickest, seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AUTHORS", "HOUSE", "HOUSE_LINES", "HOUSE_MATCHALS", "curve_rows", "frames", "house_tasks", "k_of"]

# Options of the paper's comparison; the method is slow, so it gets two seeds.
HOUSE_MATCHALS = replace(MATCHALS, options={"selection": 0.7, "max_iter": 100})
HOUSE_LINES = tuple(HOUSE_MATCHALS if line is MATCHALS else line for line in LINES)
HOUSE_PAPER = (MATCHEIG, HOUSE_MATCHALS, SPECTRAL, NMF, OURS)

AUTHORS = {20: 0.9209, 40: 0.9604, 60: 0.9549, 80: 0.9728, 100: 0.9699, 111: 0.9698}
"""Mean fscore of the authors' own program over five seeds, by k."""


def frames(settings: Settings) -> list[int]:
    """Return the numbers of frames k.

    Examples
    --------
    >>> frames(Settings(step=20))
    [20, 40, 60, 80, 100, 111]
    """
    return [20, 30] if settings.quick else sorted({*range(20, 111, settings.step), 111})


def house_tasks(settings: Settings, lines: Sequence[Line]) -> list[Task]:
    """Return one task per k, method and seed.

    For the largest k the matches of first and last frame are kept.

    There are ten seeds, but two of MatchALS, which is slow, and forty of the published method,
    whose answers depend most on where it starts: their standard deviation is about .015, so that
    ten would leave the mean uncertain by .005.
    """
    tasks = []
    seeds = settings.seed_range(10, 3)
    for k in frames(settings):
        keep = ("ends",) if k == frames(settings)[-1] else ()
        for line in lines:
            chosen = seeds
            if line is HOUSE_MATCHALS:
                chosen = seeds[: 1 if settings.quick else 2]
            elif line.method == OURS.method and not line.options:
                chosen = settings.seed_range(40, 3)
            tasks += [line.task({"data": "house", "k": k}, seed, keep) for seed in chosen]
    return tasks


def k_of(record: Record) -> int:
    """Return the number of frames of a record."""
    return int(record.task.problem["k"])


def curve_rows(records: Sequence[Record], lines: Sequence[Line]) -> list[list[Panel]]:
    """Return the three panels of a house figure."""
    axis = "number of frames k"

    def data(value: Any) -> dict[Line, Any]:
        return {line: values(records, line, value, k_of) for line in lines}

    return [
        [
            Panel(axis, "fscore ↑", data(fscore)),
            Panel(axis, "objective / k² ↑", data(objective)),
            Panel(axis, "runtime in s ↓", data(runtime), log=True),
        ]
    ]


def evaluate(records: Sequence[Record]) -> list[Verdict]:
    """Judge the paper's claims about the house sequence."""
    verdicts = [
        best(records, OURS, HOUSE_PAPER, fscore, k_of, "Our method dominates other approaches in terms of the fscore"),
        best(records, OURS, (SPECTRAL, NMF, OURS), objective, k_of, "… and of the objective value"),
        quickest(records, OURS, HOUSE_PAPER, k_of, "… while being among the fastest"),
        best(records, OURS, (SPECTRAL, OURS), fscore, k_of, "It clearly outperforms the Spectral baseline"),
        *_closer(records),
        *_consistency(records),
        *_authors(records),
        best(
            records, ACCURATE, (*HOUSE_PAPER, ACCURATE), fscore, k_of,
            "(ours, not the paper's) The preset accurate has a better fscore than every method of the paper",
        ),
    ]  # fmt: skip
    return seen(verdicts)


def _consistency(records: Sequence[Record]) -> list[Verdict | None]:
    error = {
        line: means(records, line, figure("cycle_error"), k_of) for line in (UNSYNCHRONISED, MATCHEIG, HOUSE_MATCHALS)
    }
    flags = [max(error[line].values()) > 0 for line in (MATCHEIG, HOUSE_MATCHALS) if error[line]]
    if not flags:
        return []
    evidence = "share of cycles of three frames that do not close: " + ", ".join(
        f"{line.label} {np.mean(list(found.values())):.3f}" for line, found in error.items() if found
    )
    claim = "MatchEig and MatchALS do not guarantee cycle consistency"
    verdict = judge(claim, flags, False, f"{evidence}; 0 by construction for the others")
    return [replace(verdict, evidence=verdict.evidence.replace("settings", "methods"))]


def _closer(records: Sequence[Record]) -> list[Verdict | None]:
    spectral, ours = (
        {name: means(records, line, figure(name), k_of) for name in ("peak", "negative")} for line in (SPECTRAL, OURS)
    )
    if not spectral["peak"] or not ours["peak"]:
        return []
    peak, negative = (
        tuple(float(np.mean(list(found[name].values()))) for found in (spectral, ours)) for name in ("peak", "negative")
    )
    evidence = (
        f"share of a row's square in its largest entry: Spectral {peak[0]:.0%}, ours {peak[1]:.0%}; share of U's square"
        f" in negative entries: {negative[0]:.0%} and {negative[1]:.0%}"
    )
    each = [
        ours["peak"][k] > spectral["peak"][k] and ours["negative"][k] < spectral["negative"][k] for k in ours["peak"]
    ]
    return [judge("… since it provides a sparser and less negative U of the same subspace", each, False, evidence)]


def _authors(records: Sequence[Record]) -> list[Verdict | None]:
    ours = means(records, OURS, fscore, k_of)
    common = [k for k in ours if k in AUTHORS]
    if not common:
        return []
    difference = [ours[k] - AUTHORS[k] for k in common]
    evidence = "difference of mean fscores, ours − theirs: " + ", ".join(
        f"{gap:+.3f} (k = {k})" for k, gap in zip(common, difference, strict=True)
    )
    claim = "(reference) The published method gives what the authors' program gives, within ±.015 in the mean"
    return [judge(claim, [abs(gap) <= 0.015 for gap in difference], abs(float(np.mean(difference))) <= 0.015, evidence)]


def plot(records: Sequence[Record], settings: Settings) -> dict[str, Figure]:
    """Draw the three panels."""
    return {"house": draw(curve_rows(records, HOUSE_LINES))}


HOUSE = Experiment(
    "house",
    "Quantitative results on the CMU house sequence",
    f"fscore, objective of problem (7) divided by k², and runtime over k evenly spaced frames. {NOTE} The two presets"
    " of this package are extra lines. Ten seeds, forty of the published method, two of MatchALS.",
    lambda settings: house_tasks(settings, HOUSE_LINES),
    evaluate,
    plot,
    ("house",),
)
