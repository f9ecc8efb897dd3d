"""Whether promises are kept: expected fscore by number of objects, confidence of matches, tracks and points by tenths.

    python -m benchmarks.shapes --families sweep row detected --methods accurate --output shapes.jsonl
    python -m benchmarks.calibration shapes.jsonl --method accurate --figure docs/images/calibration.png

Reads the lines of `benchmarks.shapes`; nothing is run. Shapes are sorted by where their errors come from. A promise is
kept where promised − real lies within `--bound` on average (fscore; .10 where errors belong to observations), and
within `--tenth` in every tenth of confidence that holds at least 100 matches. Standard errors are over instances:
matches of one instance are not independent.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.shapes import Line, mean_and_error, read
from stiefelsync.datasets.shapes import FAMILIES
from stiefelsync.plotting.canvas import ADDED, INK, KEPT, QUIET, REMOVED, blank, save, tidy

FEWEST = 100  # matches or tracks in a tenth that is judged
SHARED_BOUND = 0.10  # expected fscore, where errors belong to observations or to whole pairs

OBSERVATIONS = {name for name in FAMILIES["detected"] | FAMILIES["mistakes"] if name.startswith(("cells", "reid"))} | {
    "merging",
    "merging weighted",
    "networks",
    "networks weighted",
    "alias",
    "twins",
    "video",
    "halves",
}
KINDS = ("row", "both sides", "shared")
MEANING = {
    "row": "one side of every pair clean, each error drawn for itself",
    "both sides": "each error drawn for itself",
    "shared": "errors of observations or of whole pairs, which repeat themselves",
}
COLOURS = {"row": KEPT, "both sides": ADDED, "shared": REMOVED}


def kind(shape: str) -> str:
    """Return where the errors of a shape come from.

    Examples
    --------
    >>> [kind(shape) for shape in ("ring", "row k=3", "window detected", "star", "cells")]
    ['row', 'row', 'both sides', 'both sides', 'shared']
    """
    if shape in OBSERVATIONS:
        return "shared"
    return "row" if shape in FAMILIES["row"] or shape.startswith("row k=") else "both sides"


def by_objects(lines: Iterable[Line]) -> dict[str, dict[int, list[float]]]:
    """Return expected − real fscore of the sweep by kind of error and number of objects."""
    found: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in KINDS[:2]}
    for line in lines:
        if line.shape in FAMILIES["sweep"] and line.expected is not None:
            found[kind(line.shape)][int(line.shape.split("=")[1])].append(line.expected - line.fscore)
    return found


def objects_table(lines: list[Line], bound: float) -> str:
    """Return expected − real fscore by number of objects as Markdown, with whether the promise is kept."""
    rows = ["| objects | row | both sides |", "|---|---|---|"]
    found = by_objects(lines)
    for k in sorted({k for some in found.values() for k in some}):
        rows.append(f"| {k} | " + " | ".join(mean_and_error(found[name].get(k, [])) for name in found) + " |")
    every = [[np.mean(values) for values in found[name].values()] for name in found]
    kept = [f"{np.mean(means):+.3f} {holds(abs(np.mean(means)) <= bound)}" if means else "–" for means in every]
    return "\n".join([*rows, "| **mean over k** | " + " | ".join(kept) + " |"])


def shapes_table(lines: list[Line], bound: float) -> str:
    """Return expected and real fscore of every shape as Markdown, with whether the promise is kept."""
    rows = ["| errors | shape | expected | real | expected − real | kept |", "|---|---|---|---|---|---|"]
    shapes = dict.fromkeys(line.shape for line in lines if line.expected is not None)
    for shape in sorted(shapes, key=lambda name: KINDS.index(kind(name))):
        some = [line for line in lines if line.shape == shape and line.expected is not None]
        gaps = [line.expected - line.fscore for line in some if line.expected is not None]
        expected, real = (np.mean(list(values)) for values in zip(*map(_both, some), strict=True))
        most = SHARED_BOUND if kind(shape) == "shared" else bound
        rows.append(
            f"| {kind(shape)} | {shape} | {expected:.3f} | {real:.3f} | {mean_and_error(gaps)} |"
            f" {holds(abs(np.mean(gaps)) <= most)} |"
        )
    return "\n".join(rows)


def _both(line: Line) -> tuple[float, float]:
    assert line.expected is not None
    return line.expected, line.fscore


def reliability(lines: Iterable[Line], what: str, of: str, share: int = 2) -> NDArray[np.float64]:
    """Return by tenths of confidence: how many, mean promised, share right, and the standard error of right − promised.

    Parameters
    ----------
    what : {"matches", "tracks", "points"}
    of
        The kind of errors.
    share
        Column of the sums that is taken as right; 3 for all pairs of a track instead of its given matches, and for
        whether a point shows what most of its track shows, instead of the share of others that show the same.

    Returns
    -------
    (10, 4)
        NaN where there is nothing; so is the standard error where all comes from one instance.
    """
    rows = [getattr(line, what) for line in lines if kind(line.shape) == of and getattr(line, what) is not None]
    if not rows:
        return np.full((10, 4), np.nan)
    sums = np.array(rows, dtype=np.float64)[:, :, [0, 1, share]]  # instances × tenths × (number, promised, right)
    n, promised, right = sums.sum(axis=0).T
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = (right - promised) / n
        # The residuals of a ratio: what an instance adds to the difference beyond its part of the mean.
        residual = sums[:, :, 2] - sums[:, :, 1] - gap * sums[:, :, 0]
        several = (sums[:, :, 0] > 0).sum(axis=0)
        error = np.sqrt((residual**2).sum(axis=0) * several / (several - 1)) / n  # not a number for one instance
        return np.stack([n, promised / n, right / n, error], axis=1)


def reliability_table(lines: list[Line], what: str, bound: float, share: int = 2) -> str:
    """Return promised and right by kind of error and tenth of confidence as Markdown."""
    rows = [f"| errors | {what} | promised | right | right − promised | kept |", "|---|---|---|---|---|---|"]
    for name in KINDS:
        for n, promised, right, error in reliability(lines, what, name, share):
            if n > 0:
                gap = right - promised
                kept = holds(abs(gap) <= bound) if n >= FEWEST and name != "shared" else ""
                told = f"{gap:+.3f}" + (f" ± {error:.3f}" if np.isfinite(error) else "")
                rows.append(f"| {name} | {n:.0f} | {promised:.3f} | {right:.3f} | {told} | {kept} |")
    return "\n".join(rows)


def holds(it: bool) -> str:
    """Return the word for the last column of a table."""
    return "yes" if it else "**no**"


def draw(lines: list[Line], method: str, path: Path, bound: float) -> None:
    """Draw promised − real by number of objects, and reliability diagrams of matches, tracks and points."""
    figure = blank(14, 3.6)
    axes = figure.subplots(1, 4)
    tidy(axes[0], f"fscore of {method}: promised − real", xlabel="objects", ylabel="promised − real")
    axes[0].axhspan(-bound, bound, color=QUIET, alpha=0.2, linewidth=0)
    axes[0].axhline(0, color=INK, linewidth=0.6)
    for name, found in by_objects(lines).items():
        k = sorted(found)
        means = [np.mean(found[n]) for n in k]
        errors = [np.std(found[n], ddof=1) / len(found[n]) ** 0.5 if len(found[n]) > 1 else 0.0 for n in k]
        axes[0].errorbar(k, means, errors, color=COLOURS[name], marker="o", markersize=4, label=name, capsize=2)
    axes[0].set_xscale("log")
    axes[0].set_xticks([3, 5, 10, 20, 60], ["3", "5", "10", "20", "60"])
    axes[0].minorticks_off()
    axes[0].set_xlim(2.7, 67)
    for axis, what in zip(axes[1:], ("matches", "tracks", "points"), strict=True):
        tidy(axis, f"confidence of {what}", xlabel="promised", ylabel="right")
        axis.plot([0, 1], [0, 1], color=INK, linewidth=0.6)
        for name in KINDS:
            n, promised, right, error = reliability(lines, what, name).T
            seen = n >= FEWEST
            if seen.any():
                axis.errorbar(
                    promised[seen], right[seen], error[seen], color=COLOURS[name], marker="o", markersize=4,
                    capsize=2, label=f"{name}: {MEANING[name]}",
                )  # fmt: skip
        axis.set_aspect("equal")
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=1, fontsize=8, frameon=False)
    save(figure, path, force=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", nargs="+", type=Path, help="files that benchmarks.shapes wrote")
    parser.add_argument("--method", default="accurate")
    parser.add_argument("--universe", default="auto", choices=["auto", "true"])
    parser.add_argument("--bound", type=float, default=0.03, help="of expected − real fscore")
    parser.add_argument("--tenth", type=float, default=0.08, help="of right − promised in a tenth of confidence")
    parser.add_argument("--figure", type=Path, help="where to draw, .png, .pdf or .svg; replaced if it is there")
    options = parser.parse_args()
    lines = [line for path in options.lines for line in read(path)]
    lines = [line for line in lines if (line.method, line.universe) == (options.method, options.universe)]
    if not lines:
        parser.error(f"no line is of method {options.method!r} with universe {options.universe!r}")
    for name in KINDS:
        print(f"* *{name}*: {MEANING[name]}")
    print(f"\nexpected − real fscore by number of objects\n\n{objects_table(lines, options.bound)}")
    print(f"\nexpected and real fscore by shape\n\n{shapes_table(lines, options.bound)}")
    print(f"\nconfidence of matches\n\n{reliability_table(lines, 'matches', options.tenth)}")
    print(f"\nconfidence of tracks, given matches inside\n\n{reliability_table(lines, 'tracks', options.tenth)}")
    print(f"\nconfidence of tracks, all pairs of points\n\n{reliability_table(lines, 'tracks', options.tenth, 3)}")
    print(f"\nconfidence of points, the same as others\n\n{reliability_table(lines, 'points', options.tenth)}")
    print(f"\nconfidence of points, as most of the track\n\n{reliability_table(lines, 'points', options.tenth, 3)}")
    if options.figure:
        draw(lines, options.method, options.figure, options.bound)


if __name__ == "__main__":
    main()
