"""A referee for anyone's answer: how good it is likely to be, without a truth, and where it is worst."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync._html import facts
from stiefelsync.errors import InputError, counted, unknown_name
from stiefelsync.following import OPTIONS, Followed, follow, is_followed
from stiefelsync.io.base import Format
from stiefelsync.io.cells.answers import read_cells
from stiefelsync.io.colmap.reconstruction import is_reconstruction, read_reconstruction
from stiefelsync.io.dispatch import as_path, read, reader_of
from stiefelsync.io.files import check_outputs, replacing
from stiefelsync.io.route import share
from stiefelsync.matching.difference import difference
from stiefelsync.matching.graph import components, conflicts, connected, numbered
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import cycle_error
from stiefelsync.matching.union import together
from stiefelsync.registration.confidence import Kind, confidences
from stiefelsync.registration.judgement import transitivity
from stiefelsync.report.corrections import LONGEST, MAX_POINTS, Checked
from stiefelsync.report.page import check_page, render
from stiefelsync.stiefel.checks import generator
from stiefelsync.sync.choose import choose_method
from stiefelsync.sync.constraints import owners
from stiefelsync.sync.likelihood.observations import observe
from stiefelsync.sync.likelihood.search import affordable
from stiefelsync.sync.likelihood.state import State
from stiefelsync.sync.method import Callback
from stiefelsync.sync.plausible import Plausible, around, plausible
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

__all__ = [
    "Dispute",
    "Estimate",
    "Rivalry",
    "SuspectTrack",
    "Verdict",
    "judge",
    "judge_files",
    "judge_followed",
    "summary",
    "told",
]

_FITS = 10  # of the rates, one step each, before an answer is judged by them

Ints = NDArray[np.int64]
Name = str | os.PathLike[str]

WORST = 20
"""Tracks that are told as the worst."""
UNTOLD = "; but no cycle of objects was compared, so that no match can contradict others: do not rely on these shares"
"""Where matches tell nothing of their errors."""
PARTS = 6
"""Parts of a track whose sizes are told."""
TOLD = 5
"""Places where two answers differ that are told."""
INTERVAL = 0.05, 0.95
"""Between these shares of the plausible labellings an interval lies."""


def _sizes(parts: Sequence[int]) -> str:
    """Return the numbers of points of parts, the largest first.

    Examples
    --------
    >>> _sizes([0, 1, 1, 2]), _sizes(range(30))
    ('2 + 1 + 1', '1 + 1 + 1 + 1 + 1 + 1 + … (30 parts)')
    """
    sizes = sorted(np.bincount(parts).tolist(), reverse=True)
    shown = " + ".join(map(str, sizes[:PARTS]))
    return shown if len(sizes) <= PARTS else f"{shown} + … ({len(sizes)} parts)"


@dataclass(frozen=True)
class Estimate:
    """A value that nobody knows: what to expect, and between which values nine in ten of the plausible ones lie."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f} %)"


@dataclass(frozen=True)
class SuspectTrack:
    """A track of an answer that is likely to hold points which do not belong together, with its evidence.

    Attributes
    ----------
    points : (n, 2) of int
        Object and point.
    wrong
        Expected share of its pairs of points that do not belong together.
    astray
        Expected number of its points that are not of the thing that most of it shows.
    inside, silent, outside
        Matches between its points; pairs of its points whose objects were compared and which are
        not matched; matches of its points with points outside.
    parts
        The way in which it most often falls apart: for every point the number of its part.
    """

    points: tuple[tuple[int, int], ...]
    wrong: float
    astray: float
    inside: int
    silent: int
    outside: int
    parts: tuple[int, ...]

    @property
    def evidence(self) -> str:
        """What speaks against it, in a phrase."""
        falls = f"; likely parts {_sizes(self.parts)}" if len(set(self.parts)) > 1 else ""
        return (
            f"{100 * self.wrong:.0f} % of its pairs likely wrong; {counted(self.inside, 'match')} inside,"
            f" {self.silent} missing, {self.outside} leading out{falls}"
        )


@dataclass(frozen=True)
class Dispute:
    """Points that two answers group differently.

    Attributes
    ----------
    points : (n, 2) of int
        Object and point.
    first, second
        For every point the number of its part in either answer.
    support
        Share of the plausible labellings to which the first is closer here, in pairs of points; one
        half of those as close.
    """

    points: tuple[tuple[int, int], ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    support: float

    @property
    def evidence(self) -> str:
        """Who groups how, and whom the matches support."""
        one, two = _sizes(self.first), _sizes(self.second)
        return f"{len(self.points)} points, here {one}, there {two}; here is right with probability {self.support:.2f}"


@dataclass(frozen=True)
class Rivalry:
    """Two answers to the same matches.

    Attributes
    ----------
    only_first, only_second, both
        Pairs of points that only the first puts together, only the second, or both.
    right_first, right_second, right_both
        Expected share of these that are right.
    better
        Share of the plausible labellings to which the first is closer, by fscore; one half of those
        as close.
    gain
        Fscore of the first less that of the second.
    disputes
        Where they differ most, by pairs of points.
    """

    only_first: int
    only_second: int
    both: int
    right_first: Estimate
    right_second: Estimate
    right_both: Estimate
    better: float
    gain: Estimate
    disputes: tuple[Dispute, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Verdict:
    """What can be said of an answer without knowing the truth.

    Attributes
    ----------
    objects, points, tracks
        In the matches; points in tracks are `points_in_tracks`.
    pairs
        Pairs of points that the answer puts together.
    conflicts
        Tracks that hold two points of one object.
    exclusivity
        Share of the tracks that do not.
    transitivity
        Share of the paths of two matches of the answer between three objects whose ends it puts
        together, too.
    cycle_error
        Of the answer's own matches; 0 if they are consistent.
    wrong
        Share of the pairs it puts together that do not belong together.
    missing
        Share of the pairs that belong together which it does not put together.
    fscore
        To be expected of it.
    own_fscore
        The same of our own answer, which `method` gave.
    log_likelihood, own_log_likelihood
        Of the answer and of ours under our model, up to a constant; None where there is none.
    basis
        What the estimates rest on, in a phrase.
    worst
        The tracks with most points astray.
    against
        How another answer compares, where one was given.
    """

    objects: int
    points: int
    tracks: int
    points_in_tracks: int
    pairs: int
    conflicts: int
    exclusivity: float
    transitivity: float
    cycle_error: float
    wrong: Estimate
    missing: Estimate
    fscore: Estimate
    own_fscore: Estimate
    method: str
    log_likelihood: float | None
    own_log_likelihood: float | None
    basis: str
    worst: tuple[SuspectTrack, ...] = field(repr=False)
    against: Rivalry | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all of it under stable names, ready for JSON."""
        told: dict[str, Any] = asdict(self)
        for name, value in told.items():
            if isinstance(value, float) and not np.isfinite(value):
                told[name] = None
        return told

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        shown = {at.name.replace("_", " "): getattr(self, at.name) for at in fields(self) if at.name != "worst"}
        told = {name: str(value) if isinstance(value, Estimate) else value for name, value in shown.items()}
        return facts("Verdict", told)


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which points an answer puts together: those of one group, and some others.

    Attributes
    ----------
    group : (m,) int64
        Group of every point. It puts all points of a group together, but for two of one owner.
    further : (n, 2) int64
        Pairs of points that are put together although their groups are not.
    owner : (m,) int64
        Of every point: its object, or the source of records.
    """

    group: Ints
    further: Ints
    owner: Ints

    @cached_property
    def rivals(self) -> bool:
        """Whether a group has two points of one owner."""
        return len(np.unique(_joint(self.group, self.owner))) < len(self.group)

    @property
    def whole(self) -> bool:
        """Whether it is a table of tracks, and so consistent."""
        return not len(self.further) and not self.rivals

    @cached_property
    def count(self) -> int:
        """How many pairs it puts together."""
        return self._within(self.group) + len(self.further)

    def common(self, labels: Ints) -> int:
        """Return how many of them a labelling, (m,) without -1, puts together, too.

        Examples
        --------
        >>> pairing = Pairing(np.array([0, 0, 0, 1]), np.array([[0, 3]]), np.array([0, 1, 1, 2]))
        >>> pairing.count, pairing.common(np.array([0, 0, 1, 0])), pairing.common(np.array([1, 0, 0, 0]))
        (3, 2, 0)
        """
        a, b = labels[self.further].T
        return self._within(_joint(self.group, labels)) + int(np.count_nonzero(a == b))

    def _within(self, parts: Ints) -> int:
        """Return how many pairs of different owners lie in one part, (m,), each a part of a group."""
        return _pairs(parts) - (_pairs(_joint(parts, self.owner)) if self.rivals else 0)


@typed
def judge(
    answer: ArrayLike | Matchings | Synchronisation,
    matchings: Matchings,
    *,
    against: ArrayLike | Matchings | Synchronisation | None = None,
    ours: Synchronisation | None = None,
    rng: np.random.Generator | int | None = 0,
    callback: Callback | None = None,
) -> Verdict:
    """Judge anyone's answer to matches by what the matches themselves say, without a truth.

    The matches are synchronised, and labellings are drawn that explain them about as well as the
    best one. A pair of points that the answer puts together is wrong to the extent that these
    labellings keep it apart. Agreement with the matches alone would not do, since matches that err
    in the same way agree.

    Parameters
    ----------
    answer : (m,) int, or Matchings, or Synchronisation
        Labels, -1 = in no track; or matches, of which those that hang together without two points
        of one object count as a track.
    matchings
        The matches that the answer was made from.
    against
        Another answer to compare with.
    ours
        Our own answer to the matches, where it is known.
    rng
        For what is drawn.

    Examples
    --------
    >>> from stiefelsync import datasets
    >>> problem, truth = datasets.synthetic(12, 8, observed=0.9, error=0.2, rng=0)
    >>> good, bad = (judge(labels, problem) for labels in (truth, np.roll(truth, 1)))
    >>> good.wrong.value < 0.1 < 0.5 < bad.wrong.value
    True
    """
    if not isinstance(matchings, Matchings):
        raise InputError(f"judge needs the Matchings that an answer is about, got {type(matchings).__name__}")
    first = pairing_of(answer, matchings)
    second = None if against is None else pairing_of(against, matchings)
    if ours is None:
        ours = synchronise(matchings, rng=rng, callback=callback)
    elif not np.array_equal(ours.input.sizes, matchings.sizes):
        raise InputError("our own answer is to other matches than those given")
    drawn = plausible(ours, rng=generator(rng))
    return _verdict(first, second, matchings, ours.labels, ours.method, drawn, rng, modelled=True)


def _verdict(
    first: Pairing,
    second: Pairing | None,
    problem: Matchings,
    labels: Ints,
    method: str,
    drawn: Plausible,
    rng: np.random.Generator | int | None,
    *,
    modelled: bool,
) -> Verdict:
    """Judge an answer by labellings that may be true; `labels` are our own answer, by a method.

    `modelled` says whether the model of `accurate` is one of these matches.
    """
    own = Pairing(_alone(labels), np.empty((0, 2), dtype=np.int64), owners(problem))
    tracks = _tracks(first)
    size = np.bincount(tracks)
    clashing = conflicts(problem, tracks).count
    scores, own_scores = _scores(first, drawn), _scores(own, drawn)
    many = int((size > 1).sum())
    likelihoods = _log_likelihoods(problem, first.group, own.group) if modelled else None
    return Verdict(
        objects=problem.n_objects,
        points=problem.n_points,
        tracks=many,
        points_in_tracks=int(size[size > 1].sum()),
        pairs=first.count,
        conflicts=clashing,
        exclusivity=1 - clashing / many if many else 1.0,
        transitivity=transitivity(_matches(first, problem)) if len(first.further) else 1.0,
        cycle_error=float(cycle_error(_matches(first, problem), rng=rng)) if len(first.further) else 0.0,
        wrong=_estimate(1 - scores[:, 0], drawn.weight),
        missing=_estimate(1 - scores[:, 1], drawn.weight),
        fscore=_estimate(scores[:, 2], drawn.weight),
        own_fscore=_estimate(own_scores[:, 2], drawn.weight),
        method=method,
        log_likelihood=likelihoods[0] if first.whole and likelihoods else None,
        own_log_likelihood=likelihoods[1] if likelihoods else None,
        basis=drawn.basis + (UNTOLD if _without_cycles(problem) else ""),
        worst=_worst(tracks, problem, drawn),
        against=None if second is None else _rivalry(first, second, problem=problem, drawn=drawn),
    )


def _log_likelihoods(problem: Matchings, *groupings: Ints) -> list[float] | None:
    """Return the log-posterior of groupings of all points, (m,) each; None where its arrays are out of reach.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 0, 1, 0, 1], [2, 2, 2])
    >>> right, wrong = _log_likelihoods(problem, np.array([0, 1, 0, 1, 0, 1]), np.array([0, 1, 1, 0, 0, 1]))
    >>> right > wrong
    True
    """
    if not affordable(problem):
        return None
    seen, values = observe(problem), []
    for group in groupings:
        state = State(seen, group, seed=0)
        for _ in range(_FITS):
            state.fit()
        values.append(state.log_posterior())
    return values


def _without_cycles(problem: Matchings) -> bool:
    """Return whether comparisons make a tree or several, as of a star: there anything may be true.

    Examples
    --------
    >>> _without_cycles(Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[0, 0]]}, [1, 1, 1]))
    True
    """
    parts = connected(problem.n_objects, problem.pair_objects.astype(np.int64))
    return len(problem.pair_objects) == problem.n_objects - len(np.unique(parts))


def pairing_of(answer: ArrayLike | Matchings | Synchronisation, problem: Matchings) -> Pairing:
    """Return which points of a problem an answer puts together.

    Examples
    --------
    A component with two points of one object is no track: only its matches count.

    >>> problem = Matchings.from_labels([0, 1, 0, 0], [2, 1, 1])
    >>> pairing_of(Matchings.from_endpoints([[0, 2], [1, 3], [2, 3]], [2, 1, 1]), problem).further.tolist()
    [[0, 2], [1, 3], [2, 3]]
    """
    owner = owners(problem)
    if isinstance(answer, Synchronisation):
        answer = answer.labels if answer.consistent else answer.matchings()
    if isinstance(answer, Matchings):
        given = _on_points_of(answer, problem)
        group = components(given)[1]
        bad = np.zeros(int(group.max(initial=-1)) + 1, dtype=bool)
        bad[conflicts(given, group).which] = True
        # What contradicts itself is no track; what it says is its matches.
        inside = bad[group]
        further = given.endpoints[inside[given.endpoints[:, 0]]]
        return Pairing(_alone(np.where(inside, -1, group)), further, owner)
    labels = np.asarray(answer)
    if labels.shape != (problem.n_points,) or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(
            f"an answer is one whole number per point, shape ({problem.n_points},), or matches; "
            f"got {labels.dtype} of shape {labels.shape}"
        )
    return Pairing(_apart(_alone(labels.astype(np.int64)), owner), np.empty((0, 2), dtype=np.int64), owner)


def _apart(group: Ints, owner: Ints) -> Ints:
    """Return groups in which points are alone whose group has no other owner.

    Examples
    --------
    >>> _apart(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])).tolist()
    [0, 1, 2, 2]
    """
    held = np.unique(np.stack([group, owner], axis=1), axis=0)[:, 0]
    return _alone(np.where(np.bincount(held)[group] > 1, group, -1))


def _on_points_of(answer: Matchings, problem: Matchings) -> Matchings:
    """Return the matches of an answer among the points of a problem; those of points it does not have are left out."""
    ends = _places(answer, problem)[answer.endpoints]
    ends = ends[(ends >= 0).all(axis=1)]
    # Pairs inside a source that is an object here say nothing that this problem could hold.
    apart = problem.point_objects[ends[:, 0]] != problem.point_objects[ends[:, 1]]
    return Matchings.from_endpoints(ends[apart], problem.sizes, one_to_many="repair")


def _places(answer: Matchings, problem: Matchings) -> Ints:
    """Return which point of a problem every point of an answer is, -1 for one that it does not have.

    Records are told by source and id. Other objects are told by name or number, and their points by
    number, or by position where both have positions and numbers differ.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 0], [2, 1], names=["a", "b"])
    >>> _places(Matchings.from_labels([0, 0, 1], [1, 2], names=["b", "a"]), problem).tolist()
    [2, 0, 1]
    """
    if answer.records is not None and problem.records is not None:
        number = {key: p for p, key in enumerate(problem.records.named())}
        return np.array([number.get(key, -1) for key in answer.records.named()], dtype=np.int64)
    if not answer.n_points:
        return np.empty(0, dtype=np.int64)
    objects = _objects(answer, problem)
    within = np.arange(answer.n_points) - answer.offsets[answer.point_objects]
    if answer.coordinates is not None and problem.coordinates is not None:
        xy, known_xy = (np.asarray(one.coordinates, dtype=np.float64) for one in (answer, problem))
        for i, there in enumerate(objects.tolist()):
            own, known = (
                slice(int(one.offsets[o]), int(one.offsets[o + 1])) for one, o in ((answer, i), (problem, there))
            )
            called = there if problem.names is None else problem.names[there]
            within[own] = together(known_xy[known], xy[own], called)[0]
    there = objects[answer.point_objects]
    return np.asarray(np.where(within < problem.sizes[there], problem.offsets[there] + within, -1), dtype=np.int64)


def _objects(answer: Matchings, problem: Matchings) -> Ints:
    """Return which object of a problem every object of an answer is."""
    if answer.names is None or problem.names is None:
        if answer.n_objects > problem.n_objects:
            has = counted(answer.n_objects, "object")
            raise InputError(f"the answer is about {has}, and the matches about {problem.n_objects}")
        return np.arange(answer.n_objects)
    number = {name: i for i, name in enumerate(problem.names)}
    for name in answer.names:
        if name not in number:
            raise InputError(
                f"the answer is about {name!r}, which the matches do not know; only an answer to these matches can be"
                " judged by them"
            )
    return np.array([number[name] for name in answer.names], dtype=np.int64)


def _alone(labels: Ints) -> Ints:
    """Return labels in which every point has one, numbered by first appearance."""
    alone = labels < 0
    return numbered(np.where(alone, labels.max(initial=-1) + np.cumsum(alone), labels))


def _tracks(pairing: Pairing) -> Ints:
    """Return the track of every point: its group, or all groups that further pairs connect."""
    if not len(pairing.further):
        return pairing.group
    n = int(pairing.group.max()) + 1
    return numbered(connected(n, pairing.group[pairing.further])[pairing.group])


def _joint(one: Ints, two: Ints) -> Ints:
    """Return the number of every pair of numbers that are 0 or more; (m,)."""
    return np.asarray(np.unique(one * (int(two.max(initial=-1)) + 1) + two, return_inverse=True)[1], dtype=np.int64)


def _pairs(parts: Ints) -> int:
    """Return how many pairs of points lie in one part."""
    n = np.bincount(parts)
    return int((n * (n - 1) // 2).sum())


def _matches(pairing: Pairing, problem: Matchings) -> Matchings:
    """Return what a pairing without rivals says as matches."""
    inside = Matchings.from_labels(pairing.group, problem.sizes).endpoints
    ends = np.concatenate([inside, pairing.further])
    return Matchings.from_endpoints(ends, problem.sizes, one_to_many="repair")


def _scores(pairing: Pairing, drawn: Plausible) -> NDArray[np.float64]:
    """Return precision, recall and fscore against every plausible labelling, (S, 3)."""
    found, rows = pairing.count, []
    for labels in drawn.labels:
        n = np.bincount(labels)
        true, both = int((n * (n - 1) // 2).sum()), pairing.common(labels)
        total = found + true
        rows.append((both / found if found else 1.0, both / true if true else 1.0, 2 * both / total if total else 1.0))
    return np.array(rows)


def _estimate(values: NDArray[np.float64], weight: NDArray[np.float64]) -> Estimate:
    """Return the weighted mean of values and the interval that holds nine in ten of them."""
    order = np.argsort(values)
    reached = np.cumsum(weight[order]) / weight.sum()
    places = np.minimum(np.searchsorted(reached, INTERVAL), len(values) - 1)
    low, high = values[order[places]].tolist()
    return Estimate(float(values @ weight / weight.sum()), low, high)


def _rivalry(first: Pairing, second: Pairing, *, problem: Matchings, drawn: Plausible) -> Rivalry:
    """Compare two answers pair by pair and as a whole."""
    both = Pairing(_joint(first.group, second.group), _shared_further(first, second), first.owner)
    counts = np.array([one.count for one in (first, second, both)])
    right = np.array([[one.common(labels) for one in (first, second, both)] for labels in drawn.labels])
    only = [counts[0] - counts[2], counts[1] - counts[2], counts[2]]
    here, there, shared = (
        _estimate(value / max(n, 1), drawn.weight)
        for value, n in zip((right[:, 0] - right[:, 2], right[:, 1] - right[:, 2], right[:, 2]), only, strict=True)
    )
    gain = _scores(first, drawn)[:, 2] - _scores(second, drawn)[:, 2]
    better = float(((gain > 0) + 0.5 * (gain == 0)) @ drawn.weight / drawn.weight.sum())
    first_only, second_only, common = (int(n) for n in only)
    gained = _estimate(gain, drawn.weight)
    disputes = _disputes(_tracks(first), _tracks(second), problem, drawn)
    return Rivalry(first_only, second_only, common, here, there, shared, better, gained, disputes)


def _disputes(first: Ints, second: Ints, problem: Matchings, drawn: Plausible) -> tuple[Dispute, ...]:
    """Return the smallest sets of points, closed under both groupings, that are grouped most differently."""
    m = len(first)
    # A group of the one and a group of the other that share a point lie in one region.
    low = int(first.max(initial=-1)) + 1
    region = connected(low + int(second.max(initial=-1)) + 1, np.stack([first, low + second], axis=1))[first]

    def pairs(groups: Ints) -> Ints:
        """Return the number of pairs of points of one group, by region."""
        _, start, count = np.unique(groups, return_index=True, return_counts=True)
        return np.bincount(region[start], count * (count - 1) // 2, m).astype(np.int64)

    both = first * (int(second.max(initial=-1)) + 1) + second
    differ = pairs(first) + pairs(second) - 2 * pairs(both)
    worst = np.argsort(-differ, kind="stable")[:WORST]
    worst = worst[differ[worst] > 0]
    support, total = np.zeros(m), float(drawn.weight.sum())
    for labels, weight in zip(drawn.labels, drawn.weight, strict=True):
        # Pairs that a grouping and a labelling judge differently, but for those of the labelling alone.
        width = int(labels.max(initial=-1)) + 1
        one, two = (pairs(groups) - 2 * pairs(groups * width + labels) for groups in (first, second))
        support += weight / total * ((one < two) + 0.5 * (one == two))
    found = []
    for r in worst.tolist():
        points = np.flatnonzero(region == r)
        owner = problem.point_objects[points]
        at = np.stack([owner, points - problem.offsets[owner]], axis=1).tolist()
        one, two = (numbered(groups[points]).tolist() for groups in (first, second))
        found.append(Dispute(tuple((i, p) for i, p in at), tuple(one), tuple(two), float(support[r])))
    return tuple(found)


def _shared_further(first: Pairing, second: Pairing) -> Ints:
    """Return the further pairs of either answer that the other has, too, inside a group or as a further pair."""
    m = len(first.group)
    key = np.array([m, 1])
    keys: list[Ints] = [np.unique(np.sort(one.further, axis=1) @ key) for one in (first, second)]
    found: list[Ints] = [np.intersect1d(keys[0], keys[1])]
    for one, other in ((keys[0], second), (keys[1], first)):
        a, b = np.divmod(one, m)
        found.append(one[other.group[a] == other.group[b]])
    return np.stack(np.divmod(np.unique(np.concatenate(found)), m), axis=1)


def _worst(tracks: Ints, problem: Matchings, drawn: Plausible) -> tuple[SuspectTrack, ...]:
    """Return the tracks with most points astray, by their expected number."""
    n, size = int(tracks.max(initial=-1)) + 1, np.bincount(tracks)
    astray, together = np.zeros(n), np.zeros(n)
    for labels, weight in zip(drawn.labels, drawn.weight / drawn.weight.sum(), strict=True):
        width = int(labels.max(initial=-1)) + 1
        pieces, count = np.unique(tracks * width + labels, return_counts=True)
        track = pieces // width
        most = np.zeros(n, dtype=np.int64)
        np.maximum.at(most, track, count)
        astray += weight * (size - most)
        together += weight * np.bincount(track, count * (count - 1) // 2, n)
    order = np.lexsort((np.arange(n), -astray))[:WORST]
    order = order[astray[order] > 0]
    a, b = problem.endpoints.T
    told = []
    for t in order.tolist():
        points = np.flatnonzero(tracks == t)
        pairs = len(points) * (len(points) - 1) / 2
        inside = int(np.count_nonzero((tracks[a] == t) & (tracks[b] == t)))
        outside = int(np.count_nonzero((tracks[a] == t) != (tracks[b] == t)))
        owner = problem.point_objects[points]
        at = np.stack([owner, points - problem.offsets[owner]], axis=1)
        told.append(
            SuspectTrack(
                tuple((int(i), int(p)) for i, p in at),
                float(1 - together[t] / pairs),
                float(astray[t]),
                inside,
                _compared(owner, problem) - inside,
                outside,
                _parts(points, drawn),
            )
        )
    return tuple(told)


def _compared(owner: NDArray[Any], problem: Matchings) -> int:
    """Return how many pairs of points have objects that were matched with each other at all.

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 2])
    >>> _compared(np.array([0, 1, 2, 2]), problem)
    3
    """
    held = np.bincount(owner, minlength=problem.n_objects).astype(np.int64)
    i, j = problem.pair_objects.T
    return int(held[i] @ held[j])


def _parts(points: Ints, drawn: Plausible) -> tuple[int, ...]:
    """Return the way in which some points fall apart in most of the plausible labellings."""
    seen: dict[tuple[int, ...], float] = {}
    for labels, weight in zip(drawn.labels, drawn.weight, strict=True):
        parts = tuple(numbered(np.unique(labels[points], return_inverse=True)[1]).tolist())
        seen[parts] = seen.get(parts, 0.0) + float(weight)
    return max(seen, key=lambda parts: (seen[parts], [-p for p in parts]))


@typed
def judge_files(
    answer: Name,
    of: Name | Sequence[Name],
    *,
    against: Name | None = None,
    report: Name | None = None,
    images: Name | None = None,
    method: str | None = None,
    format: str | None = None,
    force: bool = False,
    rng: np.random.Generator | int | None = 0,
    callback: Callback | None = None,
    **options: Any,
) -> Verdict:
    """Judge the answer in a file by the matches in another, and write a page about it.

    Parameters
    ----------
    answer
        Tracks, clusters, labels or matches, in any format that is read; or the folder of a COLMAP
        reconstruction, such as ``sparse/0``.
    of
        The matches that it was made from; or several sessions whose cells it follows, or units, as
        :func:`~stiefelsync.following.follow` takes them. Then answers are those of CellReg, CaImAn,
        Track2p, ROICaT, UnitMatch or this package.
    against
        Another answer to compare with.
    report
        Web page to write; `images` is a folder of photographs for it.
    method
        With which our own answer is found; as for :func:`~stiefelsync.synchronise` by default.
    format
        Format of `of`; told from its content by default, as those of the answers are.
    **options
        Of the formats; each goes to all that know it.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import datasets, io
    >>> problem, truth = datasets.synthetic(12, 8, observed=0.9, error=0.2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     io.write(problem, f"{folder}/matches.npz")
    ...     io.write(synchronise(problem), f"{folder}/tracks.csv", "tracks")
    ...     judge_files(f"{folder}/tracks.csv", f"{folder}/matches.npz").conflicts
    0
    """
    several = [of] if isinstance(of, str | os.PathLike) else list(of)
    if is_followed(several):
        if report is not None or images is not None:
            raise InputError("pages are about matches; leave it out where cells are followed", setting="report")
        return _judge_cells(answer, several, against, method, rng, options)
    paths = {"of": as_path(several[0]), "answer": as_path(answer)}
    if against is not None:
        paths["against"] = as_path(against)
    page = None if report is None else as_path(report)
    if page is not None:
        check_outputs([page], reads=[*paths.values(), images], force=force)
        check_page(page)
    elif images is not None:
        raise InputError("images are shown in the report, and none is wanted; name it with report=", setting="report")
    models = {name: path for name, path in paths.items() if name != "of" and is_reconstruction(path)}
    readers = {
        name: reader_of(path, format if name == "of" else None, options)
        for name, path in paths.items()
        if name not in models
    }
    given = share(options, **{name: known.read_options for name, known in readers.items()})
    problem: Matchings = read(paths["of"], readers["of"].name, **given["of"])
    read_from: dict[str, Any] = {
        name: _read_answer(paths[name], known, problem, given[name]) for name, known in readers.items() if name != "of"
    }
    read_from |= {name: read_reconstruction(path, problem) for name, path in models.items()}
    photographs = readers["of"].photographs
    choice = choose_method(problem, "auto", method, {}, photographs=photographs)
    ours = synchronise(problem, method=choice.method, rng=rng, callback=callback)
    found = judge(read_from["answer"], problem, against=read_from.get("against"), ours=ours, rng=rng)
    if page is not None:
        text = _page(found, problem, read_from["answer"], paths, None if images is None else Path(images))
        with replacing(page, force=force) as temporary:
            temporary.write_bytes(text.encode("utf-8", "replace"))  # names may hold bytes that are not UTF-8
    return found


def _read_answer(path: Path, reader: Format, problem: Matchings, options: Mapping[str, Any]) -> Matchings | Ints:
    """Return the answer in a file: the labels of the points of a problem where it holds tracks, or else matches."""
    found = None if reader.read_answer is None else reader.read_answer(path, **options)
    if found is None:
        return read(path, reader.name, **options)
    tracks, points = found
    place = _places(points, problem)
    labels = np.full(problem.n_points, -1, dtype=np.int64)
    labels[place[place >= 0]] = tracks[place >= 0]
    return labels


def _judge_cells(
    answer: Name,
    of: Sequence[Name],
    against: Name | None,
    method: str | None,
    rng: np.random.Generator | int | None,
    options: Mapping[str, Any],
) -> Verdict:
    """Judge which detections of several days the answer in a file takes for one cell."""
    for name in options:
        if name not in OPTIONS:
            raise unknown_name("option of sessions", name, OPTIONS)
    followed = follow(of, method=method, **options)
    followed.table.one_plane("an answer that is judged")
    labels, other = (None if path is None else read_cells(as_path(path), followed.table) for path in (answer, against))
    assert labels is not None
    return judge_followed(labels, followed, against=other, rng=rng)


@typed
def judge_followed(
    answer: ArrayLike | Matchings | Synchronisation,
    followed: Followed,
    *,
    against: ArrayLike | Matchings | Synchronisation | None = None,
    rng: np.random.Generator | int | None = 0,
) -> Verdict:
    """Judge anyone's answer to which detections of several days are one cell, without a truth.

    Errors of cells repeat themselves, so that agreement of matches says little. What is plausible
    are the places of our own table, each of which is right with the probability that it is given.

    Parameters
    ----------
    answer, against
        Labels of all detections, (m,), -1 = in no track, or matches.
    followed
        Our own answer, of one imaging plane.
    rng
        For what is drawn.

    Examples
    --------
    >>> from stiefelsync import datasets
    >>> from stiefelsync.following import follow_sessions
    >>> days, truth = datasets.sessions(4, 60, difficulty="easy", shape=(200, 200), rng=0)
    >>> judge_followed(truth, follow_sessions([days])).wrong.value < 0.05
    True
    """
    if len(followed.parts) != 1:
        raise InputError("an answer that is judged is of one plane; choose it with plane=", setting="plane")
    (part,) = followed.parts
    problem = part.candidates.matchings(followed.threshold)
    kind: Kind = "units" if followed.kind == "units" else "cells"
    sure = np.nan_to_num(confidences(part.candidates, part.labels, kind=kind).places)
    drawn = around(part.labels, sure, "how probable every place of our own table is", generator(rng))
    first, second = (None if one is None else pairing_of(one, problem) for one in (answer, against))
    assert first is not None
    return _verdict(first, second, problem, part.labels, followed.method, drawn, rng, modelled=False)


def _page(
    verdict: Verdict, problem: Matchings, answer: Matchings | Ints, paths: Mapping[str, Path], images: Path | None
) -> str:
    """Return the page about a verdict: the usual one about what an answer changed, its worst tracks to be corrected."""
    pairing = pairing_of(answer, problem)
    after: Ints | Matchings = pairing.group
    notes = [summary(verdict)[:1].upper() + summary(verdict)[1:] + "."]
    if pairing.rivals:
        after = problem.keep(problem.agreeing(pairing.group))
        notes.append("Tracks in conflict are shown by the matches that agree with them.")
    elif len(pairing.further):
        after = _matches(pairing, problem)
    listed, room = [], MAX_POINTS
    for one in verdict.worst:
        if len(one.points) <= min(LONGEST, room):
            room -= len(one.points)
            points = tuple(int(problem.offsets[i]) + p for i, p in one.points)
            listed.append(Checked(points, None, one.evidence))
    if len(listed) < len(verdict.worst):
        left_out = counted(len(verdict.worst) - len(listed), "track")
        notes.append(f"Of the worst tracks {left_out} of too many points to be looked at one by one are not listed.")
    of = paths["of"]
    target = of.with_name(f"{of.stem}-corrected{of.suffix}")
    words = ["stiefelsync", "sync", str(of), "-o", str(target), "--constraints", "corrections.csv"]
    return render(
        difference(problem, after), images=images, title=f"Judgement of {paths['answer'].name}",
        notes=notes,
        more_facts=[(name.capitalize(), text) for name, text in told(verdict).items()],
        suspects=listed, command=shlex.join(words),
    )  # fmt: skip


def summary(verdict: Verdict) -> str:
    """Return the verdict in one plain sentence.

    Examples
    --------
    >>> from stiefelsync import datasets
    >>> problem, truth = datasets.synthetic(12, 8, observed=0.9, error=0.2, rng=0)
    >>> summary(judge(truth, problem)).split(" of ")[0]
    'about 0.0 %'
    """
    own = verdict.own_fscore.value - verdict.fscore.value
    beside = "about as good as ours" if abs(own) < 0.01 else ("worse than ours" if own > 0 else "better than ours")
    clash = f"; {counted(verdict.conflicts, 'track')} in conflict" if verdict.conflicts else ""
    if UNTOLD in verdict.basis:
        return f"nothing can be said: no cycle of objects was compared, so that no match can contradict others{clash}"
    return (
        f"about {100 * verdict.wrong.value:.1f} % of what it puts together is wrong and"
        f" {100 * verdict.missing.value:.1f} % is missing: {beside}{clash}"
    )


def told(verdict: Verdict) -> Mapping[str, str]:
    """Return the figures of a verdict as lines of text, by name."""
    number = "{:,}".format
    lines = {
        "tracks": f"{number(verdict.tracks)} of {counted(verdict.points_in_tracks, 'point')}, "
        f"{number(verdict.conflicts)} in conflict (exclusivity {verdict.exclusivity:.3f})",
        "pairs": f"{number(verdict.pairs)} put together; transitivity {verdict.transitivity:.3f}, "
        f"cycle error {verdict.cycle_error:.3f}",
        "wrong": str(verdict.wrong),
        "missing": str(verdict.missing),
        "fscore": f"{verdict.fscore} expected; ours, by {verdict.method}: {verdict.own_fscore}",
    }
    if verdict.log_likelihood is not None and verdict.own_log_likelihood is not None:
        less = verdict.log_likelihood - verdict.own_log_likelihood
        lines["likelihood"] = f"{less:+,.1f} nats beside ours"
    if verdict.against is not None:
        one = verdict.against
        lines["against"] = (
            f"{counted(one.only_first, 'pair')} only here, {one.right_first.value:.1%} of them right; "
            f"{number(one.only_second)} only there, {one.right_second.value:.1%} right; "
            f"this answer is the better one with probability {one.better:.2f}"
        )
        for place, dispute in enumerate(one.disputes[:TOLD], start=1):
            lines[f"differ {place}"] = dispute.evidence
    lines["basis"] = verdict.basis
    return lines
