"""Pages on size and speed."""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks.evidence.page import Grid, Page, Record
from benchmarks.evidence.plots import curves, dots

__all__ = ["PAGES"]


def _large(record: Record) -> Grid:
    table = record["scene"].tables[0]
    rows = [
        [row[0], *(table.text(row[0], column=name) for name in ("union-find fscore", "fscore", "tracks s"))]
        for row in table.rows
    ]
    return Grid(["wrong matches", "union-find", "tracks", "seconds"], rows)


def _large_claim(record: Record) -> str:
    table = _large(record)
    third, half = table.row("30%"), table.row("50%")
    return (
        f"`tracks` finds the tracks of 200,000 keypoints with fscore {third[2]} where 30 % of the "
        "matches are wrong, and "
        f"{half[2]} where half of them are. Union-find, which drops every contradicting "
        "component, is left with "
        f"{third[1]} and {half[1]}. It takes {third[3]} s of one processor."
    )


def _large_plot(record: Record, axes: Any) -> None:
    table = _large(record)
    series = {name: table.numbers(name) for name in ("tracks", "union-find")}
    curves(axes, table.numbers("wrong matches"), series, "wrong matches, %", "fscore")


def _large_notes(record: Record) -> str:
    table = record["scene"].tables[0]
    times = [table.text(row[0], column="times union-find") for row in table.rows]
    last = record["scene"].text.strip().splitlines()[-2:]
    found = re.search(r"matches, 30 % wrong: (\S+) s, (\S+) GB", " ".join(last))
    million = f" A million keypoints take {found[1]} s and {found[2]} GB." if found else ""
    return (
        f"That is {', '.join(times[:-1])} and {times[-1]} times the time of this package's "
        "union-find (0, 10, 30 and 50 % "
        f"wrong; at most six times was aimed at).{million}"
    )


def _core(record: Record) -> Grid:
    names = {"ten": "10 million", "hundred": "100 million"}
    rows = []
    for run, title in names.items():
        figures = json.loads(record[run].text.strip().splitlines()[-1])
        rows.append(
            [
                title,
                f"{figures['matches'] / 1e6:.0f} million",
                f"{figures['processor_seconds']:.0f} s",
                f"{figures['peak_gb']:.2f} GB",
                f"{figures['fscore']:.4f}",
            ]
        )
    return Grid(["keypoints", "matches", "processor time", "memory", "fscore"], rows)


def _core_claim(record: Record) -> str:
    last = _core(record).rows[-1]
    return (
        f"A hundred million keypoints with {last[1]} matches, 30 % of them wrong, are made "
        "consistent out of core by one "
        f"process in {last[2]} of processor time with at most {last[3]} of memory; fscore "
        f"{last[4]}. Time grows linearly."
    )


def _core_plot(record: Record, axes: Any) -> None:
    table = _core(record)
    curves(
        axes,
        table.numbers("keypoints"),
        {"processor seconds": table.numbers("processor time")},
        "million keypoints",
        "seconds",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")


def _core_notes(record: Record) -> str:
    table = record["groups"].tables[0]
    pairs = "; ".join(f"{row[0]} wrong, {row[1]} and {row[2]}" for row in table.rows)
    equal = {row[3] for row in table.rows}
    return (
        "Solving groups of 50 objects and joining them gives the same quality as solving 200,000 "
        "keypoints at once "
        f"(fscores: {pairs}), and labels do not depend on the number of workers: "
        f"{', '.join(sorted(equal))} runs with 1, "
        "2 and 4 workers are equal for each of them. "
        + record["kills"].text.strip().splitlines()[-1].replace(" equal", "")
        + " runs that were killed at a random moment, or lost a worker, ended with the same bytes."
    )


def _extend(record: Record) -> Grid:
    table = record["one more"].tables[0]
    rows = [[row[0], row[1], row[2], row[4], row[5]] for row in table.rows]
    return Grid(["one more object", "anew, s", "extend, s", "fscore anew", "extended"], rows)


def _extend_claim(record: Record) -> str:
    shares = [float(row[3].rstrip("%")) for row in record["one more"].tables[0].rows]
    table = _extend(record)
    gap = max(abs(float(row[3]) - float(row[4])) for row in table.rows)
    return (
        f"`result.extend` adds an object to a solved problem in {min(shares):.1f} to "
        f"{max(shares):.1f} % of the time of "
        "solving it anew, and the fscore differs by "
        f"{'less than .0001' if gap < 1e-4 else f'at most {gap:.4f}'}."
    )


def _extend_plot(record: Record, axes: Any) -> None:
    table = _extend(record)
    series = {"anew": table.numbers("anew, s"), "extend": table.numbers("extend, s")}
    dots(axes, [row[0] for row in table.rows], series, "processor seconds")
    axes.set_xscale("log")


SPEED = re.compile(
    r"^(\w+)\s+(.+?)\s+([\d.]+) \(processor ([\d.]+)\) in ([\d.]+) s(?: quality ([\d.]+) for ([\d.]+))?", re.MULTILINE
)


def _speed(record: Record) -> Grid:
    rows = []
    for run in ("presets", "suite"):
        for _, name, _, processor, seconds, ours, theirs in SPEED.findall(record[run].text):
            rows.append([name, processor, f"{float(seconds):.3g}", f"{float(ours):.3f}", f"{float(theirs):.3f}"])
    return Grid(["preset and problem", "times as fast", "seconds", "fscore", "Algorithm 1"], rows)


def _speed_claim(record: Record) -> str:
    table = _speed(record)
    ratios = {row[0]: float(row[1]) for row in table.rows}
    fast, accurate = (
        [ratio for name, ratio in ratios.items() if name.startswith(kind)] for kind in ("fast", "accurate")
    )
    return (
        f"`fast` is {min(fast):.0f} to {max(fast):.0f} times as fast as the paper's Algorithm 1 "
        "written in NumPy and SciPy, "
        f"and `accurate` {min(accurate):.1f} to {max(accurate):.0f} times, at higher fscores."
    )


def _speed_plot(record: Record, axes: Any) -> None:
    table = _speed(record)
    dots(
        axes,
        [row[0] for row in table.rows],
        {"times as fast": table.numbers("times as fast")},
        "times as fast as Algorithm 1",
    )
    axes.set_xscale("log")
    axes.axvline(1, color="#888888")


PAGES = [
    Page(
        name="large",
        title="Hundreds of thousands of keypoints",
        runs={"scene": "benchmarks.large"},
        claim=_large_claim,
        table=_large,
        plot=_large_plot,
        alt=("Fscore over the share of wrong matches: tracks stays high, union-find falls to nothing at ten per cent."),
        measured=(
            "`datasets.scene`: 200 objects, 200,000 points, 643,654 matches, 30 % of the true "
            "ones missing. Seconds are "
            "those of the processor, the best of five runs; other programs ran beside them."
        ),
        notes=_large_notes,
        missing=(
            "Positions (`--positions`), which raise the fscore where neighbouring matches move "
            "alike and take as long as the "
            "rest, and weights (`--weights`)."
        ),
    ),
    Page(
        name="out-of-core",
        title="A hundred million keypoints",
        runs={
            "ten": "benchmarks.out_of_core FOLDER --scale 50",
            "hundred": "benchmarks.out_of_core FOLDER --scale 500",
            "groups": "benchmarks.groups",
            "kills": "benchmarks.kills",
        },
        claim=_core_claim,
        table=_core,
        plot=_core_plot,
        alt="Processor seconds over keypoints, ten and a hundred million, both axes logarithmic.",
        measured=(
            "A scene like that of [hundreds of thousands of keypoints](large.md), drawn piece by "
            "piece into a Parquet "
            "dataset in FOLDER, which is never in memory whole, and solved in groups of 100 "
            "objects."
        ),
        notes=_core_notes,
        missing=(
            "More than two workers on machines of their own, and a thousand million keypoints: "
            "memory grows with what lies "
            "between groups and would be about 50 GB."
        ),
    ),
    Page(
        name="extend",
        title="Problems that grow",
        runs={"one more": "benchmarks.extend --quick"},
        claim=_extend_claim,
        table=_extend,
        plot=_extend_plot,
        alt="Processor seconds of solving anew and of extending, for five problems.",
        measured=("A problem without its last object is solved; then the last object is added. Best of three."),
        missing=(
            "Objects added one by one to twice the number: `python -m benchmarks.extend "
            "--one-by-one 0.5`. `extend` solves "
            "the whole again once half of all points have been placed anew."
        ),
    ),
    Page(
        name="speed",
        title="Speed of the presets",
        runs={
            "presets": "benchmarks.bench --areas presets",
            "suite": "benchmarks.bench --areas suite --repeats 1",
        },
        claim=_speed_claim,
        table=_speed,
        plot=_speed_plot,
        alt="How many times as fast as Algorithm 1 in NumPy the presets are, logarithmic axis.",
        measured=(
            "Baseline and preset run in turn in one process each, one BLAS thread, best of five "
            "(the baseline once for k = "
            "100). The baseline is `benchmarks/baseline.py`: double precision, Householder QR, "
            "tolerance 1e-5."
        ),
        missing=(
            "The largest problem, k = 200 (`--areas large`, a quarter of an hour), processors "
            "without AVX-512, several threads, and other people's programs for the same problem."
        ),
    ),
]
