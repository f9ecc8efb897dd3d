"""Options of a method: the fields of one frozen dataclass, each with what it means and what it may be."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, fields
from typing import Any

import numpy as np

from stiefelsync._border import typed
from stiefelsync.errors import InputError, unknown_name

__all__ = ["check_option", "dtype_option", "meanings", "option"]

_KINDS: dict[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "a word"),
}
"""What a value of each kind may be, and how to say so."""


@typed
def option(
    default: Any,
    meaning: str,
    *,
    kind: type | None = None,
    choices: Sequence[str] = (),
    least: float | None = None,
    above: float | None = None,
) -> Any:
    """Return a field of an options dataclass.

    Parameters
    ----------
    default
        Its type is what values must be, unless it is None or something else than a bool, a number
        or a word.
    meaning
        A sentence for the command line and the documentation.
    kind
        int or float where the default is None.
    choices
        The words it may be.
    least, above
        The smallest number, or the number all must exceed.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Options:
    ...     max_iter: int = option(100, "most iterations", least=1)
    >>> meanings(Options), Options(3)
    ({'max_iter': 'most iterations'}, Options(max_iter=3))
    """
    about = {"meaning": meaning, "kind": kind, "choices": tuple(choices), "least": least, "above": above}
    return field(default=default, metadata=about)


def dtype_option() -> Any:
    """Return the field of the precision that a method computes in.

    Examples
    --------
    >>> dtype_option().default
    <class 'numpy.float64'>
    """
    return option(np.float64, "float32 or float64: the precision of W and all that is computed from it.")


def meanings(settings: type) -> dict[str, str]:
    """Return what the fields of an options dataclass mean, after their choices where these are listed."""
    found = {}
    for item in fields(settings):
        choices = item.metadata.get("choices") or ()
        listed = ", ".join(f'"{choice}"' for choice in choices)
        found[item.name] = (f"{listed}: " if listed else "") + item.metadata.get("meaning", "")
    return found


def check_option(what: str, value: Any, default: Any, limits: Mapping[str, Any]) -> None:
    """Raise an error naming `what` where a value is of the wrong kind or beyond its limits."""
    if value is None and (default is None or default is MISSING):
        return
    kind = limits.get("kind") or type(default)
    if kind in _KINDS:
        accepted, words = _KINDS[kind]
        if not isinstance(value, accepted) or isinstance(value, bool) != (kind is bool):
            raise InputError(f"{what} must be {words}, got {value!r}")
    if limits.get("choices") and value not in limits["choices"]:
        raise unknown_name(what.split(" of method ")[0].removeprefix("option "), value, limits["choices"])
    if limits.get("least") is not None and not value >= limits["least"]:
        raise InputError(f"{what} must be at least {limits['least']}, got {value!r}")
    if limits.get("above") is not None and not value > limits["above"]:
        raise InputError(f"{what} must be above {limits['above']}, got {value!r}")
