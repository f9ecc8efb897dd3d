"""Read matches from files, write consistent ones back: one file per format, a registry that sniffs content."""

from stiefelsync.io import csv, npz
from stiefelsync.io.base import FORMATS, Format
from stiefelsync.io.convert import convert, detect, read, write
from stiefelsync.io.npz import read_truth

__all__ = ["FORMATS", "Format", "convert", "csv", "detect", "npz", "read", "read_truth", "write"]
