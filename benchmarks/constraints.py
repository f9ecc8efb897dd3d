"""What constraints cost, and what corrections are worth.

    python -m benchmarks.constraints            # both
    python -m benchmarks.constraints --only corrections

*Cost*: 10,000 random constraints, as many of either kind, on a scene of 200,000 points: how many the answer breaks,
and processor seconds against those without them, least of seven runs taken in turn. "random" are links between any
two points, nearly all of which contradict the matches; "true" are true links between points that are matched or
share a true label, and true cannot links between points that are matched. In the rows "extend" the answer to all
cameras but the last is extended by that.

*Corrections*: a person looks at the ten tracks that the referee calls the worst, and says of each which of its points
belong together. Mean fscore over the seeds 0 to 4 without and with that, and in how many of them it rose and fell.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stiefelsync import Constraints, Matchings, Synchronisation, datasets, judge, score, synchronise
from stiefelsync.datasets.shapes import SHAPES

Ints = NDArray[np.int64]
COUNT = 10_000
HARD = ("ring .5", "three", "row k=6", "independent few", "photos", "window detected", "drive", "reid")
CORRECTED = 10
RUNS = 7


def rows(problem: Matchings, ends: Ints) -> Ints:
    """Return pairs of global points as object, point, object, point."""
    owner = problem.point_objects[ends].astype(np.int64)
    return np.stack([owner, ends - problem.offsets[owner]], axis=2).reshape(-1, 4)


def drawn(problem: Matchings, candidates: Ints, barred: Ints, count: int) -> tuple[Constraints, Ints, Ints]:
    """Return constraints that do not contradict each other: the first possible must links, the first cannot links."""
    unit, owners = np.arange(problem.n_points), [{o} for o in problem.point_objects.tolist()]
    members = [[p] for p in range(problem.n_points)]
    must, cannot = list[tuple[int, int]](), list[tuple[int, int]]()
    for a, b in candidates.tolist():
        one, two = int(unit[a]), int(unit[b])
        if len(must) == count:
            break
        if owners[one].isdisjoint(owners[two]):
            unit[members[two]] = one
            owners[one] |= owners[two]
            members[one] += members[two]
            must.append((a, b))
    for a, b in barred.tolist():
        if len(cannot) == count:
            break
        if unit[a] != unit[b]:
            cannot.append((a, b))
    links = [np.array(x, dtype=np.int64).reshape(-1, 2) for x in (must, cannot)]
    return Constraints(rows(problem, links[0]), rows(problem, links[1])), links[0], links[1]


def kinds(problem: Matchings, truth: Ints, rng: np.random.Generator) -> dict[str, tuple[Constraints, Ints, Ints]]:
    """Return the two kinds of constraints of the cost table."""
    m, ends = problem.n_points, problem.endpoints.astype(np.int64)
    shuffled = ends[rng.permutation(len(ends))]
    right = truth[shuffled[:, 0]] == truth[shuffled[:, 1]]
    order = np.argsort(truth, kind="stable")
    beside = np.stack([order[:-1], order[1:]], axis=1)[truth[order[:-1]] == truth[order[1:]]]
    true = np.concatenate([shuffled[right][: COUNT // 4], beside[rng.permutation(len(beside))]])
    return {
        "random": drawn(
            problem, rng.integers(m, size=(4 * COUNT, 2)), rng.integers(m, size=(4 * COUNT, 2)), COUNT // 2
        ),
        "true": drawn(problem, true, shuffled[~right], COUNT // 2),
    }


def broken(labels: Ints, must: Ints, cannot: Ints) -> int:
    """Return how many constraints labels do not hold."""
    a, b = labels[must].T
    c, d = labels[cannot].T
    return int(np.count_nonzero((a != b) | (a < 0)) + np.count_nonzero((c == d) & (c >= 0)))


def seconds(*runs: Callable[[], Synchronisation]) -> tuple[list[float], list[Synchronisation]]:
    """Return the least processor seconds of each of several runs taken in turn, and their last answers."""
    least, answers = [np.inf] * len(runs), list[Synchronisation]()
    for _ in range(RUNS):
        answers = []
        for r, run in enumerate(runs):
            start = time.process_time()
            answers.append(run())
            least[r] = min(least[r], time.process_time() - start)
    return least, answers


def cost() -> None:
    """Print what constraints cost on a scene of 200,000 points."""
    problem, truth = datasets.scene(rng=0)
    print(f"{problem.n_points:,} points, {problem.n_matches:,} matches, {COUNT:,} constraints\n")
    print("| method | constraints | broken | seconds without | with | ratio | fscore without | with |")
    print("|---|---|---|---|---|---|---|---|")
    fewer = problem[: problem.n_objects - 1]
    place = np.append(np.arange(fewer.n_objects), -1)

    def fresh() -> Matchings:
        return problem.with_weights(None)  # which remembers nothing

    for kind, (known, must, cannot) in kinds(problem, truth, np.random.default_rng(0)).items():
        for method in ("tracks", "fast", "accurate"):
            times, answers = seconds(
                lambda method=method: synchronise(fresh(), method=method),  # type: ignore[misc]
                lambda method=method, known=known: synchronise(fresh(), method=method, constraints=known),  # type: ignore[misc]
            )
            tell(method, kind, times, answers, must, cannot, truth)
        free = synchronise(fewer, method="tracks")
        held = synchronise(fewer, method="tracks", constraints=known.carried(problem, fewer, place))
        for name, earlier in (("extend, told now", free), ("extend, told before", held)):
            times, answers = seconds(
                lambda free=free: free.extend(fresh()),  # type: ignore[misc]
                lambda earlier=earlier, known=known: earlier.extend(fresh(), constraints=known),  # type: ignore[misc]
            )
            tell(name, kind, times, answers, must, cannot, truth)


def tell(
    name: str, kind: str, times: list[float], answers: list[Synchronisation], must: Ints, cannot: Ints, truth: Ints
) -> None:
    """Print a row of the cost table."""
    without, held = answers
    f = [score(answer.labels, truth).fscore for answer in (without, held)]
    print(
        f"| {name} ({held.method}) | {kind} | {broken(held.labels, must, cannot)} of {len(must) + len(cannot):,} |"
        f" {times[0]:.2f} | {times[1]:.2f} | {times[1] / times[0]:.2f} | {f[0]:.4f} | {f[1]:.4f} |",
        flush=True,
    )


def corrected(problem: Matchings, truth: Ints, answer: Synchronisation) -> Constraints:
    """Return what a person who knows the truth says of the worst tracks."""
    known = Constraints()
    for track in judge(answer, problem, ours=answer).worst[:CORRECTED]:
        at = np.array(track.points)
        own = truth[problem.offsets[at[:, 0]] + at[:, 1]]
        known |= Constraints.split(*(at[own == label] for label in np.unique(own)))
    return known


def corrections(methods: list[str]) -> None:
    """Print what ten corrections are worth."""
    print(f"\n| shape | method | fscore | with {CORRECTED} corrections | seeds better | worse |")
    print("|---|---|---|---|---|---|")
    for shape in HARD:
        for method in methods:
            found = []
            for seed in range(5):
                problem, truth = SHAPES[shape](rng=seed)
                answer = synchronise(problem, method=method, rng=seed)
                known = corrected(problem, truth, answer)
                after = synchronise(problem, method=method, constraints=known, rng=seed)
                found.append([score(one.labels, truth).fscore for one in (answer, after)])
            before, after = np.mean(found, axis=0)
            gain = np.diff(found, axis=1).ravel()
            better, worse = int((gain > 0).sum()), int((gain < 0).sum())
            print(f"| {shape} | {method} | {before:.4f} | {after:.4f} | {better} | {worse} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["cost", "corrections"])
    parser.add_argument("--methods", nargs="+", default=["accurate", "fast", "tracks"], help="of the corrections")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options.only != "corrections":
            cost()
        if options.only != "cost":
            corrections(options.methods)


if __name__ == "__main__":
    main()
