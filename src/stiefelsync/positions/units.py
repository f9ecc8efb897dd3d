"""What positions are given in: pixels, or shares of an image's larger side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NEAR", "are_normalised", "in_pixels"]

NEAR = 10.0
"""Pixels within which structure-from-motion programs take two keypoints of one image for one."""
HALF = 0.55
"""Half an image's larger side in OpenSfM's coordinates, with room for a little more."""


def in_pixels(coordinates: NDArray[Any]) -> bool:
    """Return whether positions, (m, 2), can be pixels.

    From the image's corner on, and more than shares of its sides.

    Examples
    --------
    >>> in_pixels(np.array([[0.2, 0.9], [0.7, 0.1]])), in_pixels(np.array([[-0.5, 3.0], [640.0, 55.0]]))
    (False, True)
    """
    known = coordinates[np.isfinite(coordinates)]
    return len(known) > 0 and bool(known.min() >= -NEAR and known.max() > 1)


def are_normalised(coordinates: NDArray[Any] | None) -> bool:
    """Return whether positions, (m, 2), are OpenSfM's.

    The origin at the image's centre, the larger side 1.

    They are if none lies much farther than half a side from the origin and some are negative, which
    pixels are not.

    Examples
    --------
    >>> are_normalised(np.array([[-0.501, 0.3], [0.2, np.nan]])), are_normalised(np.array([[0.0, 0.3], [812.0, 55.0]]))
    (True, False)
    """
    if coordinates is None:
        return False
    known = coordinates[np.isfinite(coordinates)]
    return bool((np.abs(known) <= HALF).all() and (known < 0).any())
