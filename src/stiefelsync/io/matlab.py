"""A reader of MAT files, level 5, for plain matrices, sparse ones, text, cells of text and structs.

SciPy's reader trusts the file and crashes the process on some damaged ones; this one checks every length it is told.
Layout: "MAT-File Format", The MathWorks. An element is a tag (type, number of bytes) and data, padded to 8 bytes; a
variable is an element that holds others: flags, dimensions, name, values.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.limits import as_integers, check_bytes, shown
from stiefelsync.io.sparse_arrays import from_parts

__all__ = ["load"]

HEADER = 128
MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
CELL, STRUCT, CHAR, SPARSE = 1, 2, 4, 5
COMPLEX = 0x08
PEEK = 1024  # bytes of a variable that tell its name: flags and dimensions take 40 or so
DEEPEST = 8  # cells inside cells

Order = Literal["<", ">"]


def load(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Return those of the named variables that a file has: arrays, sparse matrices, texts, lists for cells, dicts.

    Raises :class:`FormatError` or :class:`InputError` for whatever is wrong with the file.
    """
    found: dict[str, Any] = {}
    with path.open("rb") as file:
        size = path.stat().st_size
        order = _order(file.read(HEADER), path)
        at, taken = HEADER, 0
        while at < size:
            file.seek(at)
            tag = file.read(8)
            kind, length = struct.unpack(f"{order}II", tag) if len(tag) == 8 else (0, size)
            if at + 8 + length > size:
                raise FormatError(f"{path} is not a complete MAT file; was it cut short?")
            name, whole = _peek(file, kind, length, order)
            if name is not None and name in names:
                taken += whole
                check_bytes(taken, path, "its variables")
                file.seek(at + 8)
                body = _unpacked(file.read(length), whole, order) if kind == COMPRESSED else file.read(length)
                found[name] = _variable(memoryview(body), order)[1]
            at += 8 + length + (0 if kind == COMPRESSED else -length % 8)
    return found


def _order(header: bytes, path: Path) -> Order:
    """Return the order of bytes, which the header's last two tell."""
    orders: dict[bytes, Order] = {b"IM": "<", b"MI": ">"}
    if header[126:] not in orders:
        raise FormatError(f"{path} is not a complete MAT file: its header is damaged")
    return orders[header[126:]]


def _peek(file: IO[bytes], kind: int, length: int, order: Order) -> tuple[str | None, int]:
    """Return the name of the variable that begins here, None of anything else, and its length when unpacked."""
    if kind not in (MATRIX, COMPRESSED):
        return None, 0
    start = file.read(min(length, PEEK))
    if kind == COMPRESSED:
        start = zlib.decompressobj().decompress(start, PEEK)
        if len(start) < 8:
            raise InputError("a packed variable is empty")
        kind, length = struct.unpack(f"{order}II", start[:8])
        start = start[8:]
        if kind != MATRIX:
            return None, 0
    parts = _parts(memoryview(start), order)
    _flags(next(parts), order)
    next(parts)
    return _name(next(parts)), length


def _unpacked(data: bytes, length: int, order: Order) -> bytes:
    """Return the body of a packed variable, which says itself how long it is."""
    body = zlib.decompressobj().decompress(data, 8 + length)
    if len(body) != 8 + length:
        raise InputError("a packed variable is shorter than it says")
    return body[8:]


def _parts(data: memoryview, order: Order) -> Iterator[tuple[int, memoryview]]:
    """Yield the elements of a variable, type and data each; up to four bytes of data may stand in the tag itself."""
    at = 0
    while at + 8 <= len(data):
        kind, length = struct.unpack(f"{order}II", data[at : at + 8])
        small = kind >> 16
        begin = at + 4 if small else at + 8
        kind, length = (kind & 0xFFFF, small) if small else (kind, length)
        if begin + length > len(data) or small > 4:
            break
        yield kind, data[begin : begin + length]
        at = at + 8 if small else begin + length + -length % 8
    raise InputError("a variable ends too early")


def _flags(part: tuple[int, memoryview], order: Order) -> int:
    kind, data = part
    if kind != 6 or len(data) != 8:
        raise InputError("a variable has no flags")
    flags: int = struct.unpack(f"{order}I", data[:4])[0]
    return flags


def _name(part: tuple[int, memoryview]) -> str:
    return bytes(part[1]).decode("latin-1")


def _values(part: tuple[int, memoryview], order: Order) -> NDArray[Any]:
    kind, data = part
    if kind not in NUMBERS:
        raise InputError(f"numbers of the unknown type {kind}")
    dtype = np.dtype(order + NUMBERS[kind])
    if len(data) % dtype.itemsize:
        raise InputError(f"{len(data)} bytes are not a whole number of {dtype}")
    return np.frombuffer(data, dtype=dtype).astype(dtype.newbyteorder("="), copy=False)


def _variable(data: memoryview, order: Order, depth: int = 0) -> tuple[str, Any]:
    """Return a variable's name and value; None for kinds that are not read."""
    parts = _parts(data, order)
    flags = _flags(next(parts), order)
    dims = as_integers(_values(next(parts), order), "dimensions").tolist()
    name, kind = _name(next(parts)), flags & 0xFF
    if not 2 <= len(dims) <= 32 or min(dims) < 0:
        raise InputError(f"{shown(name)!r} has the dimensions {shown(str(dims))}")
    if (flags >> 8) & COMPLEX:
        raise InputError(f"{shown(name)!r} holds complex numbers; real ones are expected")
    if kind == SPARSE:
        return name, _sparse(parts, dims, order)
    if kind == CHAR:
        return name, _text(next(parts), dims, order)
    if kind == CELL:
        return name, _cells(parts, math.prod(dims), order, depth)
    if kind == STRUCT:
        return name, _struct(parts, math.prod(dims), order, depth)
    if kind not in CLASSES:
        return name, None
    values = _values(next(parts), order) if math.prod(dims) else np.empty(0)
    if len(values) != math.prod(dims):
        raise InputError(f"{shown(name)!r} has {len(values)} entries where {shown(str(dims))} are declared")
    return name, _converted(values, CLASSES[kind]).reshape(dims, order="F")


def _converted(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return values in the type that the variable has, which may be stored in a smaller one, but never lose any."""
    with np.errstate(invalid="ignore", over="ignore"):
        made = values.astype(dtype)
        kept = (made == values) | (made != made) & (values != values)
    if not kept.all():
        raise InputError(f"a number does not fit the type {np.dtype(dtype)} of its variable")
    return made


def _sparse(parts: Iterator[tuple[int, memoryview]], dims: list[int], order: Order) -> Any:
    rows, columns, values = (_values(next(parts), order) for _ in range(3))
    entries = int(columns[-1]) if len(columns) else 0  # there may be room for more than are used
    if not 0 <= entries <= min(len(rows), len(values)):
        raise InputError("a sparse matrix points beyond its entries")
    arrays = {"data": values[:entries], "indices": rows[:entries], "indptr": columns}
    return from_parts("csc", np.array(dims), arrays)


def _text(part: tuple[int, memoryview], dims: list[int], order: Order) -> str | list[str]:
    """Return a text, or one for every row of a matrix of letters."""
    kind, data = part
    if kind not in TEXTS:
        raise InputError(f"text of the unknown type {kind}")
    ending = {"<": "-le", ">": "-be"}[order] if TEXTS[kind] in ("utf-16", "utf-32") else ""
    text = bytes(data).decode(TEXTS[kind] + ending)
    if dims[0] <= 1:
        return text
    if len(text) != math.prod(dims):
        raise InputError(f"text of {len(text)} letters does not fill {shown(str(dims))}")
    return ["".join(text[row :: dims[0]]).rstrip() for row in range(dims[0])]


def _struct(parts: Iterator[tuple[int, memoryview]], count: int, order: Order, depth: int) -> dict[str, Any] | None:
    """Return the fields of a single struct, None of an array of them."""
    width = int(_values(next(parts), order).sum())
    names = bytes(next(parts)[1])
    if count != 1:
        return None
    if width < 1 or len(names) % width:
        raise InputError("a struct has no sound names of fields")
    fields = [names[at : at + width].split(b"\0")[0].decode("latin-1") for at in range(0, len(names), width)]
    return dict(zip(fields, _cells(parts, len(fields), order, depth), strict=True))


def _cells(parts: Iterator[tuple[int, memoryview]], count: int, order: Order, depth: int) -> list[Any]:
    if depth > DEEPEST:
        raise InputError("cells lie too deep inside each other")
    cells: list[Any] = []
    while len(cells) < count:
        kind, data = next(parts)
        if kind != MATRIX:
            raise InputError(f"a cell of the unknown type {kind}")
        cells.append(_variable(data, order, depth + 1)[1] if len(data) else None)
    return cells
