"""A table of text, comma-, semicolon- or tab-separated, parsed into columns a chunk of rows at a time."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, unknown_name
from stiefelsync.io.limits import lines, plain_numbers, real, shown, whole

__all__ = ["DELIMITERS", "Table", "bad_row", "header_of", "parse", "parse_rows"]

TEXT = ("object_a", "object_b", "object", "track")
POINT = ("point_a", "point_b", "point")
DELIMITERS = ("\t", ";", ",")
HEADER_LINES = 10_000  # the header is among so many lines, or there is none
CHUNK = 2_000  # rows held as Python strings at a time: little memory, and fast because it stays in the cache


@dataclass
class Table:
    """A parsed file: its columns by name (text as codes into `texts`), and what stood before the header.

    The rows follow line `start`, in the `dialect` of a `csv.reader`.
    """

    columns: dict[str, NDArray[Any]]
    texts: dict[str, int]
    start: int = 0
    dialect: Any = "excel"
    sizes: list[int] | None = None
    names: list[str] | None = None


def header_of(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter and the cells of the first line that is not a comment."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line in islice(lines(file, path), HEADER_LINES):
            if "\0" in line:
                break
            if line.strip() and not line.startswith(("#", '"#')):
                delimiter = next((mark for mark in DELIMITERS if mark in line), ",")
                return delimiter, [cell.strip(' "\r\n').lower() for cell in line.split(delimiter)]
    raise FormatError(f"{path} has no header line" if path.stat().st_size else f"{path} is empty")


def parse(path: Path, layout: tuple[tuple[str, ...], tuple[str, ...]]) -> Table:
    """Parse a file column by column."""
    delimiter, header = header_of(path)
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
    table, line = Table({}, {}), 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(lines(file, path), delimiter=delimiter, strict=True)
            for row in reader:
                line = reader.line_num
                first = row[0].strip().lower() if row else ""
                if first == "# sizes":
                    table.sizes = [_size(cell) for cell in row[1:]]
                elif first == "# names":
                    table.names = row[1:]
                elif first == header[0]:
                    break
            return parse_rows(reader, header, path, table)
    except FormatError:
        raise
    except (ValueError, csv.Error) as error:
        raise FormatError(f"{path}, line {line}: {error}") from None


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
            values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
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
                elif name not in TEXT + POINT:
                    value = real(cell)
                    if name == "weight" and not 0 < value < np.inf:
                        problem = "a weight must be positive and finite"
            except ValueError:
                problem = "it must be a whole number" if name in POINT else "it must be a number"
            if problem is not None:
                raise FormatError(f"{path}, line {number}: {name} is {shown(cell)!r}; {problem}")


def bad_row(path: Path, table: Table, t: int, message: object) -> FormatError:
    """Return the error that names the line of row t, for which the file is read again."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(lines(file, path), table.dialect)
        filled = (reader.line_num for row in reader if reader.line_num > table.start and any(map(str.strip, row)))
        return FormatError(
            f"{path}, line {next(islice(filled, t, None))}: {message}", setting=getattr(message, "setting", None)
        )
