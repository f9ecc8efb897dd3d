"""Parts of a problem on Dask workers: few large tasks, a few of them under way at a time."""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from stiefelsync.errors import InputError, MissingExtraError
from stiefelsync.sync.tracks.grouped import Run
from stiefelsync.sync.tracks.groups import Part

__all__ = ["cluster", "on_workers"]

_logger = logging.getLogger(__name__)

_PATIENCE = 5.0  # seconds: a scheduler that runs accepts a connection at once, over any network
# Dask has workers give memory back at once; then half of the time goes into getting it again, for every array anew.
_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
_AHEAD = 2  # tasks per thread of the workers that wait beside the running ones, so that nobody is idle


def dask() -> Any:
    """Return the module `distributed`, or say how to install it."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("many processes", "dask[distributed]", "distributed") from None
    return distributed


@contextmanager
def cluster(workers: int | None = None, scheduler: str | None = None, memory: float | None = None) -> Iterator[Any]:
    """Yield a client of a local cluster of so many processes, or of the scheduler at an address.

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
    if workers is None or workers < 1:
        raise InputError(f"the number of workers must be at least 1, got {workers}")
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    from dask import config

    settings = {
        "distributed.worker.profile.enabled": False,  # it looks at every thread every 10 ms
        "distributed.nanny.pre-spawn-environ": _KEEP_MEMORY,
    }
    with (
        config.set(settings),
        module.LocalCluster(**options, memory_limit=memory or 0) as local,
        module.Client(local, set_as_default=False, direct_to_workers=True) as client,
    ):
        yield client


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

    Every task takes along the index of its own pairs only and reads their matches itself. Results come back in order,
    so nothing depends on who was faster; the task of a worker that dies is done by another. Workers may come and go:
    how many tasks are under way is asked before each; where there are no workers, the first one is waited for.
    """

    def run(stage: str, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n: int) -> Iterator[Any]:
        waiting: deque[Any] = deque()
        for source, part, *rest in tasks:
            threads = sum(client.nthreads().values())
            if not threads:
                _logger.warning("no worker has joined the scheduler yet; waiting for the first")
                client.wait_for_workers(1)
            while len(waiting) >= (1 + _AHEAD) * max(threads, 1):
                yield waiting.popleft().result()
            small = _narrowed(source, part)
            waiting.append(client.submit(function, *small, *rest, pure=False, retries=2))
        while waiting:
            yield waiting.popleft().result()

    return run


def _narrowed(source: Any, part: Part) -> tuple[Any, Part]:
    """Return the source with the pairs of a part only, and the part in their numbers."""
    pairs = np.sort(np.concatenate([part.inside, part.crossing]))
    inside, crossing = (np.searchsorted(pairs, numbers) for numbers in (part.inside, part.crossing))
    return source.only(pairs), replace(part, inside=inside, crossing=crossing)
