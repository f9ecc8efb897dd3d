"""What a synchronisation method is made of, for methods of your own.

The registry of all methods is ``METHODS``.
"""

from stiefelsync.sync import METHODS
from stiefelsync.sync.method import Callback, Details, Method, Outcome, Progress, Run, Stopwatch, option, register

__all__ = [
    "METHODS",
    "Callback",
    "Details",
    "Method",
    "Outcome",
    "Progress",
    "Run",
    "Stopwatch",
    "option",
    "register",
]
