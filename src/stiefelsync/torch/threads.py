"""One thread for small problems, where threads cost more than they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock
from typing import Any

import torch
from torch import Tensor

__all__ = ["alone_if_small", "one_thread_if_small"]

# Entries up to which a tensor is small: a product of a matrix of 512 rows takes as long as waking
# a second thread does.
_SMALL = 2**18

_lock = Lock()
_waiting: list[int] = []  # of every caller at present; the first one lowered the number of threads


@contextmanager
def one_thread_if_small(*tensors: object) -> Iterator[None]:
    """Keep torch to one thread for the body of a ``with`` statement if all tensors are small.

    Nested and concurrent use is allowed: whoever is last restores what the first one found.

    Examples
    --------
    >>> with one_thread_if_small(torch.zeros(3, 3)):
    ...     torch.get_num_threads()
    1
    """
    entries = [x._nnz() if x.is_sparse else x.numel() for x in tensors if isinstance(x, Tensor)]
    if max(entries, default=0) > _SMALL:
        yield
        return
    with _lock:
        _waiting.append(_waiting[0] if _waiting else torch.get_num_threads())
        if torch.get_num_threads() > 1:
            torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            before = _waiting.pop()
            if not _waiting and before != torch.get_num_threads():
                torch.set_num_threads(before)


def alone_if_small(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a function on one thread where the first tensor it is given is small.

    For the backward pass of a :class:`torch.autograd.Function`, the tensor is the gradient.

    Examples
    --------
    >>> alone_if_small(lambda x: torch.get_num_threads())(torch.zeros(3))
    1
    """

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        first = next((arg for arg in args if isinstance(arg, Tensor)), None)
        with one_thread_if_small(first):
            return function(*args, **options)

    return run
