"""Cells of many days as other programs tell them: which detections they take for one cell."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, counted
from stiefelsync.io import matlab
from stiefelsync.io.base import head
from stiefelsync.io.cells.cellreg import is_mat, is_newer
from stiefelsync.io.cells.objects import read_npy
from stiefelsync.io.hdf5 import opened
from stiefelsync.io.limits import guarded, lines, regular, whole
from stiefelsync.io.tables.files import PARQUET, contents, read_arrow
from stiefelsync.registration.table import CellTable

__all__ = ["read_cells"]

Ints = NDArray[np.int64]
Place = tuple[Any, int, Any]
"""A cell, the place of a session among all, and the detection there."""

KINDS = (
    "CellReg's cell_registered_struct (MAT), CaImAn's assignments (NPY), Track2p's suite2p_indices (CSV), ROICaT's"
    " labels (JSON), a table session,unit,UID, or a table of this package (CSV, Parquet)"
)


def read_cells(path: Path, table: CellTable) -> Ints:
    """Return the cell of every detection, (m,), -1 for those in none, as a file of another program has it.

    Parameters
    ----------
    path
        What CellReg, CaImAn, Track2p, ROICaT, UnitMatch or this package wrote.
    table
        Tells the sessions, and what their detections are called. Detections that were left out of
        it are left out of the answer, too.

    Raises
    ------
    FormatError
        If it is none of these.
    InputError
        If it is about other sessions, or has a detection twice.
    """
    with guarded(regular(path), "cells"):
        places, counted_from_zero = _reader(path)(path, table)
        number = [
            {(int(n) - table.base if counted_from_zero else str(n)): p for p, n in enumerate(numbers.tolist())}
            for numbers in table.numbers
        ]
        first = np.append(0, np.cumsum([len(numbers) for numbers in table.numbers]))
        labels, cells = np.full(int(first[-1]), -1, dtype=np.int64), dict[Any, int]()
        for cell, session, detection in places:
            if counted_from_zero and not 0 <= detection < table.totals[session]:
                has = counted(int(table.totals[session]), "detection")
                raise InputError(f"{path} has detection {detection} of {table.names[session]!r}, which has {has}")
            p = number[session].get(detection)
            if p is None:
                continue
            at = int(first[session]) + p
            if labels[at] >= 0:
                raise InputError(f"{path} has detection {detection} of {table.names[session]!r} twice")
            labels[at] = cells.setdefault(cell, len(cells))
        return labels


Reader = Callable[[Path, CellTable], tuple[Iterable[Place], bool]]


def _reader(path: Path) -> Reader:
    """Return who reads a file: its places, and whether detections are counted from 0."""
    start = head(path, 4096)
    if is_mat(path):
        return _cellreg
    if start[:6] == b"\x93NUMPY":
        return _caiman
    if start.lstrip()[:1] == b"{":
        return _roicat
    if start[:4] == PARQUET:
        first, names = "", [name.strip().lower() for name in contents(path).names] or [""]
    else:
        first = start.decode("utf-8-sig", "replace").splitlines()[0].strip() if start else ""
        names = [cell.strip().lower() for cell in first.split(",")]
    if {"session", "unit", "uid"} <= set(names) or {"session", "roi", "cell"} <= set(names):
        return _long
    if "cell" in names[:2]:  # pandas may have put its index before it
        return _wide
    if ";" in first:
        return _track2p
    raise FormatError(f"{path} is none of these: {KINDS}")


def _map(numbers: NDArray[Any], path: Path, table: CellTable) -> Iterator[Place]:
    """Yield the places of an array of cells × sessions, counted from 0; what is below or no number is none."""
    if numbers.ndim != 2 or numbers.shape[1] != len(table.names):
        raise InputError(f"{path} has the shape {numbers.shape}; cells × {len(table.names)} sessions are expected")
    if numbers.dtype.kind not in "fiu":
        raise FormatError(f"{path} does not hold numbers of detections")
    numbers = np.where(np.isfinite(numbers), numbers, -1)
    if (numbers != np.rint(numbers)).any():
        raise FormatError(f"{path} holds numbers with fractions, which no detection has")
    for cell, session in zip(*np.nonzero(numbers >= 0), strict=True):
        yield int(cell), int(session), int(numbers[cell, session])


def _cellreg(path: Path, table: CellTable) -> tuple[Iterable[Place], bool]:
    name, field = "cell_registered_struct", "cell_to_index_map"
    found = None
    if is_newer(path):
        with opened(path) as data:
            if name in data.groups:
                values = data.read(name, field, "iuf")
                found = None if values is None else values.T  # MATLAB's axes are reversed in HDF5
    else:
        struct = matlab.load(path, [name]).get(name)
        found = struct.get(field) if isinstance(struct, dict) else None
    if not isinstance(found, np.ndarray):
        raise FormatError(f"{path} has no {name}.{field}: it is no answer of CellReg")
    return _map(found.astype(np.float64) - 1, path, table), True


def _caiman(path: Path, table: CellTable) -> tuple[Iterable[Place], bool]:
    return _map(np.asarray(read_npy(path)), path, table), True


def _roicat(path: Path, table: CellTable) -> tuple[Iterable[Place], bool]:
    try:
        sessions = json.loads(path.read_text(encoding="utf-8"))["labels_bySession"]
        found = [np.array(labels, dtype=np.int64).ravel() for labels in sessions]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise FormatError(f"{path} has no labels_bySession of whole numbers: it is no answer of ROICaT") from None
    if len(found) != len(table.names):
        raise InputError(f"{path} has {counted(len(found), 'session')} where {len(table.names)} are expected")
    places = (
        (label, session, detection)
        for session, labels in enumerate(found)
        for detection, label in enumerate(labels.tolist())
        if label >= 0
    )
    return places, True


def _rows(path: Path, delimiter: str) -> list[list[str]]:
    """Return the header and the rows of a table as text, empty where a cell is."""
    if head(path, 4) == PARQUET:
        columns = read_arrow(path, contents(path).names)
        cells = [["" if value is None else str(value) for value in of.to_pylist()] for of in columns.values()]
        return [list(columns), *map(list, zip(*cells, strict=True))]
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            return [row for row in csv.reader(lines(file, path), delimiter=delimiter, strict=True) if row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise FormatError(f"{path} is not a table of UTF-8 text ({error})") from None


def _track2p(path: Path, table: CellTable) -> tuple[Iterable[Place], bool]:
    header, *rows = _rows(path, ";")
    if len(header) != len(table.names) or any(len(row) != len(header) for row in rows):
        raise InputError(f"{path} has not one column for each of {len(table.names)} sessions in every row")
    try:
        numbers = [[-1 if cell.strip().lower() in ("", "nan") else whole(cell) for cell in row] for row in rows]
    except ValueError as error:
        raise FormatError(f"{path}: {error}") from None
    return _map(np.array(numbers, dtype=np.int64).reshape(-1, len(header)), path, table), True


def _sessions(names: Iterable[str], path: Path, table: CellTable) -> dict[str, int]:
    """Return the place of every session that a file names."""
    place = {name: s for s, name in enumerate(table.names)}
    for name in names:
        if name not in place:
            raise InputError(f"{path} has the session {name!r}; there are {', '.join(table.names)}")
    return place


def _own(cell: str) -> str:
    """Return what a detection is called; programs write whole numbers as 5.0 where others of the column are missing.

    Examples
    --------
    >>> _own("5.0"), _own(" u7.0"), _own("nan")
    ('5', 'u7.0', '')
    """
    cell = cell.strip()
    whole_number, mark, zeros = cell.partition(".")
    if mark and whole_number.isdecimal() and not zeros.strip("0"):
        return whole_number
    return "" if cell.lower() in ("nan", "<na>") else cell


def _wide(path: Path, table: CellTable) -> tuple[Iterable[Place], bool]:
    header, *rows = _rows(path, ",")
    own = [c for c, name in enumerate(header) if name not in ("", "cell", "confidence", "plane")]
    place = _sessions([header[c] for c in own], path, table)
    if any(len(row) != len(header) for row in rows):
        raise FormatError(f"{path} has rows that do not fit its header")
    return ((n, place[header[c]], called) for n, row in enumerate(rows) for c in own if (called := _own(row[c]))), False


def _long(path: Path, table: CellTable) -> tuple[Iterable[Place], bool]:
    header, *rows = _rows(path, ",")
    at = {name.strip().lower(): c for c, name in enumerate(header)}
    if any(len(row) != len(header) for row in rows):
        raise FormatError(f"{path} has rows that do not fit its header")
    cell, detection = ("uid", "unit") if "uid" in at else ("cell", "roi")
    place = _sessions([row[at["session"]] for row in rows], path, table)
    return ((_own(row[at[cell]]), place[row[at["session"]]], _own(row[at[detection]])) for row in rows), False
