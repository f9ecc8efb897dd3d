"""Several methods on one problem, measured alike."""

from __future__ import annotations

import math
import time
from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from stiefelsync.errors import InputError, MissingExtraError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import cycle_error, score
from stiefelsync.sync.certificate import upper_bound
from stiefelsync.sync.choose import choose_method
from stiefelsync.sync.method import Method, find_method
from stiefelsync.sync.synchronise import synchronise

__all__ = ["USUAL", "Comparison", "compare", "default_methods"]

USUAL = ("accurate", "fast", "sparse-stiefel", "union-find")


@dataclass(frozen=True)
class Comparison:
    """How one method did.

    Attributes
    ----------
    method
        Its name, with the options given.
    consistent
        Whether its answers are always cycle-consistent.
    fscore, precision, recall
        Against the truth; None without one.
    objective, gap
        tr(PᵀWP) of the answer, ⟨W, X⟩ for one that is not a labelling, and its distance to the upper bound, where a
        certificate was asked for.
    cycle_error
        Share of the answer's cycles of three matches that do not close.
    error
        Why the method did not run, if it did not.
    ran
        Name of the method that really ran: "tracks" where a preset handed over to it; None where none did.
    """

    method: str
    consistent: bool
    universe: int | None = None
    fscore: float | None = None
    precision: float | None = None
    recall: float | None = None
    objective: float | None = None
    cycle_error: float | None = None
    gap: float | None = None
    seconds: float | None = None
    error: str | None = None
    ran: str | None = None

    @property
    def handed_over(self) -> bool:
        """Whether another method ran than the one named."""
        return self.ran not in (None, self.method.partition(":")[0])


def default_methods(matchings: Matchings, universe: int | str = "auto") -> list[str]:
    """Return the methods to compare where none are named, with "tracks" for presets that would hand over to it.

    Examples
    --------
    >>> default_methods(Matchings.from_labels([0, 0], [1, 1]))
    ['accurate', 'fast', 'sparse-stiefel', 'union-find']
    """
    return list(dict.fromkeys(choose_method(matchings, universe, name, {}).method.name for name in USUAL))


def compare(
    matchings: Matchings,
    methods: Sequence[str],
    *,
    universe: int | str = "auto",
    truth: ArrayLike | Matchings | None = None,
    certificate: bool = False,
    rng: int = 0,
    client: Any = None,
    callback: Callable[[int, str], object] | None = None,
) -> list[Comparison]:
    """Run several methods on one problem and return how each did.

    The best comes first; methods whose answers need not be cycle-consistent follow the others, those that failed all.

    Parameters
    ----------
    methods
        Names, each with options if need be: ``"sparse-stiefel:p=4:extra_iter=10"``.
    truth : (m,) int, or Matchings, optional
        Results are sorted by fscore where it is given, by objective where it is not.
    certificate
        Whether to compute the upper bound of the objective, once for all methods; it may take longer than they do.
    rng
        Seed, the same for every method.
    client
        A Dask client, on whose workers the methods run at the same time; their times then depend on each other.
    callback
        Called with the number of methods done and the name of the next.

    Notes
    -----
    A method that lacks its optional dependency, or cannot work on this problem, is listed with the reason; if that is
    so for all of them, the first reason is raised. What would be the same run again, because presets hand over to
    "tracks", is measured once.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> [row.fscore for row in compare(problem, ["union-find"], truth=[0, 1, 1, 0, 0, 1])]
    [1.0]
    """
    parsed = [_parse(spec) for spec in methods]
    if not parsed:
        raise InputError("no method is named; name at least one")
    rows: list[Comparison] = []
    failures: list[Exception] = []
    measured: dict[str, Comparison] = {}
    under_way = {} if client is None else _submitted(client, parsed, matchings, universe, truth, rng)
    for n, (spec, (name, options)) in enumerate(zip(methods, parsed, strict=True)):
        if callback is not None:
            callback(n, spec)
        try:
            choice = choose_method(matchings, universe, name, options)
            chosen, used = choice.method, choice.options
            run = f"{chosen.name} {sorted(used.items())}"
            if run not in measured:
                given = chosen, used, matchings, universe, truth, rng
                measured[run] = _measure(*given) if client is None else under_way[run].result()
            rows.append(replace(measured[run], method=spec))
        except (InputError, MissingExtraError) as error:
            failures.append(error)
            rows.append(Comparison(spec, find_method(name).consistent, error=str(error)))
    if len(failures) == len(rows):
        raise failures[0]
    if certificate:
        bound = upper_bound(matchings)
        rows = [row if row.objective is None else replace(row, gap=max(0.0, 1 - row.objective / bound)) for row in rows]
    return sorted(rows, key=lambda row: (row.error is not None, not row.consistent, -_worth(row, truth is not None)))


def _submitted(client: Any, parsed: Sequence[tuple[str, dict[str, Any]]], *problem: Any) -> dict[str, Any]:
    """Start every different run on the workers of a Dask client."""
    matchings, universe, truth, rng = problem
    futures = {}
    for name, options in parsed:
        try:
            choice = choose_method(matchings, universe, name, options)
            chosen, used = choice.method, choice.options
        except InputError:  # said where its result is asked for
            continue
        run = f"{chosen.name} {sorted(used.items())}"
        if run not in futures:
            futures[run] = client.submit(_measure, chosen, used, matchings, universe, truth, rng, pure=False)
    return futures


def _measure(
    method: Method,
    options: dict[str, Any],
    matchings: Matchings,
    universe: int | str,
    truth: ArrayLike | Matchings | None,
    rng: int,
) -> Comparison:
    start = time.perf_counter()
    result = synchronise(matchings, universe, method=method.name, rng=rng, **options)
    seconds = time.perf_counter() - start
    answer = result.labels if result.consistent else result.matchings()
    quality = None if truth is None else score(answer, truth)
    return Comparison(
        method.name,
        method.consistent,
        universe=result.universe_size,
        fscore=None if quality is None else quality.fscore,
        precision=None if quality is None else quality.precision,
        recall=None if quality is None else quality.recall,
        objective=result.objective,
        cycle_error=0.0 if result.consistent else cycle_error(result.matchings(), rng=rng).value,
        seconds=seconds,
        ran=result.method,
    )


def _parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Split ``name:option=value:…`` and check that the method exists."""
    name, *settings = spec.split(":")
    find_method(name)
    options = {}
    for setting in settings:
        option, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"{setting!r} in {spec!r} is not an option; write {name}:option=value")
        try:
            options[option] = literal_eval(value)
        except (ValueError, SyntaxError):
            options[option] = value
    return name, options


def _worth(row: Comparison, by_truth: bool) -> float:
    value = row.fscore if by_truth else row.objective
    return -math.inf if value is None else value
