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
    sys.meta_path.insert(0, _WithoutPandas)
    from stiefelsync.cli import main as run

    run()


class _WithoutPandas:
    """Says that there is no pandas, in the process of the program, which makes no data frames.

    Arrow loads it as soon as it hands an array to NumPy: half a second, and 60 MB.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the program does without pandas", name=name)


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
