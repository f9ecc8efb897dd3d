"""Where a program counts pixels from."""

from __future__ import annotations

from stiefelsync.errors import InputError, unknown_name

__all__ = ["ORIGINS", "shifted"]

ORIGINS = {"centre": 0.5, "corner": 0.0}
"""What is added to positions so that they count from the corner of the first pixel, as COLMAP does."""


def shifted(origin: str | None) -> float:
    """Return what is to be added to positions that count from `origin`, or ask for it.

    Examples
    --------
    >>> shifted("centre"), shifted("corner")
    (0.5, 0.0)
    """
    if origin is None:
        raise InputError(
            "nobody but you knows where (0, 0) is: in the centre of the first pixel (CoTracker), or at its corner"
            " (TAPIR, COLMAP); say origin=centre or origin=corner",
            setting="origin",
        )
    if origin not in ORIGINS:
        raise unknown_name("origin", origin, ORIGINS)
    return ORIGINS[origin]
