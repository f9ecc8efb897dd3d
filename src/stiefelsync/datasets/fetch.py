"""Find a data file here, in the user's cache, or fetch it: checksummed, and complete or not at all."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from stiefelsync.errors import InputError

__all__ = ["RemoteFile", "cache_dir", "fetch", "find"]


@dataclass(frozen=True)
class RemoteFile:
    """A file someone else publishes: never part of this package, fetched only when the user asks.

    Attributes
    ----------
    path
        Where it lies below the data folder, with forward slashes.
    url
        Where its authors publish it.
    sha256
        Hexadecimal checksum of the one version this package knows.
    """

    path: str
    url: str
    sha256: str


def cache_dir() -> Path:
    """Return the folder for fetched data: the platform's user cache, below it ``stiefelsync``.

    Examples
    --------
    >>> cache_dir().name
    'stiefelsync'
    """
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "stiefelsync"


def find(file: RemoteFile, *, download: bool = False) -> Path:
    """Return where the file lies: below ``STIEFELSYNC_DATA``, else in the cache, else fetched if `download`.

    Examples
    --------
    >>> find(RemoteFile("none/such.mat", "https://example.org/such.mat", "0" * 64))
    Traceback (most recent call last):
    ...
    stiefelsync.errors.InputError: none/such.mat is not on this machine; ...
    """
    folder = os.environ.get("STIEFELSYNC_DATA")
    places = [Path(folder)] if folder else []
    for place in (*places, cache_dir()):
        if (place / file.path).is_file():
            return place / file.path
    if download:
        return fetch(file, cache_dir() / file.path)
    raise InputError(
        f"{file.path} is not on this machine; pass download=True to fetch it once from"
        f" {file.url}, or set STIEFELSYNC_DATA to the folder that holds it",
        setting="download",
    )


def fetch(file: RemoteFile, target: Path) -> Path:
    """Download a file to `target`, which appears complete and with the right checksum or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name + ".")
    temporary = Path(name)
    try:
        digest = hashlib.sha256()
        try:
            with os.fdopen(handle, "wb") as out, urllib.request.urlopen(file.url, timeout=60) as response:
                while block := response.read(1 << 20):
                    digest.update(block)
                    out.write(block)
        except OSError as error:
            raise InputError(f"{file.url} could not be fetched ({error}); fetch it by hand to {target}") from error
        if digest.hexdigest() != file.sha256:
            raise InputError(
                f"{file.url} is not the expected file: its SHA-256 is {digest.hexdigest()}, expected {file.sha256};"
                " nothing was kept"
            )
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target
