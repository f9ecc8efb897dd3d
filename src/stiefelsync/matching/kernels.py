"""Calls of the compiled library on matches and their positions."""

from __future__ import annotations

import ctypes
from typing import Any

from stiefelsync._kernels.library import address, library

__all__ = ["call"]


def call(name: str, *arguments: Any) -> bool:
    """Call a kernel with whole numbers, real numbers and contiguous arrays; return whether there is one.

    It returns zero, or has had no memory.

    Examples
    --------
    >>> import numpy as np
    >>> ends, labels, agree = np.array([[0, 1], [0, 2]]), np.array([5, 5, -1]), np.empty(2, dtype=bool)
    >>> agree.tolist() if call("find_agreeing", ends, len(ends), labels, agree) else [True, False]
    [True, False]
    """
    if (found := library()) is None:
        return False
    if getattr(found, name)(*map(_argument, arguments)):
        raise MemoryError(f"no memory for {name.replace('_', ' ')}")
    return True


def _argument(value: Any) -> Any:
    """Return a number or an array as C takes it."""
    if isinstance(value, int):
        return ctypes.c_int64(value)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_void_p(address(value))
