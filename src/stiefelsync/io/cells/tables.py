"""Tables of cells and units in the formats of the programs that look at them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io as scipy_io

from stiefelsync._border import typed
from stiefelsync.errors import InputError, MissingExtraError, unknown_name
from stiefelsync.io.files import Name, replacing
from stiefelsync.registration.table import CellTable

__all__ = ["TABLES", "TableFormat", "table_format", "write_table", "write_to"]


@dataclass(frozen=True)
class TableFormat:
    """A way to write a table.

    Attributes
    ----------
    name, summary
        How it is asked for, and what it is.
    suffix
        How its files end.
    write
        Writes a table to a fresh file.
    """

    name: str
    summary: str
    suffix: str
    write: Callable[[CellTable, Path], None]


def _several(table: CellTable) -> bool:
    return len(np.unique(table.plane)) > 1


def _wide(table: CellTable, path: Path) -> None:
    planes = _several(table)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["cell", "confidence", *(["plane"] if planes else []), *table.names])
        for cell, own in enumerate(table.own.tolist()):
            plane = [int(table.plane[cell])] if planes else []
            rows.writerow([cell, _number(table.confidence[cell]), *plane, *("" if n is None else n for n in own)])


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def _long_rows(table: CellTable) -> list[list[Any]]:
    own = table.own
    return [
        [cell, table.names[session], int(table.plane[cell]), own[cell, session], table.places[cell, session]]
        for cell, session in zip(*np.nonzero(table.index >= 0), strict=True)
    ]


def _long(table: CellTable, path: Path) -> None:
    planes = _several(table)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["cell", "session", *(["plane"] if planes else []), "roi", "confidence"])
        for cell, session, plane, roi, trust in _long_rows(table):
            rows.writerow([cell, session, *([plane] if planes else []), roi, _number(trust)])


def _units(table: CellTable, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["session", "unit", "UID", "confidence"])
        listed = [(table.names.index(session), roi, cell, trust) for cell, session, _, roi, trust in _long_rows(table)]
        for session, roi, cell, trust in sorted(listed, key=lambda row: (row[0], str(type(row[1])), row[1])):
            rows.writerow([table.names[session], roi, cell, _number(trust)])


def _arrow(columns: dict[str, Any], path: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("writing Parquet tables", "pyarrow", "tables") from None
    with path.open("wb") as file:
        parquet.write_table(pyarrow.table(columns), file)


def _parquet(table: CellTable, path: Path) -> None:
    own = table.own
    columns = {
        "cell": np.arange(len(table)),
        "confidence": [None if np.isnan(c) else float(c) for c in table.confidence],
        **({"plane": table.plane} if _several(table) else {}),
    }
    _arrow(columns | {name: own[:, s].tolist() for s, name in enumerate(table.names)}, path)


def _caiman(table: CellTable, path: Path) -> None:
    table.one_plane("an array of assignments")
    numbers = table.from_zero().astype(np.float64)
    numbers[numbers < 0] = np.nan
    with path.open("wb") as file:
        np.save(file, numbers, allow_pickle=False)


def _cellreg(table: CellTable, path: Path) -> None:
    table.one_plane("CellReg's map")
    numbers = (table.from_zero() + 1).astype(np.float64)
    struct = {"cell_to_index_map": numbers, "confidence": table.confidence[:, None]}
    with path.open("wb") as file:
        scipy_io.savemat(file, {"cell_registered_struct": struct}, do_compression=True)


def _track2p(table: CellTable, path: Path) -> None:
    table.one_plane("a table of Track2p")
    numbers = table.from_zero()
    buffer = [";".join(table.names)]
    buffer += [";".join("NaN" if n < 0 else str(n) for n in row) for row in numbers.tolist()]
    path.write_text("\n".join(buffer) + "\n", encoding="utf-8")


def _roicat(table: CellTable, path: Path) -> None:
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
    path.write_text(json.dumps(told), encoding="utf-8")


_KNOWN = (
    TableFormat("cells", "CSV: one row per cell, one column per session, their own numbers", ".csv", _wide),
    TableFormat("places", "CSV: one row per place of a cell, each with its confidence", ".csv", _long),
    TableFormat("units", "CSV: one row per unit, with its UID and confidence", ".csv", _units),
    TableFormat("parquet", "Parquet: one row per cell, one column per session", ".parquet", _parquet),
    TableFormat("caiman", "NPY: assignments as CaImAn's register_multisession returns them", ".npy", _caiman),
    TableFormat("cellreg", "MAT: CellReg's cell_registered_struct with cell_to_index_map", ".mat", _cellreg),
    TableFormat("track2p", "CSV: Track2p's suite2p_indices", ".csv", _track2p),
    TableFormat("roicat", "JSON: labels as ROICaT's tracking writes them", ".json", _roicat),
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
        suffix, own = path.suffix.lower(), TABLES[name].suffix
        if suffix != own and suffix in {known.suffix for known in _KNOWN}:
            raise InputError(f"{path} ends in {suffix}, but tables of the format {name} in {own}", setting="to")
        return TABLES[name]
    if units and path.suffix.lower() == ".csv":
        return TABLES["units"]
    for known in _KNOWN:
        if path.suffix.lower() == known.suffix:
            return known
    raise InputError(f"the ending of {path} tells no format of tables; name one of {', '.join(TABLES)}", setting="to")


def write_to(table: CellTable, temporary: Path, known: TableFormat) -> None:
    """Write to a fresh file."""
    try:
        known.write(table, temporary)
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
        write_to(table, temporary, known)
