"""``make faults``: writers killed at random moments, full disks, vanished folders, moves that fail, two writers.

And databases that others change, lock, or left in the middle of a change; and runs in parts whose disk is full, whose
checkpoints vanish, whose scheduler is killed.

After every fault: an output is absent, or as it was, or complete; no input has changed; and nothing is left in the
folder once the next run is through. Counts are printed; the moments are drawn from ``--seed``.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync import Matchings, io, plotting, report
from stiefelsync.cli.app import _end
from stiefelsync.errors import StiefelSyncError
from stiefelsync.io.staging import leftovers, remove_all
from stiefelsync.out_of_core import clean_out_of_core
from tests.io.colmap_schemas import build

__all__ = [
    "DATABASES", "FAULTS", "PARTS", "SCHEDULER", "WRITERS", "Setting", "disk_full", "killed", "scheduler_killed",
    "sync_killed",
]  # fmt: skip

PROGRAM = [sys.executable, "-c", "from stiefelsync.cli import main; main()"]
LONGEST = 60  # seconds a child lives
SCHEDULER = """
import asyncio
from distributed import Scheduler, Worker

async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        async with Worker(scheduler.address, nthreads=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"):
            print(scheduler.address, flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""  # and a worker, in one process
REFUSED, WROTE, BROKE = 3, 0, 9  # exit codes of children


class Setting:
    """A folder with an input and two different answers to write from it."""

    def __init__(self, folder: Path, points: int = 100) -> None:
        rng = np.random.default_rng(0)
        k = 6
        labels = np.concatenate([rng.permutation(points) for _ in range(k)])
        names, at = [f"image{i}.jpg" for i in range(k)], rng.uniform(-0.5, 0.5, (k * points, 2))
        whole = Matchings.from_labels(labels, [points] * k, names=names, coordinates=at)
        few = np.where(labels % 3 > 0, labels, -1)
        self.answers = whole, Matchings.from_labels(few, [points] * k, names=names, coordinates=at)
        self.inputs = folder / "inputs"
        self.inputs.mkdir()
        self.database = self.inputs / "database.db"
        build(self.database, whole, whole)
        self.folder = folder / "outputs"
        self.folder.mkdir()
        self.graves = folder / "graves"
        self.graves.mkdir()
        self.before = self.state()

    def state(self) -> dict[str, bytes]:
        """Return the bytes of all inputs."""
        return {path.name: path.read_bytes() for path in sorted(self.inputs.iterdir())}

    def wrong(self) -> list[str]:
        """Return what is wrong with the inputs, and what lies about in the folder of outputs."""
        changed = [] if self.state() == self.before else ["an input has changed"]
        return changed + [f"left: {path.name}" for path in sorted(self.folder.iterdir()) if path.name.startswith(".")]


Writer = Callable[[Setting, Path, int], object]
Check = Callable[[Setting, Path, int], bool]


def _format(name: str) -> Writer:
    def write(setting: Setting, path: Path, which: int) -> object:
        like = setting.database if name == "colmap" else None
        if path.is_dir():  # a folder is never replaced, and its removal, which is ours, may be cut short by a kill
            path.rename(setting.graves / uuid.uuid4().hex)
        return io.write(setting.answers[which], path, name, like=like, force=True)

    return write


def _page(setting: Setting, path: Path, which: int) -> object:
    return report.write_report(path, setting.answers[0], setting.answers[which], source=setting.database, force=True)


def _picture(setting: Setting, path: Path, which: int) -> object:
    return plotting.save(plotting.matrices(setting.answers[0], setting.answers[which]), path, force=True)


WRITERS: dict[str, tuple[str, Writer]] = {
    **{name: (f"out{known.suffixes[0]}", _format(name)) for name, known in io.FORMATS.items()},
    "report": ("out.html", _page),
    "picture": ("out.png", _picture),
}


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _fingerprints(setting: Setting, name: str) -> list[object]:
    """Return what complete outputs of both answers look like."""
    file, write = WRITERS[name]
    prints = []
    for which in (0, 1):
        write(setting, setting.folder / file, which)
        prints.append(_fingerprint(setting.folder / file, name))
    _remove(setting.folder / file)
    return prints


def _fingerprint(path: Path, name: str) -> object:
    if name in io.FORMATS:
        return io.read(path, name).endpoints.tobytes()
    return path.read_bytes()


@contextlib.contextmanager
def _forked(work: Callable[[], object]) -> Iterator[int]:
    """Yield the process number of a child that does some work and ends with a code for what came of it."""
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.alarm(LONGEST)  # should the parent be gone
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        code = BROKE
        try:
            work()
            code = WROTE
        except StiefelSyncError:
            code = REFUSED
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            remove_all()  # as at the end of any process
            os._exit(code)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def killed(setting: Setting, name: str, times: int, rng: random.Random) -> Counter[str]:
    """Kill a process that writes over and over; SIGKILL and, as the command line has it, SIGTERM by turns."""
    file, write = WRITERS[name]
    path, complete = setting.folder / file, _fingerprints(setting, name)
    begun = time.perf_counter()
    write(setting, path, 0)
    usual = time.perf_counter() - begun
    tally: Counter[str] = Counter()

    def work() -> None:
        signal.signal(signal.SIGTERM, _end)
        for which in range(10**9):
            write(setting, path, which % 2)

    for turn in range(times):
        number = signal.SIGTERM if turn % 2 else signal.SIGKILL
        if rng.random() < 0.5:
            _remove(path)
        with _forked(work) as child:
            time.sleep(rng.uniform(0, 2 * usual))
            os.kill(child, number)
            _, status = os.waitpid(child, 0)
        tally["kills"] += 1
        if number == signal.SIGTERM and os.waitstatus_to_exitcode(status) == 143 and leftovers(setting.folder):
            tally["bad: SIGTERM left something"] += 1
        tally["left until the next run"] += bool(leftovers(setting.folder))
        if not path.exists():
            tally["absent"] += 1
        elif _fingerprint(path, name) in complete:
            tally["complete"] += 1
        else:
            tally["bad: partial output"] += 1
        write(setting, path, turn % 2)
        for wrong in setting.wrong():
            tally[f"bad: {wrong}"] += 1
    return tally


def disk_full(setting: Setting, name: str, times: int, rng: random.Random) -> Counter[str]:
    """Let files grow to some part of what is needed and no further."""
    file, write = WRITERS[name]
    path = setting.folder / file
    write(setting, path, 0)
    size = max(part.stat().st_size for part in [path, *path.glob("*.parquet")] if part.is_file())
    tally: Counter[str] = Counter()
    for _ in range(times):
        _remove(path)
        limit = rng.randrange(size)

        def work(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            write(setting, path, 0)

        with _forked(work) as child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        tally["full disks"] += 1
        tally["refused"] += code == REFUSED
        if code != REFUSED or path.exists() or any(setting.folder.iterdir()):
            tally[f"bad: ended with {code}, or left something"] += 1
        for wrong in setting.wrong():
            tally[f"bad: {wrong}"] += 1
    return tally


def folder_removed(setting: Setting, name: str, times: int, rng: random.Random) -> Counter[str]:
    """Remove the folder of the output under a writer."""
    file, write = WRITERS[name]
    folder = setting.folder / "removed"
    tally: Counter[str] = Counter()
    for _ in range(times):
        folder.mkdir(exist_ok=True)

        def work() -> None:
            for which in range(10**9):
                write(setting, folder / file, which % 2)

        with _forked(work) as child:
            time.sleep(rng.uniform(0, 0.05))
            while folder.exists():
                shutil.rmtree(folder, ignore_errors=True)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        tally["folders removed"] += 1
        tally["refused"] += code == REFUSED
        if code != REFUSED:
            tally[f"bad: ended with {code}"] += 1
        for wrong in setting.wrong():
            tally[f"bad: {wrong}"] += 1
    return tally


def move_fails(setting: Setting, name: str, times: int, rng: random.Random) -> Counter[str]:
    """Let the moves of finished files to their places fail, all from some one on, as on a disk that breaks."""
    file, write = WRITERS[name]
    path, complete = setting.folder / file, _fingerprints(setting, name)
    tally: Counter[str] = Counter()
    for turn in range(times):
        if turn % 2:
            _remove(path)
            write(setting, path, 0)
        else:
            _remove(path)
        before = path.exists()
        sound, code, kinds = (
            rng.randrange(2),
            rng.choice((errno.EIO, errno.ENOSPC, errno.EACCES)),
            ("link", "rename", "replace"),
        )
        if rng.random() < 0.5:
            kinds = (rng.choice(kinds),)

        def work(sound: int = sound, code: int = code, kinds: tuple[str, ...] = kinds) -> None:
            left = [sound]

            def failing(move: Callable[..., None]) -> Callable[..., None]:
                def fail(*args: Any, **kwargs: Any) -> None:
                    left[0] -= 1
                    if left[0] < 0:
                        raise OSError(code, os.strerror(code))
                    move(*args, **kwargs)

                return fail

            if not path.is_dir():  # else the writer of the test itself moves the old one away
                for kind in kinds:
                    setattr(os, kind, failing(getattr(os, kind)))
            write(setting, path, 1)

        with _forked(work) as child:
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        tally["moves that fail"] += 1
        tally["refused" if ended == REFUSED else "written another way"] += 1
        if ended not in (REFUSED, WROTE):
            tally[f"bad: ended with {ended}"] += 1
        elif ended == REFUSED and path.exists() != before:
            tally["bad: an output came or went"] += 1
        elif path.exists() and _fingerprint(path, name) != complete[ended == WROTE]:
            tally["bad: another output"] += 1
        for wrong in setting.wrong():
            tally[f"bad: {wrong}"] += 1
    _remove(path)
    return tally


def two_writers(setting: Setting, name: str, times: int, rng: random.Random) -> Counter[str]:
    """Let two processes write one file at once, neither of which may replace the other's."""
    suffix = io.FORMATS[name].suffixes[0] if name in io.FORMATS else None
    tally: Counter[str] = Counter()
    if suffix is None:
        return tally
    path, complete = setting.folder / f"both{suffix}", _fingerprints(setting, name)
    like = setting.database if name == "colmap" else None
    for _ in range(times):
        _remove(path)
        with contextlib.ExitStack() as stack:
            children = [
                stack.enter_context(
                    _forked(lambda which=which: io.write(setting.answers[which], path, name, like=like))
                )
                for which in (0, 1)
            ]
            codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
        tally["pairs of writers"] += 1
        if codes != [WROTE, REFUSED] or _fingerprint(path, name) not in complete:
            tally[f"bad: two writers ended with {codes}"] += 1
        for wrong in setting.wrong():
            tally[f"bad: {wrong}"] += 1
    _remove(path)
    return tally


def live_database(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Read and filter a database that another process keeps changing: all of a change is seen, or none, or an error."""
    tally: Counter[str] = Counter()
    live = setting.folder / "live.db"
    shutil.copy(setting.database, live)
    mode = ("WAL", "DELETE")

    def work() -> None:
        with contextlib.closing(sqlite3.connect(live, isolation_level=None, timeout=10)) as writer:
            writer.execute(f"PRAGMA journal_mode = {mode[0]}")
            for turn in range(10**9):  # both tables change together
                with contextlib.suppress(sqlite3.OperationalError):
                    writer.execute("BEGIN IMMEDIATE")
                    writer.execute("UPDATE images SET name = 'turn' || ? WHERE image_id = 1", (turn,))
                    writer.execute("UPDATE keypoints SET data = data WHERE image_id = 1")
                    writer.execute("COMMIT")

    for _ in range(times):
        mode = (mode[1], mode[0])
        out = setting.folder / "live-out.db"
        out.unlink(missing_ok=True)
        with _forked(work):
            time.sleep(rng.uniform(0.01, 0.1))
            try:
                problem = io.read(live)
                io.write(problem, out, like=live)
                if io.read(out).endpoints.tobytes() != problem.endpoints.tobytes():
                    tally["bad: another problem was written"] += 1
                tally["written"] += 1
            except StiefelSyncError:
                tally["refused"] += 1
                if out.exists():
                    tally["bad: refused and written"] += 1
        tally["live databases"] += 1
        tally.update(f"bad: {wrong}" for wrong in setting.wrong())
        with contextlib.closing(sqlite3.connect(live)) as connection:
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                tally["bad: the database was damaged"] += 1
    for path in setting.folder.glob("live*"):
        path.unlink()
    return tally


def locked_database(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Read a database that another process locks for a while: all of it, or an error that says so."""
    live, tally = setting.folder / "locked.db", Counter[str]()
    shutil.copy(setting.database, live)
    expected = io.read(live).endpoints.tobytes()
    for turn in range(times):
        ready, done = os.pipe()

        def work(turn: int = turn, done: int = done) -> None:
            with contextlib.closing(sqlite3.connect(live, isolation_level=None)) as other:
                other.execute(f"PRAGMA journal_mode = {('WAL', 'DELETE')[turn % 2]}")
                other.execute("PRAGMA locking_mode = EXCLUSIVE")
                other.execute("BEGIN EXCLUSIVE")
                other.execute("UPDATE images SET name = name WHERE image_id = 1")
                os.write(done, b".")
                time.sleep(LONGEST)

        with _forked(work) as child:
            os.read(ready, 1)
            try:
                tally["bad: another problem" if io.read(live).endpoints.tobytes() != expected else "read"] += 1
            except StiefelSyncError as error:
                tally["refused" if "locked" in str(error) else f"bad: {error}"] += 1
            os.kill(child, signal.SIGKILL)
        os.close(ready)
        os.close(done)
        tally["locked databases"] += 1
        if io.read(live).endpoints.tobytes() != expected:
            tally["bad: another problem afterwards"] += 1
    for path in setting.folder.glob("locked.db*"):
        path.unlink()
    return tally


def hot_journal(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Read a database of which a killed process has written half of a change: an error; once undone it is read."""
    live, tally = setting.folder / "half.db", Counter[str]()
    expected = io.read(setting.database).endpoints.tobytes()
    for _ in range(times):
        for path in setting.folder.glob("half.db*"):
            path.unlink()
        shutil.copy(setting.database, live)
        ready, done = os.pipe()

        def work(done: int = done, rows: int = rng.randint(1, 15)) -> None:
            with contextlib.closing(sqlite3.connect(live, isolation_level=None)) as other:
                other.execute("PRAGMA journal_mode = DELETE")
                other.execute("PRAGMA cache_size = 1")  # pages are written before the change is complete
                other.execute("BEGIN IMMEDIATE")
                for table in ("matches", "two_view_geometries"):
                    some = f"SELECT rowid FROM {table} ORDER BY rowid LIMIT ?"
                    other.execute(f"UPDATE {table} SET data = zeroblob(length(data)) WHERE rowid IN ({some})", (rows,))
                os.write(done, b".")
                time.sleep(LONGEST)

        with _forked(work) as child:
            os.read(ready, 1)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(ready)
        os.close(done)
        left = {path.name: path.read_bytes() for path in setting.folder.glob("half.db*")}
        tally["changes cut short"] += 1
        tally["pages were written"] += left["half.db"] != setting.database.read_bytes()
        if "half.db-journal" not in left:
            tally["bad: no log was left"] += 1
        try:
            io.read(live)
            tally["bad: read in the middle of a change"] += 1
        except StiefelSyncError as error:
            tally["refused" if "in the middle of a change" in str(error) else f"bad: {error}"] += 1
        if left != {path.name: path.read_bytes() for path in setting.folder.glob("half.db*")}:
            tally["bad: the database or its log was touched"] += 1
        with contextlib.closing(sqlite3.connect(live)) as other:  # as the error advises
            other.execute("SELECT count(*) FROM images").fetchone()
        if io.read(live).endpoints.tobytes() != expected:
            tally["bad: another problem"] += 1
    for path in setting.folder.glob("half.db*"):
        path.unlink()
    return tally


class _InParts:
    """A run in parts with checkpoints, on a table of the inputs, and what it writes undisturbed."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.table = setting, setting.inputs / "a.csv"
        io.write(setting.answers[0], self.table, force=True)
        setting.before = setting.state()
        self.output, self.kept = setting.folder / "parts.csv", setting.folder / "unfinished"
        begun = time.perf_counter()
        self.run()
        self.usual, self.whole = time.perf_counter() - begun, self.output.read_bytes()
        self.output.unlink()

    def run(self) -> None:
        clean_out_of_core(self.table, self.output, checkpoint=self.kept, force=True)

    def end(self, tally: Counter[str]) -> None:
        """Run it once more, undisturbed, and look at what is there."""
        if self.output.exists() and self.output.read_bytes() != self.whole:
            tally["bad: partial output"] += 1
        self.run()
        if self.output.read_bytes() != self.whole:
            tally["bad: other bytes"] += 1
        self.output.unlink()
        if self.kept.exists():
            tally["bad: checkpoints were left"] += 1
        for wrong in self.setting.wrong():
            tally[f"bad: {wrong}"] += 1


def parts_killed(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Kill a run in parts, once or several times in a row; the next one goes on and writes the same bytes."""
    parts, tally = _InParts(setting), Counter[str]()
    for turn in range(times):
        with _forked(parts.run) as child:
            time.sleep(rng.uniform(0, 1.2 * parts.usual))
            os.kill(child, signal.SIGTERM if turn % 2 else signal.SIGKILL)
            os.waitpid(child, 0)
        tally["kills of runs in parts"] += 1
        tally["parts were left"] += parts.kept.exists()
        if rng.random() < 0.6:
            parts.end(tally)
    parts.end(tally)
    return tally


def spill_disk_full(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Let what a run in parts keeps on disk grow to some size and no further."""
    parts, tally = _InParts(setting), Counter[str]()
    for _ in range(times):
        limit = int(10 ** rng.uniform(1, 4))

        def work(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            parts.run()

        with _forked(work) as child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        tally["disks full of parts"] += 1
        tally["refused"] += code == REFUSED
        if code != REFUSED or parts.output.exists():
            tally[f"bad: ended with {code}, or wrote something"] += 1
        parts.end(tally)
    return tally


def checkpoints_removed(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Remove what a run in parts keeps while it runs: an error, or all of the answer."""
    parts, tally = _InParts(setting), Counter[str]()
    for _ in range(times):
        with _forked(parts.run) as child:
            time.sleep(rng.uniform(0, parts.usual))
            while parts.kept.exists() and os.waitpid(child, os.WNOHANG) == (0, 0):
                shutil.rmtree(parts.kept, ignore_errors=True)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
        shutil.rmtree(parts.kept, ignore_errors=True)
        tally["checkpoints removed"] += 1
        tally["answered all the same"] += parts.output.exists()
        parts.end(tally)
    return tally


def scheduler_killed(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Kill the scheduler whose workers do the work: an error within a minute, and nothing is written."""
    tally, output = Counter[str](), setting.folder / "by-workers.npz"
    for _ in range(times):
        with subprocess.Popen(
            [sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as own:
            assert own.stdout is not None
            address = own.stdout.readline().decode().strip()
            command = [*PROGRAM, "sync", str(setting.database), "-o", str(output), "--method", "tracks"]
            with subprocess.Popen([*command, "--scheduler", address, "--quiet"], stderr=subprocess.PIPE) as run:
                assert run.stderr is not None
                time.sleep(rng.uniform(1, 4))
                own.kill()
                try:
                    code = run.wait(LONGEST)
                except subprocess.TimeoutExpired:
                    run.kill()
                    code = None
                told = run.stderr.read()
        tally["schedulers killed"] += 1
        tally["refused" if code == 2 else "written before" if code == 0 else f"bad: ended with {code}"] += 1
        if b"Traceback" in told or (code != 0) != (not output.exists()):
            tally["bad: a traceback, or an output in spite of an error"] += 1
        output.unlink(missing_ok=True)
        tally.update(f"bad: {wrong}" for wrong in setting.wrong())
    return tally


def sync_killed(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Kill the program `sync` as it makes a database and a page: they come together or not at all."""
    out, page = setting.folder / "clean.db", setting.folder / "page.html"
    command = [*PROGRAM, "sync", str(setting.database), "-o", str(out), "--report", str(page), "--method", "union-find"]
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    usual = time.perf_counter() - begun
    complete = _fingerprint(out, "colmap"), page.read_bytes()
    tally: Counter[str] = Counter()
    for turn in range(times):
        for path in (out, page):
            path.unlink(missing_ok=True)
        number = signal.SIGTERM if turn % 2 else signal.SIGKILL
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if turn % 4 < 2:  # any moment
            time.sleep(rng.uniform(0, usual))
        else:  # while it writes
            while process.poll() is None and not leftovers(setting.folder):
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.1))
        process.send_signal(number)
        process.wait()
        tally["kills of sync"] += 1
        tally["left until the next run"] += bool(leftovers(setting.folder))
        if number == signal.SIGTERM and process.returncode == 143 and leftovers(setting.folder):
            tally["bad: SIGTERM left something"] += 1
        there = out.exists(), page.exists()
        tally[{(True, True): "complete", (False, False): "absent"}.get(there, "bad: one without the other")] += 1
        if all(there) and _fingerprint(out, "colmap") != complete[0]:
            tally["bad: partial output"] += 1
        io.write(setting.answers[0], setting.folder / "next.csv", force=True)
        tally.update(f"bad: {wrong}" for wrong in setting.wrong())
    return tally


def reproduce_killed(setting: Setting, times: int, rng: random.Random) -> Counter[str]:
    """Kill `reproduce` again and again, then let it end: the results are those of a run that nobody disturbed."""
    command = [*PROGRAM, "reproduce", "sparsity", "--quick", "--output"]
    whole, broken = setting.folder / "whole", setting.folder / "broken"
    begun = time.perf_counter()
    subprocess.run([*command, str(whole)], check=True, capture_output=True)
    usual = time.perf_counter() - begun
    tally: Counter[str] = Counter()
    for turn in range(times):
        process = subprocess.Popen([*command, str(broken)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 1.0) * usual)
        process.send_signal(signal.SIGTERM if turn % 2 else signal.SIGKILL)
        process.wait()
        tally["kills of reproduce"] += 1
        if (broken / "index.html").exists():
            tally["complete"] += 1
            shutil.rmtree(broken)
        elif broken.exists() and {path.name for path in broken.glob("[!.]*")} > {"records.jsonl"}:
            tally["bad: figures without an index"] += 1
    subprocess.run([*command, str(broken), "--force"], check=True, capture_output=True)
    if _results(whole) != _results(broken):
        tally["bad: other results"] += 1
    if {path.name for path in whole.iterdir()} != {path.name for path in broken.iterdir()}:
        tally["bad: other files"] += 1
    return tally


def _results(folder: Path) -> list[str]:
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    kept = [{name: line[name] for name in ("task", "result")} for line in lines if line["kind"] == "result"]
    for line in kept:
        line["result"] = {name: value for name, value in line["result"].items() if "seconds" not in name}
    return sorted(json.dumps(line, sort_keys=True) for line in kept)


FAULTS = {
    "killed": killed,
    "disk full": disk_full,
    "folder removed": folder_removed,
    "move fails": move_fails,
    "two writers": two_writers,
}
"""Faults of every writer."""
DATABASES = {"live": live_database, "locked": locked_database, "half changed": hot_journal}
"""Faults of databases that are read."""
PARTS = {"killed": parts_killed, "disk full": spill_disk_full, "removed": checkpoints_removed}
"""Faults of runs in parts."""


def main() -> int:
    """Run all faults and print what came of them; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=22, help="of each writer")
    parser.add_argument("--sync", type=int, default=60, help="kills of the program sync")
    parser.add_argument("--reproduce", type=int, default=6, help="kills of the program reproduce")
    parser.add_argument("--schedulers", type=int, default=4, help="that are killed")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, total = random.Random(given.seed), Counter[str]()

    def done(fault: str, name: str, tally: Counter[str]) -> None:
        print(
            f"{fault:15} {name:10} {', '.join(f'{what} {count}' for what, count in tally.items() if count)}", flush=True
        )
        total.update(tally)

    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        setting = Setting(Path(folder))
        for fault, run in FAULTS.items():
            for name in WRITERS:
                times = given.kills if fault == "killed" else max(given.kills // 3, 1)
                if tally := run(setting, name, times, rng):
                    done(fault, name, tally)
                for path in setting.folder.iterdir():
                    _remove(path)
        for fault, run_on in DATABASES.items():
            done(fault, "database", run_on(setting, given.kills, rng))
        for fault, run_on in PARTS.items():
            done(fault, "parts", run_on(setting, given.kills, rng))
        done("killed", "scheduler", scheduler_killed(setting, given.schedulers, rng))
        done("killed", "sync", sync_killed(setting, given.sync, rng))
        done("killed", "reproduce", reproduce_killed(setting, given.reproduce, rng))
    bad = {what: count for what, count in total.items() if what.startswith("bad")}
    print("in all:", ", ".join(f"{what} {count}" for what, count in sorted(total.items())))
    print("nothing went wrong" if not bad else f"WRONG: {bad}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
