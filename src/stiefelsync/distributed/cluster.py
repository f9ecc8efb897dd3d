"""Parts of a problem on Dask workers.

Few large batches of tasks, a few of them under way at a time.
"""

from __future__ import annotations

import logging
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync.distributed.groups import Part
from stiefelsync.distributed.solve_in_groups import Run
from stiefelsync.errors import InputError, MissingExtraError
from stiefelsync.io.staging import staging

__all__ = ["cluster", "on_workers"]

_logger = logging.getLogger(__name__)

HERE = "127.0.0.1"
_PATIENCE = 5.0  # seconds: a scheduler that runs accepts a connection at once, over any network
# Dask has workers give memory back at once; then half of the time goes into getting it again, for
# every array anew.
_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
# Batches per thread of the workers that wait beside the running ones, so that nobody is idle.
_BATCHES_AHEAD = 2
# A batch is one in so many, per thread, of the tasks left: few to send, and nobody waits for the
# last one.
_SHARES = 8
_LARGE_BATCH = "1GB"  # a batch that Dask warns of: points of a few groups are more than it expects


def dask() -> Any:
    """Return the module `distributed`, or say how to install it."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("many processes", "dask[distributed]", "distributed") from None
    return distributed


@contextmanager
def cluster(workers: int | None = None, scheduler: str | None = None, memory: float | None = None) -> Iterator[Any]:
    """Yield a client of a local cluster of this many processes, or of the scheduler at an address.

    Parameters
    ----------
    workers
        Processes to start on this machine, of one thread each.
    scheduler
        Address of a running scheduler, such as ``tcp://scheduler:8786``; nothing is started then.
    memory
        Bytes per worker beyond which it is restarted; None: no limit.
    """
    module = dask()
    if scheduler is not None:
        with _client(module, scheduler) as client:
            yield client
        return
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise InputError(f"the number of workers must be a whole number of at least 1, got {workers!r}")
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, **_privately(module)}
    # What goes wrong in a task is raised where its result is asked for; logs tell of heartbeats
    # missed while closing.
    options["silence_logs"] = logging.CRITICAL
    from dask import config

    settings = {
        "distributed.worker.profile.enabled": False,  # it looks at every thread every 10 ms
        "distributed.nanny.pre-spawn-environ": _KEEP_MEMORY,
        # Schedulers and workers serve pages about themselves, dashboard or not: then let there be
        # none to ask for.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
    with (
        staging(Path(tempfile.gettempdir())) as folder,
        config.set(settings),
        module.LocalCluster(**options, memory_limit=memory or 0, local_directory=str(folder)) as local,
        module.Client(local, set_as_default=False, direct_to_workers=True) as client,
    ):
        yield client


def _privately(module: Any) -> dict[str, Any]:
    """Return the options of a cluster that nobody but its own processes can reach or take part in.

    All of it listens on this machine alone. That would let its other users in, and who may send a
    task to a scheduler runs code as we do; so every connection needs a certificate, made now and
    kept in memory.
    """
    try:
        import cryptography  # noqa: F401  what certificates are made with
    except ImportError:
        raise MissingExtraError("many processes", "cryptography", "distributed") from None
    security = module.security.Security.temporary()
    # Without an address of a dashboard there is none; a free port, as pages are served from
    # somewhere even so.
    pages = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": f"{HERE}:0"}}
    return {"host": HERE, "protocol": "tls://", "security": security, **pages}


def _client(module: Any, scheduler: str) -> Any:
    """Return a client of the scheduler at an address, or say within seconds that there is none."""
    try:
        scheme, place = module.comm.parse_address(scheduler, strict="://" in scheduler)
        module.comm.registry.get_backend(scheme)
        if scheme in ("tcp", "tls"):
            # A client that finds nobody tries again and again, even while it is being closed.
            socket.create_connection(module.comm.addressing.parse_host_port(place), timeout=_PATIENCE).close()
        return module.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
    except Exception as error:  # whoever else listens there may answer anything
        raise InputError(
            f"no scheduler answers at {scheduler} ({error}); give its address as tcp://HOST:8786, or start one with:"
            " dask scheduler"
        ) from None


def on_workers(client: Any) -> Run:
    """Return a run that works on the workers of a Dask client.

    Every task takes along the index of its own pairs only and reads their matches itself. Several
    are sent at a time, because sending one takes as long as some of them do. Results come back in
    order, so nothing depends on who was faster; the tasks of a worker that dies are done by
    another. Workers may come and go: how many there are is asked every time; where there are none,
    the first one is waited for.
    """
    from dask import config

    lost = CancelledError, dask().comm.CommClosedError

    def run(stage: str, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n: int) -> Iterator[Any]:
        try:
            yield from all_of(function, tasks, n)
        except Exception as error:
            # A task that failed is no reason to doubt the scheduler; one that nobody knows of any more is.
            if client.status == "running" and not isinstance(error, lost):
                raise
            raise InputError(
                f"the scheduler at {client.scheduler.address} has gone ({type(error).__name__}); start another one,"
                " and give a folder for checkpoints to go on where the work was"
            ) from error

    def all_of(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n: int) -> Iterator[Any]:
        waiting: deque[Any] = deque()
        rest, left = iter(tasks), n
        while True:
            threads = sum(client.nthreads().values())
            if not threads:
                _logger.warning("no worker has joined the scheduler yet; waiting for the first")
                client.wait_for_workers(1)
                continue
            while len(waiting) >= (1 + _BATCHES_AHEAD) * threads:
                yield from waiting.popleft().result()
            some = islice(rest, max(left // (_SHARES * threads), 1))
            batch = [(*_narrowed(source, part), *others) for source, part, *others in some]
            if not batch:
                break
            left -= len(batch)
            with config.set({"distributed.admin.large-graph-warning-threshold": _LARGE_BATCH}):
                waiting.append(client.submit(_each, function, batch, pure=False, retries=2))
        while waiting:
            yield from waiting.popleft().result()

    return run


def _each(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> list[Any]:
    return [function(*task) for task in tasks]


def _narrowed(source: Any, part: Part) -> tuple[Any, Part]:
    """Return the source with the pairs of a part only, and the part in their numbers."""
    pairs = np.sort(np.concatenate([part.inside, part.crossing]))
    inside, crossing = (np.searchsorted(pairs, numbers) for numbers in (part.inside, part.crossing))
    return source.only(pairs), replace(part, inside=inside, crossing=crossing)
