"""Read matches from files, write consistent ones back: one file per format, a registry that sniffs content."""

from stiefelsync.io import colmap, csv, npz
from stiefelsync.io.base import FORMATS, Format
from stiefelsync.io.colmap import next_command
from stiefelsync.io.convert import convert, detect, read, write
from stiefelsync.io.npz import read_truth

__all__ = [
    "FORMATS",
    "Format",
    "colmap",
    "convert",
    "csv",
    "detect",
    "next_command",
    "npz",
    "read",
    "read_truth",
    "write",
]
