"""A scheduler that is killed is an error that says so; with checkpoints the next run goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from stiefelsync import InputError, datasets, distributed
from stiefelsync.distributed.cluster import cluster

pytest.importorskip("pyarrow", reason="needs the extra distributed")
pytest.importorskip("distributed", reason="needs the extra distributed")

SCHEDULER = """
import asyncio
from distributed import Scheduler, Worker

async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address=None, dashboard=False) as scheduler:
        place = {"host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
        async with Worker(scheduler.address, nthreads=1, **place):
            print(scheduler.address, flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def scheduler() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a scheduler and a worker in one process, which is killed at the end at the latest."""
    with subprocess.Popen([sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


@pytest.mark.parametrize("stage", ["groups", "bundles"])
def test_a_scheduler_that_is_killed_is_told_of_and_its_work_is_not_lost(scheduler, stage, tmp_path):
    process, address = scheduler
    problem, _ = datasets.scene(1_000, 60, 200, 400, 0.3, 0.3, rng=0)
    expected = distributed.synchronise(problem, group=4).labels

    def kill(progress) -> bool:
        if progress.stage == stage and progress.step:
            process.kill()
            process.wait()
        return False

    began = time.monotonic()
    # Closing a client that has lost its scheduler may complain.
    with ExitStack() as stack:
        client = stack.enter_context(cluster(scheduler=address))
        with pytest.raises(InputError, match=r"the scheduler at tcp://127\.0\.0\.1:\d+ has gone .* start another one"):
            distributed.synchronise(problem, group=4, client=client, checkpoint=tmp_path / "kept", callback=kill)
    assert time.monotonic() - began < 60
    assert list((tmp_path / "kept").glob("*/*.npz"))
    found = distributed.synchronise(problem, group=4, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(found.labels, expected)
    assert not (tmp_path / "kept").exists()


def test_a_task_that_fails_is_not_taken_for_that(scheduler):
    from stiefelsync.distributed.cluster import on_workers

    with cluster(scheduler=scheduler[1]) as client:
        run = on_workers(client)
        with pytest.raises(AttributeError):
            list(run("groups", len, [(None, None)], 1))
