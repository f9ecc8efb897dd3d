"""Columns from and to files, CSV or Parquet, a whole column at once where pyarrow is installed.

Python's own reader of CSV is the reference: whatever the quick one stumbles over is read again by it, and its errors
name the line. Columns that are read are arrays of NumPy or of Arrow; text is text, so an id "007" stays one.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, MissingExtraError
from stiefelsync.io.base import head
from stiefelsync.io.limits import check_bytes, lines, real, regular, shown
from stiefelsync.io.parquet_pages import weigh

__all__ = [
    "DELIMITERS", "PARQUET", "PROVENANCE", "Coded", "Contents", "Header", "bad_row", "column_names", "contents",
    "header", "read_arrow", "read_columns", "read_quickly", "read_typed", "write_columns", "write_parts",
]  # fmt: skip

DELIMITERS = ("\t", ";", ",")
PARQUET = b"PAR1"
HEADER_LINES = 10_000  # the header is among so many lines, or there is none
CHUNK = 20_000  # rows held as Python strings at a time
ROWS = 1_048_576  # in a row group that is written
QUICK_ROWS = 10_000  # from here on Arrow writes text in less time than loading it takes
PROVENANCE = b"stiefelsync"


@dataclass(frozen=True)
class Header:
    """The names of the columns of a table, and for text the line they are in and what separates them."""

    names: tuple[str, ...]
    line: int = 0
    delimiter: str = ""


@dataclass(frozen=True)
class Coded:
    """A column of few different values: which they are, and the number of each row's."""

    values: Sequence[Any]
    codes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def plain(self) -> NDArray[Any]:
        """Return the column as an array, one entry a row."""
        values = np.empty(len(self.values), dtype=object)
        values[:] = list(self.values)
        found: NDArray[Any] = values[self.codes]
        return found


def _arrow(why: str = "Parquet") -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(why, "pyarrow", "tables") from None
    return pyarrow, pyarrow.parquet


def header(path: Path) -> Header | None:
    """Return the names of the columns of a table, None of what is no table."""
    if path.is_dir():
        return None
    start = head(path)
    if start[:4] == PARQUET:
        return Header(contents(path).names)
    return None if not start.strip() or b"\0" in start else _text_header(path)


def column_names(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a table, none of what is no table, for telling formats apart."""
    try:
        found = header(path)
    except UnicodeDecodeError:
        return ()
    return () if found is None else found.names


def _text_header(path: Path) -> Header | None:
    """Return the cells of the first line that is not a comment."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, line in enumerate(islice(lines(file, path), HEADER_LINES), 1):
            if "\0" in line:
                return None
            if line.strip() and not line.startswith(("#", '"#')):
                delimiter = next((mark for mark in DELIMITERS if mark in line), ",")
                try:
                    cells = next(csv.reader([line], delimiter=delimiter, strict=True))
                except csv.Error:
                    return None
                return Header(tuple(cell.strip() for cell in cells), number, delimiter)
    return None


def read_columns(path: Path, found: Header, text: Sequence[str], numbers: Sequence[str]) -> dict[str, Any]:
    """Return columns of a table by name; numbers are float64, NaN where a cell is empty.

    Parameters
    ----------
    text
        Columns of text or of whatever type a Parquet file gives them.
    numbers
        Columns of numbers.
    """
    wanted = [*text, *numbers]
    for name in wanted:
        if found.names.count(name) > 1:
            raise FormatError(f"{path} has two columns {name!r}")
    if not found.line:
        return read_arrow(path, wanted)
    columns = _read_quickly(path, found, text, numbers)
    return _read_text(path, found, text, numbers) if columns is None else columns


@dataclass(frozen=True)
class Contents:
    """The names of the columns of a Parquet file, and what it says about itself."""

    names: tuple[str, ...]
    about: Mapping[str, Any]


def contents(path: Path) -> Contents:
    """Return what is in a Parquet file."""
    pa, pq = _arrow()
    try:
        schema = pq.read_schema(regular(path))
        about = json.loads((schema.metadata or {}).get(PROVENANCE, b"{}"))
    except (pa.lib.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"{path} is not a complete Parquet file ({error}); was it cut short?") from None
    return Contents(tuple(schema.names), about if isinstance(about, dict) else {})


def read_arrow(path: Path, wanted: Sequence[str]) -> dict[str, Any]:
    """Return columns of a Parquet file, by name, after weighing what they ask for."""
    wanted = list(wanted)
    pa, pq = _arrow()
    import pyarrow.compute as compute

    try:
        about = pq.read_metadata(regular(path))
        weigh(path, about, wanted)
        schema = about.schema.to_arrow_schema()
        # A text that many rows share is kept once, so that its length can be asked before it is repeated.
        kinds = {name: schema.field(name).type for name in wanted}
        texts = [name for name, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)]
        with pq.ParquetFile(path, metadata=about, read_dictionary=texts) as reader:
            table = reader.read(columns=wanted, use_threads=False)
        for name in texts:
            for chunk in table.column(name).chunks:
                if pa.types.is_dictionary(chunk.type):
                    lengths = compute.binary_length(chunk.dictionary).to_numpy(zero_copy_only=False)
                    taken = lengths[chunk.indices.fill_null(0).to_numpy(zero_copy_only=False)] if len(lengths) else 0
                    check_bytes(int(np.sum(taken, dtype=np.int64)), path, f"the column {name!r}")
    except (pa.lib.ArrowException, OSError, ValueError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise FormatError(f"{path} is not a complete Parquet file ({error}); was it cut short?") from None
    return {name: table.column(name) for name in wanted}


def _read_quickly(path: Path, found: Header, text: Sequence[str], numbers: Sequence[str]) -> dict[str, Any] | None:
    """Return columns of text as Arrow reads them, None where it is not installed or does not understand every row."""
    try:
        pa, _ = _arrow()
    except MissingExtraError:
        return None
    kinds = {name: pa.string() for name in text} | {name: pa.float64() for name in numbers}
    return read_typed(path, found, kinds)


def read_quickly(path: Path, found: Header, wanted: Sequence[str], kinds: Mapping[str, str]) -> dict[str, Any] | None:
    """Return columns of text as Arrow reads them, None where it is not installed or does not understand every row.

    Parameters
    ----------
    kinds
        "text", for few different texts, and "whole", for whole numbers below 2³¹, by name; others are float64. The
        file has no quotation marks.
    """
    try:
        pa, _ = _arrow()
    except MissingExtraError:
        return None
    types = {"text": pa.dictionary(pa.int32(), pa.string()), "whole": pa.int32(), "": pa.float64()}
    read = read_typed(path, found, {name: types[kinds.get(name, "")] for name in wanted}, empty=False, quotes=False)
    return None if read is None or any(column.null_count for column in read.values()) else read


def read_typed(
    path: Path, found: Header, kinds: Mapping[str, Any], *, empty: bool = True, quotes: bool | None = None
) -> dict[str, Any] | None:
    """Return columns of text in the types of Arrow that are given, None if Arrow does not understand every row.

    Parameters
    ----------
    kinds
        By name of the column; a cell without anything is a null.
    empty
        Whether that holds for text, too, or it is a text of no letters.
    quotes
        Whether there are quotation marks in the file; it is looked through when None.
    """
    pa, _ = _arrow()
    from pyarrow import csv as quick

    reading = quick.ReadOptions(skip_rows=found.line, column_names=list(_numbered(found.names)))
    parsing = quick.ParseOptions(
        delimiter=found.delimiter, newlines_in_values=_has_quotes(path) if quotes is None else quotes
    )
    place = dict(zip(found.names, _numbered(found.names), strict=True))
    converting = quick.ConvertOptions(
        column_types={place[name]: kind for name, kind in kinds.items()},
        include_columns=[place[name] for name in kinds],
        null_values=[""],
        strings_can_be_null=empty,
        quoted_strings_can_be_null=False,
    )
    try:
        table = quick.read_csv(regular(path), reading, parsing, converting)
    except (pa.lib.ArrowException, OSError, ValueError):
        return None
    return {name: table.column(place[name]) for name in kinds}


def _numbered(names: Sequence[str]) -> list[str]:
    """Return different names for columns, of which some may be called alike."""
    return [f"{n} {name}" for n, name in enumerate(names)]


def _has_quotes(path: Path) -> bool:
    """Return whether a file has a quotation mark anywhere, without which no line break stands in a cell."""
    with path.open("rb") as file:
        return any(b'"' in block for block in iter(lambda: file.read(2**20), b""))


def _read_text(path: Path, found: Header, text: Sequence[str], numbers: Sequence[str]) -> dict[str, Any]:
    """Return columns of text as Python's reader finds them, or the error that names the line."""
    wanted = [*text, *numbers]
    place = {name: found.names.index(name) for name in wanted}
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in wanted}
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(lines(file, path), delimiter=found.delimiter, strict=True)
        try:
            while reader.line_num < found.line:
                next(reader)
            while rows := list(islice(_numbered_rows(reader), CHUNK)):
                for name in wanted:
                    parts[name].append(_convert(path, found, rows, name, place[name], name in numbers))
        except csv.Error as error:
            raise FormatError(f"{path}, line {reader.line_num}: {error}") from None
        except UnicodeDecodeError:
            raise FormatError(f"{path}, after line {reader.line_num}: this is not UTF-8 text") from None
    empty = {name: np.empty(0, dtype=float if name in numbers else object) for name in wanted}
    return {name: np.concatenate([empty[name], *part]) for name, part in parts.items()}


def _numbered_rows(reader: Any) -> Iterable[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the line it ends in."""
    for row in reader:
        if any(map(str.strip, row)):
            yield reader.line_num, row


def _convert(
    path: Path, found: Header, rows: list[tuple[int, list[str]]], name: str, place: int, number: bool
) -> NDArray[Any]:
    """Return one column of a chunk of rows."""
    column: list[Any] = []
    for line, row in rows:
        if len(row) != len(found.names):
            raise FormatError(f"{path}, line {line}: {len(row)} fields where the header has {len(found.names)}")
        cell = row[place]
        if not number:
            column.append(cell or None)
            continue
        try:
            column.append(real(cell) if cell.strip() else np.nan)
        except ValueError:
            raise FormatError(f"{path}, line {line}: {name} is {shown(cell)!r}; it must be a number") from None
    array = np.empty(len(column), dtype=float if number else object)
    array[:] = column
    return array


def bad_row(path: Path, found: Header, row: int, message: object) -> FormatError:
    """Return the error about a row of a table, which names its line where the table is text."""
    where = f"row {row + 1}"
    if found.line:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(lines(file, path), delimiter=found.delimiter)
            while reader.line_num < found.line:
                next(reader)
            where = f"line {next(islice(_numbered_rows(reader), row, None))[0]}"
    return FormatError(f"{path}, {where}: {message}", setting=getattr(message, "setting", None))


def write_columns(
    path: Path,
    columns: Mapping[str, NDArray[Any] | Coded],
    *,
    provenance: Mapping[str, Any] | None = None,
    delimiter: str | None = None,
    objects: Mapping[str, Any] | None = None,
) -> None:
    """Write a table, Parquet where the file ends in ``.parquet``, else text; NaN and None are empty cells.

    Parameters
    ----------
    provenance
        What made the table, kept in the metadata of a Parquet file; text has no place for it.
    objects
        More to be kept there: sizes and names of objects.
    delimiter
        Of text: a comma, or a tab for a file that ends in ``.tsv``, when None.
    """
    if path.suffix.lower() == ".parquet":
        _, pq = _arrow()
        table = _arrow_table(columns)
        about = {**(provenance or {}), **(objects or {})}
        if about:
            table = table.replace_schema_metadata({PROVENANCE: json.dumps(about, sort_keys=True).encode()})
        pq.write_table(table, path, row_group_size=ROWS)
        return
    delimiter = delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")
    if delimiter not in DELIMITERS:
        raise InputError(f"a delimiter is a comma, a semicolon or a tab, got {delimiter!r}")
    with path.open("wb") as file:
        write_rows(file, columns, delimiter)


def write_parts(
    path: Path, parts: Iterable[Mapping[str, NDArray[Any] | Coded]], *, about: Mapping[str, Any] | None = None
) -> None:
    """Write a table whose rows come in parts, at least one, so that it never is in memory whole.

    Parameters
    ----------
    about
        What is kept in the metadata of a Parquet file; text has no place for it.
    """
    if path.suffix.lower() != ".parquet":
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        with path.open("wb") as file:
            for number, columns in enumerate(parts):
                if not number:
                    _write_plainly(file, {name: np.empty(0) for name in columns}, delimiter)
                if not _write_quickly(file, columns, delimiter):
                    _write_plainly(file, columns, delimiter, header=False)
        return
    _, pq = _arrow()
    writer = None
    try:
        for columns in parts:
            table = _arrow_table(columns)
            if writer is None:
                metadata = {PROVENANCE: json.dumps(about or {}, sort_keys=True).encode()}
                writer = pq.ParquetWriter(path, table.schema.with_metadata(metadata))
            writer.write_table(table.cast(writer.schema), row_group_size=ROWS)
    finally:
        if writer is not None:
            writer.close()


def write_rows(file: Any, columns: Mapping[str, NDArray[Any] | Coded], delimiter: str) -> None:
    """Write the header and the rows of a table as text to an open binary file."""
    _write_plainly(file, {name: np.empty(0) for name in columns}, delimiter)
    if not _write_quickly(file, columns, delimiter):
        _write_plainly(file, columns, delimiter, header=False)


def _write_quickly(file: Any, columns: Mapping[str, NDArray[Any] | Coded], delimiter: str) -> bool:
    """Write rows by Arrow, or return that it is not installed, or that some text needs quotation marks."""
    try:
        pa, _ = _arrow()
        from pyarrow import csv as quick
    except MissingExtraError:
        return False
    if max(map(len, columns.values()), default=0) < QUICK_ROWS:
        return False
    table = _arrow_table(columns)
    for name, column in columns.items():
        if table.schema.field(name).type == pa.string() and _needs_quotes(table.column(name), column, delimiter):
            return False
    options = quick.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none", batch_size=65_536)
    quick.write_csv(table, file, options)
    return True


def _needs_quotes(made: Any, column: NDArray[Any] | Coded, delimiter: str) -> bool:
    """Return whether a cell must stand in quotation marks, as Python's writer sees it."""
    import pyarrow.compute as compute

    pa, _ = _arrow()
    values = pa.array([str(value) for value in column.values], pa.string()) if isinstance(column, Coded) else made
    found = compute.match_substring_regex(values, f'["\\r\\n{delimiter}]|^$')
    return bool(compute.any(found).as_py())


def _arrow_table(columns: Mapping[str, NDArray[Any] | Coded]) -> Any:
    pa, _ = _arrow()
    arrays = {}
    for name, column in columns.items():
        if isinstance(column, Coded):
            values = pa.array([str(value) for value in column.values], pa.string())
            arrays[name] = pa.DictionaryArray.from_arrays(pa.array(column.codes), values).cast(pa.string())
        elif column.dtype.kind == "O" and len({type(value) for value in column.tolist()} - {type(None)}) > 1:
            arrays[name] = pa.array([None if value is None else str(value) for value in column.tolist()], pa.string())
        else:
            try:
                arrays[name] = pa.array(column, from_pandas=True)
            except pa.lib.ArrowException:
                arrays[name] = pa.array([str(value) for value in column.tolist()], pa.string())
    return pa.table(arrays)


def _write_plainly(
    file: Any, columns: Mapping[str, NDArray[Any] | Coded], delimiter: str, *, header: bool = True
) -> None:
    """Write rows by Python's writer, numbers as Arrow writes them."""
    listed = [column.plain() if isinstance(column, Coded) else column for column in columns.values()]
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(columns)
    for first in range(0, len(listed[0]) if listed else 0, CHUNK):
        part = [[_cell(value) for value in column[first : first + CHUNK].tolist()] for column in listed]
        writer.writerows(zip(*part, strict=True))
    text.flush()
    text.detach()  # whoever opened the file closes it


def _cell(value: Any) -> Any:
    """Return what stands in a cell: nothing for NaN, and whole numbers without a fraction."""
    if isinstance(value, float):
        if np.isnan(value):
            return ""
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return value
