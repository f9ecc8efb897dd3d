"""Consistent multi-matching by sparse quadratic optimisation over the Stiefel manifold.

Names are loaded when they are first used, so that ``import stiefelsync`` costs next to nothing and
optional dependencies are asked for only by what needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stiefelsync._version import __version__

__all__ = [
    "METHODS",
    "Constraints",
    "ConvergenceWarning",
    "FormatError",
    "InputError",
    "Matchings",
    "MissingExtraError",
    "StiefelResult",
    "StiefelSyncError",
    "Synchronisation",
    "__version__",
    "clean",
    "compare",
    "cycle_error",
    "datasets",
    "estimate_universe",
    "io",
    "judge",
    "merge",
    "methods",
    "rotate",
    "round_labels",
    "score",
    "sparse_stiefel",
    "synchronise",
    "two_stage",
]

# Found as attributes, but not by a star import: `inspect` would take the place of Python's own,
# extras may be missing.
_MODULES = (
    "datasets", "distributed", "errors", "following", "io", "methods", "plotting", "registration", "report", "torch",
)  # fmt: skip
_HOMES = {
    "METHODS": "methods",
    "Constraints": "sync.constraints",
    "ConvergenceWarning": "errors",
    "FormatError": "errors",
    "InputError": "errors",
    "Matchings": "matching.matchings",
    "MissingExtraError": "errors",
    "StiefelResult": "stiefel.result",
    "StiefelSyncError": "errors",
    "Synchronisation": "sync.result",
    "clean": "cleaning",
    "compare": "sync.comparison",
    "cycle_error": "matching.metrics",
    "estimate_universe": "matching.universe",
    "inspect": "inspection",
    "judge": "judging",
    "merge": "merging",
    "rotate": "stiefel.rotation",
    "round_labels": "sync.rounding",
    "score": "matching.metrics",
    "sparse_stiefel": "stiefel.solve",
    "synchronise": "sync.synchronise",
    "two_stage": "stiefel.solve",
}

if TYPE_CHECKING:
    from stiefelsync import datasets, io, methods
    from stiefelsync import distributed as distributed
    from stiefelsync import errors as errors
    from stiefelsync import following as following
    from stiefelsync import plotting as plotting
    from stiefelsync import registration as registration
    from stiefelsync import report as report
    from stiefelsync import torch as torch
    from stiefelsync.cleaning import clean
    from stiefelsync.errors import ConvergenceWarning, FormatError, InputError, MissingExtraError, StiefelSyncError
    from stiefelsync.inspection import inspect as inspect
    from stiefelsync.judging import judge
    from stiefelsync.matching.matchings import Matchings
    from stiefelsync.matching.metrics import cycle_error, score
    from stiefelsync.matching.universe import estimate_universe
    from stiefelsync.merging import merge
    from stiefelsync.stiefel.result import StiefelResult
    from stiefelsync.stiefel.rotation import rotate
    from stiefelsync.stiefel.solve import sparse_stiefel, two_stage
    from stiefelsync.sync.comparison import compare
    from stiefelsync.sync.constraints import Constraints
    from stiefelsync.sync.method import METHODS
    from stiefelsync.sync.result import Synchronisation
    from stiefelsync.sync.rounding import round_labels
    from stiefelsync.sync.synchronise import synchronise
else:  # a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            spelt = name.replace("ynchroniz", "ynchronis")
            hint = f"; it is spelt {spelt!r} here" if spelt in _HOMES else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
