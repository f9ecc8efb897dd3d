"""Pages on records, cells, units, corrections, other uses of the solver, and tests."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from benchmarks.evidence.page import Grid, Page, Record, number
from benchmarks.evidence.plots import dots

__all__ = ["PAGES"]


def _columns(grid: Grid, columns: dict[str, str]) -> Grid:
    """Return some columns under other names; the first is kept. Standard deviations go."""
    places = [list(grid.header).index(name) for name in columns]
    rows = [[row[0], *(row[place].split(" ± ")[0] for place in places)] for row in grid.rows]
    return Grid([grid.header[0] or "problem", *columns.values()], rows)


RECORDS = {
    "ours": "ours",
    "components, .5": "components, .5",
    "greedy one-to-one, .5": "one-to-one, .5",
    "greedy one-to-one, its best": "one-to-one, best",
}


def _records(record: Record) -> Grid:
    table = record["records"].tables[0]
    header = list(table.header)
    # "its best" follows the method it belongs to.
    for place, name in enumerate(header):
        if name == "its best":
            header[place] = f"{header[place - 1].removesuffix(', .5')}, its best"
    return _columns(Grid(header, table.rows), RECORDS)


def _records_claim(record: Record) -> str:
    table = _records(record)
    clean = [row for row in table.rows if "duplicates" not in row[0]]
    many = [row for row in table.rows if "duplicates" in row[0]]
    gain = [float(row[1]) - float(row[2]) for row in table.rows]
    best = [float(row[1]) - float(row[4]) for row in clean]
    return (
        "Clustering scored pairs of records with the rule of one record per source and cluster "
        "is better than connected "
        f"components at probability .5, Splink's default, by {min(gain):.3f} to {max(gain):.3f} "
        "of the fscore. Greedy "
        "one-to-one clusters come close where sources have no duplicates: at the threshold that "
        "is best by the truth they "
        f"differ from ours by {-max(best):+.3f} to {-min(best):+.3f}. With duplicates they fall to "
        f"{min(float(row[4]) for row in many):.3f}, ours keeps "
        f"{min(float(row[1]) for row in many):.3f} or more."
    )


def _records_plot(record: Record, axes: Any) -> None:
    table = _records(record)
    dots(
        axes,
        [row[0] for row in table.rows],
        {name: table.numbers(name) for name in table.header[1:]},
        "fscore of pairs of records",
    )


CELLS = {"ours": "ours", "HDBSCAN like ROICaT": "HDBSCAN", "union-find": "union-find", "chaining": "chaining"}


def _cells(record: Record) -> Grid:
    pairs, tracks = (_columns(table, CELLS) for table in record["cells"].tables[0:3:2])
    rows = [[f"{row[0]}, pairs", *row[1:]] for row in pairs.rows] + [
        [f"{row[0]}, tracks", *row[1:]] for row in tracks.rows
    ]
    return Grid(["mice, F1 of", *pairs.header[1:]], rows)


def _cells_claim(record: Record) -> str:
    table = _cells(record)
    hard, easy = table.row("hard, pairs"), table.row("easy, pairs")
    names = ["HDBSCAN as ROICaT uses it", "union-find", "chaining neighbouring days"]
    told = ", ".join(f"{f} by {name}" for f, name in zip(hard[2:], names, strict=True))
    return (
        f"Cells are followed over twelve days with an F1 of pairs of {easy[1]} in easy and "
        f"{hard[1]} in hard simulated "
        "mice; of the others, each at the threshold that is best by the truth, hard mice have "
        f"{told}. Complete tracks "
        "are few, and the order of methods changes from one kind of mouse to the next."
    )


def _cells_plot(record: Record, axes: Any) -> None:
    table = _cells(record)
    dots(axes, [row[0] for row in table.rows], {name: table.numbers(name) for name in table.header[1:]}, "F1")


UNITS = {
    "ours": "ours",
    "intermediate, 0.5": "UnitMatch, .5",
    "intermediate, its best": "UnitMatch, best",
    "greedy, its best": "greedy, best",
}


def _units(record: Record) -> Grid:
    return _columns(record["units"].tables[0], UNITS)


def _units_claim(record: Record) -> str:
    table = _units(record)
    ours, theirs, best = (table.numbers(name) for name in ("ours", "UnitMatch, .5", "UnitMatch, best"))
    return (
        f"Units are followed over six recordings with F1 {', '.join(f'{f:.3f}' for f in ours)} in "
        "easy, noisy and drifting "
        "simulations. UnitMatch's intermediate rule, its best one here, has "
        f"{', '.join(f'{f:.3f}' for f in theirs)} at its threshold of .5, and "
        f"{', '.join(f'{f:.3f}' for f in best)} at the "
        "one that is best by the truth."
    )


def _units_plot(record: Record, axes: Any) -> None:
    table = _units(record)
    dots(
        axes,
        [row[0] for row in table.rows],
        {name: table.numbers(name) for name in table.header[1:]},
        "F1 of pairs of units",
    )


PLACES = ("twelve days", "five days", "six recordings")


def _places(record: Record) -> Grid:
    rows = []
    header: list[str] = []
    for name, table in zip(PLACES, record["places"].tables, strict=True):
        # Places less sure than .6 are left out of tables.
        first = list(table.header).index(".6–.7")
        header = ["places of", *table.header[first:]]
        rows.append([name, *(re.sub(r" \(.*\)", "", cell) for cell in table.row("all")[first:])])
    return Grid(header, rows)


def _places_claim(record: Record) -> str:
    gaps = []
    for row in _places(record).rows:
        for cell in row[1:]:
            if "/" in cell:
                promised, right = map(float, cell.split("/"))
                gaps.append(right - promised)
    near = sum(abs(gap) < 0.055 for gap in gaps)
    return (
        "The table of cells or units gives a probability for every place. Over all simulated "
        "mice and recordings the share "
        f"of right places is within .05 of that probability in {near} of {len(gaps)} tenths; at "
        "worst it is "
        f"{-min(gaps):.2f} below the promise. A single mouse may be off by more."
    )


def _places_plot(record: Record, axes: Any) -> None:
    table = _places(record)
    axes.plot([0.6, 1], [0.6, 1], color="#bbbbbb")
    from benchmarks.evidence.plots import COLOURS, MARKS

    for row, colour, mark in zip(table.rows, COLOURS, MARKS, strict=False):
        pairs = [tuple(map(float, cell.split("/"))) for cell in row[1:] if "/" in cell]
        axes.plot([p for p, _ in pairs], [r for _, r in pairs], "-" + mark, color=colour, label=row[0])
    axes.set_xlabel("promised")
    axes.set_ylabel("right")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def _referee(record: Record) -> Grid:
    table = record["answers"].tables[0]
    return Grid(
        ["errors", "answers", "estimated − true", "within .08", "order"],
        [[row[0], row[1], row[2], row[4], row[8]] for row in table.rows],
    )


def _referee_claim(record: Record) -> str:
    row = record["answers"].tables[0].row("row and both sides")
    gaps = [number(row[3]) - number(row[4]) for row in record["photographs"].tables[0].rows]
    return (
        "The share of wrong matches that `stiefelsync judge` estimates is off by "
        f"{row[2]} in the mean of {row[1]} answers to problems with independent errors; "
        f"{100 * number(row[4]):.0f} % of them are within .08 of the truth, and 90 % were wanted. "
        f"Of photographs it is {min(gaps):.2f} to {max(gaps):.2f} too high."
    )


def _referee_plot(record: Record, axes: Any) -> None:
    rows = record["photographs"].tables[0].rows
    series = {name: [number(row[c]) for row in rows] for c, name in ((3, "estimated"), (4, "true"))}
    dots(axes, [" ".join(row[:3]) for row in rows], series, "share of wrong pairs in tracks")


def _referee_notes(record: Record) -> str:
    shapes = record["answers"].tables[2]
    off = [f"*{row[0]}* {row[2]}" for row in shapes.rows if abs(number(row[2])) > 0.1]
    return (
        "*Order*: rank correlation of expected with true fscores of six answers to one problem, "
        "mean over problems; it is low where these are nearly level. "
        f"{record['answers'].text.strip().splitlines()[-1]} Off by more than .1 in the mean: "
        f"{', '.join(off)}."
    )


def _corrections(record: Record) -> Grid:
    table = record["corrections"].tables[0]
    rows = []
    for shape in dict.fromkeys(row[0] for row in table.rows):
        cells = []
        for method in ("fast", "tracks"):
            row = table.row(shape, method)
            cells += [f"{number(row[2]):.3f}", f"{number(row[3]):.3f}"]
        rows.append([shape, *cells])
    return Grid(["shape", "fast", "corrected", "tracks", "corrected"], rows)


def _corrections_claim(record: Record) -> str:
    table = record["corrections"].tables[0]
    gains = [number(row[3]) - number(row[2]) for row in table.rows]
    worse = sum(int(row[5]) for row in table.rows)
    return (
        "Ten corrections of the tracks that `stiefelsync judge` calls the worst raise the fscore "
        "of hard problems by "
        f"{min(gains):.3f} to {max(gains):.3f}; {worse or 'none'} of the answers "
        "got worse."
    )


def _corrections_plot(record: Record, axes: Any) -> None:
    table = record["corrections"].tables[0]
    names = [f"{row[0]}, {row[1]}" for row in table.rows]
    dots(
        axes,
        names,
        {"answer": [number(row[2]) for row in table.rows], "corrected": [number(row[3]) for row in table.rows]},
        "mean fscore",
    )


def _cost(record: Record) -> Grid:
    rows = [
        [f"{row[0].removesuffix(' (tracks)')}, {row[1]}", row[2], row[5], row[7]]
        for row in record["cost"].tables[0].rows
        if not row[0].startswith("extend")
    ]
    return Grid(["method, constraints", "broken", "time", "fscore"], rows)


def _cost_claim(record: Record) -> str:
    table = _cost(record)
    broken = sum(int(row[1].split()[0]) for row in table.rows)
    ratios = table.numbers("time")
    return (
        f"Ten thousand constraints on 200,000 points are held exactly ({broken} broken), and an "
        "answer takes "
        f"{min(ratios):.2f} to {max(ratios):.2f} times as long as without them."
    )


def _cost_plot(record: Record, axes: Any) -> None:
    table = _cost(record)
    dots(
        axes,
        [row[0] for row in table.rows],
        {"time with over without": table.numbers("time")},
        "processor time, with over without",
    )
    axes.axvline(1, color="#888888")


USES = {
    "spectral": ("Spectral clustering", "examples/gallery/plot_spectral_clustering.py"),
    "factors": ("Factor rotation", "examples/gallery/plot_factor_rotation.py"),
    "cells": ("Cells over sessions", "examples/gallery/plot_cells.py"),
}


def _means(record: Record) -> dict[str, dict[str, float]]:
    """Return the means that the three examples print, by example and method."""
    clusters = record["spectral"].text.splitlines()
    names = clusters[0].split()[-4:]
    mean = next(line for line in clusters if line.startswith("mean  "))
    found = {"spectral": dict(zip(names, map(float, mean.split()[1:]), strict=True))}
    found["factors"] = {}
    for line in record["factors"].text.splitlines()[1:]:
        if parts := re.match(r"(.+?)  +([\d.]+)  ([\d.]+)  ([\d.]+) ", line):
            found["factors"][parts[1]] = float(np.mean([float(parts[i]) for i in (2, 3, 4)]))
    found["cells"] = {}
    for line in record["cells"].text.splitlines()[1:]:
        if parts := re.match(r"(.+?)  +([\d.]+)  ", line):
            found["cells"][parts[1]] = float(parts[2])
    return found


def _uses(record: Record) -> Grid:
    rows = []
    for key, (title, _) in USES.items():
        for method, value in _means(record)[key].items():
            rows.append([title, method, f"{value:.3f}"])
    return Grid(["use", "method", "mean"], rows)


def _uses_claim(record: Record) -> str:
    means = _means(record)
    clusters, factors, cells = means["spectral"], means["factors"], means["cells"]
    best = max(clusters, key=clusters.__getitem__)
    return (
        "The sparse rotation is of little use for spectral clustering: over ten data sets its "
        "mean adjusted Rand index is "
        f"{clusters['rotate']:.3f}, that of scikit-learn's `{best}` {clusters[best]:.3f}. As a "
        "rotation of factors it is as "
        f"good as varimax ({factors['rotate, p = 3']:.3f} and {factors['varimax']:.3f}). For "
        "cells over sessions "
        f"synchronisation helps: {cells['accurate']:.3f} against "
        f"{cells['matches as they are']:.3f} for the matches as "
        f"they are and {cells['chaining neighbours']:.3f} for chaining neighbours."
    )


def _uses_plot(record: Record, axes: Any) -> None:
    table = _uses(record)
    dots(
        axes,
        [f"{row[0]}: {row[1]}" for row in table.rows],
        {"mean": table.numbers("mean")},
        "adjusted Rand index, congruence, fscore",
    )


def _machines(record: Record) -> Grid:
    return Grid(record["everything"].tables[0].header[:3], [row[:3] for row in record["everything"].tables[0].rows])


def _machines_claim(record: Record) -> str:
    rows = _machines(record).rows
    return (
        "Equal input and equal seed give equal labels on every processor and with any number of "
        "threads: the whole suite "
        f"passes with the kernels of {len({row[0] for row in rows})} kinds of processors, with "
        "one and with two threads, "
        "and the labels of `accurate`, `fast` and `tracks` on 62 problems are equal on all that "
        "were compared."
    )


def _machines_plot(record: Record, axes: Any) -> None:
    rows = [row for row in _machines(record).rows if row[2][0].isdigit()]
    dots(
        axes,
        [f"{row[0]}, {row[1]} thread{'s' if row[1] != '1' else ''}" for row in rows],
        {"tests passed": [number(row[2]) for row in rows]},
        "tests passed",
    )
    axes.set_xlim(left=0)


def _mutants(record: Record) -> Grid:
    rows = []
    for table in record["mutants"].tables[:1]:
        for row in table.rows:
            rows.append([row[0], row[4], row[5], row[6].replace("**", "")])
    return Grid(["package", "changes run", "equivalent", "noticed, of the others"], rows)


def _mutants_claim(record: Record) -> str:
    last, fresh = _mutants(record).row("together"), record["mutants"].tables[1].row("together")
    return (
        f"Of {last[1]} small changes of the numerical core the tests notice {last[3]}, those left "
        "out that change nothing "
        "but speed. In a second draw, for which no test was written, it is "
        f"{fresh[3].replace('**', '')}."
    )


def _mutants_plot(record: Record, axes: Any) -> None:
    table = _mutants(record)
    shares = []
    for row in table.rows:
        noticed, of = map(int, re.findall(r"\d+", row[3])[:2])
        shares.append(100 * noticed / of)
    dots(axes, [row[0].strip("`") for row in table.rows], {"noticed": shares}, "% noticed")
    axes.set_xlim(0, 100)


PAGES = [
    Page(
        name="records",
        title="Records of several sources",
        runs={"records": "benchmarks.records --seeds 200 201 202 203 204"},
        claim=_records_claim,
        table=_records,
        plot=_records_plot,
        alt="Fscore of pairs of records for seven settings, ours and three other ways to cluster.",
        measured=(
            "Simulated catalogues of music (`datasets.records`: 600 recordings, look-alike "
            "versions, careless records, a "
            "tenth of the true pairs never compared, calibrated probabilities); means over five "
            "seeds. *Best*: the one of "
            "twelve thresholds that is best by the truth, which nobody has. Constants were "
            "chosen on other seeds."
        ),
        missing=(
            "Real records with a truth, scores that are not calibrated, and Splink's own clustering with its training."
        ),
    ),
    Page(
        name="sessions",
        title="Cells over days",
        runs={"cells": "benchmarks.sessions"},
        claim=_cells_claim,
        table=_cells,
        plot=_cells_plot,
        alt=("F1 of pairs of days and of complete tracks for three kinds of simulated mice, ours and three others."),
        measured=(
            "Twelve days of about 280 cells that shift, deform, are missed, are born and die "
            "(`datasets.sessions`), seeds "
            "3000 to 3004; mean F1 of all pairs of days, and of cells seen on all days that are "
            "found whole. Every method "
            "has our registration and probabilities, and all but ours the best of twelve "
            "thresholds by the truth. The "
            "schemes are written from their descriptions; they are not the programs themselves."
        ),
        missing=(
            "Real sessions with a truth. CellReg's own sample has a published answer, but nobody "
            "knows whether it is right."
        ),
    ),
    Page(
        name="units",
        title="Units over recordings",
        runs={"units": "benchmarks.units"},
        claim=_units_claim,
        table=_units,
        plot=_units_plot,
        alt=(
            "F1 of pairs of units for three kinds of simulated recordings, ours, UnitMatch's rule and greedy clusters."
        ),
        measured=(
            "Six recordings of 80 out of 110 neurons (`datasets.units`), seeds 3000 to 3004; "
            "every method has the same "
            "probabilities. *Best*: the threshold that is best by the truth. The conservative "
            "and liberal rules, a clean "
            "graph and union-find are in the record."
        ),
        missing=("Real recordings with a truth; the simulated probabilities follow a model that suits averaging."),
    ),
    Page(
        name="places",
        title="Probabilities of places",
        runs={"places": "benchmarks.place_confidence"},
        claim=_places_claim,
        table=_places,
        plot=_places_plot,
        alt=("Share of right places over promised probability by tenths, for cells and units, with the diagonal."),
        measured=(
            "Promised / right of all places in the tables of simulated cells (twelve and five "
            "days) and units (six "
            "recordings), by tenths of the promise, seeds 3000 to 3004. Places less sure than .6 "
            "are left out of tables. "
            "The coefficients were fitted on other seeds."
        ),
        missing=("Real sessions, where registration and scores may fail in ways that the simulation does not have."),
    ),
    Page(
        name="referee",
        title="The referee",
        runs={
            "answers": "benchmarks.judging --output docs/results/judging.jsonl --seeds 0",
            "photographs": "benchmarks.judging --photographs",
        },
        claim=_referee_claim,
        table=_referee,
        plot=_referee_plot,
        notes=_referee_notes,
        alt="Share of wrong pairs in the tracks of five methods on photographs, as estimated and by true cameras.",
        height=5.2,
        measured=(
            "Answers of `accurate`, `fast`, `tracks`, CLEAR, QuickMatch and Kruskal to one problem (seed "
            "0) of the shapes of `stiefelsync.datasets.shapes` that the record has, judged without the "
            "truth. On photographs pairs are wrong that lie farther than a "
            "five-hundredth of the image from their true epipolar lines."
        ),
        missing="Seeds 1 to 4, and the shapes that the record does not have.",
        needs="data",
        lines={"answers": "docs/results/judging.jsonl"},
    ),
    Page(
        name="judging",
        title="Ten corrections",
        runs={"corrections": "benchmarks.constraints --only corrections --methods fast tracks"},
        claim=_corrections_claim,
        table=_corrections,
        plot=_corrections_plot,
        alt="Mean fscore of the answers to hard problems before and after ten corrections.",
        height=4.2,
        measured=(
            "A person who knows the truth looks at the ten tracks that the referee calls the "
            "worst, and says of each which "
            "of its points belong together. Hard shapes of `stiefelsync.datasets.shapes`, mean "
            "over seeds 0 to 4."
        ),
        missing="Corrections by real people, who make mistakes.",
    ),
    Page(
        name="constraints",
        title="What constraints cost",
        runs={"cost": "benchmarks.constraints --only cost"},
        claim=_cost_claim,
        table=_cost,
        plot=_cost_plot,
        alt=("Processor time with constraints over that without, for three methods and two kinds of constraints."),
        measured=(
            "A scene of 200,000 points and 643,654 matches, 30 % wrong; half *must*, half "
            "*cannot*. *Random* constraints "
            "join any two points and nearly all contradict the matches; *true* ones are what "
            "somebody who knows would say. "
            "Processor time, least of several runs in turn."
        ),
        missing=("`extend` by a camera, of whose time constraints take more than the rest: the record has it."),
    ),
    Page(
        name="uses",
        title="Clustering, factors, cells",
        runs={key: path for key, (_, path) in USES.items()},
        claim=_uses_claim,
        table=_uses,
        plot=_uses_plot,
        alt=("Mean score of every method for spectral clustering, factor rotation and cells over sessions."),
        height=4.0,
        measured=(
            "Adjusted Rand index over ten data sets, congruence with the true factors over three "
            "shares of cross-loadings, "
            "fscore over twenty sessions; five seeds each, nothing tuned on them. The "
            "[gallery](../gallery/index.rst) "
            "explains data and methods, and a test runs the three programs and compares what "
            "they print with the record."
        ),
        missing="Larger data sets, and other rotations of factors.",
    ),
    Page(
        name="machines",
        title="The same answer on every machine",
        runs={"everything": "benchmarks.machines --everything"},
        claim=_machines_claim,
        table=_machines,
        plot=_machines_plot,
        alt="Number of tests passed with the kernels of each processor and number of threads.",
        measured=(
            "OpenBLAS and NumPy have kernels for several processors; environment variables make "
            "them use those of another. "
            "Rows were run one after the other while the last commits before the release were "
            "made, so that numbers of "
            "tests differ; none failed. 13 are skipped: those that imitate processors "
            "themselves, the site's, and one that "
            "a superuser cannot fail. `make test-cpus` runs the numerical tests in continuous "
            "integration."
        ),
        missing="Real processors of those kinds, and ARM, on which the workflow runs the tests.",
    ),
    Page(
        name="mutants",
        title="Would the tests notice?",
        runs={"mutants": "benchmarks.mutants"},
        claim=_mutants_claim,
        table=_mutants,
        plot=_mutants_plot,
        alt="Share of small changes that the tests notice, by package of the numerical core.",
        measured=(
            "`make mutants` changes the numerical core in one small place at a time (a sign, a "
            "comparison, a constant, a "
            "statement left out) and runs the tests of that package that execute the changed "
            "statement. 5 % of the possible "
            "changes of every module are drawn. Changes that alter nothing but speed were sorted "
            "out by reading, with the "
            "reason (`benchmarks/equivalent_mutants.csv`)."
        ),
        missing="All other tests, which `make test` runs as well: the true share is higher.",
    ),
]
