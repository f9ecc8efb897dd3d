"""Every synchronisation method; importing this package registers them all."""

from stiefelsync.sync.methods import (
    accurate,
    colmap_tracks,
    fast,
    kruskal,
    matchals,
    matcheig,
    nmfsync,
    projected_power,
    quickmatch,
    sparse_stiefel,
    spectral,
    spectral_averaged,
    subgradient,
    tracks,
    two_stage,
    union_find,
)

__all__ = [
    "accurate",
    "colmap_tracks",
    "fast",
    "kruskal",
    "matchals",
    "matcheig",
    "nmfsync",
    "projected_power",
    "quickmatch",
    "sparse_stiefel",
    "spectral",
    "spectral_averaged",
    "subgradient",
    "tracks",
    "two_stage",
    "union_find",
]
