"""What made a file: version, method, options, seed, and the digest of what was read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from stiefelsync._version import __version__

__all__ = ["MADE_BY", "as_text", "made_by", "read_from"]

MADE_BY = "made_by"
"""Name of the text in files of NumPy, MATLAB and HDF5."""

# What is read of suite2p and UnitMatch.
_OF_FOLDERS = (
    "stat.npy", "iscell.npy", "MatchProb.npy", "MatchProb CV12.npy", "MatchProb CV21.npy", "MatchTable.csv",
    "ClusInfo.pickle",
)  # fmt: skip


def made_by(
    method: str, options: Mapping[str, Any] | None = None, seed: object = None, source: Path | None = None
) -> dict[str, Any]:
    """Return what made an answer, ready for JSON; equal runs give equal values, so no time and no folder is in it.

    Parameters
    ----------
    options
        Those that were given; what has no plain text is given by its type. None: nobody knows.
    seed
        A whole number; whatever else draws cannot be told.
    source
        The file that was read, whose name and digest are kept; a folder has none.

    Examples
    --------
    >>> made_by("tracks", {"threshold": 0.3}, seed=7)["options"]
    {'threshold': 0.3}
    """
    told: dict[str, Any] = {"program": "stiefelsync", "version": __version__, "method": method}
    if options is not None:
        told["options"] = {name: _plain(value) for name, value in sorted(options.items())}
    if isinstance(seed, Integral):
        told["seed"] = int(seed)
    if source is not None and source.is_file():
        told["input"] = read_from(source)
    return told


def read_from(path: Path) -> dict[str, str]:
    """Return the name and the digest of a file, or of all NumPy arrays and tables in a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     read_from(Path(file.name))["sha256"][:8]
    'e3b0c442'
    """
    if path.is_file():
        with path.open("rb") as file:
            return {"name": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    whole = hashlib.sha256()
    for below in sorted(path.rglob("*")):
        if below.name in _OF_FOLDERS and below.is_file():
            told = read_from(below)
            whole.update(f"{below.relative_to(path).as_posix()} {told['sha256']}\n".encode(errors="replace"))
    return {"name": path.resolve().name, "sha256": whole.hexdigest()}


def as_text(told: Mapping[str, Any]) -> str:
    """Return it as one line of JSON, for files with a place for a text.

    Examples
    --------
    >>> as_text({"method": "tracks"})
    '{"method": "tracks"}'
    """
    return json.dumps(told, sort_keys=True)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, or the name of its type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, bool | int | float | str) for item in value):
        return list(value)
    if isinstance(value, Path):
        return value.name
    return type(value).__name__
