"""How many threads: as many as the environment allows, and one for BLAS where matrices are small."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["one_blas_thread", "workers"]

_lock = Lock()
# Of every caller at present; the first one lowered the number of threads.
_limits: list[list[tuple[Any, int]]] = []


def workers() -> int:
    """Return how many threads a pool may have: the processors at hand, but no more than OMP_NUM_THREADS says.

    Examples
    --------
    >>> workers() >= 1
    True
    """
    try:
        found = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        found = os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, min(found, int(asked))) if asked.isdigit() else found


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread for the body of a ``with`` statement.

    Nested and concurrent use is allowed.

    Threads that wait for work by spinning cost small matrices more than they give: two cost the
    presets 4 to 17 times the processor time on problems of up to 3,000 points
    (docs/evidence/speed.md).

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    with _lock:
        _limits.append([] if _limits else _lowered())
    try:
        yield
    finally:
        with _lock:
            # Whoever is last, of callers on several threads too, restores what the first one found.
            for blas, threads in _limits.pop():
                blas.set_num_threads(threads)


def _lowered() -> list[tuple[Any, int]]:
    """Keep every BLAS to one thread; return those that had more, and how many."""
    found = [(blas, threads) for blas in _libraries() if (threads := blas.get_num_threads()) != 1]
    for blas, _ in found:
        blas.set_num_threads(1)
    return found


@cache
def _libraries() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
