"""From contradicting pairwise matches to one consistent labelling."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError, counted, unknown_name
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.universe import UniverseEstimate, estimate_universe
from stiefelsync.stiefel.checks import generator
from stiefelsync.stiefel.threads import one_blas_thread
from stiefelsync.sync import methods as _registered  # noqa: F401  importing them registers them
from stiefelsync.sync.choose import PRESETS, choose_method, fits, warn_of_single_points
from stiefelsync.sync.constraints import Constraints, constrain
from stiefelsync.sync.method import DEFAULT, METHODS, Callback, Method, Progress, Stopwatch
from stiefelsync.sync.outcome import Outcome, accept, by_first_appearance
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.rounding import check_universe
from stiefelsync.sync.scored_pairs import judge_pairs

__all__ = ["synchronise"]

# m·d² up to which several threads of BLAS cost more than they give.
_MAX_WORK_OF_ONE_THREAD = 100_000_000


@typed
def synchronise(
    matchings: Matchings,
    universe: str | int = "auto",
    *,
    method: str | Method | Callable[..., Outcome] | None = None,
    start: ArrayLike | None = None,
    constraints: Constraints | None = None,
    prior: Any = None,
    rng: np.random.Generator | int | None = 0,
    callback: Callback | None = None,
    **options: Any,
) -> Synchronisation:
    """Find the labelling P that agrees best with all pairwise matches, max tr(PᵀWP) (equation 7 of the paper).

    Parameters
    ----------
    matchings
        The problem: at least two objects and one match.
    universe : int or "auto"
        Number d of distinct points in all objects together, at least the size of the largest
        object; estimated by default. A number that is too large does little harm; one that is too
        small joins points that no match connects. A number above that of all points counts as the
        number of points, and the result says so. Methods that find the universe themselves ignore
        it.
    method
        One of ``METHODS``, by default "accurate", or "correlation" for records of tables. "fast" is
        for interactive use, "sparse-stiefel" is the paper's method, and the others are there to
        compare with. If the universe is to be estimated and is too large for a dense (m, d) matrix,
        "accurate" and "fast" hand over to "tracks", and the result says so. You can also give a
        function with the signature of a method (:class:`~stiefelsync.sync.method.Run`), registered
        or not.
    start : (m,) int, optional
        Labels to go on from, -1 = unknown: a solved problem that has grown, or another method's
        answer. Only for methods with ``METHODS[name].takes_start``. No two points of an object may
        share a label.
    constraints
        Points that must have the same label, and points that must not. They hold exactly for
        every method whose answers are consistent. The universe grows if they need it.
    prior : (P,) float or Mapping, optional
        Prior knowledge of pairs of objects: log-odds that both show the same thing, for each pair of
        ``matchings.pair_objects`` or by the numbers of two objects. Matches of pairs are left out,
        whatever the method, if the prior and third objects together
        (:func:`~stiefelsync.matching.pair_odds.pair_odds`) speak against them; `pairs` of the answer
        lists these. :meth:`Synchronisation.extend` does not know of it.
    rng
        Seed or generator; equal seeds give equal answers, None is different every time.
    callback
        Called with :class:`Progress` from time to time; a true return value asks it to stop early.
    **options
        Options of the method; ``METHODS[name].options`` lists them.

    Returns
    -------
    Synchronisation
        Of every object at most one point has a label, the rule by which matches contradict each
        other. Labels are numbered by first appearance, objects and points in order, whatever the
        method: the same numbers on every machine, without holes.

    Examples
    --------
    >>> from stiefelsync import datasets, score
    >>> problem, truth = datasets.synthetic(10, 20, observed=1.0, error=0.3, rng=0)
    >>> score(synchronise(problem, 10, method="sparse-stiefel").labels, truth).fscore
    1.0
    """
    _check_problem(matchings)
    watch, given, pairs = Stopwatch(), matchings, None
    if prior is not None:
        with watch("pairs"):
            pairs = judge_pairs(matchings, prior)
            matchings = matchings.only_pairs(np.flatnonzero(pairs.good))
        if not matchings.n_matches:
            raise InputError("no pair of objects is of the same thing by this prior; is it turned round?")
    if method is None and start is not None:
        method = DEFAULT  # what is chosen for records cannot go on from labels
    choice = choose_method(matchings, universe, method, options)
    chosen, options = choice.method, choice.options
    if not given.n_matches and chosen.name != "correlation":
        raise InputError(_EMPTY)
    draws = generator(rng)
    warn_of_single_points(matchings, chosen.name)
    with watch("constraints"):
        known = None if constraints is None else constrain(given, constraints)
    with watch("universe"):
        d, estimate = _universe(matchings, universe, chosen, callback)
    if start is not None:
        first = _start(matchings, start, chosen)
        d = _room(d, int(first.max(initial=-1)) + 1, estimated=estimate is not None or not chosen.sized)
        options["start"] = first
    if chosen.sized and not fits(matchings, d):
        raise InputError(
            f"method {chosen.name!r} needs a dense array of {matchings.n_points:,} × {d:,} entries;"
            " use method='tracks', which needs none"
        )
    if chosen.takes_sure:
        options["sure"] = estimate is None or estimate.sure
    small = chosen.name in PRESETS and matchings.n_points * d**2 < _MAX_WORK_OF_ONE_THREAD
    with one_blas_thread() if small else nullcontext():
        found = chosen.run(matchings, d, rng=draws, callback=callback, **options)
    outcome = accept(found, matchings, chosen.name)
    if known is not None:
        if outcome.labels is None:
            raise InputError(f"method {chosen.name!r} gives no tracks that could hold constraints; choose another one")
        with watch("constraints"):
            outcome = replace(outcome, labels=by_first_appearance(known.enforce(outcome.labels)))
    if pairs is not None:
        others = ~pairs.good[given.match_pairs]
        kept = 0 if outcome.labels is None else int(np.count_nonzero(given.agreeing(outcome.labels) & others))
        details = outcome.details.with_left_out(int(np.count_nonzero(others)) - kept, kept)
        outcome = replace(outcome, details=details)
    highest = -1 if outcome.labels is None else int(outcome.labels.max(initial=-1))
    found_itself = not chosen.sized or (chosen.takes_sure and estimate is not None)
    size = highest + 1 if found_itself else max(d, highest + 1)
    seconds = {**watch.seconds, **outcome.timings}
    return Synchronisation(given, chosen.name, outcome, size, estimate, seconds, constraints, pairs)


_EMPTY = "the problem is empty: there are no matches to synchronise"


def _check_problem(matchings: Matchings) -> None:
    if not isinstance(matchings, Matchings):
        raise InputError(f"synchronise needs Matchings (Matchings.from_pairs …), got {type(matchings).__name__}")
    if matchings.n_objects < 2:
        raise InputError(f"synchronisation needs at least two objects, got {matchings.n_objects}")
    # Improbable pairs of records are no matches, but they say that records are alone.
    improbable = matchings.records is not None and matchings.records.scored is not None
    if not matchings.n_matches and not improbable:
        raise InputError(_EMPTY)


def _start(matchings: Matchings, start: ArrayLike, method: Method) -> NDArray[np.int64]:
    """Return the labels to start from, numbered from 0 without holes, after checking them."""
    if not method.takes_start:
        able = [other.name for other in METHODS.values() if other.takes_start]
        raise InputError(f"method {method.name!r} takes no start; use one of {', '.join(able)}")
    labels, m = np.asarray(start), matchings.n_points
    if labels.shape != (m,) or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(
            f"start must hold one whole number per point, shape ({m},); got {labels.dtype} of shape {labels.shape}"
        )
    if labels.min(initial=0) < -1:
        raise InputError(f"start holds the label {labels.min()}; use labels of at least 0, and -1 for unknown")
    known = np.flatnonzero(labels >= 0)
    numbers, compact = np.unique(labels[known], return_inverse=True)
    key = matchings.point_objects[known].astype(np.int64) * len(numbers) + compact
    values, counts = np.unique(key, return_counts=True)
    if len(values) < len(key):
        i, c = divmod(int(values[counts.argmax()]), len(numbers))
        raise InputError(
            f"start gives {counts.max()} points of object {i} the label {numbers[c]}; at most one may have it"
        )
    result = np.full(m, -1, dtype=np.int64)
    result[known] = compact
    return result


def _room(d: int, needed: int, *, estimated: bool) -> int:
    """Return a universe of d points, made large enough for a start with `needed` labels where d is only an estimate."""
    if needed > d and not estimated:
        raise InputError(f"start has {counted(needed, 'label')}, more than the universe of {d}; give at least {needed}")
    return max(d, needed)


def _universe(
    matchings: Matchings, universe: str | int, method: Method, callback: Callback | None
) -> tuple[int, UniverseEstimate | None]:
    if isinstance(universe, str):
        if universe != "auto":
            raise unknown_name("universe", universe, ["auto", "or a whole number"])
        if not method.sized:
            return int(matchings.sizes.max()), None
        if callback is not None:
            callback(Progress("estimating the universe", 0))
        estimate = estimate_universe(matchings)
        return estimate.size, estimate
    try:
        d = operator.index(universe)
    except TypeError:
        raise InputError(f'universe must be a whole number or "auto", got {universe!r}') from None
    if method.sized:
        check_universe(matchings.sizes, d)
    # No labelling uses more universe points than there are points, and the cost of the methods
    # grows with d.
    return min(d, matchings.n_points), None
