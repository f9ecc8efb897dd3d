"""Problems of the shapes that users have, with their truth: ``SHAPES[name](rng=seed)`` draws one by name."""

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
from stiefelsync.datasets.shapes.table import FAMILIES, SHAPES

__all__ = [
    "FAMILIES",
    "SHAPES",
    "cells",
    "crowd",
    "drive",
    "groups",
    "independent",
    "large",
    "merging",
    "networks",
    "photos",
    "reid",
    "ring",
    "rogue",
    "twins",
    "uneven",
    "video",
    "weighted",
    "window",
    "window_detected",
]
