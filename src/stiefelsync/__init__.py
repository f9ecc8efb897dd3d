"""Consistent multi-matching by sparse quadratic optimisation over the Stiefel manifold."""

from stiefelsync._version import __version__
from stiefelsync.errors import ConvergenceWarning, FormatError, InputError, MissingExtraError, StiefelSyncError
from stiefelsync.matching.matchings import Matchings

__all__ = [
    "ConvergenceWarning",
    "FormatError",
    "InputError",
    "Matchings",
    "MissingExtraError",
    "StiefelSyncError",
    "__version__",
]
