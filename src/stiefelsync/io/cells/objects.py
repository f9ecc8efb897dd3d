"""NPY files with pickled objects, as suite2p writes them, and pickles, read without running anything they bring along.

Arrays, numbers, texts, lists and dictionaries are rebuilt from their bytes; whatever else a pickle names is replaced by
a stand-in that keeps nothing and does nothing.
"""

from __future__ import annotations

import math
import pickle
import pickletools
import re
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from stiefelsync.errors import FormatError
from stiefelsync.io.limits import check_bytes, regular

__all__ = ["as_array", "is_npy", "read_npy", "read_objects"]

_NUMBERS = re.compile(r"b1|[iu][1248]|f[248]|[US][0-9]{1,6}")
_ORDERS: dict[Any, Literal["<", ">", "="]] = {"<": "<", ">": ">", "=": "=", "|": "="}
MAGIC = b"\x93NUMPY"
HEAD = 2**16  # bytes that the head of an NPY file may take; NumPy itself reads 10,000
DEEPEST = 4  # axes of an array


class _Type:
    """Stands for `numpy.dtype` while a pickle is read."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        self.code: Any = code
        self.order: Any = "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def dtype(self) -> np.dtype[Any]:
        if self.code in ("O8", "O4", "O"):
            return np.dtype(object)
        if not isinstance(self.code, str) or not _NUMBERS.fullmatch(self.code) or self.order not in _ORDERS:
            raise ValueError(f"an array of the type {str(self.code)[:20]!r} is not expected")
        return np.dtype(self.code).newbyteorder(_ORDERS[self.order])


class _Array:
    """Stands for `numpy.ndarray` while a pickle is read."""

    state: Any = ()

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def array(self) -> NDArray[Any]:
        if not isinstance(self.state, tuple) or len(self.state) != 5:
            raise ValueError("an array is not complete")
        _, shape, kind, fortran, data = self.state
        if not isinstance(kind, _Type) or not isinstance(shape, tuple) or len(shape) > DEEPEST:
            raise ValueError("an array is not complete")
        if not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError("an array has no sound shape")
        return _filled(kind.dtype(), shape, data, fortran is True)


def _filled(dtype: np.dtype[Any], shape: tuple[int, ...], data: Any, fortran: bool) -> NDArray[Any]:
    order: Literal["F", "C"] = "F" if fortran else "C"
    if dtype.hasobject:
        if not isinstance(data, list) or len(data) != math.prod(shape):
            raise ValueError("an array of objects is not complete")
        made = np.empty(len(data), dtype=object)
        for place, value in enumerate(data):
            made[place] = value
        return made.reshape(shape, order=order)
    if isinstance(data, str):  # written by Python 2
        data = data.encode("latin1")
    if not isinstance(data, bytes | bytearray) or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"an array of shape {shape} does not have as many bytes")
    return np.frombuffer(bytes(data), dtype=dtype).reshape(shape, order=order)


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _frombuffer(data: Any, kind: Any, shape: Any, order: Any) -> _Array:
    made = _Array()
    made.state = 1, shape, kind, order == "F", bytes(data) if isinstance(data, bytes | bytearray) else data
    return made


def _scalar(kind: Any, data: Any = b"") -> Any:
    if not isinstance(kind, _Type):
        raise pickle.UnpicklingError("a number is not complete")
    dtype = kind.dtype()
    return data if dtype.hasobject else _filled(dtype, (1,), data, False)[0]


def _encode(text: Any, encoding: Any) -> bytes:
    """Return bytes, which old pickles hold as text."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("only bytes are encoded")
    return text.encode("latin1")


class _Stranger:
    """Stands for whatever else a pickle names: it is made, kept nothing of, and never looked at."""

    def __new__(cls, *_: Any, **__: Any) -> _Stranger:
        return object.__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __setstate__(self, _: Any) -> None: ...


_STANDS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): dict,
}
for _core in ("numpy.core", "numpy._core"):
    _STANDS[f"{_core}.multiarray", "_reconstruct"] = _reconstruct
    _STANDS[f"{_core}.multiarray", "scalar"] = _scalar
    _STANDS[f"{_core}.numeric", "_frombuffer"] = _frombuffer


class _Reader(pickle.Unpickler):
    """Unpickles containers, numbers, texts and what stands for arrays, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a class; no module is ever imported."""
        return _STANDS.get((module, name), _Stranger)

    def persistent_load(self, pid: Any) -> Any:
        """Refuse."""
        raise pickle.UnpicklingError("references to elsewhere are not allowed")


def is_npy(path: Path) -> bool:
    """Return whether a file begins like an NPY file."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_objects(data: bytes, path: Path) -> Any:
    """Return what a pickle holds; arrays in it stay as they are until :func:`as_array` asks for them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in texts
            for operation, argument, _ in pickletools.genops(data):
                if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and (argument or 0) > len(data):
                    raise ValueError("it numbers more objects than it can hold")
            return _Reader(BytesIO(data), encoding="latin1").load()
    except MemoryError:
        raise
    except Exception as error:  # a pickle can fail in any way
        raise FormatError(f"{path} holds no sound pickle ({error}); was it cut short?") from None


def as_array(value: Any, path: Path) -> NDArray[Any]:
    """Return an array that a pickle holds, or an array of a list of numbers; objects in it stay as they are."""
    try:
        if isinstance(value, _Array):
            return value.array()
        if isinstance(value, np.ndarray | np.generic):
            return np.asarray(value)
        if isinstance(value, list | tuple) and all(isinstance(v, int | float | np.generic) for v in value):
            return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{path}: {error}") from None
    raise FormatError(f"{path} holds a {type(value).__name__.lstrip('_')} where an array is expected")


def read_npy(path: Path) -> Any:
    """Return the array of an NPY file; of one with objects an array of these, or the object where it has no axes."""
    size = regular(path).stat().st_size
    with path.open("rb") as file:
        begin = BytesIO(file.read(HEAD))  # a head may claim any length, which is not to be taken from the file
        try:
            version = npy.read_magic(begin)
            reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "created on Python 2", and odd escapes
                shape, fortran, dtype = reader(begin)
        except (ValueError, SyntaxError) as error:
            raise FormatError(f"{path} is not an NPY file ({error})") from None
        file.seek(begin.tell())
        if dtype.hasobject:
            if dtype != np.dtype(object):
                raise FormatError(f"{path} holds records of objects, which are not expected")
            value = read_objects(file.read(), path)
            array = as_array(value, path)
            return array[()] if array.shape == () else array
        needed = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or file.tell() + needed != size:
            raise FormatError(f"{path} has not as many bytes as its shape {shape} needs; was it cut short?")
        check_bytes(needed, path, "its array")
        data = file.read(needed)
    return np.frombuffer(data, dtype=dtype, count=math.prod(shape)).reshape(shape, order="F" if fortran else "C")
