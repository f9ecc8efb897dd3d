"""Units over recordings: ours against UnitMatch's three rules and others, by simulated truth.

    python -m benchmarks.units                       # the table of docs/evidence/sessions.md, seeds 3000 to 3004
    python -m benchmarks.units --seeds 7 8 --json lines.jsonl

Six recordings of 80 units out of 110 neurons (`stiefelsync.datasets.units`), three difficulties. Every rival has the
threshold, of `THRESHOLDS`, that is best by the truth, which nobody has; UnitMatch's own is .5, which is told, too. Ours
is what `stiefelsync sync` does, with its own threshold. Development used seeds below 1000. The simulated probabilities
follow from features with normal noise, for which averaging log-odds of the two directions is right; of real ones nobody
knows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.day_rivals import UNITS, fscores, groups_of_unitmatch
from benchmarks.sessions import THRESHOLDS, table
from stiefelsync import datasets
from stiefelsync.datasets.spikes import UNIT_DIFFICULTIES
from stiefelsync.following import follow_units
from stiefelsync.io.cells import units_of

RECORDINGS, COUNT = 6, 80
RULES = ("conservative", "intermediate", "liberal")
OWN = 0.5  # UnitMatch's threshold


def measure(difficulty: str, seed: int) -> list[dict[str, Any]]:
    """Return one line per method and threshold on one drawn matrix."""
    p, recording, truth = datasets.units(RECORDINGS, COUNT, difficulty=difficulty, rng=seed)
    sizes = np.full(RECORDINGS, COUNT)
    lines = []

    def told(method: str, threshold: float | None, labels: Any, seconds: float) -> None:
        where = {"difficulty": difficulty, "seed": seed, "method": method, "threshold": threshold}
        lines.append(where | fscores(labels, truth, sizes) | {"seconds": seconds})

    began = time.perf_counter()
    found = follow_units(units_of(p, recording)).parts[0]
    told("ours", None, found.labels, time.perf_counter() - began)
    for rule in RULES:
        told(f"{rule}, {OWN:g}", OWN, groups_of_unitmatch(p, recording, OWN, rule), np.nan)
    for threshold in THRESHOLDS:
        for rule in RULES:
            told(f"{rule}, its best", threshold, groups_of_unitmatch(p, recording, threshold, rule), np.nan)
        for name, rival in UNITS.items():
            told(f"{name}, its best", threshold, rival(found.candidates, threshold), np.nan)
    return lines


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(3000, 3005)))
    parser.add_argument("--json", type=Path, help="File for one JSON line per matrix, method and threshold.")
    given = parser.parse_args()
    lines = [line for difficulty in UNIT_DIFFICULTIES for seed in given.seeds for line in measure(difficulty, seed)]
    if given.json is not None:
        given.json.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    print("F1 of all pairs of units of different recordings", table(lines, "F1"), sep="\n\n")


if __name__ == "__main__":
    main()
