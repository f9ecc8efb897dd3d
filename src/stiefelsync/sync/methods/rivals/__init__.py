"""Published methods to compare with; importing this package registers them all."""

from stiefelsync.sync.methods.rivals import (
    clear,
    colmap_tracks,
    kruskal,
    matchals,
    matcheig,
    matchfame,
    nmfsync,
    projected_power,
    quickmatch,
    spectral,
    spectral_averaged,
    subgradient,
    union_find,
)

__all__ = [
    "clear",
    "colmap_tracks",
    "kruskal",
    "matchals",
    "matcheig",
    "matchfame",
    "nmfsync",
    "projected_power",
    "quickmatch",
    "spectral",
    "spectral_averaged",
    "subgradient",
    "union_find",
]
