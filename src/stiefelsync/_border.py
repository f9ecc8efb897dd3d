"""The border of the package: whatever a public function is given, what is wrong with it comes as one type of error."""

from __future__ import annotations

import functools
import inspect
import operator
import os
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from stiefelsync.errors import InputError, StiefelSyncError, visible

__all__ = ["typed"]

P = ParamSpec("P")
R = TypeVar("R")

# What Python, NumPy and PyTorch raise where a value is of no use; files raise the last one.
_UNUSABLE = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, StopIteration, TypeError, ValueError,
    OSError,
)  # fmt: skip
_LONGEST = 300  # characters told of an error


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Let a public function answer arguments that it cannot use by :class:`~stiefelsync.errors.InputError`.

    What is usual is checked, and worded, by the function itself; this is for all the rest: an argument that is not of
    the type that the function names, or a value of which nobody thought. The cause is kept. Three kinds of errors
    stay what they are: those of the package, those raised by a function that was given (a callback), and those that
    no argument can explain, since all of them are objects of this package or of the type they should be: these are
    mistakes of ours.

    Examples
    --------
    >>> @typed
    ... def half(number: float) -> float:
    ...     return number / 2
    >>> half(3)
    1.5
    >>> half("ten")
    Traceback (most recent call last):
    stiefelsync.errors.InputError: number must be a number, got 'ten'
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except StiefelSyncError:
            raise
        except _UNUSABLE as error:
            found = _explained(function, error, args, kwargs)
            if found is None:
                raise
            raise found from error

    return call


def _explained(
    function: Callable[..., Any], error: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> InputError | None:
    """Return what an error is called at the border, or None if it stays what it is."""
    given = _named(function, args, kwargs)
    if given is None or _raised_inside(error, [value for _, value, _ in given]):
        return None
    for name, value, kind in given:
        words = _expected(kind, value, function)
        if words:
            return InputError(f"{name} must be {words}, got {_shown(value)}")
    beyond_doubt = all(_is_ours(value) and _expected(kind, value, function) == "" for _, value, kind in given)
    if beyond_doubt and function.__name__ != "__post_init__":
        return None
    called = function.__qualname__.partition(".__")[0]
    told = visible(f"{type(error).__name__}: {error}")[:_LONGEST]
    return InputError(f"{called} cannot use what it was given ({told})")


def _named(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any, str]] | None:
    """Return name, value and type, in words, of all arguments given; None if the call itself is wrong."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:  # an argument is missing, or unknown
        return None
    # Of what may be given again and again, nothing is something to be given.
    found: list[tuple[str, Any, str]] = [
        (name, (), "")
        for name, parameter in signature.parameters.items()
        if parameter.kind is parameter.VAR_POSITIONAL and name not in bound.arguments
    ]
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        kind = "" if parameter.annotation is parameter.empty else str(parameter.annotation)
        if parameter.kind is parameter.VAR_KEYWORD:
            found += [(own, one, "") for own, one in value.items()]
        elif parameter.kind is parameter.VAR_POSITIONAL:
            found += [(name, one, kind) for one in value]
        elif not (name in ("self", "cls") and not kind):
            found.append((name, value, kind))
    return found


def _raised_inside(error: BaseException, values: list[Any]) -> bool:
    """Return whether a function that was given raised the error: that is not for us to word."""
    codes = {_code(value) for value in values if callable(value)} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _code(function: Any) -> types.CodeType | None:
    """Return what the frames of a function can be told by."""
    for one in (function, getattr(function, "__func__", None), vars(type(function)).get("__call__")):
        code = getattr(inspect.unwrap(one) if callable(one) else None, "__code__", None)
        if isinstance(code, types.CodeType):
            return code
    return None


def _is_ours(value: Any) -> bool:
    """Return whether a value that is of the right type is one that can be used: others may be out of range."""
    return value is None or isinstance(value, bool) or type(value).__module__.startswith("stiefelsync")


# ---------------------------------------------------------------- types in words


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    if not isinstance(value, str | os.PathLike):
        return False
    name = os.fspath(value)
    return isinstance(name, str) and "\0" not in name and name.isprintable()


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes | complex | bool):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_true_or_false(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _is_seed(value: Any) -> bool:
    return _is_whole(value) or type(value).__name__ in ("Generator", "RandomState", "SeedSequence", "PCG64")


def _takes_one(value: Any) -> bool:
    """Return whether a function takes one argument, as a callback must."""
    if not callable(value):
        return False
    try:
        inspect.signature(value).bind(None)
    except TypeError:
        return False
    except ValueError:  # a function of C that does not tell
        return True
    return True


_WORDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "None": ("None", lambda value: value is None),
    "str": ("a text", _is_text),
    "bool": ("True or False", _is_true_or_false),
    "int": ("a whole number", _is_whole),
    "float": ("a number", _is_number),
    "Name": ("the name of a file", _is_path),
    "Path": ("the name of a file", _is_path),
    "os.PathLike": ("the name of a file", _is_path),
    "np.random.Generator": ("a generator", _is_seed),
    "Sequence": ("a sequence", lambda value: _is_one_of(Sequence, value)),
    "Iterable": ("a sequence", lambda value: _is_one_of(Iterable, value)),
    "Mapping": ("a dict", lambda value: _is_one_of(Mapping, value)),
    "Callback": ("a function of one argument", _takes_one),
    "Callable": ("a function", callable),
}


def _expected(kind: str, value: Any, function: Callable[..., Any]) -> str | None:
    """Return what a value should be, in words; an empty text if it is of that type, None if the type says little."""
    wanted = []
    for one in re.split(r"\s*\|\s*(?![^\[]*\])", kind.strip()):
        name = one.partition("[")[0].strip()
        if name == "Callable" and re.match(r"Callable\[\[[^,\]]+\],", one):
            name = "Callback"
        if name in _WORDS:
            words, fits = _WORDS[name]
        else:
            known = getattr(inspect.unwrap(function), "__globals__", {}).get(name)
            if not inspect.isclass(known) or getattr(known, "_is_protocol", False) or known.__module__ == "typing":
                return None
            words, fits = name, functools.partial(_is_one_of, known)
        if fits(value):
            return ""
        wanted.append(words)
    told = list(dict.fromkeys(wanted))
    return " or ".join(told)


def _is_one_of(known: type, value: Any) -> bool:
    """Return whether a value is of a class; arrays are sequences, too."""
    if known.__module__ == "collections.abc" and hasattr(value, "__array__"):
        return True
    return isinstance(value, known) and not isinstance(value, str | bytes)


def _shown(value: Any) -> str:
    """Return a value, or its type where it is long."""
    kind = type(value).__name__
    if isinstance(value, str | int | float | bytes | type(None)):
        told = visible(repr(value))
        return told if len(told) < 60 else kind
    return kind
