"""Every synchronisation method; importing this package registers them all."""

from stiefelsync.sync.methods import (
    accurate,
    correlation,
    fast,
    rivals,
    sparse_stiefel,
    tracks,
    two_stage,
)

__all__ = [
    "accurate",
    "correlation",
    "fast",
    "rivals",
    "sparse_stiefel",
    "tracks",
    "two_stage",
]
