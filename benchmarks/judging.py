"""How well the referee judges: what it says of six methods' answers without the truth, and what the truth says.

    python -m benchmarks.judging --output judging.jsonl
    python -m benchmarks.judging --output judging.jsonl --table     # from the lines that are there
    STIEFELSYNC_DATA=DATA python -m benchmarks.judging --photographs

Instances are the seeds 0 to 4 of the shapes of `stiefelsync.datasets.shapes`, never picked (`--seeds` for others:
development uses seeds from 100 on). Every answer is judged by `stiefelsync.judge`, which is not told which method made
it; our own answer, which the referee needs, is that of the default method. One JSON line is written per problem and
method as soon as it is made; a second run adds what is missing. `clear` has a dense eigendecomposition and is left out
above {most:,} points.

"days easy", "days default" and "days hard" are cells over eight days (`stiefelsync.datasets.sessions`), which
`stiefelsync.judging.judge_followed` judges by the probability of every place instead of by a model of matches.

The tables tell by kind of noise how far the estimated share of wrong matches is from the true one: mean, and the share
of answers within ±.08; how often the true one lies in the interval that should hold it nine times in ten; and how the
order of the methods by expected fscore correlates with that by true fscore (Spearman's; of answers whose true fscores
differ by less than {tie}, neither is taken to be better), in the mean over problems; below the first table, that of all
answers to all problems taken together, and that of the methods' mean fscores.

With `--photographs` the answers are to the matches of real photographs, and wrong is what lies farther than a
five-hundredth of the image from its true epipolar lines.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks.pose_databases import SCENES
from benchmarks.true_cameras import cameras, true_matches
from stiefelsync import datasets, io, judge, score, synchronise
from stiefelsync.datasets.shapes import FAMILIES, SHAPES
from stiefelsync.errors import StiefelSyncError
from stiefelsync.following import follow_sessions
from stiefelsync.judging import Verdict, judge_followed

SEEDS = range(5)
DAYS = ("days easy", "days default", "days hard")
METHODS = ("accurate", "fast", "tracks", "clear", "quickmatch", "kruskal")
MOST_POINTS = 4_000
PHOTOGRAPHS = (
    ("herz-jesu", "database"), ("fountain", "verified"), ("fountain", "ratio95"), ("entry", "verified"),
    ("entry", "ratio95"),
)  # fmt: skip
TIE = 0.005

OBSERVATIONS = {
    "twins", "networks", "networks weighted", "video", "cells", "reid", "merging", "halves", "alias",
    "cells weighted", "reid weighted", "merging weighted",
}  # fmt: skip
"""Shapes whose errors belong to observations or repeat themselves; no row noise, and none on both sides."""


def noise(shape: str) -> str:
    """Return the kind of noise of a shape.

    Examples
    --------
    >>> noise("ring"), noise("row k=5"), noise("drive"), noise("cells"), noise("days easy")
    ('row', 'row', 'both sides', 'observations', 'days')
    """
    if shape in DAYS:
        return "days"
    if shape in OBSERVATIONS:
        return "observations"
    return "row" if shape in FAMILIES["row"] or shape.startswith("row") else "both sides"


@dataclass(frozen=True)
class Line:
    """One answer to one problem: what the referee says, and what the truth says.

    Attributes
    ----------
    wrong, missing, fscore
        As estimated: value, low and high.
    true_wrong, true_missing, true_fscore
        Against the truth.
    seconds
        Of processor time, of judging alone: our own answer was there.
    """

    shape: str
    seed: int
    method: str
    wrong: tuple[float, float, float] = (0.0, 0.0, 0.0)
    missing: tuple[float, float, float] = (0.0, 0.0, 0.0)
    fscore: tuple[float, float, float] = (0.0, 0.0, 0.0)
    true_wrong: float = 0.0
    true_missing: float = 0.0
    true_fscore: float = 0.0
    seconds: float = 0.0
    status: str = "done"


def measure(shape: str, seed: int, methods: list[str]) -> list[Line]:
    """Judge the answers of some methods to a problem."""
    found = []
    referee: Callable[[Any], Verdict]
    if shape in DAYS:
        days, truth = datasets.sessions(8, 120, difficulty=shape.removeprefix("days "), shape=(320, 320), rng=seed)
        followed = follow_sessions([days])
        problem, ours = followed.parts[0].candidates.matchings(followed.threshold), None
        referee = partial(judge_followed, followed=followed, rng=seed)
    else:
        problem, truth = SHAPES[shape](rng=seed)
        try:
            ours = synchronise(problem, rng=seed)
        except StiefelSyncError as error:
            return [Line(shape, seed, "all", status=f"refused: {error}")]
        referee = partial(judge, matchings=problem, ours=ours, rng=seed)
    for method in methods:
        if method == "clear" and problem.n_points > MOST_POINTS:
            continue
        try:
            answer = ours
            if answer is None or answer.method != method:
                answer = synchronise(problem, method=method, rng=seed)
        except StiefelSyncError as error:
            found.append(Line(shape, seed, method, status=f"refused: {error}"))
            continue
        start = time.process_time()
        said = referee(answer)
        seconds = time.process_time() - start
        true = score(answer.labels if answer.consistent else answer.matchings(), truth)
        wrong, missing, fscore = ((e.value, e.low, e.high) for e in (said.wrong, said.missing, said.fscore))
        found.append(
            Line(shape, seed, method, wrong, missing, fscore, 1 - true.precision, 1 - true.recall, true.fscore, seconds)
        )
    return found


def read(path: Path) -> list[Line]:
    """Return the lines of a file, none when it does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [Line(**json.loads(text)) for text in file]


def run(options: argparse.Namespace) -> None:
    """Judge what is missing, and append every line as soon as it is there."""

    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, late)
    done = {(line.shape, line.seed) for line in read(options.output)}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("a", encoding="utf-8") as file:
        for seed, shape in ((seed, shape) for seed in options.seeds for shape in options.shapes):
            if (shape, seed) in done:
                continue
            signal.setitimer(signal.ITIMER_PROF, options.limit)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    lines = measure(shape, seed, options.methods)
                except TimeoutError:
                    lines = [Line(shape, seed, "all", status=f"over {options.limit:g} s")]
            signal.setitimer(signal.ITIMER_PROF, 0)
            for line in lines:
                fields = {
                    name: np.round(value, 4).tolist() if isinstance(value, float | tuple) else value
                    for name, value in asdict(line).items()
                }
                file.write(json.dumps(fields) + "\n")
                print(f"{shape:22} {seed:4} {line.method:12} {line.status[:40]:6}", end=" ")
                print(f"wrong {line.wrong[0]:.3f} for {line.true_wrong:.3f}", end=" ")
                print(f"fscore {line.fscore[0]:.3f} for {line.true_fscore:.3f}", flush=True)
            file.flush()


def correlation(lines: list[Line]) -> float | None:
    """Return the rank correlation of expected and true fscores of answers to one problem, None without an order.

    Examples
    --------
    >>> said = {"a": (0.9, 0.8), "b": (0.7, 0.7), "c": (0.6, 0.7004)}
    >>> lines = [Line("ring", 0, name, fscore=(e, e, e), true_fscore=t) for name, (e, t) in said.items()]
    >>> round(correlation(lines), 3)
    0.866
    """
    true = np.array([line.true_fscore for line in lines])
    order = np.argsort(true)
    # True fscores that differ by next to nothing are tied.
    tied = np.empty(len(true))
    tied[order] = np.cumsum(np.diff(true[order], prepend=true[order[:1]]) >= TIE)
    if len(lines) < 3 or np.ptp(tied) == 0:
        return None
    expected = np.array([line.fscore[0] for line in lines])
    return float(spearmanr(tied, expected).statistic) if np.ptp(expected) > 0 else 0.0


def figures(lines: list[Line]) -> list[str]:
    """Return the figures of a table's row: answers, estimated - true, within .03 and .08, covered, rank correlation."""
    gap = np.array([line.wrong[0] - line.true_wrong for line in lines])
    covered = [line.wrong[1] - 5e-5 <= line.true_wrong <= line.wrong[2] + 5e-5 for line in lines]
    f = np.array([line.fscore[0] - line.true_fscore for line in lines])
    problems: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in lines:
        problems[line.shape, line.seed].append(line)
    ranks = [rank for group in problems.values() if (rank := correlation(group)) is not None]
    return [
        f"{len(lines)}", f"{gap.mean():+.3f}", f"{np.abs(gap).mean():.3f}", f"{(np.abs(gap) <= 0.08).mean():.2f}",
        f"{np.mean(covered):.2f}", f"{f.mean():+.3f}", f"{(np.abs(f) <= 0.08).mean():.2f}",
        f"{np.mean(ranks):.3f}" if ranks else "–",
    ]  # fmt: skip


HEAD = (
    "answers", "estimated − true share wrong", "mean distance", "within .08", "in the interval",
    "expected − true fscore", "within .08", "rank correlation",
)  # fmt: skip


def tables(lines: list[Line]) -> str:
    """Return what the lines say, as Markdown: by kind of noise, by method, and by shape."""
    lines = [line for line in lines if line.status == "done"]
    right = [line for line in lines if noise(line.shape) in ("row", "both sides")]
    rows = {"row and both sides": right} | {
        kind: [line for line in lines if noise(line.shape) == kind]
        for kind in ("row", "both sides", "observations", "days")
    }
    by_method = {name: [line for line in right if line.method == name] for name in METHODS}
    by_shape = {name: [line for line in lines if line.shape == name] for name in (*SHAPES, *DAYS)}
    texts = []
    for name, groups in {"noise": rows, "method (row and both sides)": by_method, "shape": by_shape}.items():
        head = [f"| {name} | " + " | ".join(HEAD) + " |", "|---" * (len(HEAD) + 1) + "|"]
        body = [f"| {key} | " + " | ".join(figures(group)) + " |" for key, group in groups.items() if group]
        texts.append("\n".join([*head, *body]))
    return "\n\n".join(texts)


def overall(lines: list[Line]) -> str:
    """Return the rank correlations of all answers taken together, and of the methods' means over the same problems."""
    lines = [line for line in lines if line.status == "done" and noise(line.shape) in ("row", "both sides")]
    expected, true = (np.array(x) for x in zip(*((line.fscore[0], line.true_fscore) for line in lines), strict=True))
    methods = sorted({line.method for line in lines})
    complete = {(line.shape, line.seed) for line in lines if line.method == "clear"}
    means = [
        np.mean([(line.fscore[0], line.true_fscore) for line in lines
                 if line.method == name and (line.shape, line.seed) in complete], axis=0)
        for name in methods
    ]  # fmt: skip
    by_method = ", ".join(f"{name} {e:.3f} for {t:.3f}" for name, (e, t) in zip(methods, means, strict=True))
    return (
        f"All {len(lines)} answers: {spearmanr(expected, true).statistic:.3f}. Means expected and true: {by_method}; "
        f"{spearmanr(*np.transpose(means)).statistic:.3f}."
    )


def photographs() -> None:
    """Print the table of real photographs."""
    folder = Path(os.environ["STIEFELSYNC_DATA"])
    print("| scene | database | method | wrong: estimated | true | expected fscore |")
    print("|" + "---|" * 6)
    for scene, database in PHOTOGRAPHS:
        place = folder / SCENES[scene]
        problem = io.read(place / f"{database}.db")
        side = 3072 if scene == "herz-jesu" else 1000
        ours = synchronise(problem, method="tracks")
        for method in ("tracks", "quickmatch", "union-find", "colmap-tracks", "kruskal"):
            answer = synchronise(problem, method=method)
            said = judge(answer, problem, ours=ours)
            pairs = answer.matchings()
            wrong = 1 - true_matches(pairs, cameras(place, side), side).mean()
            print(
                f"| {scene} | {database} | {method} | {said.wrong.value:.3f} | {wrong:.3f} | {said.fscore.value:.3f} |",
                flush=True,
            )


def main() -> None:
    described = (__doc__ or "").format(most=MOST_POINTS, tie=TIE)
    parser = argparse.ArgumentParser(description=described, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--families", nargs="+", default=[], choices=list(FAMILIES))
    parser.add_argument(
        "--shapes", nargs="+", default=[], choices=[*SHAPES, *DAYS], metavar="SHAPE", help="all by default"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--limit", type=float, default=300, help="seconds of processor time of a problem")
    parser.add_argument("--output", type=Path, default=Path("judging.jsonl"))
    parser.add_argument("--table", action="store_true", help="only print the tables of the lines that are there")
    parser.add_argument("--photographs", action="store_true", help="real ones instead")
    options = parser.parse_args()
    if options.photographs:
        photographs()
        return
    options.shapes += [name for family in options.families for name in FAMILIES[family]]
    options.shapes = options.shapes or [*SHAPES, *DAYS]
    if not options.table:
        run(options)
    lines = [line for line in read(options.output) if line.shape in options.shapes and line.seed in options.seeds]
    print(f"\n{tables(lines)}\n\n{overall(lines)}")


if __name__ == "__main__":
    main()
