"""What the pages of a Parquet file ask for, told from their headers alone, before anything is unpacked.

Metadata at the end of a file say how many bytes a column takes, and Arrow believes the header before each page instead,
so a page may unpack to two gigabytes that nobody announced. Here the headers are walked, in Thrift's compact protocol,
which takes a read of some hundred bytes per page. The metadata of columns are read here, too: pyarrow ends the process
where statistics in them do not fit the schema.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from stiefelsync.errors import FormatError
from stiefelsync.io.limits import check_bytes, regular, shown

__all__ = ["weigh"]

FOOTER = 2**23  # bytes of metadata: a file of a billion rows in groups of 122,880 has 6 MB
HEADER = 2**16  # bytes that are looked at for the header of a page; statistics make them longer than a few dozen
DEEPEST = 16  # structs and lists within each other
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
KINDS = {DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}  # which field of a header tells about such a page
# What is kept of the metadata: of every row group its rows and of its columns where they lie and what they hold. A
# column that lies in another file, or is encrypted, has something in fields 1, 8 and 9.
FOOTER_FIELDS = {3: None, 4: [{1: [{1: None, 3: {5: None, 7: None, 9: None, 11: None}, 8: {}, 9: None}], 3: None}]}
DELTA_BYTE_ARRAY = 7  # texts as beginnings of others: a short page may hold gigabytes of them


def weigh(path: Path, about: Any, columns: Collection[str]) -> None:
    """Raise :class:`FormatError` if columns of a Parquet file ask for more than it can hold.

    Parameters
    ----------
    about
        Its metadata (`pyarrow.parquet.FileMetaData`).
    columns
        Those that will be read; nested ones are refused.
    """
    size, rows, taken, packed = regular(path).stat().st_size, 0, 0, 0
    paths = [about.schema.column(number).path for number in range(about.num_columns)]
    wanted = [number for number, name in enumerate(paths) if name.partition(".")[0] in columns]
    for name in (paths[number] for number in wanted):
        if name not in columns or paths.count(name) > 1:
            raise FormatError(f"{path}: the column {shown(name)!r} is there twice, or holds more than one value a row")
    with path.open("rb") as file:
        for group in _row_groups(file, path, size):
            _in_bounds(path, group.rows, about.num_rows, "rows of a row group")
            if len(group.columns) != len(paths):
                raise FormatError(f"{path} is damaged: a row group has {len(group.columns)} columns of {len(paths)}")
            rows += group.rows
            for column in (group.columns[number] for number in wanted):
                if column.values != group.rows:
                    raise FormatError(f"{path}: a column does not have one value in each of {group.rows:,} rows")
                # No two columns share bytes, or few bytes would stand for many pages.
                packed += max(column.length, 0)
                _in_bounds(path, packed, size, "bytes of all columns")
                # What the values take as an array, and what the pages take unpacked, whichever is more.
                taken += max(8 * group.rows, _pages(file, path, column, size))
            check_bytes(taken, path, "its columns")
    if rows != about.num_rows:
        raise FormatError(f"{path} announces {about.num_rows:,} rows and has row groups of {rows:,}")


@dataclass(frozen=True)
class _Column:
    """Where a column of a row group begins, its bytes and its values, as the metadata have it."""

    start: int
    length: int
    values: int


@dataclass(frozen=True)
class _RowGroup:
    rows: int
    columns: list[_Column]


def _row_groups(file: IO[bytes], path: Path, size: int) -> list[_RowGroup]:
    """Return what the metadata at the end of a file say of its row groups."""
    file.seek(max(size - 8, 0))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != b"PAR1" or not 0 < length <= size - 8:
        raise FormatError(f"{path} is not a complete Parquet file, or its metadata are encrypted")
    if length > FOOTER:
        raise FormatError(f"{path}: its metadata take {length:,} bytes, more than {FOOTER:,}; write larger row groups")
    file.seek(size - 8 - length)
    try:
        found = _Compact(file.read(length)).struct(FOOTER_FIELDS)
        return [_RowGroup(int(group[3]), [_column(chunk) for chunk in group[1]]) for group in found.get(4) or []]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is damaged: its metadata cannot be read ({shown(str(error))})") from None


def _column(chunk: dict[int, Any]) -> _Column:
    if chunk.get(1) or 8 in chunk or 9 in chunk:
        raise ValueError("a column lies in another file, or is encrypted")
    about = chunk[3]
    start, dictionary = int(about[9]), int(about.get(11) or 0)
    return _Column(dictionary if 0 < dictionary < start else start, int(about[7]), int(about[5]))


def _pages(file: IO[bytes], path: Path, column: _Column, size: int) -> int:
    """Return the bytes that the pages of a column unpack to, in one row group."""
    _in_bounds(path, column.length, size, "bytes of a column")
    _in_bounds(path, column.start, size - column.length, "the place of a column")
    start, end, values, taken = column.start, column.start + column.length, 0, 0
    while start < end and values < column.values:
        file.seek(start)
        kind, unpacked, packed, count, encoding, length = _header(file.read(min(HEADER, end - start)), path)
        if encoding == DELTA_BYTE_ARRAY:
            raise FormatError(f"{path}: texts are kept as changes of others, which is not read; write them plainly")
        _in_bounds(path, packed, end - start - length, "bytes of a page")
        taken += unpacked
        check_bytes(taken, path, "its pages")
        values += 0 if kind == DICTIONARY_PAGE else count
        start += length + packed
    if values != column.values:
        raise FormatError(f"{path} has pages of {values:,} values where {column.values:,} are announced")
    return taken


def _in_bounds(path: Path, number: int, most: int, what: str) -> None:
    if not 0 <= number <= most:
        raise FormatError(f"{path} is damaged: {what} cannot be {number:,}")


def _header(data: bytes, path: Path) -> tuple[int, int, int, int, int, int]:
    """Return kind, unpacked and packed bytes, values and encoding of a page, and how long its header is."""
    reader = _Compact(data)
    try:
        fields = reader.struct()
        kind, unpacked, packed = (int(fields[number]) for number in (1, 2, 3))
        about = fields.get(KINDS.get(kind, 0))
        if about is None:
            raise ValueError(f"there is no page of kind {kind}")
        encoding = about[2 if kind != DATA_PAGE_V2 else 4]
        count = int(about[1])
        if min(unpacked, packed, count) < 0:
            raise ValueError("a length is negative")
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is damaged: the header of a page cannot be read ({shown(str(error))})") from None
    return kind, unpacked, packed, count, int(encoding), reader.at


class _Compact:
    """Thrift's compact protocol: structs of numbered fields.

    Kept are the fields that are asked for: ``None`` asks for a number or a text, a dict for a struct with these fields
    of its own, a list of one for a list of such. Without a question all numbers and structs are.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, asked: dict[int, Any] | None = None, deep: int = 0) -> dict[int, Any]:
        if deep > DEEPEST:
            raise ValueError("structs lie too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            step, kind = head >> 4, head & 0x0F
            number = number + step if step else self.zigzag()
            if asked is None:
                fields[number] = self.value(kind, None, deep)
            elif number in asked:
                fields[number] = self.value(kind, asked[number], deep)
            else:
                self.value(kind, {}, deep)
        return fields

    def value(self, kind: int, asked: Any, deep: int) -> Any:
        if kind in (1, 2):  # true and false are kinds of their own
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 7:
            return self.skip(8)
        if kind == 8:
            return self.skip(self.varint())
        if kind in (9, 10):
            return self.items(asked, deep + 1)
        if kind == 12:
            return self.struct(asked if isinstance(asked, dict) else None, deep + 1)
        raise ValueError(f"there is no kind {kind}")

    def items(self, asked: Any, deep: int) -> list[Any] | None:
        """Return the values of a list that is asked for."""
        head = self.byte()
        kind, count = head & 0x0F, head >> 4 if head >> 4 < 15 else self.varint()
        if count > len(self.data) - self.at:  # every one takes a byte at least
            raise ValueError("a list is cut short")
        if deep > DEEPEST:
            raise ValueError("lists lie too deep")
        one = asked[0] if isinstance(asked, list) else {}
        kept = []
        for _ in range(count):
            item = self.skip(1) if kind in (1, 2) else self.value(kind, one, deep)
            if isinstance(asked, list):
                kept.append(item)
        return kept if isinstance(asked, list) else None

    def skip(self, count: int) -> int:
        """Pass over bytes and return how many they are."""
        if count > len(self.data) - self.at:
            raise ValueError("a text is cut short")
        self.at += count
        return count
