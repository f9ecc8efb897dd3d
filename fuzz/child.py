"""The process that reads damaged files: limited in memory, watched by its parent, one line of output per event."""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import warnings
from pathlib import Path
from typing import IO, Any

from fuzz.mutate import damaged
from fuzz.targets import FORMATS, TARGETS, Target
from stiefelsync import io
from stiefelsync.errors import StiefelSyncError

__all__ = ["case", "main", "read"]

MEMORY = 2 * 2**30  # of addresses, of which libraries take some before anything is read


def case(target: Target, seeds: list[bytes], number: int) -> bytes:
    """Return case `number` of a target: sound for the first few, damaged after that."""
    if target.make is not None:
        return target.make(number)
    if number < len(seeds):
        return seeds[number]
    rng = random.Random(number)
    seed, other = rng.choice(seeds), rng.choice(seeds)
    if target.damage is not None:
        return target.damage(seed, rng, other)
    if target.unpack is None or target.pack is None or rng.random() < 0.5:
        return damaged(seed, rng, target.words, other)
    parts = target.unpack(seed)
    spot = rng.randrange(len(parts))
    parts[spot] = damaged(parts[spot], rng, target.words, rng.choice(target.unpack(other)))
    return target.pack(seed, parts)


def read(name: str, path: Path) -> str:
    """Read one file as its target does; return what became of it, an untyped error by its name."""
    target = TARGETS[name]
    if target.outcome is not None:
        return target.outcome(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = "accepted" if _sound(name, target, path) else "wrong"
        except StiefelSyncError as error:
            if "Traceback" in str(error) or not str(error):
                return f"untyped: {error!r}"
            outcome = "memory" if isinstance(error.__cause__, MemoryError) else "refused"
        except BaseException as error:
            return f"untyped: {type(error).__name__}: {error}"
    return f"warned: {caught[0].message}" if caught else outcome


def _sound(name: str, target: Target, path: Path) -> bool:
    """Read a case; return whether what came of it is what it says."""
    if target.read is not None:
        target.read(path)
        return True
    problem = io.read(path, FORMATS.get(name, name), **target.options)
    io.detect(path)
    if path.suffix == ".npz":
        io.read_truth(path)
    return bool(problem.n_matches == len(problem.indices))


def main() -> None:
    """Read cases from `first` on until the parent ends this process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("folder", type=Path)
    parser.add_argument("first", type=int)
    given = parser.parse_args()
    target = TARGETS[given.target]
    tempfile.tempdir = str(given.folder)
    seeds = target.seeds(given.folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A folder and name of their own, since some readers look at the name, or at what lies beside.
    path = given.folder / f"case{target.suffix}"
    number = given.first
    # What is called may print, or close, what it takes for its own output.
    with os.fdopen(os.dup(1), "w") as report:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        while True:
            target.place(path, case(target, seeds, number))
            _say(report, number=number)
            _say(report, number=number, outcome=read(given.target, path), megabytes=_most())
            number += 1


def _most() -> int:
    """Return the megabytes that this process has held at most."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // (2**20 if sys.platform == "darwin" else 2**10)


def _say(report: IO[str], **event: Any) -> None:
    try:
        print(json.dumps(event), file=report, flush=True)
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
