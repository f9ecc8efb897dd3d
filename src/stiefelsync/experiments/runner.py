"""Runs tasks on worker processes, resumes where a run ended, and measures runtimes alone."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from stiefelsync.errors import InputError, StiefelSyncError
from stiefelsync.experiments.records import Store
from stiefelsync.experiments.tasks import Task, measure

__all__ = ["TIMED", "count_steps", "run"]

TIMED = 2
"""So many seeds per point are timed in the second pass of a run with several workers."""

_GRACE = 1.0  # seconds
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run(
    tasks: Sequence[Task],
    store: Store,
    *,
    workers: int = 1,
    client: Any = None,
    progress: Callable[[int, str], object] | None = None,
) -> None:
    """Run the tasks that have no record yet.

    Instances run in worker processes with one BLAS thread each, so that neither results nor
    runtimes depend on the number of workers. With one worker every instance runs alone and its
    runtime is recorded at once. With more, the runtimes of the first two seeds of every point are
    measured in a second pass, one instance at a time.

    Parameters
    ----------
    tasks
        Duplicates are run once.
    store
        Each record is on disk before the next one is made; this process alone writes.
    workers
        Number of processes.
    client
        A Dask client whose workers run the first pass instead of processes here; they too should
        keep to one thread. Runtimes are measured here, and count as with several workers.
    progress
        Called with the number of steps done and what was done last; :func:`count_steps` says out of
        how many.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, got {workers}")
    store.check_versions()
    tasks = _unique(tasks)
    done = 0

    def step(task: Task) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, describe(task))

    waiting = [task for task in tasks if not store.has_result(task)]
    with _pool(min(workers, max(len(waiting), 1))) if client is None else client.get_executor(pure=False) as pool:
        for task, measured in _measured(pool, waiting):
            store.add(task, measured, alone=workers == 1 and client is None)
            step(task)
    untimed = [task for task in _timed(tasks) if not store.has_timing(task)]
    if untimed:
        with _pool(1) as pool:
            for task, measured in _measured(pool, untimed):
                store.add_timing(task, measured)
                step(task)


def count_steps(tasks: Sequence[Task], store: Store, *, workers: int = 1) -> int:
    """Return how many instances :func:`run` would run, those of the timing pass included."""
    tasks = _unique(tasks)
    waiting = {task.key for task in tasks if not store.has_result(task)}
    timed_now = waiting if workers == 1 else set()
    return len(waiting) + sum(not store.has_timing(task) and task.key not in timed_now for task in _timed(tasks))


def describe(task: Task) -> str:
    """Return a task in a few words.

    Examples
    --------
    >>> describe(Task({"data": "house", "k": 20}, "spectral", 1))
    'house k=20 spectral'
    """
    settings = " ".join(f"{name}={value}" for name, value in task.problem.items() if name != "data")
    return f"{task.problem['data']} {settings} {task.method}"


def _unique(tasks: Sequence[Task]) -> list[Task]:
    return list({task.key: task for task in tasks}.values())


def _timed(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks of the first seeds of every point."""
    counts: dict[str, int] = {}
    chosen = []
    for task in tasks:
        point = json.dumps({**task.as_dict(), "seed": None}, sort_keys=True)
        counts[point] = counts.get(point, 0) + 1
        if counts[point] <= TIMED:
            chosen.append(task)
    return chosen


def _measured(pool: Executor, tasks: Sequence[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
    with _born_deaf():  # workers start as tasks are submitted
        futures: dict[Future[dict[str, Any]], Task] = {pool.submit(measure, task): task for task in tasks}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        # A Ctrl-C that ended the workers may still be on its way to this process, and ends it here.
        time.sleep(_GRACE)
        raise StiefelSyncError(
            "a worker process ended unexpectedly, perhaps for lack of memory; records so far are kept:"
            " run the same command again, with fewer workers"
        ) from None


@contextmanager
def _born_deaf() -> Iterator[None]:
    """Let processes started here ignore Ctrl-C until they are ready, or one still importing would print a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield fresh processes that keep to one BLAS thread and end with this process, even when it is killed."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    others = multiprocessing.active_children()
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_follow_parent)
    try:
        yield pool
    except BaseException:  # whoever ends this process does not wait for a task to be done
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _follow_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # end at Ctrl-C without a traceback
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
