"""Would the tests notice? Change the numerical core in one small place at a time and run the tests of its room.

``python -m benchmarks.mutants`` draws a seeded sample of mutants from every module, runs for each the tests of its room
that execute the changed statement, the quickest first, until one fails or the budget is spent, and prints the share
that was noticed. Every result is written at once: started again, it goes on where it was interrupted; a mutant is run
anew only if the source of its module has changed, or with ``--again`` if it survived. The working tree is never
touched: tests run on a copy.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import importlib.util
import itertools
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import coverage
import hypothesis  # noqa: F401  this and what follows before forking, so that it is imported once
import pytest
import scipy.optimize
import scipy.sparse.csgraph
import scipy.spatial
import scipy.special  # noqa: F401

from benchmarks.mutations import PACKAGE, ROOT, Mutant, mutants_of, mutated

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.csv")
JUDGED = ("module", "text", "before", "after")  # what tells a mutant judged equivalent from others
SEED = 2021
MEMORY = 8 << 30  # bytes that the tests of one mutant may ask for
OPTIONS = (
    "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not data", "-k", "not memory and not scene",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",  # of hypothesis, imported before
)  # fmt: skip

# The rooms that are mutated, and the tests that should notice; the examples of the room come with them.
ROOMS = {
    "matching/": "matching",
    "positions/": "positions",
    "stiefel/": "stiefel",
    "sync/likelihood/": "sync/likelihood sync/test_extend.py",
    "sync/tracks/": "sync/tracks sync/test_extend.py io/test_io_correspondences.py",
}


def modules() -> list[str]:
    """Return the modules of the rooms."""
    every = [path for room in ROOMS for path in sorted((ROOT / PACKAGE / room).rglob("*.py"))]
    return [path.relative_to(ROOT / PACKAGE).as_posix() for path in every if path.name != "__init__.py"]


def run(tests: Sequence[str], folder: Path, limit: float, plugin: object = None) -> tuple[str, float]:
    """Run tests in a forked process with so many processor seconds; return how they ended and the seconds used.

    Forked, because then NumPy, SciPy and pytest are imported once for all mutants.
    """
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if not child:
        sink = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.chdir(folder)
        sys.path[:0] = [str(folder / "src"), str(folder)]
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))
        code = 1
        try:
            code = int(pytest.main([*OPTIONS, *tests], plugins=[plugin] if plugin else []))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)  # without the cleaning up that is the parent's
    _, status = os.waitpid(child, 0)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    if os.WIFSIGNALED(status):
        return "timed out", seconds
    return {0: "survived"}.get(os.waitstatus_to_exitcode(status), "caught"), seconds


@dataclass
class Map:
    """Which tests of a room execute which lines: a test that never executes a line cannot notice a change of it.

    Attributes
    ----------
    seconds
        Processor seconds of every test, by its name.
    executed
        The names of tests by module and line: of whole files for what they do when they are collected and set up, and
        the empty name for what happens when modules are imported, which concerns every test.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    executed: dict[str, dict[int, set[str]]] = field(default_factory=dict)

    def tests(self, mutant: Mutant, budget: float) -> dict[str, float]:
        """Return the tests that execute the statement of a mutant, quickest first, up to so many seconds in all."""
        lines = range(mutant.lines[0], mutant.lines[1] + 1)
        names = set().union(*(self.executed[mutant.module].get(line, set()) for line in lines))
        chosen = [
            test for test in self.seconds if "" in names or test in names or test.partition("::")[0] in names
        ]  # fmt: skip
        chosen.sort(key=self.seconds.__getitem__)
        spent = itertools.accumulate(self.seconds[test] for test in chosen)
        enough = max(sum(so_far <= budget for so_far in spent), 1)
        return {test: self.seconds[test] for test in chosen[:enough]}


class Watch:
    """A plugin of pytest that fills a `Map` and writes it to a file."""

    def __init__(self, room: str, folder: Path) -> None:
        self.map, self.room, self.folder = Map(), room, folder
        self.coverage = coverage.Coverage(data_file=None, include=[f"{folder / PACKAGE / room}/*"], config_file=False)

    def pytest_sessionstart(self) -> None:
        """Import the room under the empty name."""
        self.coverage.start()
        for module in modules():
            if module.startswith(self.room):
                importlib.import_module(f"stiefelsync.{module.removesuffix('.py').replace('/', '.')}")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, object, object]:
        """Put what is executed while a file is collected down to the whole file."""
        self.coverage.switch_context(collector.nodeid.partition("::")[0])
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Take the time of a test; what setting up executes others may share."""
        self.coverage.switch_context(item.nodeid.partition("::")[0])
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.map.seconds[item.nodeid] = time.process_time() - start

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Put what a test executes down to the test."""
        self.coverage.switch_context(item.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the map."""
        self.coverage.stop()
        data = self.coverage.get_data()
        base = self.folder / PACKAGE
        executed = {
            Path(path).relative_to(base).as_posix(): data.contexts_by_lineno(path) for path in data.measured_files()
        }
        (self.folder / "map.json").write_text(json.dumps([self.map.seconds, executed]), encoding="utf-8")


class Chosen:
    """A plugin of pytest that runs some tests only, in a given order, each with five times its seconds and ten more."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the chosen tests, in their order."""
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in self.seconds if name in found]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Set the alarm, which ends the process."""
        signal.setitimer(signal.ITIMER_PROF, 5 * self.seconds[item.nodeid] + 10)


def watched(room: str, folder: Path, cache: Path) -> Map:
    """Run the tests of a room on the original and return which lines each executes, from `cache` if nothing changed."""
    tests = [*(f"tests/{path}" for path in ROOMS[room].split()), f"{PACKAGE}/{room}"]
    files = sorted(path for part in ("src", "tests") for path in (folder / part).rglob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    kept = cache / f"{room.replace('/', ' ').strip()} {digest[:10]}.json"
    if not kept.exists():
        outcome, _ = run(tests, folder, 3600, Watch(room, folder))
        if outcome != "survived":
            log = (folder / "log.txt").read_text(encoding="utf-8")
            raise SystemExit(f"{log}\nthe tests of {room} fail without any change: {' '.join(tests)}")
        shutil.copy(folder / "map.json", kept)
    seconds, executed = json.loads(kept.read_text(encoding="utf-8"))
    lines = {module: {int(line): set(names) for line, names in at.items()} for module, at in executed.items()}
    return Map(seconds, lines)


def main() -> None:
    """Draw, run, record, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, default=ROOT / "out" / "mutants.jsonl")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--share", type=float, default=0.05, help="share of every module's mutants that is drawn")
    parser.add_argument("--only", default="", help="run only mutants of modules whose path starts so")
    parser.add_argument("--again", action="store_true", help="run those that survived again")
    parser.add_argument("--budget", type=float, default=8.0, help="seconds of tests for one mutant, the quickest first")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long; go on another time")
    given = parser.parse_args()
    every = {module: mutants_of(module) for module in modules()}
    sample = [one for module, found in every.items() for one in _drawn(module, found, given.share, given.seed)]
    random.Random(given.seed).shuffle(sample)  # so that an interrupted run has seen a bit of everything
    given.record.parent.mkdir(parents=True, exist_ok=True)
    done = _read(given.record)
    if given.again:
        done = {key: row for key, row in done.items() if row["outcome"] != "survived" or _is_judged(row)}
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as name, given.record.open("a", encoding="utf-8") as file:
        folder = _copy(Path(name))
        maps: dict[str, Map] = {}
        for mutant in sample:
            if mutant.key in done or not mutant.module.startswith(given.only) or time.monotonic() > end:
                continue
            room = next(room for room in ROOMS if mutant.module.startswith(room))
            if room not in maps:
                maps[room] = watched(room, folder, given.record.parent)
            row = asdict(mutant) | _try(mutant, folder, maps[room].tests(mutant, given.budget))
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
            done[mutant.key] = row
            print(f"{row['outcome']:9} {mutant.module}:{mutant.line}  {mutant.before}  →  {mutant.after}", flush=True)
    rows = [done[mutant.key] for mutant in sample if mutant.key in done]
    _summarise(rows, f"{len(rows)} of {sum(map(len, every.values()))} mutants, seed {given.seed}")


def _drawn(module: str, found: list[Mutant], share: float, seed: int) -> list[Mutant]:
    """Return some mutants of a module, at least one; what is drawn does not depend on other modules."""
    chosen = random.Random(f"{seed} {module}").sample(
        range(len(found)), min(round(share * len(found)) or 1, len(found))
    )
    return [found[number] for number in sorted(chosen)]


def _copy(folder: Path) -> Path:
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _try(mutant: Mutant, folder: Path, tests: dict[str, float]) -> dict[str, object]:
    """Run some tests, given with the seconds that each needs, on one mutant."""
    if not tests:
        return {"outcome": "survived", "tests": 0, "seconds": 0.0}
    path = folder / PACKAGE / mutant.module
    original = path.read_text(encoding="utf-8")
    compiled = Path(importlib.util.cache_from_source(str(path)))
    try:
        compiled.unlink(missing_ok=True)  # of another mutant, perhaps as long and of the same second
        path.write_text(mutated(mutant), encoding="utf-8")
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        outcome, seconds = run([*files], folder, 5 * sum(tests.values()) + 60, Chosen(tests))
    finally:
        path.write_text(original, encoding="utf-8")
    return {"outcome": outcome, "tests": len(tests), "seconds": round(seconds, 2)}


def _read(record: Path) -> dict[str, dict[str, object]]:
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []
    return {f"{row['module']}:{row['number']}:{row['source']}": row for row in rows}


@cache
def _judged() -> set[tuple[object, ...]]:
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        return {tuple(row[name] for name in JUDGED) for row in csv.DictReader(file)}


def _is_judged(row: dict[str, object]) -> bool:
    """Return whether a mutant was judged equivalent."""
    return tuple(row[name] for name in JUDGED) in _judged()


def _summarise(rows: list[dict[str, object]], what: str) -> None:
    """Print the score over all, and by room; those judged equivalent count for nothing."""
    survivors = [row for row in rows if row["outcome"] == "survived"]
    equivalent = [row for row in survivors if _is_judged(row)]
    open_ones = [row for row in survivors if row not in equivalent]
    for row in open_ones:
        print(f"unnoticed  {row['module']}:{row['line']}  {row['before']}  →  {row['after']}")
    rooms = Counter(str(row["module"]).rpartition("/")[0] for row in rows)
    for room, n in sorted(rooms.items()):
        missed = sum(str(row["module"]).rpartition("/")[0] == room for row in open_ones)
        same = sum(str(row["module"]).rpartition("/")[0] == room for row in equivalent)
        print(f"{room:16} {n - same - missed:4} of {n - same:4} noticed, {same} equivalent")
    counted = len(rows) - len(equivalent)
    noticed = counted - len(open_ones)
    seconds = sum(float(str(row["seconds"])) for row in rows)
    print(
        f"{what}: {noticed} of {counted} noticed ({noticed / max(counted, 1):.1%}),"
        f" {len(equivalent)} judged equivalent; {seconds / 60:.0f} processor minutes"
    )


if __name__ == "__main__":
    os.environ["HYPOTHESIS_PROFILE"] = "brief"
    main()
