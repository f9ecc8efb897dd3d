"""What the pages of a Parquet file ask for, told from their headers alone, before anything is unpacked.

Metadata at the end of a file say how many bytes a column takes, and Arrow believes the header before each page instead,
so a page may unpack to two gigabytes that nobody announced. Here the headers are walked, in Thrift's compact protocol,
which takes a read of some hundred bytes per page.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

from stiefelsync.errors import FormatError
from stiefelsync.io.limits import check_bytes, regular, shown

__all__ = ["weigh"]

HEADER = 2**16  # bytes that are looked at for the header of a page; statistics make them longer than a few dozen
DEEPEST = 8  # structs within structs of a header
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
KINDS = {DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}  # which field of a header tells about such a page
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
        for group in (about.row_group(number) for number in range(about.num_row_groups)):
            _in_bounds(path, group.num_rows, about.num_rows, "rows of a row group")
            rows += group.num_rows
            for column in (group.column(number) for number in wanted):
                if column.num_values != group.num_rows:
                    raise FormatError(f"{path}: a column does not have one value in each of {group.num_rows:,} rows")
                # No two columns share bytes, or few bytes would stand for many pages.
                packed += max(column.total_compressed_size, 0)
                _in_bounds(path, packed, size, "bytes of all columns")
                # What the values take as an array, and what the pages take unpacked, whichever is more.
                taken += max(8 * group.num_rows, _pages(file, path, column, size))
            check_bytes(taken, path, "its columns")
    if rows != about.num_rows:
        raise FormatError(f"{path} announces {about.num_rows:,} rows and has row groups of {rows:,}")


def _pages(file: IO[bytes], path: Path, column: Any, size: int) -> int:
    """Return the bytes that the pages of a column unpack to, in one row group."""
    start = column.data_page_offset
    if column.has_dictionary_page and 0 < (column.dictionary_page_offset or 0) < start:
        start = column.dictionary_page_offset
    _in_bounds(path, column.total_compressed_size, size, "bytes of a column")
    _in_bounds(path, start, size - column.total_compressed_size, "the place of a column")
    end, values, taken = start + column.total_compressed_size, 0, 0
    while start < end and values < column.num_values:
        file.seek(start)
        kind, unpacked, packed, count, encoding, length = _header(file.read(min(HEADER, end - start)), path)
        if encoding == DELTA_BYTE_ARRAY:
            raise FormatError(f"{path}: texts are kept as changes of others, which is not read; write them plainly")
        _in_bounds(path, packed, end - start - length, "bytes of a page")
        taken += unpacked
        check_bytes(taken, path, "its pages")
        values += 0 if kind == DICTIONARY_PAGE else count
        start += length + packed
    if values != column.num_values:
        raise FormatError(f"{path} has pages of {values:,} values where {column.num_values:,} are announced")
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
    """Thrift's compact protocol: structs of numbered fields, of which numbers and structs are kept."""

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

    def struct(self, deep: int = 0) -> dict[int, Any]:
        if deep > DEEPEST:
            raise ValueError("structs lie too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            step, kind = head >> 4, head & 0x0F
            number = number + step if step else self.zigzag()
            fields[number] = self.value(kind, deep)
        return fields

    def value(self, kind: int, deep: int) -> Any:
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
            head = self.byte()
            count = head >> 4 if head >> 4 < 15 else self.varint()
            for _ in range(count):
                self.skip(1) if head & 0x0F in (1, 2) else self.value(head & 0x0F, deep + 1)
            return None
        if kind == 12:
            return self.struct(deep + 1)
        raise ValueError(f"there is no kind {kind}")

    def skip(self, count: int) -> None:
        if count > len(self.data) - self.at:
            raise ValueError("a text is cut short")
        self.at += count
