"""The one way to call a compiled kernel: every argument is checked against the table of signatures."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from stiefelsync._core.library import library
from stiefelsync._core.signatures import CONSTANTS, SIGNATURES, STRUCTS, Argument, parse

__all__ = ["call", "constant", "struct"]

_NAMES = {"__builtins__": {}, "len": len}  # what lengths may be reckoned with, beside the arguments

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
    function, arguments = _bound(name)
    result = function(*_converted(name, arguments, values))
    if result is not None and result < 0:
        raise MemoryError(f"no memory for {name.replace('_', ' ')}")
    return result or 0


def struct(name: str, **values: Any) -> ctypes.Structure:
    """Return a struct of numbers and arrays, which it keeps alive; fields that are not given are None or zero.

    Examples
    --------
    >>> struct("Entries", k=2, d=0, m=0, where=np.empty(0, dtype=np.int64), offsets=np.zeros(3, dtype=np.int64)).k
    2
    """
    kind, fields = _struct(name)
    if unknown := values.keys() - {field.argument.name for field in fields}:
        raise TypeError(f"{name} has no field {', '.join(sorted(unknown))}")
    given = [values.get(field.argument.name, None if field.dtype is not None else 0) for field in fields]
    made: ctypes.Structure = kind(*_converted(name, fields, given))
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


class _Parameter(NamedTuple):
    """An argument, the dtype of its entries if it is an array, and its compiled length."""

    argument: Argument
    dtype: np.dtype[Any] | None
    length: CodeType | None


def _parameters(arguments: str) -> tuple[_Parameter, ...]:
    return tuple(
        _Parameter(
            argument,
            None if argument.length is None else np.dtype(argument.kind),
            compile(argument.length, argument.name, "eval") if argument.length else None,
        )
        for argument in parse(arguments)
    )


@cache
def _bound(name: str) -> tuple[Any, tuple[_Parameter, ...]]:
    """Return a function of the library, its types set, and its parameters."""
    result, _, arguments = SIGNATURES[name].partition(": ")
    function, parameters = getattr(library(), name), _parameters(arguments)
    function.restype, function.argtypes = _RESULTS[result], [_type(one) for one in parameters]
    return function, parameters


@cache
def _struct(name: str) -> tuple[Any, tuple[_Parameter, ...]]:
    """Return a struct's type and its fields."""
    fields = _parameters(STRUCTS[name])
    return type(name, (ctypes.Structure,), {"_fields_": [(one.argument.name, _type(one)) for one in fields]}), fields


def _type(parameter: _Parameter) -> Any:
    if parameter.dtype is not None:
        return ctypes.c_void_p
    kind = parameter.argument.kind
    return ctypes.POINTER(_struct(kind)[0]) if kind in STRUCTS else _NUMBERS[kind][0]


def _converted(name: str, parameters: tuple[_Parameter, ...], values: Any) -> list[Any]:
    """Return values as C takes them, or say which of them does not fit."""
    if len(values) != len(parameters):
        raise TypeError(f"{name} takes {len(parameters)} arguments, not {len(values)}")
    known = {one.argument.name: value for one, value in zip(parameters, values, strict=True)}
    found: list[Any] = []
    for one, value in zip(parameters, values, strict=True):
        if one.dtype is not None:
            found.append(_address(name, one, value, known))
        elif one.argument.kind in STRUCTS:
            if not isinstance(value, _struct(one.argument.kind)[0]):
                raise TypeError(f"{one.argument.name} of {name} must be a struct {one.argument.kind}")
            found.append(ctypes.byref(value))
        else:
            found.append(_NUMBERS[one.argument.kind][1](value))
    return found


def _address(name: str, parameter: _Parameter, array: Any, known: dict[str, Any]) -> int | None:
    """Return where an array begins that is what its parameter says; None stays None where it may."""
    argument = parameter.argument
    if array is None and argument.optional:
        return None
    if not isinstance(array, np.ndarray) or array.dtype != parameter.dtype:
        what = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{argument.name} of {name} must be an array of {parameter.dtype}, not {what}")
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        raise ValueError(f"{argument.name} of {name} must be C-contiguous and aligned")
    if argument.written and not flags.writeable:
        raise ValueError(f"{argument.name} of {name} is written to, but is read-only")
    if parameter.length is not None and array.size != (length := eval(parameter.length, _NAMES, known)):
        raise ValueError(f"{argument.name} of {name} must hold {length} entries, not {array.size}")
    # Four times as quick as array.ctypes, but only for arrays that may be written to.
    if flags.writeable and array.size:
        return ctypes.addressof(_BYTE.from_buffer(array))
    return int(array.ctypes.data)
