"""One signature for every synchronisation method, and the registry of them."""

from __future__ import annotations

import inspect
import numbers
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from stiefelsync.errors import InputError, unknown_name
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.outcome import Outcome

__all__ = [
    "DEFAULT",
    "METHODS",
    "Callback",
    "Method",
    "Outcome",
    "Progress",
    "Reporter",
    "Stopwatch",
    "find_method",
    "register",
]


@dataclass(frozen=True)
class Progress:
    """What a running method tells its callback.

    Attributes
    ----------
    stage
        What is being done, in a word or two.
    step, total
        How far: `step` of `total`, or of an unknown total when None.
    objective, sparsity
        The current objective tr(UᵀWU), and the share of entries of U below a hundredth of the largest, if known.
    """

    stage: str
    step: int
    total: int | None = None
    objective: float | None = None
    sparsity: float | None = None


Callback = Callable[[Progress], object]
"""Called now and then with a :class:`Progress`; a true return value asks the method to stop early."""


class Reporter:
    """Hands progress on to a callback and remembers whether it asked for an early end.

    Examples
    --------
    >>> report = Reporter(lambda progress: progress.step >= 2)
    >>> [report(Progress("sweep", n)) for n in (1, 2, 1)], str(report.status)
    ([False, True, True], 'stopped by the callback')
    """

    def __init__(self, callback: Callback | None) -> None:
        self._callback = callback
        self.stopped = False

    def __call__(self, progress: Progress) -> bool:
        """Report progress and return whether to stop."""
        if self._callback is not None and self._callback(progress):
            self.stopped = True
        return self.stopped

    @property
    def status(self) -> Status:
        """The status of a run that iterated nothing of its own."""
        return Status.STOPPED if self.stopped else Status.DONE


class Run(Protocol):
    """The one signature: a problem and its universe size in, an :class:`Outcome` out."""

    def __call__(
        self,
        matchings: Matchings,
        universe: int,
        /,
        *,
        rng: np.random.Generator,
        callback: Callback | None = None,
        **options: Any,
    ) -> Outcome:
        """Run the method."""
        ...


@dataclass(frozen=True)
class Method:
    """A registered method and what a user should know when choosing.

    Attributes
    ----------
    consistent
        Whether every answer is cycle-consistent.
    cost
        Order of its cost per iteration or in all.
    reference
        The paper it comes from.
    choose
        When to choose it, in one sentence.
    extra
        The extra of this package it needs, if any.
    sized
        Whether it needs to be told the universe size; others find it themselves.
    discards
        Whether it discards conflicting tracks whole; others repair them.
    ours
        Whether it is this package's own, and not a rival to compare with.
    """

    name: str
    run: Run
    summary: str
    consistent: bool
    cost: str
    reference: str
    choose: str
    extra: str | None = None
    sized: bool = True
    discards: bool = False
    ours: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """The options this method takes beside the common ones, with their default values."""
        parameters = inspect.signature(self.run).parameters.values()
        common = {"matchings", "universe", "start", "rng", "callback"}
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in common}

    @property
    def takes_start(self) -> bool:
        """Whether it can go on from given labels: its `run` then has a keyword ``start``, (m,) int or None."""
        return "start" in inspect.signature(self.run).parameters

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options this method takes beside the common ones."""
        return tuple(self.defaults)

    @property
    def meanings(self) -> dict[str, str]:
        """What its options mean, by name, from the docstring of `run`, after their choices if these are listed."""
        text = inspect.getdoc(self.run) or ""
        section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S[^\n]*\n---|\Z)", text, re.MULTILINE | re.DOTALL)
        entries = re.findall(r"^(\S.*)\n((?: {4}.*\n?)+)", section[1] if section else "", re.MULTILINE)
        found = {}
        for head, body in entries:
            names, _, kind = head.partition(" : ")
            choices = f"{kind.strip('{}')}: " if kind.startswith("{") else ""
            meaning = choices + " ".join(body.replace("`", "").split())
            found.update(dict.fromkeys(names.split(", "), meaning))
        return found

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise an error for an option the method does not have, or one whose value is of the wrong kind."""
        for name, value in options.items():
            if name not in self.defaults:
                raise unknown_name(f"option of method {self.name!r}", name, self.options or ["(none)"])
            default = self.defaults[name]
            for kind, (accepted, words) in _KINDS.items():
                if type(default) is kind and (
                    not isinstance(value, accepted) or isinstance(value, bool) != (kind is bool)
                ):
                    raise InputError(f"option {name} of method {self.name!r} must be {words}, got {value!r}")


METHODS: dict[str, Method] = {}
DEFAULT = "accurate"
"""The method that runs when none is named."""

_KINDS: dict[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "a word"),
}
"""By the type of an option's default: what its value may be, and how to say so."""

# A method names its own options, which `Run` cannot spell out.
AnyRun = TypeVar("AnyRun", bound=Callable[..., Outcome])


def register(
    name: str,
    *,
    summary: str,
    consistent: bool,
    cost: str,
    reference: str,
    choose: str,
    extra: str | None = None,
    sized: bool = True,
    discards: bool = False,
    ours: bool = False,
) -> Callable[[AnyRun], AnyRun]:
    """Return a decorator that enters a function of signature :class:`Run` into `METHODS`."""

    def enter(run: AnyRun) -> AnyRun:
        METHODS[name] = Method(name, run, summary, consistent, cost, reference, choose, extra, sized, discards, ours)
        return run

    return enter


def find_method(name: str) -> Method:
    """Return the method of that name, or say which names there are.

    Examples
    --------
    >>> find_method("sparse-stiefel").consistent
    True
    """
    if name not in METHODS:
        raise unknown_name("method", name, sorted(METHODS))
    return METHODS[name]


class Stopwatch:
    """Adds up the seconds spent in named stages.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> with watch("subspace"):
    ...     pass
    >>> list(watch.seconds)
    ['subspace']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time the body of a ``with`` statement as part of `stage`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
