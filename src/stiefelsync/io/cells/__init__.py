"""Cells and units of many days: the files of the programs that find them, read without running anything."""

from stiefelsync.io.cells.sources import is_session, read_sessions
from stiefelsync.io.cells.tables import TABLES, write_table
from stiefelsync.io.cells.units import Units, from_networkx, read_matrix, read_unitmatch, units_of

__all__ = [
    "TABLES",
    "Units",
    "from_networkx",
    "is_session",
    "read_matrix",
    "read_sessions",
    "read_unitmatch",
    "units_of",
    "write_table",
]
