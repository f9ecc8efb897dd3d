"""The rules by which claims about several methods are judged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stiefelsync.experiments.experiment import Verdict, judge
from stiefelsync.experiments.lines import Key, Line, Value, means, runtime, values
from stiefelsync.experiments.records import Record

__all__ = ["TIE", "best", "comparable", "quickest", "seen"]

TIE = 0.001
"""Means of fscores closer than this count as equal."""


def seen(verdicts: Sequence[Verdict | None]) -> list[Verdict]:
    """Return the verdicts for which there were records."""
    return [verdict for verdict in verdicts if verdict is not None]


def best(
    records: Sequence[Record],
    line: Line,
    among: Sequence[Line],
    value: Value,
    x: Key,
    claim: str,
    *,
    most: bool = False,
    strict: bool = False,
) -> Verdict | None:
    """Judge that one line has the largest mean over seeds; None without records.

    At each setting it must reach every rival that ran there, within .001; if `strict`, surpass it
    by more than that. On average it must do so over the settings the rival ran.
    """
    margin = TIE if strict else -TIE
    mine = means(records, line, value, x)
    rivals = {rival: means(records, rival, value, x) for rival in among if rival is not line}
    rivals = {rival: found for rival, found in rivals.items() if found}
    if not mine or not rivals:
        return None
    each = [all(mine[at] >= found[at] + margin for found in rivals.values() if at in found) for at in mine]
    pairs = []
    for rival, found in rivals.items():
        common = [at for at in mine if at in found]
        pairs.append((rival.label, np.mean([mine[at] for at in common]), np.mean([found[at] for at in common])))
    against = ", ".join(
        f"{label} {theirs:.3f}" + (f" (where it ran: {line.label} {own:.3f})" if len(rivals[rival]) < len(mine) else "")
        for (label, own, theirs), rival in zip(pairs, rivals, strict=True)
    )
    evidence = f"means over all settings: {line.label} {np.mean(list(mine.values())):.3f}, {against}"
    return judge(claim, each, all(own >= theirs + max(margin, 0) for _, own, theirs in pairs), evidence, most=most)


def quickest(
    records: Sequence[Record], line: Line, among: Sequence[Line], x: Key, claim: str, factor: float = 2.0
) -> Verdict | None:
    """Judge that one line is among the fastest: at most `factor` times the median runtime of the fastest one."""
    times = {rival: values(records, rival, runtime, x) for rival in among}
    medians = {rival: {at: float(np.median(t)) for at, t in found.items()} for rival, found in times.items() if found}
    if line not in medians or len(medians) < 2:
        return None
    ratio = {at: own / min(found[at] for found in medians.values() if at in found) for at, own in medians[line].items()}
    last = list(medians[line])[-1]
    order = sorted((found[last], rival.label) for rival, found in medians.items() if last in found)
    evidence = (
        f"at most {factor:g} times the fastest counts as among the fastest; {line.label} takes"
        f" {min(ratio.values()):.1f} to {max(ratio.values()):.1f} times, in the geometric mean"
        f" {np.exp(np.mean(np.log(list(ratio.values())))):.1f}; at the last setting: "
        + ", ".join(f"{label} {seconds:.2g} s" for seconds, label in order)
    )
    each = [value <= factor for value in ratio.values()]
    return judge(claim, each, float(np.exp(np.mean(np.log(list(ratio.values()))))) <= factor, evidence)


def comparable(
    records: Sequence[Record],
    line: Line,
    among: Sequence[Line],
    value: Value,
    x: Key,
    claim: str,
    *,
    within: float = 0.02,
    most: bool = False,
) -> Verdict | None:
    """Judge that all lines have means within `within` of one line's."""
    mine = means(records, line, value, x)
    rivals = {rival: means(records, rival, value, x) for rival in among if rival is not line}
    gaps = {rival: {at: found[at] - mine[at] for at in found if at in mine} for rival, found in rivals.items()}
    gaps = {rival: found for rival, found in gaps.items() if found}
    if not gaps:
        return None
    each = [all(abs(found[at]) <= within for found in gaps.values() if at in found) for at in mine]
    average = {rival.label: float(np.mean(list(found.values()))) for rival, found in gaps.items()}
    evidence = (
        f"within {within} of {line.label} counts as comparable; mean differences from its"
        f" {np.mean(list(mine.values())):.3f}: " + ", ".join(f"{label} {gap:+.3f}" for label, gap in average.items())
    )
    return judge(claim, each, all(abs(gap) <= within for gap in average.values()), evidence, most=most)
