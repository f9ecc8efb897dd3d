"""Tables of cells and units in the formats of the programs that look at them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io as scipy_io

from stiefelsync._border import typed
from stiefelsync.errors import InputError, MissingExtraError, unknown_name
from stiefelsync.io.files import Name, replacing
from stiefelsync.io.provenance import MADE_BY, as_text
from stiefelsync.io.tables.files import PROVENANCE
from stiefelsync.registration.table import CellTable

__all__ = ["TABLES", "TableFormat", "table_format", "write_table", "write_to"]


About = Mapping[str, Any] | None
Rows = tuple[list[str], list[list[Any]]]
"""The names of columns, and rows: None where a cell is empty, else a number or a text."""


@dataclass(frozen=True)
class TableFormat:
    """A way to write a table.

    Attributes
    ----------
    name, summary
        How it is asked for, and what it is.
    suffixes
        How its files may end, the usual one first.
    write
        Writes a table to a fresh file of one of these endings, with what made it where there is a place for that.
    """

    name: str
    summary: str
    suffixes: tuple[str, ...]
    write: Callable[[CellTable, Path, About, str], None]


def _planes(table: CellTable) -> list[str]:
    return ["plane"] if len(np.unique(table.plane)) > 1 else []


def _probability(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _wide(table: CellTable) -> Rows:
    header = ["cell", "confidence", *_planes(table), *table.names]
    named = [name.lower() for name in header]  # some programs do not tell large from small letters
    for name in table.names:
        if named.count(name.lower()) > 1:
            raise InputError(f"session {name!r} is called like another column of the table; rename it")
    planes = table.plane[:, None] if _planes(table) else np.empty((len(table), 0), dtype=np.int64)
    return header, [
        [cell, _probability(table.confidence[cell]), *planes[cell].tolist(), *own]
        for cell, own in enumerate(table.own.tolist())
    ]


def _long(table: CellTable) -> Rows:
    own, planes = table.own, _planes(table)
    return ["cell", "session", *planes, "roi", "confidence"], [
        [
            cell, table.names[session], *([int(table.plane[cell])] if planes else []), own[cell, session],
            _probability(table.places[cell, session]),
        ]
        for cell, session in np.argwhere(table.index >= 0).tolist()
    ]  # fmt: skip


def _units(table: CellTable) -> Rows:
    own = table.own
    listed = [(session, own[cell, session], cell) for cell, session in np.argwhere(table.index >= 0).tolist()]
    listed.sort(key=lambda row: (row[0], str(type(row[1])), row[1]))
    return ["session", "unit", "UID", "confidence"], [
        [table.names[session], unit, cell, _probability(table.places[cell, session])] for session, unit, cell in listed
    ]


def _plain(rows_of: Callable[[CellTable], Rows]) -> Callable[[CellTable, Path, About, str], None]:
    """Return what writes a table as CSV, or as Parquet where the file ends so."""

    def write(table: CellTable, path: Path, about: About, suffix: str) -> None:
        header, rows = rows_of(table)
        if suffix == ".parquet":
            _arrow(header, rows, path, about)
            return
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows([[f"{value:.4f}" if isinstance(value, float) else value for value in row] for row in rows])

    return write


def _arrow(header: list[str], rows: list[list[Any]], path: Path, about: About) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("writing Parquet tables", "pyarrow", "tables") from None
    arrays = []
    for place, name in enumerate(header):
        column = [row[place] for row in rows]
        if len({type(value) for value in column} - {type(None)}) > 1:  # units of one day have numbers, of another texts
            column = [None if value is None else str(value) for value in column]
        fixed = {"cell": pyarrow.int64(), "confidence": pyarrow.float64(), "UID": pyarrow.int64()}
        empty = pyarrow.int64() if all(value is None for value in column) else None
        arrays.append(pyarrow.array(column, fixed.get(name, empty)))
    written = pyarrow.Table.from_arrays(arrays, header)
    if about is not None:
        written = written.replace_schema_metadata({PROVENANCE: as_text(about).encode()})
    with path.open("wb") as file:
        parquet.write_table(written, file)


def _parquet(table: CellTable, path: Path, about: About, _suffix: str) -> None:
    _arrow(*_wide(table), path, about)


def _caiman(table: CellTable, path: Path, _about: About, _suffix: str) -> None:
    table.one_plane("an array of assignments")
    numbers = table.from_zero().astype(np.float64)
    numbers[numbers < 0] = np.nan
    with path.open("wb") as file:
        np.save(file, numbers, allow_pickle=False)


def _cellreg(table: CellTable, path: Path, about: About, _suffix: str) -> None:
    table.one_plane("CellReg's map")
    numbers = (table.from_zero() + 1).astype(np.float64)
    struct = {"cell_to_index_map": numbers, "confidence": table.confidence[:, None]}
    with path.open("wb") as file:
        made = {} if about is None else {MADE_BY: as_text(about)}
        scipy_io.savemat(file, {"cell_registered_struct": struct, **made}, do_compression=True)


def _track2p(table: CellTable, path: Path, _about: About, _suffix: str) -> None:
    table.one_plane("a table of Track2p")
    numbers = table.from_zero()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";", lineterminator="\n")
        writer.writerow(table.names)
        writer.writerows([["NaN" if n < 0 else n for n in row] for row in numbers.tolist()])


def _roicat(table: CellTable, path: Path, about: About, _suffix: str) -> None:
    table.one_plane("labels of ROICaT")
    by_session = [np.full(total, -1, dtype=np.int64) for total in table.totals]
    numbers = table.from_zero()
    # ROICaT numbers all detections of a file, and -1 is what belongs to no cluster.
    for cell in np.flatnonzero(table.sessions_per_cell > 1):
        for session in np.flatnonzero(numbers[cell] >= 0):
            by_session[session][numbers[cell, session]] = cell
    labels = np.concatenate(by_session)
    named = {str(label): np.flatnonzero(labels == label).tolist() for label in np.unique(labels)}
    told = {"labels": labels.tolist(), "labels_bySession": [of.tolist() for of in by_session], "labels_dict": named}
    made = {} if about is None else {MADE_BY: about}
    path.write_text(json.dumps(told | made), encoding="utf-8")


_TABLE = (".csv", ".parquet")
_KNOWN = (
    TableFormat("cells", "one row per cell, one column per session, their own numbers", _TABLE, _plain(_wide)),
    TableFormat("places", "one row per place of a cell, each with its confidence", _TABLE, _plain(_long)),
    TableFormat("units", "one row per unit, with its UID and confidence", _TABLE, _plain(_units)),
    TableFormat("parquet", "Parquet: the table cells", (".parquet",), _parquet),
    TableFormat("caiman", "NPY: assignments as CaImAn's register_multisession returns them", (".npy",), _caiman),
    TableFormat("cellreg", "MAT: CellReg's cell_registered_struct with cell_to_index_map", (".mat",), _cellreg),
    TableFormat("track2p", "CSV: Track2p's suite2p_indices", (".csv",), _track2p),
    TableFormat("roicat", "JSON: labels as ROICaT's tracking writes them", (".json",), _roicat),
)
TABLES = {known.name: known for known in _KNOWN}


def table_format(path: Path, name: str | None = None, *, units: bool = False) -> TableFormat:
    """Return the format asked for, else that of the file's ending.

    Examples
    --------
    >>> table_format(Path("a.mat")).name, table_format(Path("a.csv"), "track2p").name
    ('cellreg', 'track2p')
    """
    if name is not None:
        if name not in TABLES:
            raise unknown_name("format of tables", name, TABLES)
        suffix, own = path.suffix.lower(), TABLES[name].suffixes
        if suffix not in own and suffix in {end for known in _KNOWN for end in known.suffixes}:
            listed = " or ".join(own)
            raise InputError(f"{path} ends in {suffix}, but tables of the format {name} in {listed}", setting="to")
        return TABLES[name]
    if units and path.suffix.lower() in TABLES["units"].suffixes:
        return TABLES["units"]
    for known in _KNOWN:
        if path.suffix.lower() in known.suffixes:
            return known
    raise InputError(f"the ending of {path} tells no format of tables; name one of {', '.join(TABLES)}", setting="to")


def write_to(
    table: CellTable, temporary: Path, known: TableFormat, *, suffix: str | None = None, about: About = None
) -> None:
    """Write to a fresh file.

    Parameters
    ----------
    suffix
        The ending of the file that this one becomes.
    about
        What made the table (:func:`stiefelsync.io.provenance.made_by`), kept where the format has a place for it.
    """
    suffix = (temporary.suffix if suffix is None else suffix).lower()
    try:
        known.write(table, temporary, about, suffix)
    except UnicodeEncodeError as error:
        raise InputError(f"{error.object!r} is not text that a table can hold; rename it") from None


@typed
def write_table(table: CellTable, path: Name, format: str | None = None, *, force: bool = False) -> None:
    """Write a table of cells; the file appears complete or not at all.

    Parameters
    ----------
    format
        One of ``TABLES``; told from the ending by default.
    force
        Whether a file of that name that is there already is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync.registration import Trust, table_of
    >>> trust = Trust(np.full(2, 0.9), np.ones(1))
    >>> found = table_of(np.array([0, 0]), ["a", "b"], [np.array([4]), np.array([2])], trust)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(found, f"{folder}/cells.csv")
    ...     print(Path(folder, "cells.csv").read_text())
    cell,confidence,a,b
    0,0.9000,4,2
    """
    known = table_format(Path(path), format)
    with replacing(path, force=force) as temporary:
        write_to(table, temporary, known, suffix=Path(path).suffix)
