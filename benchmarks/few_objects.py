"""Why few objects are hard: what the likelihood thinks of the truth, and what an oracle's start would reach.

    python -m benchmarks.few_objects [--settings "row 3 25 .8 .3"]

For every instance: fscore of the input, of `accurate`, and of the truth after refinement by the same likelihood (an
oracle's start); and the log-likelihood of the answer and of the refined truth minus that of the truth. Where the
answer is likelier than the truth, no search can help: the data themselves point elsewhere.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.accuracy import SEEDS, instance
from stiefelsync import score, synchronise
from stiefelsync.sync.likelihood.gauss_seidel import refine
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood

SETTINGS = [
    "row 3 25 .8 .3", "row 4 25 .7 .4", "row 5 25 .6 .5", "row 5 30 .9 .3", "row 10 25 .6 .5", "mix 10 25 .6 .4",
    "row 30 25 .6 .9",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    settings = parser.parse_args().settings
    print("| setting | seed | input | accurate | expected | oracle's start | answer − truth | oracle − truth |")
    print("|---|---|---|---|---|---|---|---|")
    for setting in settings:
        rows = []
        for seed in SEEDS:
            problem, truth, d = instance(setting, seed)
            table = MatchTable.of(problem, d)
            result = synchronise(problem, d, rng=seed)
            oracle = refine(table, truth)[0]
            base = log_likelihood(table, truth)
            rows.append(
                [
                    score(problem, truth).fscore,
                    score(result.labels, truth).fscore,
                    np.nan if (expected := result.outcome.details.expected_fscore) is None else expected,
                    score(oracle, truth).fscore,
                    result.outcome.details.log_likelihood - base,
                    log_likelihood(table, oracle) - base,
                ]
            )
            print(_row(setting, str(seed), rows[-1]), flush=True)
        print(_row(f"**{setting}**", "mean", np.mean(rows, axis=0).tolist()), flush=True)


def _row(setting: str, seed: str, values: list[float]) -> str:
    cells = [f"{v:.3f}" if np.isfinite(v) else "–" for v in values[:4]] + [f"{v:+.1f}" for v in values[4:]]
    return f"| {setting} | {seed} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
