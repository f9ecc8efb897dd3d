"""How well the confidence of places keeps what it promises, by tenths, and how its coefficients are fitted.

    python -m benchmarks.place_confidence            # the tables of docs/evidence/sessions.md, seeds 3000 to 3004
    python -m benchmarks.place_confidence --fit      # the coefficients in stiefelsync.registration.confidence

Fitted on simulated days and recordings of seeds 300 to 311 and 400 to 410, of three difficulties, several lengths and
two sizes, by logistic regression with a small ridge; every problem counts the same. First it is fitted on the answers
that are weighed, then twice with what the weighing makes of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from stiefelsync import datasets
from stiefelsync.datasets.imaging import DIFFICULTIES
from stiefelsync.datasets.spikes import UNIT_DIFFICULTIES
from stiefelsync.following import follow_sessions, follow_units
from stiefelsync.io.cells import units_of
from stiefelsync.registration import Candidates, confidences, exchanged, greedy, weighed
from stiefelsync.registration.confidence import LOG_ODDS, Kind, evidence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Drawn = tuple[str, Candidates, Ints, list[Ints]]
Problem = tuple[int, int, str, int]

FIT_SEEDS = range(300, 312)
FIT_CELLS: list[Problem] = [
    (days, count, difficulty, FIT_SEEDS[(5 * number + number % 2) % len(FIT_SEEDS)])
    for number, (days, count, difficulty, _) in enumerate(
        product((3, 4, 5, 6, 8, 12, 16), (150, 280), DIFFICULTIES, range(2))
    )
]
FIT_CELLS += product((3, 5, 8, 12), (280,), DIFFICULTIES, range(400, 403))
FIT_CELLS += product((12,), (280,), ("default", "hard"), range(403, 411))
FIT_UNITS: list[Problem] = list(product((3, 4, 6, 10), (40, 80), UNIT_DIFFICULTIES, FIT_SEEDS[:6]))
ROUNDS = 2  # of fitting what is weighed by what was fitted
RIDGE = 1e-3
FEWEST = 30  # places of a tenth that are told of


def right_places(labels: Ints, truth: Ints) -> NDArray[np.bool_]:
    """Return which places are the same cell as most of their track, at least two places of it."""
    right = np.zeros(len(labels), dtype=bool)
    inside = np.flatnonzero((labels >= 0) & (truth >= 0))
    held = np.bincount(labels[labels >= 0], minlength=1)
    span = int(truth.max()) + 1
    _, of, count = np.unique(labels[inside] * span + truth[inside], return_inverse=True, return_counts=True)
    right[inside] = 2 * count[of] > np.maximum(held[labels[inside]], 2)
    return right


def cells(problems: Iterable[Problem]) -> Iterator[Drawn]:
    """Yield difficulty, candidates, truth, and the two answers that are weighed."""
    for days, count, difficulty, seed in problems:
        side = round(512 * (count / 280) ** 0.5)
        drawn, truth = datasets.sessions(days, count, difficulty=difficulty, shape=(side, side), rng=seed)
        found = follow_sessions([drawn], method="tracks").parts[0]
        yield difficulty, found.candidates, truth, [found.labels, greedy(found.candidates)]


def units(problems: Iterable[Problem]) -> Iterator[Drawn]:
    """Yield the same of units."""
    for recordings, count, difficulty, seed in problems:
        p, recording, truth = datasets.units(recordings, count, difficulty=difficulty, rng=seed)
        found = follow_units(units_of(p, recording), method="tracks").parts[0]
        yield difficulty, found.candidates, truth, [found.labels, greedy(found.candidates)]


def fitted(drawn: list[Drawn]) -> dict[str, float]:
    """Return coefficients, by logistic regression."""
    names = list(evidence(drawn[0][1], drawn[0][3][0]).terms)
    rows, right, weight = [], [], []
    for _, candidates, truth, labellings in drawn:
        for labels in labellings:
            placed, terms = evidence(candidates, labels)
            rows.append(np.stack([terms[name][placed] for name in names], axis=1))
            right.append(right_places(labels, truth)[placed])
            weight.append(np.full(int(placed.sum()), 1 / max(int(placed.sum()), 1)))
    X, y, w = np.concatenate(rows), np.concatenate(right).astype(float), np.concatenate(weight)
    mean, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-9)
    mean[0], spread[0] = 0, 1
    Z = (X - mean) / spread

    def loss(b: Floats) -> tuple[float, Floats]:
        value = (w * (np.logaddexp(0, Z @ b) - y * (Z @ b))).sum() / w.sum() + RIDGE * (b[1:] ** 2).sum()
        slope = Z.T @ (w * (special.expit(Z @ b) - y)) / w.sum()
        return value, slope + 2 * RIDGE * np.concatenate([[0], b[1:]])

    found = optimize.minimize(loss, np.zeros(X.shape[1]), jac=True, method="BFGS").x
    coefficients = found / spread
    coefficients[0] -= (found[1:] * mean[1:] / spread[1:]).sum()
    return {name: round(float(value), 3) for name, value in zip(names, coefficients, strict=True)}


def _both(candidates: Candidates, two: list[Ints], kind: Kind) -> Ints:
    """Return what comes of the two answers."""
    return exchanged(candidates, weighed(candidates, two, kind=kind))


def fit() -> None:
    """Fit and print all coefficients."""
    both: dict[Kind, list[Drawn]] = {"cells": list(cells(FIT_CELLS)), "units": list(units(FIT_UNITS))}
    for kind, drawn in both.items():
        LOG_ODDS[kind] = fitted(drawn)
        for _ in range(ROUNDS):
            LOG_ODDS[kind] = fitted(
                [
                    (d, found, truth, [*two, exchanged(found, weighed(found, two, kind=kind))])
                    for d, found, truth, two in drawn
                ]
            )
        print(kind, *(f"  {name!r}: {value}," for name, value in LOG_ODDS[kind].items()), sep="\n")


def by_tenths(promised: Floats, right: NDArray[np.bool_]) -> list[str]:
    """Return for every tenth "promised / real (places)"; a dash where there are hardly any places."""
    tenth = np.minimum((promised * 10).astype(int), 9)
    told = []
    for t in range(10):
        inside = tenth == t
        n = int(inside.sum())
        told.append(f"{promised[inside].mean():.2f} / {right[inside].mean():.2f} ({n:,})" if n >= FEWEST else "–")
    return told


def table(drawn: Iterable[Drawn], kind: Kind) -> str:
    """Return what was promised and what is real, by tenths and difficulty, as a table of Markdown."""
    tenths = [f".{t}–{f'.{t + 1}' if t < 9 else '1'}" for t in range(10)]
    rows = ["| | " + " | ".join(tenths) + " |", "|---" * 11 + "|"]
    sets = {}
    for difficulty, candidates, truth, answers in drawn:
        labels = _both(candidates, answers, kind)
        promised = confidences(candidates, labels, kind=kind).places
        known = np.isfinite(promised)
        pair = promised[known], right_places(labels, truth)[known]
        for name in (difficulty, "all"):
            sets.setdefault(name, []).append(pair)
    for name in [*(n for n in sets if n != "all"), "all"]:
        promised, right = (np.concatenate(part) for part in zip(*sets[name], strict=True))
        rows.append(f"| {name} | " + " | ".join(by_tenths(promised, right)) + " |")
    return "\n".join(rows)


def main() -> None:
    """Fit, or measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(3000, 3005)))
    parser.add_argument("--fit", action="store_true", help="Fit the coefficients instead.")
    given = parser.parse_args()
    if given.fit:
        fit()
        return
    for days in (12, 5):
        print(f"cells, {days} days of 280: promised / real (places)\n")
        print(table(cells(product([days], [280], DIFFICULTIES, given.seeds)), "cells"), end="\n\n")
    print("units, 6 recordings of 80\n")
    print(table(units(product([6], [80], UNIT_DIFFICULTIES, given.seeds)), "units"))


if __name__ == "__main__":
    main()
