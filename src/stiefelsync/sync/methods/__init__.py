"""Every synchronisation method; importing this package registers them all."""

from stiefelsync.sync.methods import (
    accurate,
    fast,
    rivals,
    sparse_stiefel,
    tracks,
    two_stage,
)

__all__ = [
    "accurate",
    "fast",
    "rivals",
    "sparse_stiefel",
    "tracks",
    "two_stage",
]
