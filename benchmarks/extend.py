"""Problems that grow: ``python -m benchmarks.extend`` (``--quick`` leaves out adding objects one by one).

*One more*: a solved scene of 999 objects gets the thousandth; processor seconds of `extend` against solving anew, best
of three, and both fscores. *One by one*: from 500 objects to 1,000, with the average cost of a step as a share of
solving all 1,000 anew, how often the whole was, and the largest loss of fscore after every fifty steps. *House* and
*ring*: one more object for "accurate".
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from stiefelsync import Matchings, datasets, score, synchronise
from stiefelsync.datasets import shapes
from stiefelsync.sync.extend import ExtendDetails

WRONG = (0.1, 0.3, 0.5)
MOST_SHARE, MOST_LOSS, MOST_LOSS_ONE_BY_ONE = 0.05, 0.002, 0.005


def cost(run, times: int = 3):
    """Return the least processor seconds of several runs, and the last answer."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        answer = run()
        seconds.append(time.process_time() - start)
    return min(seconds), answer


def row(name: str, problem: Matchings, truth: np.ndarray, **options) -> bool:
    """Print what one more object costs, and what it does to the fscore."""
    before = synchronise(problem[: problem.n_objects - 1], **options)
    anew, whole = cost(lambda: synchronise(problem.with_weights(problem.weights), **options))
    more, grown = cost(lambda: before.extend(problem.with_weights(problem.weights)))
    scores = [score(answer.labels, truth).fscore for answer in (whole, grown)]
    print(f"| {name} | {anew:.2f} | {more:.3f} | {more / anew:.1%} | {scores[0]:.4f} | {scores[1]:.4f} |", flush=True)
    return more <= MOST_SHARE * anew and scores[1] >= scores[0] - MOST_LOSS


def one_by_one(wrong: float, shuffle: bool, seed: int) -> bool:
    """Print what adding 500 objects to 500 costs on average, and how it ends."""
    problem, truth = datasets.scene(20_000, 1_000, 200, 400, wrong=wrong, missing=0.3, rng=seed)
    if shuffle:
        order = np.random.default_rng(0).permutation(1_000)
        truth = truth.reshape(1_000, 200)[order].ravel()
        problem = problem[order]
    answer, seconds, whole_again, worst = synchronise(problem[:500], method="tracks"), 0.0, 0, 0.0
    for n in range(501, 1_001):
        larger = problem[:n]
        start = time.process_time()
        answer = answer.extend(larger)
        seconds += time.process_time() - start
        whole_again += not isinstance(answer.outcome.details, ExtendDetails)
        if n % 50 == 0:
            anew = score(synchronise(larger, method="tracks").labels, truth[: larger.n_points]).fscore
            worst = max(worst, anew - score(answer.labels, truth[: larger.n_points]).fscore)
    anew, whole = cost(lambda: synchronise(problem.with_weights(None), method="tracks"))
    scores = [score(result.labels, truth).fscore for result in (whole, answer)]
    order_of = "at random" if shuffle else "in order"
    print(
        f"| {wrong:.0%} | {order_of} | {seconds / 500:.3f} | {seconds / 500 / anew:.1%} | {whole_again}"
        f" | {scores[0]:.4f} | {scores[1]:.4f} | {worst:.4f} |",
        flush=True,
    )
    return scores[1] >= scores[0] - MOST_LOSS_ONE_BY_ONE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one-by-one", type=float, help="share of wrong matches; nothing but these rows")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    header = (
        "\n| wrong | 500 objects added | s each | share | whole again | fscore anew | one by one | worst loss |"
        "\n|---|---|---|---|---|---|---|---|"
    )
    if options.one_by_one is not None:
        print(header)
        return 0 if all(one_by_one(options.one_by_one, shuffle, options.seed) for shuffle in (False, True)) else 1
    print(
        "| one more object | anew, s | extend, s | share | fscore anew | fscore extended |\n|---|---|---|---|---|---|"
    )
    met = []
    for wrong in WRONG:
        problem, truth = datasets.scene(100_000, 1_000, 1_000, 2_000, wrong=wrong, missing=0.3, rng=1)
        met.append(row(f"scene, 1,000 objects, {wrong:.0%} wrong", problem, truth, method="tracks"))
    ring, truth = shapes.ring(rng=1)
    met.append(row("ring, 60 objects, accurate", ring, truth, universe=25))
    house, truth = datasets.house(111)
    met.append(row("house, 111 objects, accurate", house, truth, universe=30))
    if not options.quick:
        print(header)
        met += [one_by_one(wrong, shuffle, options.seed) for shuffle in (False, True) for wrong in WRONG]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
