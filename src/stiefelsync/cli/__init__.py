"""The command line: parses, calls one library function, prints."""

from stiefelsync.cli.app import app, main

__all__ = ["app", "main"]
