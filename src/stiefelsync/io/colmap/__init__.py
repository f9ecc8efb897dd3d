"""COLMAP databases: one module per job, registered as the format ``colmap``."""

from stiefelsync.io.colmap.database import COLMAP, check_same_table, next_command
from stiefelsync.io.colmap.read_rows import MAX_IMAGES, TABLES

__all__ = ["COLMAP", "MAX_IMAGES", "TABLES", "check_same_table", "next_command"]
