"""What is being synchronised: pairwise matchings, their graph, their quality."""

from stiefelsync.matching._canonical import Repair
from stiefelsync.matching.matchings import Matchings

__all__ = ["Matchings", "Repair"]
