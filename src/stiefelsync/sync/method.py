"""One signature for every synchronisation method, and the registry of them."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, Protocol

import numpy as np

from stiefelsync._border import typed
from stiefelsync.errors import InputError, unknown_name
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.options import check_option, meanings, option
from stiefelsync.sync.outcome import Details, Outcome

__all__ = [
    "BY_POSITIONS", "DEFAULT", "METHODS", "Callback", "Details", "Method", "Outcome", "Progress", "Reporter", "Run",
    "Stopwatch", "find_method", "option", "register",
]  # fmt: skip


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
        The current objective tr(UᵀWU), and the share of entries of U below a hundredth of the
        largest, if known.
    """

    stage: str
    step: int
    total: int | None = None
    objective: float | None = None
    sparsity: float | None = None


Callback = Callable[[Progress], object]
"""Called now and then with a :class:`Progress`.

A true return value asks the method to stop early.
"""


@dataclass(eq=False)
class Reporter:
    """Hands progress on to a callback and remembers whether it, or Ctrl-C, asked for an early end.

    Examples
    --------
    >>> report = Reporter(lambda progress: progress.step >= 2)
    >>> [report(Progress("sweep", n)) for n in (1, 2, 1)], str(report.status)
    ([False, True, True], 'stopped by the callback')
    """

    callback: Callback | None
    stopped: bool = False
    interrupted: bool = False

    def __call__(self, progress: Progress) -> bool:
        """Report progress and return whether to stop; after that nothing is reported any more."""
        self.stopped = self.stopped or (self.callback is not None and bool(self.callback(progress)))
        return self.stopped

    @property
    def status(self) -> Status:
        """The status of a run that iterated nothing of its own."""
        if self.interrupted:
            return Status.INTERRUPTED
        return Status.STOPPED if self.stopped else Status.DONE


class Run(Protocol):
    """The one signature: a problem and its universe size in, an :class:`Outcome` out.

    A method that can go on from given labels also has a keyword ``start``, (m,) int or None; one
    that finds the universe itself a keyword ``sure``, whether it must not exceed the given one.
    """

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
    settings
        The frozen dataclass of its options, fields made by :func:`option`; None where they are
        keywords of `run`.
    defaults, options
        The options it takes beside the common ones, with their default values, and their names.
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
    settings: type | None = None
    defaults: Mapping[str, Any] = field(init=False)
    options: tuple[str, ...] = field(init=False)

    @typed
    def __post_init__(self) -> None:
        if self.settings is not None:
            defaults = {at.name: at.default for at in fields(self.settings)}
        else:
            parameters = inspect.signature(self.run).parameters.values()
            common = {"matchings", "universe", "start", "sure", "rng", "callback"}
            defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in common}
        object.__setattr__(self, "defaults", defaults)
        object.__setattr__(self, "options", tuple(defaults))

    @property
    def takes_start(self) -> bool:
        """Whether it can go on from given labels: its `run` then has a keyword ``start``, (m,) int or None."""
        return "start" in inspect.signature(self.run).parameters

    @property
    def takes_sure(self) -> bool:
        """Whether it finds the universe itself unless one is certain: its `run` then has a keyword ``sure``."""
        return "sure" in inspect.signature(self.run).parameters

    @property
    def meanings(self) -> dict[str, str]:
        """What its options mean, by name, after their choices where these are listed."""
        return {} if self.settings is None else meanings(self.settings)

    @typed
    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise an error for an option the method does not have, or one whose value cannot be."""
        limits = {} if self.settings is None else {at.name: at.metadata for at in fields(self.settings)}
        for name, value in options.items():
            if name not in self.defaults:
                raise unknown_name(f"option of method {self.name!r}", name, self.options or ["(none)"])
            check_option(f"option {name} of method {self.name!r}", value, self.defaults[name], limits.get(name, {}))


METHODS: dict[str, Method] = {}
DEFAULT = "accurate"
"""The method that runs when none is named."""
BY_POSITIONS = "tracks"
"""The method that looks at positions, so the better one for photographs."""


@typed
def register(
    name: str,
    *,
    summary: str | None = None,
    consistent: bool = False,
    cost: str = "unknown",
    reference: str = "unknown",
    choose: str = "as you like",
    extra: str | None = None,
    sized: bool = True,
    discards: bool = False,
    ours: bool = False,
    options: type | None = None,
    replace: bool = False,
) -> Callable[[Callable[..., Any]], Run]:
    """Return a decorator that enters a function into `METHODS` and returns it as a :class:`Run`.

    The function takes the matchings, the size of the universe if it likes, and `rng` and `callback`
    if it has keywords of these names. It returns an :class:`Outcome`, or labels alone, (m,), or
    matchings alone.

    Parameters
    ----------
    name
        In words joined by hyphens.
    summary
        What it does; the first line of the function's docstring if nothing is said.
    consistent
        Whether every answer is sure to be cycle-consistent.
    options
        A frozen dataclass whose fields are made by :func:`option`. The function then takes one of
        its instances as the third positional argument, and users give its fields as keywords.
        Without it the function's own keywords are the options.
    replace
        Whether a method of that name may be there already.

    Examples
    --------
    >>> @register("alone")
    ... def alone(matchings, *, first: int = 0):
    ...     return np.arange(first, first + matchings.n_points)
    >>> METHODS["alone"].options
    ('first',)
    >>> _ = METHODS.pop("alone")
    """

    def enter(function: Callable[..., Any]) -> Run:
        known = METHODS.get(name)
        if known is not None and not replace and _place(known.run) != _place(function):
            raise InputError(f"a method {name!r} is registered already; choose another name, or pass replace=True")
        run = _obliging(function) if options is None else _taking(function, options)
        about = _first_line(function) if summary is None else summary
        METHODS[name] = Method(
            name, run, about, consistent, cost, reference, choose, extra, sized, discards, ours, options
        )
        return run

    return enter


def _place(run: Callable[..., Outcome]) -> tuple[str, str]:
    """Return where a function is defined: running its definition again, as notebooks do, replaces it."""
    return run.__module__, run.__qualname__


def _first_line(function: Callable[..., Any]) -> str:
    """Return what the docstring of a function says first."""
    return (inspect.getdoc(function) or "a function").splitlines()[0].rstrip(".")


def _obliging(function: Callable[..., Any]) -> Run:
    """Return the function as a :class:`Run`, even if it takes neither a universe nor a generator nor a callback."""
    parameters = list(inspect.signature(function).parameters.values())
    named = {at.name for at in parameters if at.kind in (at.KEYWORD_ONLY, at.POSITIONAL_OR_KEYWORD)}
    everything = any(at.kind is at.VAR_KEYWORD for at in parameters)
    by_place = [at for at in parameters if at.kind in (at.POSITIONAL_ONLY, at.POSITIONAL_OR_KEYWORD)]
    second = by_place[1] if len(by_place) > 1 else None
    sized = second is not None and (second.name == "universe" or second.default is second.empty)
    sized = sized or any(at.kind is at.VAR_POSITIONAL for at in parameters)
    if everything or (sized and {"rng", "callback"} <= named):
        return function

    @wraps(function)
    def run(
        matchings: Matchings,
        universe: int,
        /,
        *,
        rng: np.random.Generator,
        callback: Callback | None = None,
        **given: Any,
    ) -> Any:
        common = {"rng": rng, "callback": callback}
        given |= {name: value for name, value in common.items() if name in named}
        return function(matchings, *([universe] if sized else []), **given)

    return run


def _taking(function: Callable[..., Outcome], settings: type) -> Run:
    """Return the function as a :class:`Run` that takes the fields of `settings` as keywords."""
    starts = "start" in inspect.signature(function).parameters

    @wraps(function)
    def run(
        matchings: Matchings,
        universe: int,
        /,
        *,
        rng: np.random.Generator,
        callback: Callback | None = None,
        **given: Any,
    ) -> Outcome:
        common = {"start": given.pop("start", None)} if starts else {}
        with np.errstate(invalid="ignore"):  # for the reason that stiefel.flags tells
            return function(matchings, universe, settings(**given), rng=rng, callback=callback, **common)

    return run


def find_method(method: str | Method | Callable[..., Outcome]) -> Method:
    """Return the method of that name, or say which names there are; a function stands for itself.

    Examples
    --------
    >>> find_method("sparse-stiefel").consistent
    True
    """
    if isinstance(method, Method):
        return method
    if callable(method):
        for known in METHODS.values():
            if known.run is method:
                return known
        name = getattr(method, "__name__", type(method).__name__)
        about = _first_line(method), False, "unknown", "given as a function", "as you like"
        return Method(name, _obliging(method), *about)
    if not isinstance(method, str):
        raise InputError(f"method must be a name or a function, got {type(method).__name__}")
    if method not in METHODS:
        raise unknown_name("method", method, sorted(METHODS))
    return METHODS[method]


@dataclass(frozen=True)
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

    seconds: dict[str, float] = field(default_factory=dict)

    def __call__(self, stage: str) -> _Stage:
        """Time the body of a ``with`` statement as part of `stage`."""
        return _Stage(self.seconds, stage)


class _Stage:
    """A context manager by hand: a decorated generator takes several times as long, and tiny problems half a dozen."""

    def __init__(self, seconds: dict[str, float], stage: str) -> None:
        self.seconds, self.stage, self.start = seconds, stage, 0.0

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + time.perf_counter() - self.start
