"""A table of matches or of tracks, as text or Parquet, parsed into columns.

Small files of text, and all with a mistake in them, are read a chunk of rows at a time by Python,
which tells the line; large ones by Arrow where it is installed.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, unknown_name
from stiefelsync.io.base import head
from stiefelsync.io.limits import lines, plain_numbers, real, shown, whole
from stiefelsync.io.tables.files import PARQUET, Header, contents, read_arrow, read_quickly

__all__ = ["DELIMITERS", "Table", "bad_row", "check_header", "header_of", "parse", "parse_rows", "skip_header"]

TEXT = ("object_a", "object_b", "object", "track")
POINT = ("point_a", "point_b", "point")
UNKNOWN = ("x", "y", "confidence")  # columns whose cells may be empty
# What Arrow reads columns of text as; all others are numbers with a fraction.
_KINDS = dict.fromkeys(TEXT, "text") | dict.fromkeys(POINT, "whole")
# What trackers call the columns of a table with x and y.
_ALIASES = {
    "track": ("track_id", "trackid", "tracks", "particle", "point_id", "id"),
    "object": (
        "frame", "frame_id", "frameid", "frame_index", "frame_number", "image", "image_name", "image_id", "view",
        "camera", "time", "t",
    ),
    "point": ("point_idx", "point_index", "keypoint", "keypoint_id", "feature", "feature_id"),
}  # fmt: skip
DELIMITERS = ("\t", ";", ",")
HEADER_LINES = 10_000  # the header is among so many lines, or there is none
CHUNK = 2_000  # rows held as Python strings at a time: little memory, and fast because it stays in the cache
QUICK_BYTES = 2**20  # from here on loading Arrow takes less time than it saves


@dataclass
class Table:
    """A parsed file: its columns by name (text as codes into `texts`), and what stood before the header.

    The rows follow line `start`, in the `dialect` of a `csv.reader`; of Parquet the dialect is None.
    """

    columns: dict[str, NDArray[Any]]
    texts: dict[str, int]
    start: int = 0
    dialect: Any = "excel"
    sizes: list[int] | None = None
    names: list[str] | None = None


def header_of(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter and the cells of the first line that is not a comment.

    Of Parquet the delimiter is empty, and the cells are the names of the columns.
    """
    if head(path)[:4] == PARQUET:
        return "", _usual([name.strip().lower() for name in contents(path).names])
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line in islice(lines(file, path), HEADER_LINES):
            if "\0" in line:
                break
            if line.strip() and not line.startswith(("#", '"#')):
                delimiter = next((mark for mark in DELIMITERS if mark in line), ",")
                return delimiter, _usual([cell.strip(' "\r\n').lower() for cell in line.split(delimiter)])
    raise FormatError(f"{path} has no header line" if path.stat().st_size else f"{path} is empty")


def _usual(header: list[str]) -> list[str]:
    """Return the names of columns, of a table with x and y as they are called here.

    Examples
    --------
    >>> _usual(["frame", "particle", "x", "y"]), _usual(["frame", "particle"])
    (['object', 'track', 'x', 'y'], ['frame', 'particle'])
    """
    if not {"x", "y"} <= set(header):
        return header
    called = {
        others[0]: name
        for name, known in _ALIASES.items()
        if name not in header and len(others := [column for column in header if column in known]) == 1
    }
    return [called.get(name, name) for name in header]


def check_header(path: Path, header: list[str], layout: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    """Raise :class:`FormatError` unless a table has all required columns, and none but these and optional ones."""
    required, optional = layout
    for name in required:
        if name not in header:
            raise FormatError(
                f"{path} has no column {name!r}; its header must be {','.join(required)}[,{','.join(optional)}]"
            )
    for name in header:
        if name not in required + optional:
            raise FormatError(f"{path}: {unknown_name('column', name, required + optional)}; remove the column")
        if header.count(name) > 1:
            raise FormatError(f"{path} has two columns {name!r}")


def skip_header(reader: Any, header: list[str], path: Path) -> Table:
    """Read with a `csv.reader` up to the header, and return what stands before it."""
    table = Table({}, {})
    try:
        for row in reader:
            first = row[0].strip().lower() if row else ""
            if first == "# sizes":
                table.sizes = [_size(cell) for cell in row[1:]]
            elif first == "# names":
                table.names = row[1:]
            elif first == header[0] or first in _ALIASES.get(header[0], ()):
                break
    except FormatError:
        raise
    except (ValueError, csv.Error) as error:
        raise FormatError(f"{path}, line {reader.line_num}: {error}") from None
    table.start, table.dialect = reader.line_num, reader.dialect
    return table


def parse(path: Path, layout: tuple[tuple[str, ...], tuple[str, ...]]) -> Table:
    """Parse a file column by column."""
    delimiter, header = header_of(path)
    check_header(path, header, layout)
    if not delimiter:
        return _parse_parquet(path, header)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(lines(file, path), delimiter=delimiter, strict=True)
        table = skip_header(reader, header, path)
        if path.stat().st_size >= QUICK_BYTES and _parse_quickly(path, reader, header, delimiter, table):
            return table
        return parse_rows(reader, header, path, table)


def _parse_quickly(path: Path, reader: Any, header: list[str], delimiter: str, table: Table) -> bool:
    """Parse the rows after the line that a `csv.reader` has come to; False if Arrow cannot, or a cell is odd.

    What Arrow takes and Python does not, such as 0x10 for a number and "a"b for a text, is left to
    Python as a whole, and with it all that has quotation marks.
    """
    found = Header(tuple(header), reader.line_num, delimiter)
    columns = None if _mentions(path, b'"', b"0x", b"0X") else read_quickly(path, found, header, _KINDS)
    return columns is not None and _take(columns, table)


def _mentions(path: Path, *marks: bytes) -> bool:
    """Return whether a file has one of these marks, of one or two bytes, anywhere."""
    with path.open("rb") as file:
        end = b""
        while block := file.read(2**20):
            # A single byte is looked for much faster, and without the last one there is no mark.
            if any(mark[-1:] in block and mark in end + block for mark in marks):
                return True
            end = block[-1:]
    return False


def _parse_parquet(path: Path, header: list[str]) -> Table:
    """Return the columns of a Parquet file, and what it says about the objects."""
    about = contents(path)
    table = Table({}, {}, 0, None)
    columns = dict(zip(header, read_arrow(path, about.names).values(), strict=True))
    for name, column in columns.items():
        _check_column(path, name, column)
    if not _take(columns, table):
        raise FormatError(f"{path} holds numbers that are none of matches or tracks")
    said = about.about
    if isinstance(said.get("sizes"), list):
        table.sizes = [_size(str(size)) for size in said["sizes"]]
    if isinstance(said.get("names"), list):
        table.names = [str(name) for name in said["names"]]
    return table


def _check_column(path: Path, name: str, column: Any) -> None:
    """Raise the error that names the first row of a column of Arrow that cannot be."""
    import pyarrow

    kind, what = column.type, f"{path}: the column {name!r}"
    whole, real_ = pyarrow.types.is_integer(kind), pyarrow.types.is_floating(kind)
    if column.null_count and name not in UNKNOWN:
        row = column.is_null().to_numpy(zero_copy_only=False) if hasattr(column, "to_numpy") else []
        raise FormatError(f"{path}, row {int(np.argmax(row)) + 1}: {name} is empty")
    if name in POINT and not whole:
        raise FormatError(f"{what} must hold whole numbers, not {kind}")
    if name in (*POINT, "weight") and len(column):
        values = column.to_numpy()
        bad = (values < 0) | (values >= 2**31) if name in POINT else ~((values > 0) & np.isfinite(values))
        if bad.any():
            row = int(bad.argmax())
            problem = "points are numbered from 0" if name in POINT else "a weight must be positive and finite"
            raise FormatError(f"{path}, row {row + 1}: {name} is '{values[row]}'; {problem}")
    if name not in TEXT + POINT and not (whole or real_):
        raise FormatError(f"{what} must hold numbers, not {kind}")


def _take(columns: dict[str, Any], table: Table) -> bool:
    """Enter columns of Arrow, by name, into a table; False if one of them has a cell that needs a closer look."""
    import pyarrow

    for name, column in columns.items():
        if name in TEXT:
            if not pyarrow.types.is_dictionary(column.type):
                column = column.cast(pyarrow.string()).dictionary_encode()
            chunks = column.unify_dictionaries().chunks
            texts = chunks[0].dictionary.to_pylist() if chunks else []
            places = [table.texts.setdefault(t.strip() if name == "track" else t, len(table.texts)) for t in texts]
            codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in chunks]
            joined = np.concatenate(codes or [np.empty(0, np.int32)])
            unchanged = places == list(range(len(places))) and joined.dtype == np.int32
            table.columns[name] = joined if unchanged else np.array(places, dtype=np.int32)[joined]
            continue
        if column.null_count and name not in UNKNOWN:
            return False
        values = column.to_numpy()
        if name in POINT:
            if len(values) and (int(values.min()) < 0 or (values.itemsize > 4 and int(values.max()) >= 2**31)):
                return False
            table.columns[name] = values.astype(np.int32, copy=False)
        else:
            values = values.astype(np.float64, copy=False)
            if name == "weight" and not (np.isfinite(values) & (values > 0)).all():
                return False
            table.columns[name] = values
    return True


def _size(cell: str) -> int:
    size = whole(cell)
    if not 0 <= size < 2**31:
        raise ValueError(f"an object has from 0 to {2**31 - 1:,} points, not {shown(cell)}")
    return size


def parse_rows(reader: Any, header: list[str], path: Path, table: Table) -> Table:
    """Parse what a `csv.reader` has left, a chunk of rows at a time, into the columns of `table`."""
    parts: list[list[NDArray[Any]]] = [[] for _ in header]
    line = table.start = reader.line_num
    table.dialect = reader.dialect
    try:
        while rows := list(islice(reader, CHUNK)):
            filled = [row for row in rows if any(map(str.strip, row))]
            try:
                _convert(filled, header, table.texts, parts)
            except (ValueError, OverflowError) as error:
                _explain(rows, header, path, line)
                raise FormatError(f"{path}, after line {line}: {error}") from None
            line = reader.line_num
    except csv.Error as error:
        raise FormatError(f"{path}, line {reader.line_num}: {error}") from None
    except UnicodeDecodeError:
        raise FormatError(f"{path}, after line {reader.line_num}: this is not UTF-8 text") from None
    table.columns = {name: np.concatenate([_empty(name), *part]) for name, part in zip(header, parts, strict=True)}
    return table


def _empty(name: str) -> NDArray[Any]:
    return np.empty(0, dtype=np.int64 if name in TEXT + POINT else np.float64)


def _convert(rows: list[list[str]], header: list[str], texts: dict[str, int], parts: list[list[NDArray[Any]]]) -> None:
    """Append one chunk of every column to `parts`; any ValueError means that some row is bad."""
    if not rows:
        return
    for name, cells, part in zip(header, zip(*rows, strict=True), parts, strict=True):
        if name in TEXT:
            codes = {
                text: texts.setdefault(text.strip() if name == "track" else text, len(texts)) for text in set(cells)
            }
            part.append(np.fromiter(map(codes.__getitem__, cells), dtype=np.int64, count=len(cells)))
        elif not plain_numbers(cells):
            raise ValueError
        elif name in POINT:
            numbers = np.fromiter(map(int, cells), dtype=np.int64, count=len(cells))
            if numbers.min() < 0 or numbers.max() >= 2**31:
                raise ValueError
            part.append(numbers)
        else:
            filled = (cell if cell.strip() else "nan" for cell in cells) if name in UNKNOWN else cells
            values = np.fromiter(map(float, filled), dtype=np.float64, count=len(cells))
            if name == "weight" and not (np.isfinite(values) & (values > 0)).all():
                raise ValueError
            part.append(values)


def _explain(rows: list[list[str]], header: list[str], path: Path, line: int) -> None:
    """Raise the error that names the first bad line of a chunk whose first row follows `line`."""
    for number, row in enumerate(rows, line + 1):
        if not any(map(str.strip, row)):
            continue
        if len(row) != len(header):
            raise FormatError(f"{path}, line {number}: {len(row)} fields where the header has {len(header)}")
        for name, cell in zip(header, row, strict=True):
            problem = None
            try:
                if name in POINT and not 0 <= whole(cell) < 2**31:
                    problem = "points are numbered from 0"
                elif name not in TEXT + POINT and not (name in UNKNOWN and not cell.strip()):
                    value = real(cell)
                    if name == "weight" and not 0 < value < np.inf:
                        problem = "a weight must be positive and finite"
            except ValueError:
                problem = "it must be a whole number" if name in POINT else "it must be a number"
            if problem is not None:
                raise FormatError(f"{path}, line {number}: {name} is {shown(cell)!r}; {problem}")


def bad_row(path: Path, table: Table, t: int, message: object) -> FormatError:
    """Return the error that names the line of row t, for which the file is read again."""
    if table.dialect is None:
        return FormatError(f"{path}, row {t + 1}: {message}", setting=getattr(message, "setting", None))
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(lines(file, path), table.dialect)
        filled = (reader.line_num for row in reader if reader.line_num > table.start and any(map(str.strip, row)))
        return FormatError(
            f"{path}, line {next(islice(filled, t, None))}: {message}", setting=getattr(message, "setting", None)
        )
