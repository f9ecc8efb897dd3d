"""Every synchronisation method; importing this package registers them all."""

from stiefelsync.sync.methods import (
    accurate,
    fast,
    matchals,
    matcheig,
    nmfsync,
    orthogonal_iteration,
    projected_power,
    sparse_stiefel,
    spectral,
    two_stage,
    two_stage_bt,
    union_find,
)

__all__ = [
    "accurate",
    "fast",
    "matchals",
    "matcheig",
    "nmfsync",
    "orthogonal_iteration",
    "projected_power",
    "sparse_stiefel",
    "spectral",
    "two_stage",
    "two_stage_bt",
    "union_find",
]
