"""How well the confidence of places keeps what it promises, by tenths, and how its coefficients are fitted.

    python -m benchmarks.place_confidence            # the tables of docs/evidence/sessions.md, seeds 1000 to 1004
    python -m benchmarks.place_confidence --fit      # the coefficients in stiefelsync.registration.confidence

Fitted on simulated days and recordings of seeds 300 to 311, of three difficulties, several lengths and two sizes, by
logistic regression with a small ridge; every problem counts the same. Cells are fitted twice: on the answers that are
weighed, and then with what the weighing makes of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from stiefelsync import datasets
from stiefelsync.datasets.imaging import DIFFICULTIES
from stiefelsync.datasets.spikes import UNIT_DIFFICULTIES
from stiefelsync.following import follow_sessions, follow_units
from stiefelsync.io.cells import units_of
from stiefelsync.registration import Candidates, confidences, greedy, weighed
from stiefelsync.registration.confidence import LOG_ODDS, evidence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Drawn = tuple[str, Candidates, Ints, list[Ints]]

FIT_SEEDS = range(300, 312)
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


def cells(seeds: Any, lengths: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[Drawn]:
    """Yield difficulty, candidates, truth, and answers: that of a method, the greedy one, and what comes of both."""
    seeds = list(seeds)
    turn = 0
    for days in lengths:
        for count in sizes:
            for difficulty in DIFFICULTIES:
                for seed in seeds if len(seeds) < 10 else (seeds[turn % 12], seeds[(turn + 5) % 12]):
                    side = round(512 * (count / 280) ** 0.5)
                    drawn, truth = datasets.sessions(days, count, difficulty=difficulty, shape=(side, side), rng=seed)
                    found = follow_sessions([drawn], method="tracks").parts[0]
                    greedily = greedy(found.candidates)
                    both = weighed(found.candidates, [found.labels, greedily])
                    yield difficulty, found.candidates, truth, [found.labels, greedily, both]
                turn += 1


def units(seeds: Any, lengths: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[Drawn]:
    """Yield difficulty, candidates, truth and the answer."""
    for recordings in lengths:
        for count in sizes:
            for difficulty in UNIT_DIFFICULTIES:
                for seed in seeds:
                    p, recording, truth = datasets.units(recordings, count, difficulty=difficulty, rng=seed)
                    found = follow_units(units_of(p, recording)).parts[0]
                    yield difficulty, found.candidates, truth, [found.labels]


def fitted(drawn: list[Drawn], kind: Literal["cells", "units"], answers: slice) -> dict[str, float]:
    """Return coefficients, by logistic regression."""
    names = list(evidence(drawn[0][1], drawn[0][3][0]).terms)
    rows, right, weight = [], [], []
    for _, candidates, truth, labellings in drawn:
        for labels in labellings[answers]:
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


def fit() -> None:
    """Fit and print all coefficients."""
    for answers in (slice(0, 2), slice(0, 3)):
        drawn = list(cells(FIT_SEEDS, (4, 7, 12), (150, 280)))
        LOG_ODDS["cells"] = fitted(drawn, "cells", answers)
    LOG_ODDS["units"] = fitted(list(units(FIT_SEEDS, (4, 6, 10), (40, 80))), "units", slice(0, 1))
    for kind, coefficients in LOG_ODDS.items():
        print(kind, *(f"  {name!r}: {value}," for name, value in coefficients.items()), sep="\n")


def by_tenths(promised: Floats, right: NDArray[np.bool_]) -> list[str]:
    """Return for every tenth "promised / real (places)"; a dash where there are hardly any places."""
    tenth = np.minimum((promised * 10).astype(int), 9)
    told = []
    for t in range(10):
        inside = tenth == t
        n = int(inside.sum())
        told.append(f"{promised[inside].mean():.2f} / {right[inside].mean():.2f} ({n:,})" if n >= FEWEST else "–")
    return told


def table(drawn: list[Drawn], kind: Literal["cells", "units"]) -> str:
    """Return what was promised and what is real, by tenths and difficulty, as a table of Markdown."""
    tenths = [f".{t}–{f'.{t + 1}' if t < 9 else '1'}" for t in range(10)]
    rows = ["| | " + " | ".join(tenths) + " |", "|---" * 11 + "|"]
    sets = {}
    for difficulty, candidates, truth, labellings in drawn:
        labels = labellings[-1]
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
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1000, 1005)))
    parser.add_argument("--fit", action="store_true", help="Fit the coefficients instead.")
    given = parser.parse_args()
    if given.fit:
        fit()
        return
    print(
        "cells, 12 days of 280: promised / real (places)",
        table(list(cells(given.seeds, (12,), (280,))), "cells"),
        sep="\n\n",
    )
    print("\ncells, 5 days of 280", table(list(cells(given.seeds, (5,), (280,))), "cells"), sep="\n\n")
    print("\nunits, 6 recordings of 80", table(list(units(given.seeds, (6,), (80,))), "units"), sep="\n\n")


if __name__ == "__main__":
    main()
