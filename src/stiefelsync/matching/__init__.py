"""What is being synchronised: pairwise matchings, their graph, their quality."""

from stiefelsync.matching._canonical import Repair
from stiefelsync.matching.graph import Conflicts, components, conflicts, triangle_support
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import CycleError, Score, cycle_error, objective, score
from stiefelsync.matching.universe import UniverseEstimate, estimate_universe

__all__ = [
    "Conflicts",
    "CycleError",
    "Matchings",
    "Repair",
    "Score",
    "UniverseEstimate",
    "components",
    "conflicts",
    "cycle_error",
    "estimate_universe",
    "objective",
    "score",
    "triangle_support",
]
