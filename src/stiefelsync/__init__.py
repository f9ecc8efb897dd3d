"""Consistent multi-matching by sparse quadratic optimisation over the Stiefel manifold.

Names are loaded when they are first used, so that ``import stiefelsync`` costs next to nothing and optional
dependencies are asked for only by what needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stiefelsync._version import __version__

if TYPE_CHECKING:
    from stiefelsync import datasets, errors, io, plotting, report
    from stiefelsync import distributed as distributed
    from stiefelsync import torch as torch
    from stiefelsync.cleaning import Cleaned, clean
    from stiefelsync.errors import ConvergenceWarning, FormatError, InputError, MissingExtraError, StiefelSyncError
    from stiefelsync.inspection import Inspection, inspect
    from stiefelsync.matching.difference import Counts, Difference, difference
    from stiefelsync.matching.matchings import Matchings
    from stiefelsync.matching.metrics import CycleError, Score, cycle_error, score
    from stiefelsync.matching.universe import UniverseEstimate, estimate_universe
    from stiefelsync.stiefel.result import Status, StiefelResult
    from stiefelsync.stiefel.rotation import rotate
    from stiefelsync.stiefel.solve import sparse_stiefel, two_stage
    from stiefelsync.sync.comparison import Comparison, compare
    from stiefelsync.sync.method import METHODS, Callback, Details, Outcome, Progress, Stopwatch, register
    from stiefelsync.sync.result import Synchronisation
    from stiefelsync.sync.rounding import round_labels
    from stiefelsync.sync.synchronise import synchronise

__all__ = [
    "METHODS",
    "Callback",
    "Cleaned",
    "Comparison",
    "ConvergenceWarning",
    "Counts",
    "CycleError",
    "Details",
    "Difference",
    "FormatError",
    "InputError",
    "Inspection",
    "Matchings",
    "MissingExtraError",
    "Outcome",
    "Progress",
    "Score",
    "Status",
    "StiefelResult",
    "StiefelSyncError",
    "Stopwatch",
    "Synchronisation",
    "UniverseEstimate",
    "__version__",
    "clean",
    "compare",
    "cycle_error",
    "datasets",
    "difference",
    "errors",
    "estimate_universe",
    "inspect",
    "io",
    "plotting",
    "register",
    "report",
    "rotate",
    "round_labels",
    "score",
    "sparse_stiefel",
    "synchronise",
    "two_stage",
]

_MODULES = ("datasets", "errors", "io", "plotting", "report")
_EXTRAS = ("distributed", "torch")  # not in `__all__`, since a star import must not need them
_HOMES = {
    "cleaning": ("Cleaned", "clean"),
    "errors": ("ConvergenceWarning", "FormatError", "InputError", "MissingExtraError", "StiefelSyncError"),
    "matching.difference": ("Counts", "Difference", "difference"),
    "inspection": ("Inspection", "inspect"),
    "matching.matchings": ("Matchings",),
    "matching.metrics": ("CycleError", "Score", "cycle_error", "score"),
    "matching.universe": ("UniverseEstimate", "estimate_universe"),
    "stiefel.result": ("Status", "StiefelResult"),
    "stiefel.rotation": ("rotate",),
    "stiefel.solve": ("sparse_stiefel", "two_stage"),
    "sync.comparison": ("Comparison", "compare"),
    # The methods enter the registry when `synchronise` is imported, so the package stands for its module here.
    "sync": ("METHODS",),
    "sync.method": ("Callback", "Details", "Outcome", "Progress", "Stopwatch", "register"),
    "sync.result": ("Synchronisation",),
    "sync.rounding": ("round_labels",),
    "sync.synchronise": ("synchronise",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name in (*_MODULES, *_EXTRAS):
            return import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_EXTRAS})
