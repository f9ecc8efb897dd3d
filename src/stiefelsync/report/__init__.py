"""The report page: what synchronisation changed, in one HTML file that needs nothing else."""

from stiefelsync.report.collect import change
from stiefelsync.report.page import render, write_report

__all__ = ["change", "render", "write_report"]
