"""Kill runs and workers and compare the labels: ``python -m benchmarks.kills [--trials 10]``.

A scene of 200,000 keypoints is solved out of core in groups of ten objects. In every trial of the first kind the
process gets SIGKILL at a random moment and is started again with the same checkpoints; in every trial of the second
kind one of two Dask workers gets SIGKILL at a random moment of the run. All labels must be those of an undisturbed run,
byte for byte.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.out_of_core import generate
from stiefelsync import distributed
from stiefelsync.distributed.cluster import cluster

GROUP = 10
WORDS = {True: "equal", False: "DIFFERENT"}
PROGRAM = """
import sys
from stiefelsync import distributed
print("begun", flush=True)
distributed.synchronise(sys.argv[1], group={group}, checkpoint=sys.argv[2], output=sys.argv[3])
"""


def start(data: Path, checkpoint: Path, output: Path) -> subprocess.Popen[str]:
    """Start a run in a process of its own and wait until it has begun."""
    program = PROGRAM.format(group=GROUP)
    run = subprocess.Popen([sys.executable, "-c", program, data, checkpoint, output], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    run.stdout.readline()
    return run


def killed_run(folder: Path, data: Path, seconds: float, draw: random.Random) -> tuple[bytes, float]:
    """Return the labels file of a run that was killed and started again, and when it was killed."""
    checkpoint, output = folder / "checkpoint", folder / "labels.parquet"
    run, moment = start(data, checkpoint, output), draw.uniform(0, seconds)
    try:
        run.wait(moment)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
        run.wait()
    if not output.exists():
        again = start(data, checkpoint, output)
        assert again.wait() == 0
    content = output.read_bytes()
    output.unlink()
    return content, moment


def killed_worker(data: Path, seconds: float, draw: random.Random) -> tuple[np.ndarray, float]:
    """Return the labels of a run of whose two workers one was killed, and when."""
    moment = draw.uniform(0, seconds)
    with cluster(workers=2) as client:
        victims = [worker.pid for worker in client.cluster.workers.values()]
        timer = threading.Timer(moment, os.kill, (draw.choice(victims), signal.SIGKILL))
        timer.start()
        labels = distributed.synchronise(data, group=GROUP, client=client).labels
        timer.cancel()
    return labels, moment


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--scale", type=int, default=1)
    options = parser.parse_args()
    draw, equal = random.Random(0), 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        data = folder / "scene"
        generate(data, options.scale, 0.3)
        begun = time.perf_counter()
        assert start(data, folder / "checkpoint", folder / "labels.parquet").wait() == 0
        seconds = time.perf_counter() - begun
        expected = (folder / "labels.parquet").read_bytes()
        (folder / "labels.parquet").unlink()
        for trial in range(options.trials):
            content, moment = killed_run(folder, data, seconds, draw)
            equal += content == expected
            print(
                f"run {trial}: killed after {moment:.2f} s, {WORDS[content == expected]}",
                flush=True,
            )
        labels = distributed.synchronise(data, group=GROUP).labels
        for trial in range(options.trials):
            found, moment = killed_worker(data, seconds, draw)
            same = found.tobytes() == labels.tobytes()
            equal += same
            print(f"worker {trial}: killed after {moment:.2f} s, {WORDS[same]}", flush=True)
    print(f"{equal} of {2 * options.trials} equal")
    return 0 if equal == 2 * options.trials else 1


if __name__ == "__main__":
    sys.exit(main())
