"""Floating-point flags raised by numbers that are in nobody's matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

__all__ = ["ignoring_kernel_flags"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def ignoring_kernel_flags(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return the function without warnings such as "invalid value encountered in matmul".

    Vector kernels of OpenBLAS round short rows up to the width of a register and compute on
    whatever the padding holds. The padding never reaches the result, but it raises the processor's
    flag, which NumPy turns into a warning: now and then, on some processors, in float32. Iterates
    are checked for being finite where they are used, so nothing is missed.

    Examples
    --------
    >>> ignoring_kernel_flags(lambda x: x - x)(np.array([np.inf])).tolist()
    [nan]
    """

    @wraps(function)
    def quiet(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with np.errstate(invalid="ignore"):
            return function(*args, **kwargs)

    return quiet
