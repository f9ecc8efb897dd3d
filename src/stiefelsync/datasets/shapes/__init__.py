"""Problems of the shapes that users have, with their truth: ``SHAPES[name](rng=seed)`` draws one by name."""

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
from stiefelsync.datasets.shapes.table import FAMILIES, SHAPES

__all__ = [
    "FAMILIES",
    "SHAPES",
    "alias",
    "bipartite",
    "cells",
    "crowd",
    "drive",
    "groups",
    "halves",
    "hierarchy",
    "hubs",
    "independent",
    "large",
    "large_detected",
    "merging",
    "mosaic",
    "networks",
    "photos",
    "queries",
    "reid",
    "ring",
    "rogue",
    "rogues",
    "singles",
    "skips",
    "star",
    "twins",
    "unequal",
    "uneven",
    "video",
    "weighted",
    "window",
    "window_detected",
    "worth",
]
