"""Where the program ``stiefelsync`` begins: what needs no library is answered before one is loaded."""

from __future__ import annotations

import sys

from stiefelsync._version import __version__

__all__ = ["main"]


def main() -> None:
    """Print the version, or run the command line."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(__version__ + "\n")
        return
    from stiefelsync.cli import main as run

    run()
