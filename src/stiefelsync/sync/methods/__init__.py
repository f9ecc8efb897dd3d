"""Every synchronisation method; importing this package registers them all."""

from stiefelsync.sync.methods import (
    accurate,
    eig_manopt,
    eigs_manopt,
    fast,
    matchals,
    matcheig,
    nmfsync,
    orthit_manopt,
    orthogonal_iteration,
    projected_power,
    sparse_stiefel,
    spectral,
    subgradient,
    two_stage,
    two_stage_bt,
    union_find,
)

__all__ = [
    "accurate",
    "eig_manopt",
    "eigs_manopt",
    "fast",
    "matchals",
    "matcheig",
    "nmfsync",
    "orthit_manopt",
    "orthogonal_iteration",
    "projected_power",
    "sparse_stiefel",
    "spectral",
    "subgradient",
    "two_stage",
    "two_stage_bt",
    "union_find",
]
