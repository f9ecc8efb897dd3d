"""The problems of the benchmark `benchmarks.shapes`, by name and by family."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets.shapes.descriptors import cells, merging, reid
from stiefelsync.datasets.shapes.detected import drive, groups, independent, photos, window_detected
from stiefelsync.datasets.shapes.row import (
    crowd,
    large,
    networks,
    ring,
    rogue,
    twins,
    uneven,
    video,
    weighted,
    window,
)
from stiefelsync.datasets.synthetic import synthetic
from stiefelsync.matching.matchings import Matchings

__all__ = ["FAMILIES", "SHAPES"]

Draw = Callable[..., tuple[Matchings, NDArray[np.int64]]]

_ROW: dict[str, Draw] = {
    "ring": ring,
    "ring .5": partial(ring, error=0.5),
    "window": window,
    "crowd": crowd,
    "large": large,
    "large 500": partial(large, 500),
    "large 250": partial(large, 250),
    "three": partial(synthetic, 25, 3, 0.8, 0.3),
    "rogue": rogue,
    "twins": twins,
    "weighted": weighted,
    "uneven points": uneven,
    "uneven objects": partial(uneven, of="objects"),
    "networks": partial(networks, weights=False),
    "networks weighted": networks,
    "video": video,
}

_DETECTED: dict[str, Draw] = {
    "independent": independent,
    "independent few": partial(independent, 6, hit=0.55, wrong=0.4),
    "independent ring": partial(independent, 60, hit=0.55, wrong=0.4, reach=5),
    "photos": photos,
    "cells": cells,
    "reid": reid,
    "merging": merging,
    "groups": groups,
    "window detected": window_detected,
    "window detected good": partial(window_detected, hit=0.85),
    "drive": drive,
}

FAMILIES: dict[str, dict[str, Draw]] = {"row": _ROW, "detected": _DETECTED}
"""Problems by what they have in common: errors of rows; errors on both sides or of observations."""

SHAPES: dict[str, Draw] = {name: draw for family in FAMILIES.values() for name, draw in family.items()}
"""All problems: call one with ``rng=seed``."""
