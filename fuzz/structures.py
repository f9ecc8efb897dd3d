"""Damage that knows the structure: pages of SQLite, chunks of HDF5, columns of Parquet.

Bytes that are changed anywhere are mostly refused by the first check. Here a file stays one that its library takes
seriously, and is wrong where only the reader behind it can notice: pages that are children of many, lengths that lie,
chunks that unpack to something else, counts that wrap, headers of pages that promise anything.
"""

from __future__ import annotations

import contextlib
import io as streams
import os
import random
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync import Matchings
from tests.io.colmap_schemas import build

__all__ = ["chunks", "columns", "pages", "sqlite_seeds", "table"]

EDGES = (0, 1, 2, 3, 7, 127, 128, 255, 2**15, 2**16 - 1, 2**20, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1)
BOMBS = (36, 2**20, 2**28)  # bytes
MANY = 4 * 2**20  # bytes that a chunk or a text may unpack to beyond what is announced: more makes every case slow


# ---------------------------------------------------------------- SQLite: pages


def sqlite_seeds(folder: Path) -> list[bytes]:
    """Return databases whose tables have several pages: of 512 bytes with rows that run over, and of 4,096."""
    rng = np.random.default_rng(0)
    made = []
    for size, points in ((512, 60), (1024, 300), (4096, 40)):
        labels = np.concatenate([rng.permutation(points) for _ in range(6)])
        problem = Matchings.from_labels(labels, [points] * 6, coordinates=rng.uniform(0, 900, (6 * points, 2)))
        path = folder / f"pages{size}.db"
        build(path, problem, problem, "3.8" if size == 512 else "4.2")
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute(f"PRAGMA page_size = {size}")
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("VACUUM")
        made.append(path.read_bytes())
    return made


class _Pages:
    """A database in pages, numbered from 1."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.size = int.from_bytes(data[16:18], "big") or 512
        self.size = 65536 if self.size == 1 else self.size

    def __len__(self) -> int:
        return max(len(self.data) // self.size, 1)

    def start(self, number: int) -> int:
        return (number - 1) * self.size

    def head(self, number: int) -> int:
        """Return where the header of a page of a tree begins: on the first page behind that of the file."""
        return self.start(number) + (100 if number == 1 else 0)

    def cells(self, number: int) -> list[int]:
        """Return where the pointers to the cells of a page stand."""
        head = self.head(number)
        if head + 12 > len(self.data) or self.data[head] not in (2, 5, 10, 13):
            return []
        count = min(int.from_bytes(self.data[head + 3 : head + 5], "big"), (self.size - 12) // 2)
        first = head + (12 if self.data[head] in (2, 5) else 8)
        return [first + 2 * n for n in range(count)]

    def put(self, at: int, value: int, width: int) -> None:
        self.data[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "big")


def pages(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Return a database of which some pages lie about themselves or about others."""
    made = _Pages(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        rng.choice(_PAGE_DAMAGE)(made, rng, other)
    if rng.random() < 0.8:  # else it is refused at once: the header says how many pages there are
        made.put(28, len(made), 4)
    return bytes(made.data)


def _any_page(made: _Pages, rng: random.Random) -> int:
    return rng.randint(1, len(made))


def _copy_page(made: _Pages, rng: random.Random, _: bytes) -> None:
    one, two = made.start(_any_page(made, rng)), made.start(rng.randint(min(2, len(made)), len(made)))
    made.data[two : two + made.size] = made.data[one : one + made.size]


def _foreign_page(made: _Pages, rng: random.Random, other: bytes) -> None:
    theirs = _Pages(other)
    start, at = theirs.start(_any_page(theirs, rng)), made.start(_any_page(made, rng))
    made.data[at : at + made.size] = theirs.data[start : start + theirs.size][: made.size].ljust(made.size, b"\0")


def _child(made: _Pages, rng: random.Random, _: bytes) -> None:
    """Let a cell of an inner page, or its last child, lead somewhere."""
    number = rng.choice([n for n in range(1, len(made) + 1) if made.cells(n)] or [1])
    target = rng.choice((number, 1, _any_page(made, rng), rng.choice(EDGES)))
    cells = made.cells(number)
    if made.data[made.head(number)] in (2, 5) and (not cells or rng.random() < 0.3):
        made.put(made.head(number) + 8, target, 4)
    elif cells:
        at = made.start(number) + int.from_bytes(made.data[(spot := rng.choice(cells)) : spot + 2], "big")
        made.put(at, target, 4)


def _inner(made: _Pages, rng: random.Random, _: bytes) -> None:
    """Make a page an inner one whose children are all the same page, or a few."""
    number = rng.randint(min(2, len(made)), len(made))
    head, at = made.head(number), made.start(number) + made.size
    children = [_any_page(made, rng) for _ in range(rng.choice((1, 1, 3)))]
    count = rng.randint(1, (made.size - 12) // 7)
    made.data[head] = 5
    for n in range(count):
        at -= 5
        made.put(at, rng.choice(children), 4)
        made.data[at + 4] = min(n + 1, 127)
        made.put(head + 12 + 2 * n, at - made.start(number), 2)
    made.put(head + 3, count, 2)
    made.put(head + 5, at - made.start(number), 2)
    made.put(head + 8, rng.choice(children), 4)


def _cell(made: _Pages, rng: random.Random, _: bytes) -> None:
    """Let a pointer to a cell point elsewhere, or two to the same."""
    number = _any_page(made, rng)
    cells = made.cells(number)
    if cells:
        spot = rng.choice(cells)
        other = rng.choice(cells)
        there = int.from_bytes(made.data[other : other + 2], "big")
        made.put(spot, rng.choice((there, rng.randrange(made.size), there + rng.randint(-9, 9))), 2)


def _payload(made: _Pages, rng: random.Random, _: bytes) -> None:
    """Let the length of a row, the types in its header, or where it goes on, be something else."""
    number = _any_page(made, rng)
    cells = made.cells(number)
    if cells:
        at = made.start(number) + int.from_bytes(made.data[(spot := rng.choice(cells)) : spot + 2], "big")
        length = rng.choice((1, 1, 2, 3, 4, 9))
        value = bytes([rng.choice((0x80, 0xFF, 0x81))] * (length - 1) + [rng.randrange(128)])
        shift = rng.randrange(24)
        made.data[at + shift : at + shift + length] = value[: max(len(made.data) - at - shift, 0)]


def _overflow(made: _Pages, rng: random.Random, _: bytes) -> None:
    """Let a page that continues a row lead on to another, or to itself."""
    number = _any_page(made, rng)
    made.put(made.start(number), rng.choice((number, _any_page(made, rng), 0, rng.choice(EDGES))), 4)


def _count(made: _Pages, rng: random.Random, _: bytes) -> None:
    head = made.head(_any_page(made, rng))
    made.put(head + rng.choice((1, 3, 5)), rng.choice(EDGES), 2)
    if rng.random() < 0.2:
        made.data[head] = rng.choice((2, 5, 10, 13, 0, 255))


def _header(made: _Pages, rng: random.Random, _: bytes) -> None:
    at, width = rng.choice(((16, 2), (18, 1), (19, 1), (20, 1), (32, 4), (36, 4), (44, 4), (52, 4), (56, 4), (64, 4)))
    made.put(at, rng.choice((*EDGES, 512, 1024, 4096)), width)


def _cut_pages(made: _Pages, rng: random.Random, _: bytes) -> None:
    del made.data[made.start(rng.randint(2, len(made) + 1)) :]


def _text(made: _Pages, rng: random.Random, _: bytes) -> None:
    """Change a word of the schema for one as long."""
    words = {b"INTEGER": b"VARCHAR", b"BLOB": b"TEXT", b"NOT NULL": b"UNIQUE  ", b"TABLE": b"INDEX", b"rows": b"cols"}
    old = rng.choice(list(words))
    at = bytes(made.data).find(old, rng.randrange(len(made.data)))
    if at >= 0:
        made.data[at : at + len(old)] = words[old]


_PAGE_DAMAGE: tuple[Callable[[_Pages, random.Random, bytes], None], ...] = (
    _copy_page, _foreign_page, _child, _child, _inner, _cell, _payload, _payload, _overflow, _count, _header,
    _cut_pages, _text,
)  # fmt: skip


# ---------------------------------------------------------------- HDF5: chunks


def chunks(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Return a file of hloc's matches whose datasets and chunks are drawn anew; now and then with damaged nodes."""
    place = Path(tempfile.gettempdir(), f"chunks-{os.getpid()}.h5")
    place.unlink(missing_ok=True)
    for length in BOMBS:  # made once, for all processes to come
        _bomb(length)
    # In a process of its own: what the library makes of such a file while it writes is nothing that we test.
    writer = os.fork()
    if not writer:
        with contextlib.suppress(BaseException):
            _write_chunks(place, rng)
        os._exit(0)
    os.waitpid(writer, 0)
    rng.seed(rng.random())
    made = bytearray(place.read_bytes() if place.exists() and place.stat().st_size < MANY else data)
    if rng.random() < 0.4:
        _nodes(made, rng)
    return bytes(made)


def _write_chunks(place: Path, rng: random.Random) -> None:
    import h5py

    with h5py.File(place, "w", libver=rng.choice(("earliest", "latest"))) as file:
        for number in range(rng.choice((1, 1, 2, 5))):
            group = file.create_group(rng.choice(("a.jpg/b.jpg", "a/b/c.jpg", "x_y", "a.jpg")) + f"{number}")
            _dataset(group, "matches0", rng)
            if rng.random() < 0.5:
                _dataset(group, rng.choice(("matching_scores0", "keypoints0", "matches1")), rng)


def _dataset(group: Any, name: str, rng: random.Random) -> None:
    kind = rng.choice(("i2", "i4", "i8", "u2", "u8", "f2", "f8", "S3", "?", "c8", ">i4"))
    shape = rng.choice(((0,), (1,), (9,), (100,), (2**20,), (10**9,), (10**13,), (3, 2), (0, 5), ()))
    options: dict[str, Any] = {"dtype": kind}
    if shape and (max(shape) > 2**20 or rng.random() < 0.9):  # else all of it would lie in the file
        options["chunks"] = tuple(rng.choice((1, 3, 64, 4096, 2**19)) for _ in shape)
        # An index of all chunks of a size that is fixed would be written, too.
        fixed = max(shape) <= 2**20 and rng.random() < 0.5
        options["maxshape"] = tuple(max(length, 1) if fixed else None for length in shape)
        options["fillvalue"] = None if kind in ("S3", "c8") else rng.choice((0, 1, None))
        _filters(options, rng)
    try:
        if shape and rng.random() < 0.1:
            made = _packed_twice(group, name, rng)
        else:
            made = group.create_dataset(name, shape=shape, **options)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        made = group.create_dataset(name, shape=(9,), dtype="i4", chunks=(3,), compression="gzip")
    if made.chunks is None:
        return
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        length = int(np.prod(made.chunks)) * made.dtype.itemsize
        place = tuple(rng.choice((0, 1)) * size for size in made.chunks)
        stored, mask = _stored(length, rng), rng.choice((0, 0, 0, 1, 3, 255))
        with contextlib.suppress(OSError, ValueError, TypeError, RuntimeError):  # there may be no such chunk
            made.id.write_direct_chunk(place, stored, filter_mask=mask)


def _packed_twice(group: Any, name: str, rng: random.Random) -> Any:
    """Make a dataset whose chunks are deflated twice, of which a few bytes may stand for gigabytes."""
    import h5py

    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((9,))
    for _ in range(rng.choice((2, 3))):
        plan.set_deflate(9)
    space = h5py.h5s.create_simple((9,))
    made = h5py.Dataset(h5py.h5d.create(group.id, name.encode(), h5py.h5t.NATIVE_INT32, space, plan))
    made.id.write_direct_chunk((0,), _bomb(rng.choice(BOMBS)))
    return made


@cache
def _bomb(length: int) -> bytes:
    return zlib.compress(zlib.compress(bytes(length), 9), 9)


def _filters(options: dict[str, Any], rng: random.Random) -> None:
    options["compression"] = rng.choice(("gzip", "gzip", "gzip", "lzf", None))
    options["shuffle"] = rng.random() < 0.3
    options["fletcher32"] = rng.random() < 0.2
    if options["dtype"][-2:] in ("i2", "i4", "i8") and rng.random() < 0.1:
        options["scaleoffset"] = rng.choice((0, 3))


def _stored(length: int, rng: random.Random) -> bytes:
    """Return what lies in a file for a chunk of so many bytes."""
    plain = bytes(rng.choice((length, length, length - 1, length + 9, 0, 2 * length, 2**17)) % (MANY + 1))
    if rng.random() < 0.3:
        plain = rng.randbytes(min(len(plain), 4096)) + plain[4096:]
    packed = zlib.compress(plain, 1)
    return rng.choice((packed, packed, plain[: 2**16], packed[:-4], packed[: len(packed) // 2], b"", b"\x78\x9c"))


_NODES = (b"TREE", b"SNOD", b"HEAP", b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"BTHD", b"BTLF", b"FAHD", b"FADB", b"EAHD")


def _nodes(made: bytearray, rng: random.Random) -> None:
    """Put numbers at the edge of a type over some bytes of the nodes that a file is made of."""
    places = [at for mark in _NODES for at in _all_of(made, mark)] + [8]
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.choice(places) + rng.choice((4, 5, 6, 8, 16, 24, 32, 40, 48, rng.randrange(64)))
        width = rng.choice((1, 2, 4, 8))
        value = rng.choice((*EDGES, rng.choice(places), len(made)))
        made[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")


def _all_of(made: bytearray, mark: bytes) -> list[int]:
    found, at = [], made.find(mark)
    while at >= 0:
        found.append(at)
        at = made.find(mark, at + 1)
    return found


# ---------------------------------------------------------------- Parquet: columns


def columns(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Return a table of a dataset, after a byte for which one, with columns drawn anew or numbers of Thrift changed."""
    spot = rng.choice((0, 1, 2, 3))
    made = data
    if rng.random() < 0.6:
        with contextlib.suppress(ValueError, MemoryError, NotImplementedError, OSError):  # Arrow cannot write all
            made = bytes([spot]) + _table(spot, rng)
    if rng.random() < 0.7:
        made = made[:1] + (_footer if rng.random() < 0.6 else _page)(made[1:], rng)
    return made


def table(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Return a single table of which numbers of Thrift, of the metadata or of the first page, are changed."""
    return (_footer if rng.random() < 0.6 else _page)(data, rng)


_COLUMNS = (("size", "name"), ("object_a", "object_b", "count"), ("x", "y"), ("point_a", "point_b", "weight"))


def _table(spot: int, rng: random.Random) -> bytes:
    """Write a table as other writers do, with values that are no good idea."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = rng.choice((0, 1, 3, 3, 3, 6, 200_000))
    named = {}
    for name in _COLUMNS[spot]:
        if rng.random() < 0.9:
            named[name] = _column(name, rows, rng, pa)
    buffer = streams.BytesIO()
    pq.write_table(
        pa.table(named),
        buffer,
        compression=rng.choice(("none", "snappy", "gzip", "zstd", "lz4", "brotli")),
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(("1.0", "2.0")),
        version=rng.choice(("1.0", "2.4", "2.6")),
        row_group_size=rng.choice((1, 2, 1000, 10**6)) if rows < 100 else 10**6,
        data_page_size=rng.choice((1, 64, 2**20)) if rows < 100 else 2**20,
        write_statistics=rng.random() < 0.5,
    )
    return buffer.getvalue()


def _column(name: str, rows: int, rng: random.Random, pa: Any) -> Any:
    high = rng.choice((1, 2, 3, 100, *EDGES))
    numbers = [rng.choice((0, 1, 2, high)) for _ in range(min(rows, 50))]
    numbers += [numbers[-1] if numbers else 0] * (rows - len(numbers))  # run lengths
    texts = [str(number) * rng.choice((1, 1, 1, 10**5)) for number in numbers[:6]] + ["a"] * max(rows - 6, 0)
    draw = rng.random()
    if draw < 0.55:
        kind = rng.choice((pa.int64(), pa.int64(), pa.int32(), pa.uint64(), pa.uint8(), pa.float64(), pa.int16()))
        try:
            return pa.array(numbers, kind)
        except (pa.lib.ArrowException, OverflowError):
            return pa.array(numbers, pa.uint64())
    if draw < 0.7:
        some = [number if rng.random() < 0.8 else None for number in numbers[:100]]
        return pa.array(some + numbers[100:], pa.int64())
    if draw < 0.9:
        found = pa.array(texts)
        return found.dictionary_encode() if rng.random() < 0.5 else found
    return rng.choice((
        pa.array([[number] for number in numbers]), pa.array([{"a": number} for number in numbers]),
        pa.array([b"x"] * rows), pa.array([True] * rows), pa.nulls(rows), pa.array([1.5] * rows, pa.float32()),
    ))  # fmt: skip


def _footer(data: bytes, rng: random.Random) -> bytes:
    """Change numbers of the metadata at the end: rows, places, lengths, types, how columns are packed."""
    length = int.from_bytes(data[-8:-4], "little")
    try:
        about = _Thrift(data[-8 - length : -8]).struct()
    except (IndexError, ValueError, OverflowError):
        return data
    _change(about, rng, len(data))
    packed = _pack(about)
    return data[: -8 - length] + packed + struct.pack("<I", len(packed)) + b"PAR1"


def _page(data: bytes, rng: random.Random) -> bytes:
    """Change numbers of the header of the first page, leaving all else where it is if they are as long as before."""
    reader = _Thrift(data[4:2000])
    try:
        about = reader.struct()
    except (IndexError, ValueError, OverflowError):
        return data
    _change(about, rng, len(data))
    packed = _pack(about)
    if rng.random() < 0.8 and len(packed) > reader.at:  # room is taken from what follows
        return data[:4] + packed + data[4 + len(packed) :]
    return data[:4] + packed.ljust(reader.at, b"\0") + data[4 + reader.at :]


Fields = dict[int, tuple[int, Any]]


def _change(about: Fields, rng: random.Random, size: int) -> None:
    """Change one to three numbers anywhere in a struct."""
    places = list(_numbers(about))
    for _ in range(rng.choice((1, 1, 2, 3))):
        if places:
            fields, key, kind, value = rng.choice(places)
            new = rng.choice((*EDGES, -1, -(2**31), size, value + 1, value - 1, 2 * value, rng.randrange(size + 1)))
            if isinstance(fields, dict):
                fields[key] = (kind, new)
            else:
                fields[key] = new


def _numbers(value: Any, kind: int = 12) -> Any:
    """Yield holder, key, type and number of all numbers of a struct."""
    if kind == 12:
        for key, (own, one) in value.items():
            if own in (4, 5, 6):
                yield value, key, own, one
            else:
                yield from _numbers(one, own)
    elif kind in (9, 10):
        own, items = value
        for key, one in enumerate(items):
            if own in (4, 5, 6):
                yield items, key, own, one
            else:
                yield from _numbers(one, own)


class _Thrift:
    """The compact protocol of Thrift: {field: (type, value)}, lists as (type, values)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 70:
                raise ValueError

    def value(self, kind: int) -> Any:
        if kind in (1, 2):
            return None
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            number = self.varint()
            return (number >> 1) ^ -(number & 1)
        if kind in (7, 8):
            length = 8 if kind == 7 else self.varint()
            self.at += length
            if self.at > len(self.data):
                raise ValueError
            return self.data[self.at - length : self.at]
        if kind in (9, 10):
            head = self.byte()
            count = head >> 4 if head >> 4 < 15 else self.varint()
            return head & 15, [self.byte() if head & 15 in (1, 2) else self.value(head & 15) for _ in range(count)]
        if kind == 12:
            return self.struct()
        raise ValueError

    def struct(self) -> Fields:
        fields: Fields = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.value(4)
            fields[number] = (head & 15, self.value(head & 15))
        return fields


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def _pack(fields: Fields) -> bytes:
    made, last = bytearray(), 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - last
        made += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _packed(4, number)
        made += _packed(kind, value)
        last = number
    return bytes(made) + b"\0"


def _packed(kind: int, value: Any) -> bytes:
    if kind in (1, 2):
        return b""
    if kind == 3:
        return bytes([value])
    if kind in (4, 5, 6):
        value = max(-(2**63), min(value, 2**63 - 1))
        return _varint((value << 1 ^ value >> 63) & 2**64 - 1)
    if kind == 7:
        return bytes(value)
    if kind == 8:
        return _varint(len(value)) + value
    if kind in (9, 10):
        own, items = value
        head = bytes([min(len(items), 15) << 4 | own]) + (_varint(len(items)) if len(items) > 14 else b"")
        return head + b"".join(bytes([one]) if own in (1, 2) else _packed(own, one) for one in items)
    return _pack(value)
