"""``python -m fuzz --seconds 60``: every target in a child process; counts, and every case that went wrong."""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.targets import TARGETS

HANG = 10.0  # seconds for one case
MOST_MEGABYTES = 1024  # that a child may hold, with all libraries
START = 120.0  # seconds for a child to import everything, on a busy machine
CHILD = [sys.executable, "-m", "fuzz.child"]
FOUND = Path(__file__).parent / "found"


@dataclass
class Tally:
    """What became of the cases of one target."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    slowest: float = 0.0
    megabytes: int = 0

    @property
    def cases(self) -> int:
        """Cases in all."""
        return sum(self.outcomes.values())


def fuzz(name: str, seconds: float, first: int, keep: Path, most: int = 10**9) -> Tally:
    """Run one target for so long or so many cases, from `first` on; a child that dies is replaced by another."""
    tally, number = Tally(name), first
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        end: float | None = None
        while tally.cases < most and (end is None or time.monotonic() < end):
            with _child(name, Path(folder), number) as child:
                begun, started = None, time.monotonic()
                while tally.cases < most and (end is None or time.monotonic() < end):
                    limit, since = (START, started) if begun is None else (HANG, begun)
                    now = time.monotonic()
                    event = child.next(min(since + limit, since + limit if end is None else end) - now)
                    if event is None:
                        code = child.process.poll()
                        if code is None and time.monotonic() < since + limit:
                            continue  # only the time of this target is over
                        if begun is None and code is None:
                            raise SystemExit(f"{name}: the child did not start within {START:g} s")
                        if begun is None:
                            raise SystemExit(f"{name}: the child ended with {code} before it read anything")
                        what = f"hang of more than {HANG:g} s" if code is None else f"process ended with {code}"
                        _keep(tally, what, number, Path(folder), keep)
                        number += 1
                        break
                    if end is None:
                        end = time.monotonic() + seconds
                    if "outcome" not in event:
                        begun, number = time.monotonic(), event["number"]
                        continue
                    tally.slowest = max(tally.slowest, time.monotonic() - (begun or started))
                    begun, started, number = None, time.monotonic(), event["number"] + 1
                    outcome, megabytes = event["outcome"], event.get("megabytes", 0)
                    tally.megabytes = max(tally.megabytes, megabytes)
                    if megabytes > MOST_MEGABYTES:
                        _keep(tally, f"held {megabytes:,} MB", event["number"], Path(folder), keep)
                        break  # it never gives them back
                    if outcome in ("accepted", "refused"):
                        tally.outcomes[outcome] += 1
                    else:
                        _keep(tally, outcome, event["number"], Path(folder), keep)
    return tally


def _keep(tally: Tally, what: str, number: int, folder: Path, keep: Path) -> None:
    """Note a bad case and save its file; the number alone makes it again, too."""
    tally.outcomes["bad"] += 1
    tally.bad.append(f"case {number}: {what}")
    keep.mkdir(exist_ok=True)
    from fuzz.child import case

    target = TARGETS[tally.name]
    data = case(target, target.seeds(folder), number)
    (keep / f"{tally.name}-{number}{target.suffix}").write_bytes(data)


class _child:
    """A child process whose lines arrive in a queue."""

    def __init__(self, name: str, folder: Path, first: int) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [*CHILD, name, str(folder), str(first)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.lines: queue.Queue[str] = queue.Queue()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.process.wait()
        self.lines.put("")

    def next(self, timeout: float) -> dict | None:  # type: ignore[type-arg]
        """Return the next event; None when the process has ended or says nothing for so long."""
        try:
            line = self.lines.get(timeout=max(timeout, 0.01))
        except queue.Empty:
            return None
        return json.loads(line) if line else None

    def __enter__(self) -> _child:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.thread.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def main() -> int:
    """Run the targets one after another and print a table; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, shared by the targets")
    parser.add_argument("--most", type=int, default=12_000, help="cases of a target; its time left goes to the next")
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--engine", choices=["mutator", "atheris"], default="mutator")
    given = parser.parse_args()
    names = given.target or list(TARGETS)
    if given.engine == "atheris":
        from fuzz.atheris_engine import fuzz as run
    else:
        run = fuzz
    head = f"{'reader':9} {'cases':>7} {'accepted':>9} {'refused':>8} {'bad':>4} {'slowest':>9} {'memory':>8}"
    print(head, flush=True)
    bad: list[str] = []
    left = given.seconds
    for number, name in enumerate(names):
        begun = time.monotonic()
        tally = run(name, left / (len(names) - number), given.first, FOUND, given.most)
        left -= min(time.monotonic() - begun, left / (len(names) - number))
        counts = tally.outcomes
        line = f"{name:9} {tally.cases:7,} {counts['accepted']:9,} {counts['refused']:8,} {counts['bad']:4}"
        print(f"{line} {tally.slowest:7.2f} s {tally.megabytes:5,} MB", flush=True)
        bad += [f"{name}: {each}" for each in tally.bad]
    print(*bad, sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
