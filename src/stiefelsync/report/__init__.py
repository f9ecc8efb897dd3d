"""The report page: what synchronisation changed, in one HTML file that needs nothing else."""

from stiefelsync.report.files import report_files
from stiefelsync.report.page import check_page, render, write_report

__all__ = ["check_page", "render", "report_files", "write_report"]
