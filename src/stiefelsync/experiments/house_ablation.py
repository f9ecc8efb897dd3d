"""Ours against two-stage approaches on the house sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stiefelsync.experiments.curves import NOTE, draw
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict, judge
from stiefelsync.experiments.house import curve_rows, house_tasks, k_of
from stiefelsync.experiments.lines import (
    ABLATION,
    EIG,
    EIGS,
    EIGS_PLAIN,
    ORTHIT,
    OURS,
    STAGES,
    STAGES_BT,
    Line,
    fscore,
    objective,
    runtime,
    values,
)
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.verdicts import comparable, quickest, seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HOUSE_ABLATION"]


# The paper's Eigs is a plain Lanczos method with 2d + 1 vectors; our default checks what it
# returns.
LINES = (*ABLATION, EIGS_PLAIN)


def evaluate(records: Sequence[Record]) -> list[Verdict]:
    """Judge the appendix's claims about the house sequence."""
    others = tuple(line for line in ABLATION if line is not EIGS)
    return seen(
        [
            comparable(
                records, OURS, others, fscore, k_of,
                "In fscore all methods are comparable in most cases (Eigs+ManOpt apart)", most=True,
            ),
            comparable(records, OURS, others, objective, k_of, "… and in the objective", within=0.1, most=True),
            _worse(records, EIGS_PLAIN, "Eigs+ManOpt performs worse on the real data due to numerical reasons"),
            _worse(records, EIGS, "… also when eigs() is checked for lost copies of multiple eigenvalues"),
            quickest(records, OURS, LINES, k_of, "In runtime Ours is among the fastest"),
            _extreme(records, EIGS_PLAIN.label, min, "Eigs+ManOpt is the fastest on the real data"),
            _extreme(records, EIG.label, max, "Eig+ManOpt is the slowest on the real data"),
            _orthogonal(records),
            comparable(
                records, OURS, (OURS, STAGES_BT), fscore, k_of,
                "No line search is needed: Ours is as good as Ours/2-stage/bt",
            ),
        ]
    )  # fmt: skip


def _worse(records: Sequence[Record], line: Line, claim: str) -> Verdict | None:
    """Judge that eigs() gives a worse answer than the dense eig() on the same shuffle: lower by more than .02."""
    exact, found = values(records, EIG, fscore, k_of), values(records, line, fscore, k_of)
    if not exact or not found:
        return None
    low, high = ({k: float(fscores.mean()) for k, fscores in each.items()} for each in (found, exact))
    worst = min(float(fscores.min()) for fscores in found.values())
    mean = tuple(float(np.mean(list(each.values()))) for each in (low, high))
    evidence = (
        f"mean fscore {mean[0]:.3f} against Eig+ManOpt's {mean[1]:.3f}, lowest {worst:.3f}; a mean lower by more than"
        " .02 counts as worse"
    )
    return judge(claim, [low[k] < high[k] - 0.02 for k in high if k in low], mean[0] < mean[1] - 0.02, evidence)


def _medians(records: Sequence[Record]) -> dict[str, dict[int, float]]:
    """Return the median runtime of every line that ran, at the k that all of them have."""
    found = {line.label: times for line in LINES if (times := values(records, line, runtime, k_of))}
    common = [k for k in next(iter(found.values()), {}) if all(k in times for times in found.values())]
    return {label: {k: float(np.median(times[k])) for k in common} for label, times in found.items() if common}


def _extreme(
    records: Sequence[Record], label: str, which: Callable[[Iterable[float]], float], claim: str
) -> Verdict | None:
    times = _medians(records)
    if label not in times or len(times) < 2:
        return None
    each = [times[label][k] == which(found[k] for found in times.values()) for k in times[label]]
    total = {name: sum(found.values()) for name, found in times.items()}
    order = ", ".join(f"{name} {total[name]:.2g} s" for name in sorted(total, key=lambda name: total[name]))
    return judge(claim, each, total[label] == which(total.values()), f"median runtimes, summed over k: {order}")


def _orthogonal(records: Sequence[Record]) -> Verdict | None:
    times = _medians(records)
    names = [line.label for line in (OURS, STAGES, STAGES_BT, ORTHIT) if line.label in times]
    if len(names) < 2:
        return None
    ratio = [max(times[name][k] for name in names) / min(times[name][k] for name in names) for k in times[names[0]]]
    evidence = (
        f"slowest over fastest of {', '.join(names)}: {min(ratio):.1f} to {max(ratio):.1f}; up to 2 counts as"
        " comparable"
    )
    claim = "Methods that use the Orthogonal Iteration have comparable runtimes on the real data"
    return judge(claim, [r <= 2 for r in ratio], float(np.mean(ratio)) <= 2, evidence)


def plot(records: Sequence[Record], settings: Settings) -> dict[str, Figure]:
    """Draw the three panels."""
    return {"house-ablation": draw(curve_rows(records, LINES))}


HOUSE_ABLATION = Experiment(
    "house-ablation",
    "Ours against two-stage approaches, house sequence (appendix)",
    f"fscore, objective divided by k², and runtime. {NOTE}",
    lambda settings: house_tasks(settings, LINES),
    evaluate,
    plot,
    ("house-ablation",),
)
