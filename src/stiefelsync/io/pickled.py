"""Pickled matches, as OpenSfM keeps them, read without running anything: neither Python code nor NumPy's unpickling."""

from __future__ import annotations

import gzip
import math
import pickle
import pickletools
import re
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError
from stiefelsync.io.limits import EXPANSION, SMALL_BYTES, as_integers, regular

__all__ = ["read_pickled"]

_WHOLE = re.compile(r"[iu][1248]")  # types of whole numbers, as they are pickled
_ORDERS: dict[Any, Literal["<", ">", "="]] = {"<": "<", ">": ">", "=": "=", "|": "="}


class _Type:
    """Stands for `numpy.dtype` while a pickle is read."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        self.code: Any = code
        self.order: Any = "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def dtype(self) -> np.dtype[Any]:
        if not isinstance(self.code, str) or not _WHOLE.fullmatch(self.code) or self.order not in _ORDERS:
            raise ValueError("an array does not hold whole numbers")
        return np.dtype(self.code).newbyteorder(_ORDERS[self.order])


class _Array:
    """Stands for `numpy.ndarray` while a pickle is read."""

    state: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        self.state = tuple(state)

    def array(self) -> NDArray[Any]:
        _, shape, kind, fortran, data = self.state
        if isinstance(data, str):  # written by Python 2
            data = data.encode("latin1")
        if not isinstance(kind, _Type) or not isinstance(data, bytes | bytearray) or not isinstance(shape, tuple):
            raise ValueError("an array is not complete")
        dtype = kind.dtype()
        if not all(isinstance(side, int) and side >= 0 for side in shape) or len(shape) > 2:
            raise ValueError(f"an array has the shape {shape}")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise ValueError(f"an array of shape {shape} has {len(data)} bytes")
        return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _frombuffer(data: Any, kind: Any, shape: Any, order: Any) -> _Array:
    made = _Array()
    made.state = 1, shape, kind, order == "F", bytes(data) if isinstance(data, bytes | bytearray) else data
    return made


def _encode(text: Any, encoding: Any) -> bytes:
    """Return bytes, which old pickles hold as text."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("only bytes are encoded")
    return text.encode("latin1")


_STANDS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
}
for _core in ("numpy.core", "numpy._core"):
    _STANDS[f"{_core}.multiarray", "_reconstruct"] = _reconstruct
    _STANDS[f"{_core}.numeric", "_frombuffer"] = _frombuffer


class _Reader(pickle.Unpickler):
    """Unpickles containers, numbers, texts and what stands for arrays, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a class of NumPy, or refuse."""
        if (module, name) not in _STANDS:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")
        return _STANDS[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """Refuse."""
        raise pickle.UnpicklingError("references to elsewhere are not allowed")


def read_pickled(path: Path, ending: str) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Return the matches of a file, or of all files in a folder whose names are of an image and that ending.

    Returns
    -------
    matches : dict of (image, other) to (K, 2) int64
    """
    matches: dict[tuple[str, str], NDArray[np.int64]] = {}
    for file in sorted(path.glob("*" + ending)) if path.is_dir() else [path]:
        image = file.name.removesuffix(ending)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd escapes in texts
                others = _Reader(BytesIO(_content(file)), encoding="latin1").load()
            for other, block in others.items():
                array = _pairs(block)
                if array.size:
                    matches[image, str(other)] = array
        except (MemoryError, FormatError):
            raise
        except Exception as error:  # a pickle can fail in any way
            raise FormatError(f"{file} holds no matches by OpenSfM ({error})") from None
    return matches


def _content(file: Path) -> bytes:
    """Return the bytes of a pickle that is not out to fill the memory."""
    most = max(SMALL_BYTES, EXPANSION * file.stat().st_size)
    with gzip.open(regular(file)) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it unpacks to more than {most:,} bytes")
    for operation, argument, _ in pickletools.genops(data):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and (argument or 0) > len(data):
            raise ValueError("it numbers more objects than it can hold")
    return data


def _pairs(block: Any) -> NDArray[np.int64]:
    """Return matches, shape (K, 2), given as an array or as rows of two whole numbers."""
    if isinstance(block, _Array):
        return as_integers(block.array(), "matches")
    if not isinstance(block, list | tuple):
        raise TypeError(f"matches are given as {type(block).__name__}")
    rows = [row.array() if isinstance(row, _Array) else row for row in block]
    if not all(np.shape(row) == (2,) if isinstance(row, np.ndarray) else _is_pair(row) for row in rows):
        raise ValueError("matches are not rows of two whole numbers")
    return np.array([[int(a), int(b)] for a, b in rows], dtype=np.int64).reshape(-1, 2)


def _is_pair(row: Any) -> bool:
    return isinstance(row, list | tuple) and len(row) == 2 and all(type(end) is int for end in row)
