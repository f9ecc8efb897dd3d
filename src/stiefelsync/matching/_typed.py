"""The guard of public constructors.

Whatever they are given, what is wrong with it comes as one type of error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from stiefelsync.errors import InputError, StiefelSyncError

__all__ = ["typed"]

P = ParamSpec("P")
R = TypeVar("R")


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Let a public function answer arguments that it cannot use by :class:`InputError`.

    What is usual is checked, and worded, by the function itself; this is for all the rest. The
    cause is kept.

    Examples
    --------
    >>> @typed
    ... def half(number):
    ...     return number / 2
    >>> half("ten")
    Traceback (most recent call last):
    stiefelsync.errors.InputError: half cannot use what it was given (TypeError: unsupported operand type(s) ...
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except StiefelSyncError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise  # the call itself: an argument is missing, or unknown
            kind = type(error).__name__
            raise InputError(f"{function.__name__} cannot use what it was given ({kind}: {error})") from error

    return call
