"""What drawings of problems have in common: numbers that are none, or far too large, are refused before a draw."""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.stiefel.checks import check_count

__all__ = ["drawn"]

P = ParamSpec("P")
R = TypeVar("R")
MOST = 10_000_000  # of anything that is counted
FARTHEST = 1e9  # from 0: of rates, pixels, deviations


def drawn(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that draws a problem refuse counts (`int`) and rates (`float`) with which it would never end.

    Examples
    --------
    >>> @drawn
    ... def throws(n: int, *, rate: float = 0.5) -> int:
    ...     return round(n * rate)
    >>> throws(10)
    5
    >>> throws(2**70)
    Traceback (most recent call last):
    stiefelsync.errors.InputError: n must be at most 10,000,000, got 1180591620717411303424
    >>> throws(3, rate=float("nan"))
    Traceback (most recent call last):
    stiefelsync.errors.InputError: rate must be a number of a usual size, got nan
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            given.arguments[name] = _checked(name, value, str(signature.parameters[name].annotation))
        return function(*given.args, **given.kwargs)

    return typed(call)


def _checked(name: str, value: Any, kind: str) -> Any:
    """Return a count or a rate as Python's own number, or what else was given."""
    if value is None and kind.endswith("| None"):
        return None
    kind = kind.removesuffix(" | None")
    if kind == "int":
        return check_count(name, value, 0, MOST)
    if kind != "float":
        return value
    if not isinstance(value, numbers.Real) or not abs(float(value)) <= FARTHEST:
        raise InputError(f"{name} must be a number of a usual size, got {value!r}")
    return float(value)
