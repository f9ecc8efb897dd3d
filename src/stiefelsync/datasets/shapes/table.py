"""The problems of the benchmark `benchmarks.shapes`, by name and by family."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets.shapes.descriptors import cells, merging, reid
from stiefelsync.datasets.shapes.detected import drive, groups, independent, photos, window_detected
from stiefelsync.datasets.shapes.graphs import bipartite, hierarchy, hubs, mosaic, queries, skips, star
from stiefelsync.datasets.shapes.mistakes import alias, halves, rogues, worth
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
from stiefelsync.datasets.shapes.sizes import large_detected, singles, unequal
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

_GRAPHS: dict[str, Draw] = {
    "star": star,
    "star large": partial(star, 41, 800, observed=0.05),
    "bipartite": bipartite,
    "queries": queries,
    "mosaic": mosaic,
    "hierarchy": hierarchy,
    "skips": skips,
    "hubs": hubs,
    "drive long": partial(drive, 300, legs=3),
}

_SIZES: dict[str, Draw] = {
    "unequal": unequal,
    "singles": singles,
    "large detected": large_detected,
    "three detected": partial(independent, 3, 40, observed=0.7, hit=0.65, wrong=0.25),
}

_MISTAKES: dict[str, Draw] = {
    "halves": halves,
    "alias": alias,
    "rogues": rogues,
    "worth": worth,
    "low recall": partial(independent, 30, 60, observed=0.5, hit=0.12, wrong=0.04),
    "cells weighted": partial(cells, weights=True),
    "reid weighted": partial(reid, weights=True),
    "merging weighted": partial(merging, weights=True),
}

_NUMBERS = (3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_SWEEP: dict[str, Draw] = {
    **{f"row k={k}": partial(synthetic, 25, k, 0.7, 0.5) for k in _NUMBERS},
    **{f"detected k={k}": partial(independent, k, 25, observed=0.7, hit=0.5, wrong=0.4) for k in _NUMBERS},
}

FAMILIES: dict[str, dict[str, Draw]] = {
    "row": _ROW,
    "detected": _DETECTED,
    "graphs": _GRAPHS,
    "sizes": _SIZES,
    "mistakes": _MISTAKES,
    "sweep": _SWEEP,
}
"""Problems by what they have in common: errors of rows; errors on both sides or of observations; who is compared with
whom; how large objects are; why matches are wrong; three to sixty objects."""

SHAPES: dict[str, Draw] = {name: draw for family in FAMILIES.values() for name, draw in family.items()}
"""All problems: call one with ``rng=seed``."""
