"""Pages on how good answers are, and on the methods to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.evidence.page import Grid, Page, Record, number
from benchmarks.evidence.plots import curves, dots
from stiefelsync import METHODS
from stiefelsync.datasets.shapes import FAMILIES

__all__ = ["PAGES"]

SUITE = "**mean of the suite**"
NOISE = {
    "row": "rows permuted",
    "edge": "whole pairs relabelled",
    "mix": "swapped, dropped, added",
    "house": "the house sequence",
}


def _rivals(record: Record) -> dict[str, dict[str, float]]:
    """Return the fscores of the suite by method and setting."""
    table = record["suite"].tables[0]
    found: dict[str, dict[str, float]] = {}
    for place, method in enumerate(table.header[1:], 1):
        if "(" not in method:
            found[method] = {row[0]: number(row[place]) for row in table.rows if row[place] not in ("–", "")}
    return found


def _families(record: Record) -> Grid:
    every = _rivals(record)
    rows = []
    settings = [s for s in every["input"] if s != SUITE and s in every["matchals"]]
    for name in (*NOISE, "all"):
        some = [s for s in settings if name == "all" or s.startswith(name)]
        means = {method: float(np.mean([f[s] for s in some])) for method, f in every.items()}
        rivals = {method: mean for method, mean in means.items() if method in METHODS and not METHODS[method].ours}
        best = max(rivals, key=rivals.__getitem__)
        rows.append(
            [
                NOISE.get(name, "all 125 problems"),
                f"{means['input']:.3f}",
                f"{means['sparse-stiefel']:.3f}",
                f"{rivals[best]:.3f} {best}",
                f"{means['accurate']:.3f}",
            ]
        )
    return Grid(["wrong matches", "input", "the paper's", "best rival", "accurate"], rows)


def _accuracy_claim(record: Record) -> str:
    every = {method: f[SUITE] for method, f in _rivals(record).items()}
    rivals = {m: f for m, f in every.items() if m in METHODS and not METHODS[m].ours and m != "sparse-stiefel"}
    best = max(rivals, key=rivals.__getitem__)
    duels = record["suite"].tables[1]
    win, tie, loss = duels.row("the best rival of each instance")[1:4]
    return (
        "Over 125 problems with known answers `accurate` has a mean fscore of "
        f"{every['accurate']:.3f}: the matches as "
        f"given have {every['input']:.3f}, the paper's method {every['sparse-stiefel']:.3f}, and "
        "the best of "
        f"{len(rivals)} other methods, `{best}`, {rivals[best]:.3f}. Against the best rival of "
        "each problem, chosen by the "
        f"truth, it wins {win}, ties {tie} and loses {loss}. `fast` has {every['fast']:.3f}."
    )


def _accuracy_plot(record: Record, axes: Any) -> None:
    every = sorted(((f[SUITE], method) for method, f in _rivals(record).items() if SUITE in f), reverse=True)
    dots(axes, [method for _, method in every], {"mean fscore": [f for f, _ in every]}, "mean fscore of 125 problems")


def _auto(record: Record) -> str:
    table = record["suite"].tables[0]
    names = [name for name in table.header if name.startswith("accurate (")]
    told = [f"{number(table.text(SUITE, column=name)):.3f} {name[10:-1]}" for name in names]
    given = "The size of the universe is given to every method."
    return f"{given} Without that `accurate` has {', '.join(told)} (1.5: too large by half)." if told else given


def _bars(record: Record) -> Grid:
    """Return the fscores of all shapes that `accurate` has answers to."""
    table = record["shapes"].tables[0]
    place = list(table.header).index("accurate")
    return Grid(list(table.header), [row for row in table.rows if row[place] != "–"])


def _best(text: str) -> float:
    return -np.inf if text == "–" else number(text)


def _shapes(record: Record) -> Grid:
    table = _bars(record)
    rows = []
    for family, shapes in FAMILIES.items():
        some = [row for row in table.rows if row[0] in shapes]
        if not some:
            continue
        means = [
            np.mean([number(row[table.header.index(m)]) for row in some])
            for m in ("input", "fast", "tracks", "accurate")
        ]
        best = np.mean([_best(row[table.header.index("best rival")]) for row in some])
        rows.append([f"{family} ({len(some)})", *(f"{mean:.3f}" for mean in [*means, best])])
    return Grid(["shapes", "input", "fast", "tracks", "accurate", "best rival"], rows)


def _behind(record: Record, column: str) -> list[str]:
    table = _bars(record)
    found = []
    for row in table.rows:
        gap = _best(row[table.header.index("accurate")]) - _best(row[table.header.index(column)])
        if gap < -0.005:
            found.append((gap, f"*{row[0]}* {gap:+.3f}"))
    return [text for _, text in sorted(found)]


def _shapes_claim(record: Record) -> str:
    table, lost = _bars(record), _behind(record, "best rival")
    below = _behind(record, "input")
    return (
        f"On {len(table.rows)} shapes of problems that users have, `accurate` is as good as the "
        "best of all rivals, "
        f"chosen shape by shape by the truth, or better on {len(table.rows) - len(lost)}, and "
        "below it by more than .005 "
        f"on {len(lost)}. It is below its own input on {len(below)}."
    )


def _shapes_notes(record: Record) -> str:
    lost, below = _behind(record, "best rival"), _behind(record, "input")
    return f"**Below the best rival:** {', '.join(lost) or 'none'}. **Below the input:** {', '.join(below) or 'none'}."


def _shapes_plot(record: Record, axes: Any) -> None:
    table = _bars(record)
    names = [row[0] for row in table.rows]
    series = {
        "accurate": [_best(text) for text in (row[table.header.index("accurate")] for row in table.rows)],
        "best rival": [_best(text) for text in (row[table.header.index("best rival")] for row in table.rows)],
        "input": [_best(text) for text in (row[table.header.index("input")] for row in table.rows)],
    }
    dots(axes, names, series, "mean fscore of five seeds")
    axes.legend(loc="upper left", frameon=False)


def _sweep(record: Record) -> Grid:
    table = _bars(record)
    sizes = [3, 4, 5, 6, 8, 10, 15, 20, 30]
    rows = []
    for k in sizes:
        if not any(row[0] == f"detected k={k}" for row in table.rows):
            continue
        cells = [
            table.text(f"{kind} k={k}", column=name) for kind in ("row", "detected") for name in ("input", "accurate")
        ]
        rows.append([str(k), *cells])
    return Grid(["objects", "row: input", "accurate", "both sides: input", "accurate"], rows)


def _sweep_claim(record: Record) -> str:
    table = _sweep(record)
    gains = {row[0]: [number(row[2]) - number(row[1]), number(row[4]) - number(row[3])] for row in table.rows}
    worse = [k for k, gain in gains.items() if min(gain) < -0.005]
    clear = next((k for place, k in enumerate(gains) if min(map(min, list(gains.values())[place:])) > 0.05), "more")
    return (
        f"From {clear} objects on `accurate` gains more than .05 over its input with either kind "
        "of noise. With "
        + (f"{', '.join(worse)} objects it is below its input" if worse else "fewer it gains less")
        + ": three objects cannot outvote a mistake, since nothing tells which of three pairs is the wrong one."
    )


def _sweep_plot(record: Record, axes: Any) -> None:
    table = _sweep(record)
    columns = {"row noise: input": 1, "row noise: accurate": 2, "both sides: input": 3, "both sides: accurate": 4}
    series = {name: [number(row[place]) for row in table.rows] for name, place in columns.items()}
    curves(axes, table.numbers("objects"), series, "objects", "mean fscore of five seeds")


KINDS = {"row": "row noise", "both sides": "errors on both sides", "shared": "shared errors"}


def _tenths(record: Record) -> Grid:
    table = next(t for t in record["confidence"].tables if t.header[:2] == ["errors", "matches"])
    rows = []
    for low in range(10):
        cells = []
        for kind in KINDS:
            some = [
                row
                for row in table.rows
                if row[0] == kind and min(int(10 * number(row[2])), 9) == low and number(row[1]) >= 100
            ]
            cells.append(f"{some[0][2]} / {some[0][3]}" if some else "–")
        if set(cells) != {"–"}:
            rows.append([f".{low} to {f'.{low + 1}' if low < 9 else '1'}", *cells])
    return Grid(["confidence", *KINDS.values()], rows)


def _tenths_claim(record: Record) -> str:
    table = next(t for t in record["confidence"].tables if t.header[:2] == ["errors", "matches"])
    told = {}
    for kind in ("row", "both sides"):
        told[kind] = [
            abs(number(row[2]) - number(row[3])) for row in table.rows if row[0] == kind and number(row[1]) >= 100
        ]
    worst = max(gap for gaps in told.values() for gap in gaps)
    if worst > 0.2:
        return (
            "The confidence of a match orders matches by how likely they are right, but it is "
            "not a "
            "probability: in tenths with a hundred matches or more the promise and the share of "
            "right "
            f"matches differ by up to {worst:.2f} where errors are independent."
        )
    kept = "the .08 aimed at holds" if worst <= 0.08 else "more than the .08 aimed at"
    return (
        "The confidence of a match is nearly how likely it is right: in every tenth with a hundred "
        "matches or more the promise and the share of right matches differ by at most "
        f"{worst:.2f} where "
        f"errors are independent ({kept}). Where errors repeat themselves, because they belong to "
        "a point "
        "and not to a pair, confidence promises too much."
    )


def _tenths_plot(record: Record, axes: Any) -> None:
    table = next(t for t in record["confidence"].tables if t.header[:2] == ["errors", "matches"])
    from benchmarks.evidence.plots import COLOURS, MARKS

    axes.plot([0, 1], [0, 1], color="#bbbbbb")
    for (kind, title), colour, mark in zip(KINDS.items(), COLOURS, MARKS, strict=False):
        some = [row for row in table.rows if row[0] == kind and number(row[1]) >= 100]
        axes.plot(
            [number(row[2]) for row in some], [number(row[3]) for row in some], "-" + mark, color=colour, label=title
        )
    axes.set_xlabel("promised")
    axes.set_ylabel("right")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


AUTHORS = ("spectral", "matcheig", "matchals", "nmfsync")


def _agreement(record: Record) -> Grid:
    table = record["agreement"].tables[0]
    rows = []
    for k in dict.fromkeys(row[0] for row in table.rows):
        rows.append(
            [
                k,
                *(
                    f"{float(table.text(k, m, column='ours')):.4f} ({table.text(k, m, column='difference')})"
                    for m in AUTHORS
                ),
            ]
        )
    return Grid(["frames", *AUTHORS], rows)


def _agreement_claim(record: Record) -> str:
    table = record["agreement"].tables[0]
    gaps = {m: max(abs(number(row[3])) for row in table.rows if row[1] == m) for m in AUTHORS}
    others = max(gap for m, gap in gaps.items() if m != "matchals")
    near = "in every digit given" if others < 5e-5 else f"to within {others:.4f}"
    return (
        "Our `spectral`, `matcheig` and `nmfsync` give the fscores of the authors' MATLAB "
        "programs on "
        f"the house sequence {near}, and `matchals` to within {gaps['matchals']:.4f}: the authors "
        "score one-to-many matches, too."
    )


def _agreement_plot(record: Record, axes: Any) -> None:
    table = record["agreement"].tables[0]
    frames = list(dict.fromkeys(row[0] for row in table.rows))
    series = {m: [float(table.text(k, m, column="ours")) for k in frames] for m in AUTHORS}
    curves(axes, [float(k) for k in frames], series, "frames", "fscore")


def _shuffled(record: Record) -> Grid:
    table = record["all"].tables[0]
    rows = [[row[0], *(row[table.header.index(f"k = {k}")].split(" ")[0] for k in (20, 60, 111))] for row in table.rows]
    rows.sort(key=lambda row: -float(row[3]))
    return Grid(["method", "20 frames", "60 frames", "111 frames"], rows)


def _shuffled_claim(record: Record) -> str:
    table = _shuffled(record)
    one, averaged = table.row("spectral"), table.row("spectral-averaged")
    return (
        "Rounding by a single reference object, as `spectral` does, costs "
        + " , ".join(f"{float(b) - float(a):.3f}" for a, b in zip(one[1:], averaged[1:], strict=True)).replace(
            " ,", ","
        )
        + " of the fscore on the house sequence with 20, 60 and 111 frames, against the averaged rotation of the same "
        "eigenvectors (`spectral-averaged`). Methods that start at random differ from seed to "
        "seed by more than that."
    )


def _shuffled_plot(record: Record, axes: Any) -> None:
    table = _shuffled(record)
    dots(
        axes,
        [row[0] for row in table.rows],
        {name: table.numbers(name) for name in table.header[1:]},
        "mean fscore of five shuffles",
    )


def _lanczos(record: Record) -> Grid:
    table = record["lanczos"].tables[0]
    return Grid(
        ["frames, vectors", "lost", "fscore there", "elsewhere", "checked"],
        [[f"{row[0]}, {row[1]}", row[2], row[3], row[4], row[5]] for row in table.rows],
    )


def _lanczos_claim(record: Record) -> str:
    table = record["lanczos"].tables[0]
    lost = [row for row in table.rows if number(row[2]) > 0]
    falls = [number(row[4]) - number(row[3]) for row in lost]
    return (
        "`eigs-manopt` does worse than `eig-manopt` when a Lanczos solver loses a copy of a "
        "multiple eigenvalue, not "
        "because of trust regions. Plain ARPACK loses one in "
        f"{sum(int(number(row[2])) for row in table.rows)} of "
        f"{10 * len(table.rows)} runs on the house sequence, also with four vectors per "
        "eigenvalue, and the fscore then "
        f"falls by {min(falls):.3f} to {max(falls):.3f}. With a check that no larger eigenvalue "
        "is left, both agree."
    )


def _lanczos_plot(record: Record, axes: Any) -> None:
    table = record["lanczos"].tables[0]
    names = [f"{row[0]} frames, {row[1]} vectors" for row in table.rows]
    there = [np.nan if row[3] == "–" else float(row[3]) for row in table.rows]
    series = {
        "a copy lost": there,
        "none lost": [float(row[4]) for row in table.rows],
        "checked": [float(row[5]) for row in table.rows],
    }
    dots(axes, names, series, "fscore")


SHAPES = "docs/results/shapes.jsonl"
PAGES = [
    Page(
        name="accuracy",
        title="Accuracy on 125 problems with known answers",
        runs={
            "suite": "benchmarks.accuracy --output docs/results/accuracy.csv --methods accurate fast --again",
        },
        claim=_accuracy_claim,
        table=_families,
        plot=_accuracy_plot,
        alt="Mean fscore of every method over the 125 problems, the best on top.",
        height=4.6,
        measured=(
            "20 synthetic settings and five lengths of the house sequence (points shuffled), "
            "seeds 0 to 4 each, none "
            "picked. Rivals are this package's implementations with their default options; *best "
            "rival* is the best mean "
            "of the row. Every line is in {download}`accuracy.csv <../results/accuracy.csv>`; "
            "its lines of rivals were "
            "measured with version 0.2.0 on 2026-11-18 (`--methods` with their names measures "
            "them again)."
        ),
        notes=_auto,
        missing=(
            "The size of the universe unknown (`--universe 1.5 auto`), and real data other than the house "
            "sequence: see [cameras](poses.md) and [shapes](shapes.md)."
        ),
    ),
    Page(
        name="shapes",
        title="Accuracy on the shapes of problems users have",
        runs={
            "shapes": f"benchmarks.shapes --output {SHAPES} --also docs/results/shapes-rivals.jsonl --table --summary"
        },
        lines={"shapes": SHAPES},
        claim=_shapes_claim,
        table=_shapes,
        plot=_shapes_plot,
        alt="Mean fscore of accurate, of the best rival and of the input on every shape.",
        height=12.0,
        measured=(
            "`stiefelsync.datasets.shapes` draws the problems, seeds 0 to 4, universe estimated; "
            "numbers of shapes in "
            "brackets. *row*: sequences, videos, crowds, large scans, rogues, with errors on one "
            "side of a pair. "
            "*detected*: errors on both sides, or of descriptors. *graphs*: few objects are "
            "compared with each other. "
            "*sizes*: objects of 2 to 2,000 points. *mistakes*: repeated structure, rogues, "
            "misleading weights. *sweep*: 3 "
            "to 60 objects. *Best rival* is the best of the other methods on each shape by the "
            "truth. Rivals were measured "
            "with version 0.2.0 on 2026-11-18, up to 60 s a run."
        ),
        notes=_shapes_notes,
        missing=(
            "All rivals on all shapes: the slowest ran on the smaller shapes only (`docs/results/shapes-rivals.jsonl`)."
        ),
    ),
    Page(
        name="few-objects",
        title="How many objects it takes",
        runs={
            "shapes": f"benchmarks.shapes --output {SHAPES} --also docs/results/shapes-rivals.jsonl --table --summary"
        },
        lines={"shapes": SHAPES},
        claim=_sweep_claim,
        table=_sweep,
        plot=_sweep_plot,
        alt="Mean fscore over the number of objects, input and accurate, for two kinds of noise.",
        measured=(
            "The shapes *row k=…* and *detected k=…* of `stiefelsync.datasets.shapes`: k "
            "objects, half of the matches "
            "wrong; seeds 0 to 4, universe estimated. With three objects the best consistent "
            "answer that anybody could "
            "give, knowing all rates, is about as good as the input (`python -m "
            "benchmarks.three_objects`)."
        ),
        missing=("Few objects with weights, which tell right matches from wrong ones where cycles cannot."),
    ),
    Page(
        name="confidence",
        title="Is confidence what it says?",
        runs={"confidence": f"benchmarks.calibration {SHAPES} --method accurate"},
        lines={"confidence": SHAPES},
        claim=_tenths_claim,
        table=_tenths,
        plot=_tenths_plot,
        alt=(
            "Share of right matches over promised confidence by tenths, for three kinds of errors, with the diagonal."
        ),
        measured=(
            "Confidence of the input's matches by tenths, promised / right, over the shapes of "
            "three families, seeds 0 to "
            "4; tenths with fewer than 100 matches are left out."
        ),
        missing=("Confidence on real data, of which no match-by-match truth is at hand but by true cameras."),
    ),
    Page(
        name="house-rivals",
        title="Rivals agree with their authors' programs",
        runs={"agreement": "benchmarks.house_rivals"},
        needs="data",
        claim=_agreement_claim,
        table=_agreement,
        plot=_agreement_plot,
        alt="Fscore of four methods over the number of frames of the house sequence.",
        measured=(
            "One run each with the points in the authors' order; our fscore and its difference "
            "from that of the published "
            "MATLAB code, run once under Octave. `matchals` has the options and the random start "
            "of the authors' runs; its "
            "defaults here differ, since a selection of .7 leaves out matches of partial problems."
        ),
        missing="The other rivals, of which no authors' programs were at hand.",
    ),
    Page(
        name="house-shuffled",
        title="Rivals on the house sequence with shuffled points",
        runs={"all": "benchmarks.house_rivals --table all"},
        needs="data",
        claim=_shuffled_claim,
        table=_shuffled,
        plot=_shuffled_plot,
        alt="Mean fscore of fourteen methods on the house sequence with 20, 60 and 111 frames.",
        height=3.8,
        measured=(
            "Mean fscore over five shuffles of the points, each with a seed of its own; the "
            "record has least and most, and "
            "40, 80 and 100 frames. `matcheig` is not cycle-consistent."
        ),
        missing="`matchals`, for its running time.",
    ),
    Page(
        name="lanczos",
        title="Why Eigs+ManOpt does worse in the paper",
        runs={"lanczos": "benchmarks.house_rivals --table lanczos --seeds 10"},
        needs="data",
        claim=_lanczos_claim,
        table=_lanczos,
        plot=_lanczos_plot,
        alt=("Fscore of eigs-manopt where a copy of an eigenvalue was lost, where none was, and with the check."),
        height=3.8,
        measured=(
            "Ten shuffles of the points; plain ARPACK with 61 Lanczos vectors, its default for "
            "30 eigenvalues, and with "
            "120. *Lost*: runs in which a smaller eigenvalue stands in for a missing copy. "
            "*Checked*: `eigs-manopt` as it "
            "is by default (`stiefel/subspace.py`). `eig-manopt` has the fscores of *checked*."
        ),
        missing="MATLAB's `eigs`, which the paper used.",
    ),
]
