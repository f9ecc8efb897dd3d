"""Consistent multi-matching by sparse quadratic optimisation over the Stiefel manifold."""

from stiefelsync._version import __version__
from stiefelsync.errors import ConvergenceWarning, FormatError, InputError, MissingExtraError, StiefelSyncError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import StiefelResult
from stiefelsync.stiefel.solve import sparse_stiefel, two_stage

__all__ = [
    "ConvergenceWarning",
    "FormatError",
    "InputError",
    "Matchings",
    "MissingExtraError",
    "StiefelResult",
    "StiefelSyncError",
    "__version__",
    "sparse_stiefel",
    "two_stage",
]
