"""What is being synchronised: pairwise matchings, their graph, their quality."""

from stiefelsync.matching._canonical import Repair
from stiefelsync.matching.graph import Conflicts, components, conflicts, triangle_support
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import CycleError, Score, cycle_error, objective, score

__all__ = [
    "Conflicts",
    "CycleError",
    "Matchings",
    "Repair",
    "Score",
    "components",
    "conflicts",
    "cycle_error",
    "objective",
    "score",
    "triangle_support",
]
