"""The report page: what synchronisation changed, in one HTML file that needs nothing else."""

from stiefelsync.report.collect import change
from stiefelsync.report.page import check_path, render, save, write_report

__all__ = ["change", "check_path", "render", "save", "write_report"]
