"""Several methods on one problem, measured alike."""

from __future__ import annotations

import math
import time
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stiefelsync._border import typed
from stiefelsync._html import rows as table_rows
from stiefelsync.errors import InputError, MissingExtraError, counted
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import cycle_error, score
from stiefelsync.stiefel.checks import as_integers
from stiefelsync.sync.certificate import upper_bound
from stiefelsync.sync.choose import choose_method
from stiefelsync.sync.frame import Frame
from stiefelsync.sync.method import Method, find_method
from stiefelsync.sync.outcome import Outcome
from stiefelsync.sync.synchronise import synchronise

__all__ = ["NUMBERS", "USUAL", "Comparison", "Comparisons", "compare", "default_methods", "told"]

NUMBERS = ("fscore", "precision", "recall", "objective", "cycle_error", "gap", "seconds")
USUAL = ("accurate", "fast", "sparse-stiefel", "union-find")


@dataclass(frozen=True)
class Comparison:
    """How one method did.

    Attributes
    ----------
    method
        Its name, with the options given.
    consistent
        Whether its answers were cycle-consistent; where it did not run, whether they always are.
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
    sd
        Standard deviations of the numbers over several runs, empty for one.
    runs
        How many problems and seeds the numbers are means of.
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
    sd: Mapping[str, float] = field(default_factory=dict)
    runs: int = 1

    @property
    def handed_over(self) -> bool:
        """Whether another method ran than the one named."""
        return self.ran not in (None, self.method.partition(":")[0])


def default_methods(matchings: Matchings, universe: int | str = "auto") -> list[str]:
    """Return the methods to compare where none are named, with "tracks" for presets that would hand over to it.

    Examples
    --------
    >>> default_methods(Matchings.from_labels([0, 1, 1, 0], [2, 2]))
    ['accurate', 'fast', 'sparse-stiefel', 'union-find']
    """
    return list(dict.fromkeys(choose_method(matchings, universe, name, {}).method.name for name in USUAL))


class Comparisons(list[Comparison]):
    r"""How several methods did, the best first: a list with a table for notebooks, data frames and papers.

    Examples
    --------
    >>> rows = Comparisons([Comparison("mine", True, fscore=0.5, seconds=2.0)])
    >>> rows.to_frame()["fscore"].tolist()
    [0.5]
    >>> print(rows.to_latex())
    \begin{tabular}{lrr}
    method & fscore & seconds \\
    \hline
    mine & 0.500 & 2.000 \\
    \end{tabular}
    """

    def to_frame(self) -> Frame:
        """Return a dict of columns, one row per method: numbers, and their standard deviations as ``…_sd``."""
        numbers = [name for name in NUMBERS if any(getattr(row, name) is not None for row in self)]
        columns = {"method": np.array([row.method for row in self], dtype=object)}
        for name in numbers:
            values = [getattr(row, name) for row in self]
            columns[name] = np.array([np.nan if value is None else value for value in values], dtype=float)
            if any(row.runs > 1 for row in self):
                columns[f"{name}_sd"] = np.array([row.sd.get(name, np.nan) for row in self], dtype=float)
        return Frame(columns | {"runs": np.array([row.runs for row in self], dtype=np.int64)})

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the names of the columns and the texts of a table."""
        numbers = [name for name in NUMBERS if any(getattr(row, name) is not None for row in self)]
        return ["method", *numbers], [[row.method, *(told(row, name) for name in numbers)] for row in self]

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return table_rows(*self._cells())

    def to_latex(self) -> str:
        """Return a ``tabular`` of the numbers that there are, mean ± standard deviation over several runs."""
        names, cells = self._cells()
        lines = [" & ".join(name.replace("_", " ") for name in names), "\\hline"]
        lines += [" & ".join(cell.replace("_", "\\_").replace("±", "$\\pm$") for cell in row) for row in cells]
        ended = [line if line == "\\hline" else f"{line} \\\\" for line in lines]
        return "\n".join([f"\\begin{{tabular}}{{l{'r' * (len(names) - 1)}}}", *ended, "\\end{tabular}"])


def told(row: Comparison, name: str) -> str:
    """Return a number of a row as text, with its standard deviation where there is one."""
    value = getattr(row, name)
    if value is None:
        return ""
    return f"{value:.3f} ± {row.sd[name]:.3f}" if name in row.sd else f"{value:.3f}"


@typed
def compare(
    matchings: Matchings | Sequence[Matchings],
    methods: Sequence[str | Callable[..., Outcome]] | None = None,
    *,
    universe: int | str = "auto",
    truth: Any = None,
    certificate: bool = False,
    rng: int | Sequence[int] = 0,
    client: Any = None,
    callback: Callable[[int, str], object] | None = None,
) -> Comparisons:
    """Run several methods on one problem, or on several, and return how each did.

    The best comes first; methods whose answers need not be cycle-consistent follow the others, those that failed all.

    Parameters
    ----------
    matchings
        The problem, or several of a kind: then every number is a mean, with its standard deviation in `sd`.
    methods
        Names, each with options if need be: ``"sparse-stiefel:p=4:extra_iter=10"``; or functions with the signature of
        a method (:class:`~stiefelsync.sync.method.Run`). By default those of :func:`default_methods`.
    truth : (m,) int, or Matchings, optional
        Results are sorted by fscore where it is given, by objective where it is not. Of several problems a list.
    certificate
        Whether to compute the upper bound of the objective, once for all methods; it may take longer than they do.
    rng
        Seed, the same for every method; or several, with each of which every problem is solved.
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
    problems = [matchings] if isinstance(matchings, Matchings) else list(matchings)
    truths = [truth] if isinstance(matchings, Matchings) else [None] * len(problems) if truth is None else list(truth)
    if not problems or len(truths) != len(problems):
        raise InputError(f"{counted(len(problems), 'problem')} need as many truths, at least one; got {len(truths)}")
    seeds = [int(rng)] if isinstance(rng, int | np.integer) else as_integers(rng, "rng").ravel().tolist()
    if not seeds:
        raise InputError("no seed is named; name at least one")
    named: Sequence[str | Callable[..., Outcome]] = methods or default_methods(problems[0], universe)
    if methods is not None and not methods:
        raise InputError("no method is named; name at least one")
    chosen = list(named)
    runs = [
        _compare(problem, chosen, universe, known, certificate, seed, client, callback)
        for problem, known in zip(problems, truths, strict=True)
        for seed in seeds
    ]
    rows = runs[0] if len(runs) == 1 else [_mean([run[n] for run in runs]) for n in range(len(chosen))]
    by_truth = truths[0] is not None
    return Comparisons(
        sorted(rows, key=lambda row: (row.error is not None, not row.consistent, -_worth(row, by_truth)))
    )


def _mean(rows: list[Comparison]) -> Comparison:
    """Return the means of what one method reached in several runs; one that failed makes the method fail."""
    failed = next((row for row in rows if row.error is not None), None)
    if failed is not None:
        return failed
    known = {
        name: [getattr(row, name) for row in rows]
        for name in NUMBERS
        if all(getattr(row, name) is not None for row in rows)
    }
    means = {name: float(np.mean(values)) for name, values in known.items()}
    spread = {name: float(np.std(values, ddof=1)) for name, values in known.items()}
    return replace(rows[0], **means, universe=None, sd=spread, runs=len(rows))  # type: ignore[arg-type]


def _compare(
    matchings: Matchings,
    methods: list[str | Callable[..., Outcome]],
    universe: int | str,
    truth: ArrayLike | Matchings | None,
    certificate: bool,
    rng: int,
    client: Any,
    callback: Callable[[int, str], object] | None,
) -> list[Comparison]:
    """Run all methods once, in their order."""
    parsed = [_parse(spec) for spec in methods]
    if not parsed:
        raise InputError("no method is named; name at least one")
    rows: list[Comparison] = []
    failures: list[Exception] = []
    measured: dict[str, Comparison] = {}
    under_way = {} if client is None else _submitted(client, parsed, matchings, universe, truth, rng)
    for n, (given_spec, (name, options)) in enumerate(zip(methods, parsed, strict=True)):
        spec = given_spec if isinstance(given_spec, str) else find_method(given_spec).name
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
    return rows


def _submitted(
    client: Any, parsed: Sequence[tuple[str | Callable[..., Outcome], dict[str, Any]]], *problem: Any
) -> dict[str, Any]:
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
    result = synchronise(matchings, universe, method=method, rng=rng, **options)
    seconds = time.perf_counter() - start
    answer = result.labels if result.consistent else result.matchings()
    quality = None if truth is None else score(answer, truth)
    return Comparison(
        method.name,
        result.consistent,
        universe=result.universe_size,
        fscore=None if quality is None else quality.fscore,
        precision=None if quality is None else quality.precision,
        recall=None if quality is None else quality.recall,
        objective=result.objective,
        cycle_error=0.0 if result.consistent else cycle_error(result.matchings(), rng=rng).value,
        seconds=seconds,
        ran=result.method,
    )


def _parse(spec: str | Callable[..., Outcome]) -> tuple[str | Callable[..., Outcome], dict[str, Any]]:
    """Split ``name:option=value:…`` and check that the method exists; a function stands for itself."""
    if not isinstance(spec, str):
        find_method(spec)
        return spec, {}
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
