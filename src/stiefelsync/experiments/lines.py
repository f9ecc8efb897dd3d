"""The lines of the figures: one colour, marker and name per method, the same in every figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import INPUT, Task
from stiefelsync.sync.method import METHODS

__all__ = [
    "ABLATION",
    "ACCURATE",
    "EIG",
    "EIGS",
    "EIGS_PLAIN",
    "FAST",
    "LINES",
    "MATCHALS",
    "MATCHEIG",
    "NMF",
    "ORTHIT",
    "OURS",
    "PAPER",
    "POWER4",
    "PRESETS",
    "SPECTRAL",
    "STAGES",
    "STAGES_BT",
    "SUBGRADIENT",
    "UNSYNCHRONISED",
    "Line",
    "figure",
    "fscore",
    "means",
    "objective",
    "runtime",
    "values",
]

Value = Callable[[Record], float | None]
Key = Callable[[Record], Any]


@dataclass(frozen=True, eq=False)
class Line:
    """One method in a figure.

    Attributes
    ----------
    label
        As the paper writes it.
    method, options
        What is run.
    """

    label: str
    method: str
    colour: str
    marker: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def consistent(self) -> bool:
        """Whether cycle consistency is guaranteed; lines of the others are dashed."""
        return self.method != INPUT and METHODS[self.method].consistent

    def task(self, problem: Mapping[str, Any], seed: int, keep: tuple[str, ...] = ()) -> Task:
        """Return the task of running this method on a problem."""
        return Task(problem, self.method, seed, self.options, keep=keep)

    def owns(self, record: Record) -> bool:
        """Return whether a record is one of this method."""
        task = record.task
        return task.method == self.method and task.options == self.options and task.action == "synchronise"


# Okabe and Ito's palette, black and grey; markers differ too, for grey print.
UNSYNCHRONISED = Line("Input", INPUT, "#999999", "")
MATCHEIG = Line("MatchEig", "matcheig", "#E69F00", "v")
MATCHALS = Line("MatchALS", "matchals", "#CC79A7", "^")
SPECTRAL = Line("Spectral", "spectral", "#009E73", "s")
NMF = Line("NmfSync", "nmfsync", "#56B4E9", "D")
OURS = Line("Ours (as published)", "sparse-stiefel", "#D55E00", "o")
FAST = Line("fast (this package)", "fast", "#0072B2", "P")
ACCURATE = Line("accurate (this package)", "accurate", "#000000", "X")
STAGES = Line("Ours/2-stage", "two-stage", "#009E73", "s")
STAGES_BT = Line("Ours/2-stage/bt", "two-stage-bt", "#56B4E9", "D")
EIG = Line("Eig+ManOpt", "eig-manopt", "#E69F00", "v")
EIGS = Line("Eigs+ManOpt", "eigs-manopt", "#CC79A7", "^")
EIGS_PLAIN = Line("Eigs+ManOpt, eigs() unchecked", "eigs-manopt", "#000000", "X", {"ncv": 61})
ORTHIT = Line("OrthIt+ManOpt", "orthit-manopt", "#0072B2", "P")
POWER4 = Line("Ours, p = 4", "sparse-stiefel", "#0072B2", "s", {"p": 4})
SUBGRADIENT = Line("Riemannian subgradient", "subgradient", "#CC79A7", "^")

PAPER = (MATCHEIG, MATCHALS, SPECTRAL, NMF, OURS)
PRESETS = (FAST, ACCURATE)
LINES = (UNSYNCHRONISED, *PAPER, *PRESETS)
ABLATION = (OURS, STAGES, STAGES_BT, EIG, EIGS, ORTHIT)


def values(records: Sequence[Record], line: Line, value: Value, x: Key) -> dict[Any, NDArray[Any]]:
    """Return, for every x in ascending order, the values of one line over the seeds, shape (seeds,)."""
    found: dict[Any, list[float]] = {}
    for record in records:
        if line.owns(record) and (number := value(record)) is not None:
            found.setdefault(x(record), []).append(number)
    return {at: np.array(found[at]) for at in sorted(found)}


def means(records: Sequence[Record], line: Line, value: Value, x: Key) -> dict[Any, float]:
    """Return, for every x, the mean of one line over the seeds."""
    return {at: float(found.mean()) for at, found in values(records, line, value, x).items()}


def fscore(record: Record) -> float:
    """Return the fscore, 2pr/(p + r)."""
    return float(record.result["fscore"])


def objective(record: Record) -> float | None:
    """Return tr(PᵀWP)/k², or None for an answer that is not a labelling."""
    return record.result.get("objective")


def figure(name: str) -> Value:
    """Return the function that reads a figure from a record, None where there is none."""
    return lambda record: record.result.get(name)


def runtime(record: Record) -> float | None:
    """Return the CPU seconds, or None where they were not measured alone."""
    return None if record.task.method == INPUT else record.cpu_seconds
