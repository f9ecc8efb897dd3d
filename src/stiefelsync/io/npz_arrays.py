"""The arrays of NPZ files of strangers: never pickles, and no more memory than the file can fill."""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from stiefelsync.errors import FormatError
from stiefelsync.io.limits import check_bytes, regular

__all__ = ["load"]

MOST_LISTED = 20  # names of arrays in an error


def load(path: Path, names: Collection[str] | None) -> dict[str, NDArray[Any]]:
    """Return those of the named arrays that an NPZ file has (None: all it has), refusing pickled objects.

    What an array's header declares is compared with what the archive has of it before memory is taken; arrays that
    nobody asked for are not looked at.
    """
    found: dict[str, NDArray[Any]] = {}
    try:
        with regular(path).open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            chosen = {name: info for name, info in members.items() if names is None or name in names}
            check_bytes(sum(info.file_size for info in chosen.values()), path, "its arrays")
            for name, info in chosen.items():
                found[name] = _array(archive, info, f"{path}: the array {name!r}")
            if not found:
                listed = ", ".join(sorted(members)[:MOST_LISTED]) or "nothing"
                raise FormatError(f"{path} holds none of the arrays of matchings, only {listed}")
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError) as error:
        raise FormatError(f"{path} is not a complete NPZ file ({error}); was it cut short?") from None
    return found


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> NDArray[Any]:
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "created on Python 2"
            shape, fortran, dtype = reader(stream)
        if dtype.hasobject:
            raise FormatError(f"{where} holds pickled Python objects, which could run code; save plain arrays instead")
        begin, needed = stream.tell(), math.prod(shape) * dtype.itemsize
        if begin + needed != info.file_size or min(shape, default=0) < 0:
            raise FormatError(f"{where} has {info.file_size:,} bytes where its shape {shape} needs {begin + needed:,}")
        data = stream.read(needed)
        if len(data) != needed or stream.read(1):  # the last read compares the checksum
            raise FormatError(f"{where} is not complete; was the file cut short?")
    return np.frombuffer(data, dtype=dtype, count=math.prod(shape)).reshape(shape, order="F" if fortran else "C")
