"""The synchroniser: choose a method, label the points, tell what became of the matches."""

from stiefelsync.sync.method import METHODS, Method, Outcome, Progress
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

__all__ = ["METHODS", "Method", "Outcome", "Progress", "Synchronisation", "synchronise"]
