"""The one way to call a compiled kernel: every argument is checked against the table of signatures."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from stiefelsync._core.library import library
from stiefelsync._core.signatures import CONSTANTS, SIGNATURES, STRUCTS, Argument, parse

__all__ = ["call", "constant", "struct"]

Convert: TypeAlias = Callable[..., tuple[Any, ...]]
"""Values ↦ the same as C takes them, or an error that says which of them does not fit."""

_BYTE: Any = ctypes.c_char
_RESULTS = {"int": ctypes.c_int, "i8": ctypes.c_int64, "void": None}
_NUMBERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "i8": (ctypes.c_int64, operator.index),
    "f8": (ctypes.c_double, float),
}


def call(name: str, *values: Any) -> int:
    """Call a kernel with numbers, C-contiguous arrays and structs, as its signature says, and return its result.

    Arrays are passed as they are, never copied or converted: those that do not fit are an error.

    Raises
    ------
    TypeError, ValueError
        If arguments do not fit the signature.
    MemoryError
        If the kernel had no memory.

    Examples
    --------
    >>> ends, labels, agree = np.array([[0, 1], [0, 2]]), np.array([5, 5, -1]), np.empty(2, dtype=bool)
    >>> call("find_agreeing", ends, len(ends), labels, agree)
    0
    >>> agree.tolist()
    [True, False]
    """
    function, expected, convert = _bound(name)
    if len(values) != expected:
        raise TypeError(f"{name} takes {expected} arguments, not {len(values)}")
    result = function(*convert(*values))
    if result is not None and result < 0:
        raise MemoryError(f"no memory for {name.replace('_', ' ')}")
    return result or 0


def struct(name: str, **values: Any) -> ctypes.Structure:
    """Return a struct of numbers and arrays, which it keeps alive.

    Fields that are not given are None or zero.

    Examples
    --------
    >>> struct("Chain", sizes=np.zeros(3))
    Traceback (most recent call last):
        ...
    TypeError: Chain has no field sizes
    """
    kind, fields, convert = _struct(name)
    if unknown := values.keys() - {field.name for field in fields}:
        raise TypeError(f"{name} has no field {', '.join(sorted(unknown))}")
    given = [values.get(field.name, 0 if field.length is None else None) for field in fields]
    made: ctypes.Structure = kind(*convert(*given))
    made.kept = given
    return made


def constant(name: str) -> int:
    """Return a size that the C sources decide on.

    Examples
    --------
    >>> constant("angles") > 0
    True
    """
    assert name in CONSTANTS
    return int(ctypes.c_int64.in_dll(library(), name).value)


@cache
def _bound(name: str) -> tuple[Any, int, Convert]:
    """Return a function of the library, its types set, how many arguments it takes, and what converts them."""
    result, _, text = SIGNATURES[name].partition(": ")
    function, arguments = getattr(library(), name), parse(text)
    function.restype, function.argtypes = _RESULTS[result], [_type(argument) for argument in arguments]
    return function, len(arguments), _converter(name, arguments)


@cache
def _struct(name: str) -> tuple[Any, tuple[Argument, ...], Convert]:
    """Return a struct's type, its fields, and what converts them."""
    fields = parse(STRUCTS[name])
    layout = [(field.name, _type(field)) for field in fields]
    return type(name, (ctypes.Structure,), {"_fields_": layout}), fields, _converter(name, fields)


def _type(argument: Argument) -> Any:
    if argument.length is not None:
        return ctypes.c_void_p
    return ctypes.POINTER(_struct(argument.kind)[0]) if argument.kind in STRUCTS else _NUMBERS[argument.kind][0]


def _converter(name: str, arguments: tuple[Argument, ...]) -> Convert:
    """Return what converts the arguments of a function, or the fields of a struct.

    It is compiled from the signature, once: ``n, x f8[2*n]`` becomes ``lambda n, x: (_n(n), _x(x,
    2*n))``. Kernels are called some twenty times for a small problem, where looking up at every
    call what is to be checked would show.
    """
    known: dict[str, Any] = {"__builtins__": {}, "len": len}
    calls = []
    for one in arguments:
        known[f"_{one.name}"] = _check(name, one)
        value = f"_{one.name}({one.name}{', ' + one.length if one.length else ''})"
        # The length of what is not there may depend on what is not there either.
        calls.append(f"None if {one.name} is None else {value}" if one.optional else value)
    names = ", ".join(one.name for one in arguments)
    convert: Convert = eval(f"lambda {names}: ({', '.join(calls)},)", known)
    return convert


def _check(name: str, argument: Argument) -> Callable[..., Any]:
    """Return what turns a value into what C takes for an argument, given also its length if it is an array."""
    if argument.length is not None:
        return partial(_address, name, argument, np.dtype(argument.kind))
    return partial(_reference, name, argument) if argument.kind in STRUCTS else _NUMBERS[argument.kind][1]


def _reference(name: str, argument: Argument, value: Any) -> Any:
    """Return a struct as C takes it."""
    if not isinstance(value, _struct(argument.kind)[0]):
        raise TypeError(f"{argument.name} of {name} must be a struct {argument.kind}")
    return ctypes.byref(value)


def _address(name: str, argument: Argument, dtype: np.dtype[Any], array: Any, length: int | None = None) -> int:
    """Return where an array begins that is what its argument says."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        what = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{argument.name} of {name} must be an array of {dtype}, not {what}")
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        raise ValueError(f"{argument.name} of {name} must be C-contiguous and aligned")
    if argument.written and not flags.writeable:
        raise ValueError(f"{argument.name} of {name} is written to, but is read-only")
    if length is not None and array.size != length:
        raise ValueError(f"{argument.name} of {name} must hold {length} entries, not {array.size}")
    # Four times as quick as array.ctypes, but only for arrays that may be written to.
    if flags.writeable and array.size:
        return ctypes.addressof(_BYTE.from_buffer(array))
    return int(array.ctypes.data)
