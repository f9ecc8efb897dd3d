"""The report page: what synchronisation changed, in one HTML file that needs nothing else."""

from stiefelsync.report.collect import change
from stiefelsync.report.page import add_notes, check_path, encoded, render, save, write_report

__all__ = ["add_notes", "change", "check_path", "encoded", "render", "save", "write_report"]
