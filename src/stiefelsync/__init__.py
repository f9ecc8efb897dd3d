"""Consistent multi-matching by sparse quadratic optimisation over the Stiefel manifold."""

from stiefelsync._version import __version__
from stiefelsync.errors import ConvergenceWarning, FormatError, InputError, MissingExtraError, StiefelSyncError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import Score, score
from stiefelsync.stiefel.result import StiefelResult
from stiefelsync.stiefel.solve import sparse_stiefel, two_stage
from stiefelsync.sync.method import METHODS
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

__all__ = [
    "METHODS",
    "ConvergenceWarning",
    "FormatError",
    "InputError",
    "Matchings",
    "MissingExtraError",
    "Score",
    "StiefelResult",
    "StiefelSyncError",
    "Synchronisation",
    "__version__",
    "score",
    "sparse_stiefel",
    "synchronise",
    "two_stage",
]
