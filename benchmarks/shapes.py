"""How good, how quick and how honest the answers are on problems of the shapes users have.

    python -m benchmarks.shapes --methods input fast tracks accurate --output shapes.jsonl
    python -m benchmarks.shapes --families detected --methods clear quickmatch --universe true --output shapes.jsonl
    python -m benchmarks.shapes --output shapes.jsonl --also rivals.jsonl --table     # from the lines that are there

Instances are the seeds 0 to 4 of the shapes of `stiefelsync.datasets.shapes`, never picked (`--seeds` for others:
development uses seeds from 100 on). One JSON line is written per instance and method as soon as it is made; a second
run adds what is missing. The universe is estimated, or the true one (`--universe true`) for methods that ask for it.

Every run has a time limit. A method that passes it on a seed is not tried on the other seeds of that shape. The
method "input" is the raw matches; "rivals" stands for all methods that are not this package's own.

Tables show mean ± standard error over the seeds. Another compares a method (`--champion`) with the best of the others
that ran on the same seeds, one the presets with the best rival, and the last ones tell what confidence is worth.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import signal
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync import METHODS, score, synchronise
from stiefelsync.datasets.shapes import FAMILIES, SHAPES
from stiefelsync.errors import StiefelSyncError

SEEDS = range(5)
BINS = 10
PRESETS = ("input", "fast", "tracks", "accurate")  # everything else is a rival

Key = tuple[str, int, str, str]


@dataclass(frozen=True)
class Line:
    """One method on one instance.

    Attributes
    ----------
    expected
        The fscore that the method itself expects, where it says so.
    seconds
        Of processor time.
    found, seen_twice
        Universe points that the answer, and the truth, has in at least two objects.
    matches
        By tenths of `confidence`: number of input matches, sum of confidence, number of right ones.
    tracks
        By tenths of `track_confidence`: number of tracks, sum of confidence, sum of the shares of right matches inside,
        sum of the shares of right pairs of points.
    points
        By tenths of `point_confidence`: number of points in tracks, sum of confidence, sum of the shares of the track's
        other points that show the same universe point, number of points that show what most of the track shows.
    status
        "done", or what went wrong; the figures are 0 then.
    """

    shape: str
    seed: int
    universe: str
    method: str
    fscore: float = 0.0
    precision: float = 0.0
    recall: float = 0.0
    expected: float | None = None
    seconds: float = 0.0
    found: int = 0
    seen_twice: int = 0
    matches: tuple[tuple[float, ...], ...] | None = None
    tracks: tuple[tuple[float, ...], ...] | None = None
    points: tuple[tuple[float, ...], ...] | None = None
    status: str = "done"

    @property
    def key(self) -> Key:
        """What the line is about."""
        return self.shape, self.seed, self.universe, self.method


def measure(shape: str, seed: int, universe: str, method: str) -> Line:
    """Run one method on one instance."""
    problem, truth = SHAPES[shape](rng=seed)
    seen_twice = int((np.bincount(truth) > 1).sum())
    if method == "input":
        s = score(problem, truth)
        return Line(shape, seed, universe, method, s.fscore, s.precision, s.recall, seen_twice=seen_twice)
    size: Any = "auto" if universe == "auto" else int(truth.max()) + 1
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = synchronise(problem, size, method=method, rng=seed)
        except StiefelSyncError as error:
            return Line(shape, seed, universe, method, status=f"refused: {error}")
    seconds = time.process_time() - start
    s = score(result.labels if result.consistent else result.matchings(), truth)
    found = int((np.bincount(result.labels[result.labels >= 0]) > 1).sum()) if result.consistent else 0
    told = result.consistent and METHODS[method].ours
    return Line(
        shape,
        seed,
        universe,
        method,
        s.fscore,
        s.precision,
        s.recall,
        getattr(result.outcome.details, "expected_fscore", None),
        seconds,
        found,
        seen_twice,
        of_matches(result, truth) if told else None,
        of_tracks(result, truth) if told else None,
        of_points(result, truth) if told else None,
        str(result.status),
    )


def of_matches(result: Any, truth: NDArray[np.int64]) -> tuple[tuple[float, ...], ...]:
    """Return number, sum of confidence and number of right ones of the input matches, by tenths of confidence."""
    return tenths(result.confidence, result.input.agreeing(truth))


def of_tracks(result: Any, truth: NDArray[np.int64]) -> tuple[tuple[float, ...], ...]:
    """Return number of tracks, sum of confidence and sums of two shares that may be right, by tenths of confidence."""
    labels, problem = result.labels, result.input
    size = np.bincount(labels[labels >= 0])
    d = len(size)
    a, b = problem.endpoints.T
    inside = (labels[a] == labels[b]) & (labels[a] >= 0)
    right = problem.agreeing(truth)
    given, good = np.bincount(labels[a[inside]], minlength=d), np.bincount(labels[a[inside & right]], minlength=d)
    # Of n points n(n - 1)/2 pairs are asserted, and right are those of points with the same truth.
    known = np.flatnonzero(labels >= 0)
    both, count = np.unique(np.stack([labels[known], truth[known]]), axis=1, return_counts=True)
    true_pairs = np.bincount(both[0], count * (count - 1) / 2, d)
    held = np.flatnonzero(size > 1)
    confidence = result.track_confidence
    judged = np.isfinite(confidence) & (given[held] > 0)
    held, confidence = held[judged], confidence[judged]
    return tenths(confidence, good[held] / given[held], true_pairs[held] / (size[held] * (size[held] - 1) / 2))


def of_points(result: Any, truth: NDArray[np.int64]) -> tuple[tuple[float, ...], ...]:
    """Return number of points in tracks and sums of confidence and of two shares that may be right, by tenths."""
    known = np.flatnonzero(result.labels >= 0)
    label = result.labels[known]
    size = np.bincount(label)
    # Of each track and universe point it shows: by how many points.
    both, which, count = np.unique(np.stack([label, truth[known]]), axis=1, return_inverse=True, return_counts=True)
    most = np.zeros(len(size), dtype=np.int64)
    np.maximum.at(most, both[0], count)
    same = count[which.ravel()]
    confidence = result.point_confidence[known]
    judged = (size[label] > 1) & np.isfinite(confidence)
    others = (same[judged] - 1) / (size[label[judged]] - 1)
    return tenths(confidence[judged], others, same[judged] == most[label[judged]])


def tenths(confidence: NDArray[np.float64], *shares: NDArray[Any]) -> tuple[tuple[float, ...], ...]:
    """Return per tenth of confidence the number of entries and the sums of confidence and of every share.

    Examples
    --------
    >>> tenths(np.array([0.05, 1.0]), np.array([0, 1]))[::9]
    ((1, 0.05, 0.0), (1, 1.0, 1.0))
    """
    which = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    sums = [np.bincount(which, values, BINS) for values in (confidence, *shares)]
    numbers = np.bincount(which, minlength=BINS).tolist()
    rows = zip(numbers, *(np.round(values, 4).tolist() for values in sums), strict=True)
    return tuple(rows)


class Worker:
    """A process that measures, and is ended and replaced when a run takes too long.

    Attributes
    ----------
    limit
        Seconds of processor time that a run may take.
    memory
        Bytes that the process may use.
    """

    def __init__(self, limit: float, memory: int) -> None:
        self.limit, self.memory = limit, memory
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.limit, self.memory), daemon=True)
        self.process.start()
        theirs.close()

    def __call__(self, key: Key) -> Line:
        """Measure, or say why that was not possible."""
        self.connection.send(key)
        try:
            line: Line = self.connection.recv()
            return line
        except EOFError:
            self.process.join()
            late = self.process.exitcode == -signal.SIGPROF
            status = f"over {self.limit:g} s" if late else f"failed: exit code {self.process.exitcode}"
        self.close()
        self._start()
        return Line(*key, status=status)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection: Connection, limit: float, memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    while True:
        key = connection.recv()
        # The system ends a process whose timer runs out, wherever it is; the timer counts processor time.
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            line = measure(*key)
        except Exception as error:  # also what a method does wrong is a result
            line = Line(*key, status=f"failed: {type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send(line)


def read(path: Path) -> list[Line]:
    """Return the lines of a file, none when it does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [Line(**json.loads(text)) for text in file]


def todo(options: argparse.Namespace, done: set[Key]) -> Iterator[list[Key]]:
    """Yield the seeds of every method and shape that are not done."""
    methods = [m for name in options.methods for m in (rivals() if name == "rivals" else [name])]
    for method in dict.fromkeys(methods):
        if options.universe == "true" and (method == "input" or not METHODS[method].sized):
            continue
        for shape in options.shapes:
            keys = [(shape, seed, options.universe, method) for seed in options.seeds]
            if left := [key for key in keys if key not in done]:
                yield left


def rivals() -> list[str]:
    """Return the methods that are not this package's own."""
    return [name for name, method in METHODS.items() if not method.ours]


def run(options: argparse.Namespace) -> None:
    """Make the missing lines and append each as soon as it is there."""
    options.output.parent.mkdir(parents=True, exist_ok=True)
    free: Queue[Worker] = Queue()
    workers = [Worker(options.limit, round(options.memory * 2**30)) for _ in range(options.workers)]
    for worker in workers:
        free.put(worker)
    lines = read(options.output)
    given_up = {(line.shape, line.universe, line.method) for line in lines if line.status.startswith("over")}

    def seeds(keys: list[Key], write: Callable[[Line], None]) -> None:
        worker = free.get()
        for key in keys:
            if (key[0], key[2], key[3]) in given_up:
                break
            line = worker(key)
            write(line)
            if line.status.startswith("over"):
                given_up.add((line.shape, line.universe, line.method))
        free.put(worker)

    with options.output.open("a", encoding="utf-8") as file:

        def write(line: Line) -> None:
            fields = {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(line).items()}
            file.write(json.dumps(fields) + "\n")
            file.flush()
            print(f"{line.shape:22} {line.seed:4} {line.universe:5} {line.method:18} {line.fscore:.3f}", end=" ")
            print(f"{line.seconds:7.2f} s {line.status[:60]}", flush=True)

        with ThreadPoolExecutor(options.workers) as pool:
            jobs = [pool.submit(seeds, keys, write) for keys in todo(options, {line.key for line in lines})]
            for job in as_completed(jobs):
                job.result()
    for worker in workers:
        worker.close()


Cells = dict[tuple[str, str], dict[int, Line]]


def cells(lines: Iterable[Line]) -> Cells:
    """Return the lines that hold an answer, by shape and by method, by seed; methods given the truth say so."""
    cell: Cells = defaultdict(dict)
    for line in lines:
        if not line.status.startswith(("over", "refused", "failed")):
            name = line.method + (", d" if line.universe == "true" else "")
            cell[line.shape, name][line.seed] = line
    return cell


QUANTITIES: dict[str, Callable[[Line], float | None]] = {
    "fscore": lambda line: line.fscore,
    "precision": lambda line: line.precision,
    "recall": lambda line: line.recall,
    "expected fscore": lambda line: line.expected,
    "expected − real fscore": lambda line: None if line.expected is None else line.expected - line.fscore,
    "seconds": lambda line: None if line.method == "input" else line.seconds,
    "universe found / seen twice": lambda line: line.found / line.seen_twice if line.found else None,
}


def table(cell: Cells, value: Callable[[Line], float | None]) -> str:
    """Return mean ± standard error of a quantity per shape and method, as Markdown."""
    methods = list(dict.fromkeys(name for _, name in cell))
    rows = []
    for shape in SHAPES:
        texts = []
        for name in methods:
            found = [v for line in cell.get((shape, name), {}).values() if (v := value(line)) is not None]
            texts.append(mean_and_error(found))
        if any(text != "–" for text in texts):
            rows.append(f"| {shape} | " + " | ".join(texts) + " |")
    return "\n".join(["| shape | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|", *rows])


def mean_and_error(values: list[float]) -> str:
    """Return mean ± standard error as text.

    Examples
    --------
    >>> mean_and_error([0.5, 0.7]), mean_and_error([2.0]), mean_and_error([])
    ('0.600 ± 0.100', '2.000', '–')
    """
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.3f}"


def against(cell: Cells, champion: str) -> str:
    """Return how far a method is from the best of the others on every shape, the worst first, as Markdown.

    The best is the method with the highest mean over the same seeds; differences are taken seed by seed.
    """
    rows = []
    for shape in SHAPES:
        own = cell.get((shape, champion), {})
        others: list[tuple[float, str, list[float]]] = []
        for (of, name), lines in cell.items():
            if of == shape and name != champion and own and own.keys() <= lines.keys():
                gaps = [own[seed].fscore - lines[seed].fscore for seed in own]
                others.append((float(np.mean(gaps)), name, gaps))
        if others:
            mean, name, gaps = min(others)
            f = np.mean([line.fscore for line in own.values()])
            rows.append((mean, f"| {shape} | {f:.3f} | {name} | {mean_and_error(gaps)} | {min(gaps):+.3f} |"))
    head = [f"| shape | {champion} | best other | difference | worst seed |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(text for _, text in sorted(rows))])


def bars(cell: Cells) -> str:
    """Return the means of the input, of the presets and of the best rival, not told and told the universe, as Markdown.

    A rival counts where it has an answer to every seed that the input was measured on; * marks rivals whose answers
    are not cycle-consistent.
    """
    own = list(dict.fromkeys(name for _, name in cell if name.partition(",")[0] in PRESETS))
    rows = ["| shape | " + " | ".join([*own, "best rival", "best rival, d"]) + " |", "|---" * (len(own) + 3) + "|"]
    for shape in SHAPES:
        seeds = cell.get((shape, "input"), {}).keys()
        whole = {name: lines for (of, name), lines in cell.items() if of == shape and seeds and seeds <= lines.keys()}
        f = {name: float(np.mean([lines[seed].fscore for seed in seeds])) for name, lines in whole.items()}
        texts = [f"{f[name]:.3f}" if name in f else "–" for name in own]
        for told in (False, True):
            others = [(f[name], name) for name in f if name not in own and name.endswith(", d") == told]
            if others:
                best, name = max(others)
                method = name.removesuffix(", d")
                texts.append(f"{best:.3f} {method}" + ("" if METHODS[method].consistent else "\\*"))
            else:
                texts.append("–")
        if f:
            rows.append(f"| {shape} | " + " | ".join(texts) + " |")
    return "\n".join(rows)


def calibration(lines: Iterable[Line], what: str) -> str:
    """Return by tenths of confidence how much was promised and how much was right, as Markdown.

    Parameters
    ----------
    what : {"matches", "tracks", "points"}
    """
    total: dict[str, NDArray[np.float64]] = {}
    for line in lines:
        rows = getattr(line, what)
        if rows is not None:
            total[line.method] = total.get(line.method, 0.0) + np.array(rows, dtype=np.float64)
    more = {"matches": "", "tracks": " right pairs |", "points": " with most |"}[what]
    texts = [f"| method | {what} | promised | right |" + more, "|---" * (5 if more else 4) + "|"]
    for method, sums in total.items():
        for row in sums[sums[:, 0] > 0]:
            shares = " | ".join(f"{share:.3f}" for share in row[1:] / row[0])
            texts.append(f"| {method} | {row[0]:.0f} | {shares} |")
    return "\n".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["input", "fast", "tracks", "accurate"])
    parser.add_argument("--families", nargs="+", default=[], choices=list(FAMILIES))
    parser.add_argument("--shapes", nargs="+", default=[], choices=list(SHAPES), metavar="SHAPE", help="all by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--universe", default="auto", choices=["auto", "true"])
    parser.add_argument("--limit", type=float, default=60, help="seconds of processor time of a run")
    parser.add_argument("--memory", type=float, default=8, help="GiB that a run may use")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
    parser.add_argument("--output", type=Path, default=Path("shapes.jsonl"))
    parser.add_argument("--also", nargs="+", type=Path, default=[], help="files of other lines for the tables")
    parser.add_argument("--champion", default="accurate", help="the method that is compared with the best")
    parser.add_argument("--again", nargs="*", default=[], help="methods whose lines are forgotten and made anew")
    parser.add_argument("--summary", action="store_true", help="print one table: input, presets, best rival")
    parser.add_argument("--table", action="store_true", help="only print the tables of the lines that are there")
    options = parser.parse_args()
    options.shapes += [name for family in options.families for name in FAMILIES[family]]
    options.shapes = options.shapes or list(SHAPES)
    if options.again and options.output.exists():
        texts = options.output.read_text(encoding="utf-8").splitlines(keepends=True)
        options.output.write_text("".join(t for t in texts if json.loads(t)["method"] not in options.again), "utf-8")
    if not options.table:
        run(options)
    lines = [line for path in [*options.also, options.output] for line in read(path) if line.shape in options.shapes]
    cell = cells(lines)
    if options.summary:
        print(f"\ninput, presets and the best rival, fscore\n\n{bars(cell)}")
        return
    for title, value in QUANTITIES.items():
        print(f"\n{title}\n\n{table(cell, value)}")
    print(f"\n{options.champion} against the best other\n\n{against(cell, options.champion)}")
    print(f"\ninput, presets and the best rival, fscore\n\n{bars(cell)}")
    for what in ("matches", "tracks", "points"):
        print(f"\nconfidence of {what}\n\n{calibration(lines, what)}")


if __name__ == "__main__":
    main()
