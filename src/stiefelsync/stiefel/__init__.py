"""The solver for Problem (1) of the paper; it knows nothing of matchings."""

from stiefelsync.stiefel.result import History, State, Status, StiefelResult, Subspace
from stiefelsync.stiefel.rotation import rotate
from stiefelsync.stiefel.solve import sparse_stiefel, two_stage
from stiefelsync.stiefel.subspace import dominant_subspace

__all__ = [
    "History",
    "State",
    "Status",
    "StiefelResult",
    "Subspace",
    "dominant_subspace",
    "rotate",
    "sparse_stiefel",
    "two_stage",
]
