"""Pictures of problems and results; needs the extra ``plot``."""

from stiefelsync.plotting.canvas import check_path, save, save_to
from stiefelsync.plotting.comparison import comparison
from stiefelsync.plotting.lines import match_lines
from stiefelsync.plotting.matrices import matrices
from stiefelsync.plotting.overview import overview
from stiefelsync.plotting.relaxed import convergence, heatmaps

__all__ = [
    "check_path", "comparison", "convergence", "heatmaps", "match_lines", "matrices", "overview", "save", "save_to",
]  # fmt: skip
