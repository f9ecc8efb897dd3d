"""Where the program ``stiefelsync`` begins: what needs no library is answered before one is loaded."""

from __future__ import annotations

import sys

from stiefelsync._core.library import about
from stiefelsync._version import __version__

__all__ = ["main", "version"]


def main() -> None:
    """Print the version, or run the command line."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(version() + "\n")
        return
    from stiefelsync.cli import main as run

    run()


def version() -> str:
    """Return the version, which kernels are installed, and the processor they run on; a line each.

    Examples
    --------
    >>> [line.split()[0] for line in version().splitlines()]
    ['stiefelsync', 'kernels', 'processor']
    """
    try:
        told = about()
    except ImportError as error:
        return f"stiefelsync {__version__}\nkernels none: {error}"
    return (
        f"stiefelsync {__version__}\nkernels {told['fingerprint']}, {told['compiler']}\nprocessor {told['processor']}"
    )
