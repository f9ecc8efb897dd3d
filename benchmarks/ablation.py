"""What each part of `accurate` is worth: leave one out, on problems of several shapes.

    python -m benchmarks.ablation --output docs/results/ablation.csv
    python -m benchmarks.ablation --output docs/results/ablation.csv --table

Instances are seeds 0 and 1 of every shape. A part is left out by taking it from the recipe or by a rate that switches
it off; nothing else changes. One line is written per variant and instance as soon as it is made.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync import score, synchronise
from stiefelsync.datasets.shapes import SHAPES
from stiefelsync.errors import ConvergenceWarning
from stiefelsync.sync.likelihood import model, observations, search, state

SEEDS = (0, 1)
PROBLEMS = (
    "ring", "window", "rogue", "uneven objects", "video", "independent", "independent few", "photos", "groups",
    "window detected", "drive", "weighted", "worth", "row k=8", "detected k=10",
)  # fmt: skip
HEADER = ("variant", "shape", "seed", "fscore", "expected")


@contextmanager
def _set(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Change attributes of modules and classes for a while."""
    before = [(place, name, getattr(place, name)) for place, name, _ in changes]
    for place, name, value in changes:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def _recipes(**changes: Any) -> tuple[Any, str, Any]:
    return search, "RECIPES", {name: replace(recipe, **changes) for name, recipe in search.RECIPES.items()}


def _starts(left_out: str) -> tuple[Any, str, Any]:
    kept = {
        name: replace(recipe, starts=tuple(s for s in recipe.starts if s != left_out) or recipe.starts)
        for name, recipe in search.RECIPES.items()
    }
    return search, "RECIPES", kept


def _likeliest(samples: Any, most: int) -> tuple[Any, float]:
    """Return the last sample instead of the labels of largest expected fscore."""
    last = samples.label[-1].astype(np.int64)
    return last, samples.expected_fscore(last)


def _no_far(k: int, *args: Any) -> tuple[Any, Any]:
    none = np.empty(0, dtype=np.int64)
    return none, none


def _flat(seen: Any, counts: Any, before: Any) -> Any:
    """Return fitted rates, but that it does not matter who else near holds a label."""
    rates = _fit_rates(seen, counts, before)
    held = float(counts.held.sum() + 1) / float(counts.held.sum() + counts.absent.sum() + 2)
    ones = np.ones_like(rates.held)
    return replace(rates, held=ones * np.log(held), absent=ones * np.log1p(-held))


_fit_rates, _beta_fit = model.fit_rates, model.beta_fit
VARIANTS: dict[str, Callable[[], Any]] = {
    "all": lambda: _set(),
    "reliability of pairs": lambda: _set((model, "beta_fit", lambda h, t: (_beta_fit(h, t)[0], np.inf))),
    "rates of rows and columns": lambda: _set((model, "_MAX_THETA", 0.0)),
    "worth of weights": lambda: _set((state, "fit_slope", lambda ranks, agree: 0.0)),
    "prior: share of near objects": lambda: _set((state, "fit_rates", _flat)),
    "prior: objects far away": lambda: _set((observations, "_far", _no_far)),
    "start: spectral": lambda: _set(_starts("spectral")),
    "start: tracks": lambda: _set(_starts("tracks")),
    "start: alone": lambda: _set(_starts("alone")),
    "move: exchange": lambda: _set((search, "_exchanges", lambda seen: 0)),
    "move: climb": lambda: _set(_recipes(rounds=0), (state.State, "climb", lambda self: None)),
    "decision": lambda: _set((search, "decide", _likeliest)),
}
"""What is left out, and how."""


def _run(variant: str, shape: str, seed: int) -> tuple[float, float]:
    problem, truth = SHAPES[shape](rng=seed)
    with VARIANTS[variant](), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        answer = synchronise(problem, method="accurate", rng=seed)
    expected = answer.outcome.details.figures(problem).get("expected_fscore", float("nan"))
    return score(answer, truth).fscore, expected


def _table(lines: list[dict[str, str]]) -> None:
    """Print the mean change of fscore without each part, with its standard error, and where it matters most."""
    found: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for line in lines:
        found[line["variant"]][line["shape"], line["seed"]] = float(line["fscore"])
    whole = found["all"]
    print("| left out | mean change | where most |\n| --- | --- | --- |")
    for variant in VARIANTS:
        both = [key for key in found[variant] if key in whole]
        if variant == "all" or not both:
            continue
        change = np.array([found[variant][key] - whole[key] for key in both])
        by_shape = {s: np.mean([found[variant][k] - whole[k] for k in both if k[0] == s]) for s, _ in both}
        worst = min(by_shape, key=by_shape.__getitem__)
        error = change.std() / max(len(change), 1) ** 0.5
        print(f"| {variant} | {change.mean():+.3f} ± {error:.3f} | *{worst}* {by_shape[worst]:+.3f} |")
    print(f"\nWith everything: mean fscore {np.mean(list(whole.values())):.3f} over {len(whole)} problems.")


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="only print the table of the lines that are there")
    args = parser.parse_args()
    lines = list(csv.DictReader(args.output.open())) if args.output.exists() else []
    done = {(line["variant"], line["shape"], int(line["seed"])) for line in lines}
    if not args.output.exists():
        args.output.write_text(",".join(HEADER) + "\n")
    for shape in () if args.table else PROBLEMS:
        for seed in SEEDS:
            for variant in VARIANTS:
                if (variant, shape, seed) in done:
                    continue
                fscore, expected = _run(variant, shape, seed)
                values = (variant, shape, str(seed), f"{fscore:.4f}", f"{expected:.4f}")
                lines.append(dict(zip(HEADER, values, strict=True)))
                with args.output.open("a", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerow(values)
    _table(lines)


if __name__ == "__main__":
    main()
