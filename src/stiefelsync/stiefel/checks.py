"""What options may be: one check for each kind, with one wording."""

from __future__ import annotations

import numbers
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import InputError

__all__ = ["as_integers", "check_count", "check_power", "check_tolerance", "generator", "is_count", "is_integer"]


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return the generator for a seed; None is a generator that nobody can repeat, as in SPEC 7.

    Examples
    --------
    >>> bool(generator(0).random() == generator(0).random())
    True
    >>> bool(generator(None).random() == generator(None).random())
    False
    """
    # NumPy makes a seed of every array that can be turned into whole numbers, complex ones by halves.
    seeds = isinstance(rng, np.ndarray) and (rng.dtype.kind not in "iu" or np.ma.isMaskedArray(rng))
    try:
        if not seeds:
            return np.random.default_rng(rng)
    except (TypeError, ValueError):
        pass
    raise InputError(f"rng must be a seed (a whole number of at least 0) or a generator, got {rng!r}")


def as_integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return an array of whole numbers, or raise :class:`InputError` for what NumPy would cut to be some.

    Examples
    --------
    >>> as_integers([1, 2], "labels").tolist()
    [1, 2]
    >>> as_integers([1.5], "labels")
    Traceback (most recent call last):
    stiefelsync.errors.InputError: labels must be whole numbers, got float64
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise InputError(f"{name} must be whole numbers, got {array.dtype}")
    if array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{name} holds {int(array.max())}, which is out of range")
    return array.astype(np.int64)


def is_integer(value: Any) -> bool:
    """Return whether a value is a whole number of any integer type; True and False are not.

    Examples
    --------
    >>> is_integer(np.int32(3)), is_integer(3.0), is_integer(True)
    (True, False, False)
    """
    if isinstance(value, bool | np.bool_):  # which NumPy before 2 still takes for 0 and 1
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number of at least 1.

    Examples
    --------
    >>> is_count(1), is_count(0)
    (True, False)
    """
    return is_integer(value) and value >= 1


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return a whole number of at least `least` and at most `most`, or say what was given instead.

    Examples
    --------
    >>> check_count("max_iter", 3)
    3
    """
    if not is_integer(value) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if most is not None and value > most:
        raise InputError(f"{name} must be at most {most:,}, got {value!r}")
    return int(value)


def check_power(p: Any) -> int:
    """Return the power of the secondary objective, a whole number of at least 3.

    At powers beyond a thousand all but the largest entries vanish, and a power costs as many
    products.

    Examples
    --------
    >>> check_power(4)
    4
    """
    return check_count("p", p, 3, 1_000)


def check_tolerance(tol: Any) -> float:
    """Return a positive tolerance.

    Examples
    --------
    >>> check_tolerance(1e-5)
    1e-05
    """
    if not isinstance(tol, numbers.Real) or isinstance(tol, bool) or not float(tol) > 0:
        raise InputError(f"tol must be a positive number, got {tol!r}")
    return float(tol)
