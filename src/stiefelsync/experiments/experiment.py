"""What every experiment consists of: run, evaluate, plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stiefelsync.errors import InputError
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.tasks import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AVERAGE", "FAILS", "HOLDS", "Experiment", "Settings", "Verdict", "judge"]

HOLDS, AVERAGE, FAILS = "holds", "holds on average", "does not hold"


@dataclass(frozen=True)
class Settings:
    """How large a run is.

    Attributes
    ----------
    quick
        A small honest version: few settings, few seeds, the same methods.
    seeds
        Seeds per point; None leaves the choice to each experiment.
    first_seed
        Seeds are first_seed, first_seed + 1, …
    step
        Of k on the house sequence, from 20 to 111.
    photographs
        Whether match lines are drawn over the photographs.
    """

    quick: bool = False
    seeds: int | None = None
    first_seed: int = 0
    step: int = 20
    photographs: bool = True

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise InputError(f"seeds must be at least 1, got {self.seeds}")
        if self.step < 1:
            raise InputError(f"step must be at least 1, got {self.step}")

    def seed_range(self, full: int, quick: int) -> range:
        """Return the seeds of an experiment that wants so many by itself.

        Examples
        --------
        >>> list(Settings(quick=True).seed_range(10, 2)), list(Settings(seeds=3, first_seed=5).seed_range(10, 2))
        ([0, 1], [5, 6, 7])
        """
        count = self.seeds if self.seeds is not None else quick if self.quick else full
        return range(self.first_seed, self.first_seed + count)


@dataclass(frozen=True)
class Verdict:
    """What became of one claim.

    Attributes
    ----------
    claim
        As the paper says it, or in its sense.
    finding
        "holds", "holds on average" or "does not hold".
    evidence
        The numbers, and the rule by which they were judged.
    """

    claim: str
    finding: str
    evidence: str


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper in three stages, each usable alone.

    Attributes
    ----------
    name
        As the command line has it.
    title, caption
        As the page has them.
    tasks
        What is run for given settings; the records come back in this order.
    evaluate
        Claims and what the records say to them.
    plot
        Its figures, by file name without suffix.
    figures
        Those names.
    """

    name: str
    title: str
    caption: str
    tasks: Callable[[Settings], list[Task]]
    evaluate: Callable[[Sequence[Record]], list[Verdict]]
    plot: Callable[[Sequence[Record], Settings], dict[str, Figure]]
    figures: tuple[str, ...]


def judge(claim: str, each: Sequence[bool], average: bool, evidence: str, *, most: bool = False) -> Verdict:
    """Return the verdict: the claim holds at every setting, else on average, else not.

    Parameters
    ----------
    each
        Whether it holds at each setting, by the mean over seeds.
    average
        Whether it holds for the mean over settings.
    most
        The claim itself says "in most settings": more than half are enough.

    Examples
    --------
    >>> judge("ours is best", [True, False], True, "mean .96 against .95")
    Verdict(claim='ours is best', finding='holds on average', evidence='mean .96 against .95; true at 1 of 2 settings')
    """
    enough = 2 * sum(each) > len(each) if most else bool(each) and all(each)
    rule = " (more than half are asked)" if most else ""
    finding = HOLDS if enough else AVERAGE if average else FAILS
    return Verdict(claim, finding, f"{evidence}; true at {sum(each)} of {len(each)} settings{rule}")
