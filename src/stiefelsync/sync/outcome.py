"""What a method returns, checked before anything is claimed about it, and labels that mean the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.matching.graph import countable
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import History, Status

__all__ = ["Details", "Outcome", "Record", "accept", "by_first_appearance"]


class Record:
    """Compares and prints field by field where some are arrays: equal to the last digit, shown by their shape.

    What does not count is marked ``field(compare=False)``: how long a run took.
    """

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [f.name for f in fields(self) if f.compare]  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __repr__(self) -> str:
        shown = (f"{f.name}={_show(getattr(self, f.name))}" for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, eq=False, repr=False)
class Details(Record):
    """What a method tells beyond its answer.

    Every method that has more to tell has a subclass with its own fields.

    Examples
    --------
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class MyDetails(Details):
    ...     eigenvalues: NDArray[np.float64]
    >>> MyDetails(np.ones(3)), MyDetails(np.ones(3)) == MyDetails(np.ones(3))
    (MyDetails(eigenvalues=array of shape (3,)), True)
    """

    @typed
    def figures(self, problem: Matchings) -> dict[str, Any]:
        """Return what belongs among the figures of :meth:`~stiefelsync.Synchronisation.as_dict`, ready for JSON."""
        return {}

    def with_left_out(self, gone: int, kept: int) -> Details:
        """Return the same where a problem was solved without the matches of some pairs.

        Parameters
        ----------
        gone, kept
            How many of those disagree and agree with the answer all the same.
        """
        return self

    @typed
    def match_confidence(self, problem: Matchings) -> NDArray[np.float64] | None:
        """Return how sure the method itself is of every match of the problem, (M,), from 0 to 1.

        None if it says not.
        """
        return None

    @typed
    def point_confidence(self) -> NDArray[np.float64] | None:
        """Return how sure the method itself is of the label of every point, (m,), from 0 to 1.

        None if it says not.
        """
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Record):
    """What a method returns: labels if its answer is cycle-consistent, matchings otherwise.

    Attributes
    ----------
    labels : (m,) int or None
        Universe point of every point, -1 = unmatched.
    matchings
        The answer of a method that is not cycle-consistent.
    U : (m, d) or None
        The relaxed solution before rounding, where there is one; its columns are in the order of
        the method's own.
    status
        How the run ended.
    timings
        Seconds per stage.
    details
        What else the method tells, of a class of its own: see the method.
    """

    labels: NDArray[np.int64] | None = None
    matchings: Matchings | None = None
    U: NDArray[Any] | None = None
    status: Status = Status.DONE
    n_iter: int = 0
    history: History | None = None
    timings: Mapping[str, float] = field(default_factory=dict, compare=False)
    details: Details = field(default_factory=Details)

    @typed
    def __post_init__(self) -> None:
        if (self.labels is None) == (self.matchings is None):
            raise TypeError("an Outcome has either labels or matchings")


def accept(outcome: Outcome | Matchings | ArrayLike, problem: Matchings, method: str) -> Outcome:
    """Return the outcome of `method` with its labels numbered by first appearance, or say what is wrong with it.

    Labels or matchings alone are an outcome, too.

    Parameters
    ----------
    problem
        What the method was given. Labels must be one whole number per point, at least -1, and no
        two points of an object may share one; matchings must be of objects of the same sizes.

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 2])
    >>> accept(Outcome(labels=np.array([7, 3, 7, -1])), problem, "mine").labels.tolist()
    [0, 1, 0, -1]
    >>> accept(Outcome(labels=np.array([7, 7, 3, 2])), problem, "mine")
    Traceback (most recent call last):
    stiefelsync.errors.InputError: method 'mine' gave points 0 and 1 of object 0 the same label, 7
    """
    if isinstance(outcome, Matchings):
        outcome = Outcome(matchings=outcome)
    elif isinstance(outcome, np.ndarray | list):
        outcome = Outcome(labels=np.asarray(outcome))
    if not isinstance(outcome, Outcome):
        raise InputError(f"method {method!r} must return an Outcome, got {type(outcome).__name__}")
    if not isinstance(outcome.status, Status):
        raise InputError(f"method {method!r} must give a Status, got the status {outcome.status!r}")
    if not isinstance(outcome.details, Details):
        raise InputError(f"method {method!r} must give Details, got the details {outcome.details!r}")
    if outcome.matchings is not None:
        _check_matchings(outcome.matchings, problem, method)
        return outcome
    labels = np.asarray(outcome.labels)
    if labels.shape != (problem.n_points,) or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(
            f"method {method!r} must label {problem.n_points} points by whole numbers, got {labels.dtype} of shape"
            f" {labels.shape}"
        )
    if labels.min(initial=-1) < -1:
        raise InputError(f"method {method!r} gave the label {labels.min()}; the least is -1, unmatched")
    numbered = by_first_appearance(labels)
    _check_one_to_one(labels, numbered, problem, method)
    return replace(outcome, labels=numbered)


def by_first_appearance(labels: ArrayLike) -> NDArray[np.int64]:
    """Number labels 0, 1, … in the order in which their first points come; -1 stays.

    Eigenvectors and random starts number universe points arbitrarily; this way labels depend on who
    belongs together alone, have no holes, and are the same on every machine.

    Parameters
    ----------
    labels : (m,) int
        At least -1.

    Notes
    -----
    O(m + n log n) for labels below n, or O(m log m) where they are far above m.

    Examples
    --------
    >>> by_first_appearance([9, -1, 4, 9, 0]).tolist()
    [0, -1, 1, 0, 2]
    """
    numbered = np.array(labels, dtype=np.int64)
    matched = numbered >= 0
    values = numbered[matched]
    values = countable(values)
    first = np.full(int(values.max(initial=-1)) + 1, len(values))
    # Of several the last counts, which is the first.
    first[values[::-1]] = np.arange(len(values))[::-1]
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(first))
    numbered[matched] = place[values]
    return numbered


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if is_dataclass(a) and type(a) is type(b) and not isinstance(a, Record):
        return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.compare)
    return bool(a == b)


def _show(value: Any) -> str:
    return f"array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)


def _check_one_to_one(labels: NDArray[Any], numbered: NDArray[np.int64], problem: Matchings, method: str) -> None:
    """Raise an error if two points of an object share a label."""
    order = np.argsort(numbered, kind="stable")
    # Points of an object follow each other, so that two with the same label are neighbours in this
    # order.
    label, owner = numbered[order], problem.point_objects[order]
    twice = np.flatnonzero((label[1:] == label[:-1]) & (owner[1:] == owner[:-1]) & (label[1:] >= 0))
    if len(twice):
        a, b = order[twice[0] : twice[0] + 2]
        i = int(owner[twice[0]])
        a, b = a - problem.offsets[i], b - problem.offsets[i]
        raise InputError(
            f"method {method!r} gave points {a} and {b} of object {i} the same label, {labels[order[twice[0]]]}"
        )


def _check_matchings(answer: Matchings, problem: Matchings, method: str) -> None:
    if not isinstance(answer, Matchings):
        raise InputError(f"method {method!r} must return Matchings, got {type(answer).__name__}")
    if not np.array_equal(answer.sizes, problem.sizes):
        raise InputError(f"method {method!r} returned matchings of objects of other sizes than it was given")
