"""Ten million rows of CSV: ``python -m benchmarks.tables FOLDER`` (``--scale 1`` for a sixteenth of them).

Draws a scene, writes its matches as CSV into FOLDER, or takes the file that is there, and runs, each in a process of
its own:

* pyarrow, which reads the table of matches and writes that of the answer, and nothing else;
* ``stiefelsync sync matches.csv -o answer.csv``, whose time is told beside that of pyarrow plus that of the method;
* the same with ``--memory 2GB --checkpoint``, out of core, with the most memory that it had;
* the last one again, killed by SIGKILL at some moments and started again, whose bytes are compared.

Seconds are those of the clock, as users wait for them, with those of the processor beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

# In a process of its own: on Linux a process begins with the peak memory of the one that started it.
DRAW = """
import sys
from stiefelsync import datasets, io
scale = int(sys.argv[2])
io.write(datasets.scene(20_000 * scale, 200 * scale, 1_000, 2_000, wrong=0.3, missing=0.3, rng=0)[0], sys.argv[1])
"""
READY = """
import sys
import pyarrow.ipc
from pyarrow import csv
table = csv.read_csv(sys.argv[1])
with pyarrow.ipc.new_file(sys.argv[2], table.schema) as file:
    file.write_table(table)
"""
PYARROW = """
import sys, time
import pyarrow.ipc
from pyarrow import csv
answer = pyarrow.ipc.open_file(pyarrow.memory_map(sys.argv[2])).read_all()
began, spent = time.perf_counter(), time.process_time()
matches = csv.read_csv(sys.argv[1])
csv.write_csv(answer, sys.argv[3])
print(time.perf_counter() - began, time.process_time() - spent)
"""
MOMENTS = (0.1, 0.35, 0.6, 0.85)  # of the time of a whole run


@dataclass(frozen=True)
class Ran:
    """A command that ran to its end: what it printed, its seconds, and the most megabytes that it had."""

    printed: str
    seconds: float
    processor: float
    megabytes: float


def run(command: Sequence[str]) -> Ran:
    """Run a command and watch it."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed")
        output.seek(0)
        printed = output.read().decode()
    return Ran(printed, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)


def digest(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def killed(command: Sequence[str], seconds: float) -> bool:
    """Start a command and kill it after some seconds; return whether it was still running then."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=16, help="Times 200,000 keypoints and 640,000 matches.")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    matches, answer, parts = (given.folder / name for name in ("matches.csv", "answer.csv", "parts.csv"))
    if not matches.exists():
        subprocess.run([sys.executable, "-c", DRAW, str(matches), str(given.scale)], check=True)
    sync = [sys.executable, "-m", "stiefelsync", "sync", str(matches), "--force", "--json"]

    whole = run([*sync, "-o", str(answer)])
    told = json.loads(whole.printed)
    method = sum(told["seconds"].values())
    rows = f"{told['matches_before']:,} rows in, {told['matches_after']:,} out"
    print(f"sync: {rows}, {whole.seconds:.1f} s ({whole.processor:.1f} of the processor), {whole.megabytes:,.0f} MB")
    ready = given.folder / "answer.arrow"
    subprocess.run([sys.executable, "-c", READY, str(answer), str(ready)], check=True)
    other = run([sys.executable, "-c", PYARROW, str(matches), str(ready), str(given.folder / "copy.csv")])
    seconds, processor = map(float, other.printed.split())
    assert (given.folder / "copy.csv").stat().st_size
    print(
        f"pyarrow reads and writes the same in {seconds:.1f} s ({processor:.1f}); {told['method']} takes {method:.1f} s"
    )
    print(f"sync takes {whole.seconds / (seconds + method):.2f} times as long as both")

    shutil.rmtree(given.folder / "unfinished", ignore_errors=True)
    out_of_core = [*sync, "--memory", "2GB", "--checkpoint", str(given.folder / "unfinished"), "-o", str(parts)]
    alone = run(out_of_core)
    print(f"out of core: {alone.seconds:.1f} s ({alone.processor:.1f}), {alone.megabytes:,.0f} MB")
    expected = digest(parts)
    for moment in MOMENTS:
        parts.unlink()
        died = killed(out_of_core, moment * alone.seconds)
        again = run(out_of_core)
        same = "the same bytes" if digest(parts) == expected else "OTHER BYTES"
        when = f"killed after {moment * alone.seconds:.1f} s" if died else "was ready before it was killed"
        print(f"{when} and started again: {again.seconds:.1f} s more, {again.megabytes:,.0f} MB, {same}", flush=True)


if __name__ == "__main__":
    main()
