"""Cells of many days laid over each other: from footprints to probabilities, from labels to a table with confidence."""

from stiefelsync.registration.align import Alignment
from stiefelsync.registration.candidates import Candidates
from stiefelsync.registration.compare import Compared, compare_sessions
from stiefelsync.registration.confidence import Trust, confidences
from stiefelsync.registration.decide import exchanged, greedy, weighed
from stiefelsync.registration.judgement import Judgement, judge
from stiefelsync.registration.mixture import Sameness, fit_sameness
from stiefelsync.registration.recalibrate import recalibrated
from stiefelsync.registration.scores import candidates_of_matrix
from stiefelsync.registration.session import Session
from stiefelsync.registration.table import CellTable, stacked, table_of

__all__ = [
    "Alignment",
    "Candidates",
    "CellTable",
    "Compared",
    "Judgement",
    "Sameness",
    "Session",
    "Trust",
    "candidates_of_matrix",
    "compare_sessions",
    "confidences",
    "exchanged",
    "fit_sameness",
    "greedy",
    "judge",
    "recalibrated",
    "stacked",
    "table_of",
    "weighed",
]
