"""What became of matches: one object for "before and after".

Results, files, pages and pictures take it from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.matching._canonical import as_labels
from stiefelsync.matching.graph import components, conflicts, countable, numbered
from stiefelsync.matching.matchings import Matchings

__all__ = ["Counts", "Difference", "Side", "difference", "places"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Counts:
    """Matches before and after, counted in one place: a problem, or a table of a file.

    Attributes
    ----------
    before, kept, removed
        Matches before, those of them that are still there, and those that are not.
    added
        Matches that were not there before.
    adds
        Whether these are part of what is there after, or would only follow from it.
    after
        Matches after.
    conflicts_before, conflicts_after
        Tracks with two points of one object.

    Examples
    --------
    >>> counts = Counts(before=10, kept=8, added=3, adds=False, conflicts_before=2, conflicts_after=0)
    >>> counts.removed, counts.after
    (2, 8)
    """

    before: int
    kept: int
    added: int
    adds: bool
    conflicts_before: int
    conflicts_after: int
    removed: int = field(init=False)
    after: int = field(init=False)

    @typed
    def __post_init__(self) -> None:
        object.__setattr__(self, "removed", self.before - self.kept)
        object.__setattr__(self, "after", self.kept + (self.added if self.adds else 0))


@dataclass(frozen=True, eq=False)
class Side:
    """The tracks of one side, before or after: sets of points that matches connect.

    Attributes
    ----------
    matches
        Number of matches.
    track : (m,) int64
        The track of every point, numbered by first point; one without a match is alone in its own.
    lengths : (n,) int64
        Points in every track.
    conflicted : (n,) bool
        Whether a track holds two points of one object.
    tracks, conflicts, matched_points
        How many tracks have at least two points, how many are conflicted, and how many points have
        a match.
    """

    matches: int
    track: Ints
    lengths: Ints
    conflicted: Bools
    tracks: int
    conflicts: int
    matched_points: int


@dataclass(frozen=True, eq=False)
class Difference:
    """The matches of an input, and what an answer made of them.

    Tracks and added matches are made on demand, once.

    Attributes
    ----------
    input
        The matches before.
    kept : (M,) bool
        Which of them are still there.
    labels : (m,) int64 or None
        Universe point of every point, -1 = unmatched, where the answer is a labelling.
    answer
        The matches of any other answer, on the points of the input.
    n_kept, n_added
        How many matches are still there, and how many the answer has that were not there before.
    adds
        Whether these are part of what is there after, or would only follow from it.
    """

    input: Matchings
    kept: Bools
    labels: Ints | None
    answer: Matchings | None
    n_kept: int
    n_added: int
    adds: bool = True

    @cached_property
    def all_matches(self) -> Matchings:
        """All matches of the answer, whether or not the input had them."""
        if self.answer is not None:
            return self.answer
        assert self.labels is not None
        about = self.input
        found = Matchings.from_labels(self.labels, about.sizes, names=about.names, coordinates=about.coordinates)
        return found if about.records is None else found.with_records(about.records.without_scores())

    @cached_property
    def added(self) -> Matchings:
        """The matches that were not there before."""
        return self.all_matches.keep(~self.all_matches.shared_with(self.input))

    @cached_property
    def matches_after(self) -> Matchings:
        """The matches that are there after: with the added ones, where these are part of it."""
        return self.all_matches if self.adds else self.input.keep(self.kept)

    @cached_property
    def before(self) -> Side:
        """Tracks before: the connected components of the input."""
        return _side(self.input, components(self.input)[1], self.input.n_matches)

    @cached_property
    def after(self) -> Side:
        """Tracks after: the labels of a labelling, if all that follows from it is there."""
        if self.labels is None or not self.adds:
            return _side(self.input, components(self.matches_after)[1], self.matches_after.n_matches)
        alone = self.labels < 0
        track = np.where(alone, self.labels.max(initial=-1) + np.cumsum(alone), self.labels)
        return _side(self.input, numbered(track), self.n_kept + self.n_added)

    @cached_property
    def counts(self) -> Counts:
        """All of it in six numbers."""
        conflicts_after = self.after.conflicts if self.labels is None else 0
        before = self.input.n_matches
        return Counts(before, self.n_kept, self.n_added, self.adds, self.before.conflicts, conflicts_after)

    @typed
    def counts_in(self, before: int, kept: int, added: int, conflicted: tuple[int, int] | None = None) -> Counts:
        """Return the counts of a file that holds these matches in its own way.

        Conflicts are the same unless given.
        """
        own = self.counts.conflicts_before, self.counts.conflicts_after
        return Counts(before, kept, added, self.adds, *(own if conflicted is None else conflicted))


@typed
def difference(before: Matchings, after: Matchings | Ints, *, adds: bool = True) -> Difference:
    """Compare matches with an answer: labels, or other matches of the same points.

    Parameters
    ----------
    before
        The matches before.
    after : (m,) int64 or Matchings
        Universe point of every point (-1 = unmatched), each used at most once per object; or the
        matches after. Objects are then compared by name, if they have names, and those or points
        without a match may be absent.
    adds
        Whether matches that were not there before are part of what is there after.

    Raises
    ------
    InputError
        When `after` is about other objects or points than `before`.

    Notes
    -----
    O(m + M), with matches O(M log M).

    Examples
    --------
    >>> before = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2])
    >>> found = difference(before, Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 2]))
    >>> found.kept.tolist(), found.counts.removed, found.added.n_matches
    ([True, False], 1, 0)
    """
    if isinstance(after, Matchings):
        answer = _aligned(after, before)
        kept = before.shared_with(answer)
        n_kept = int(kept.sum())
        return Difference(before, kept, None, answer, n_kept, answer.n_matches - n_kept, adds)
    labels = _compact(as_labels(after, before.n_points))
    kept = before.agreeing(labels)
    n_kept = int(kept.sum())
    points = np.bincount(labels[labels >= 0]).astype(np.int64)
    return Difference(before, kept, labels, None, n_kept, int((points * (points - 1) // 2).sum()) - n_kept, adds)


def _compact(labels: Ints) -> Ints:
    """Return labels, renumbered where they are far above their number."""
    if labels.min(initial=-1) < -1:
        raise InputError(f"labels hold {labels.min()}; the least is -1, unmatched")
    made, matched = labels.copy(), labels >= 0
    made[matched] = countable(labels[matched])
    return made


def places(before: Matchings, after: Matchings) -> Ints:
    """Return which object of `before` each object of `after` is, shape (k,).

    By name where both have names.

    Raises
    ------
    InputError
        When `after` is about other objects, or about more points of one.

    Examples
    --------
    >>> before = Matchings.from_labels([0, 0, 0], [1, 1, 1], names=["a", "b", "c"])
    >>> places(before, Matchings.from_labels([0, 0], [1, 1], names=["c", "a"])).tolist()
    [2, 0]
    """
    if after.names is not None and before.names is not None:
        place = {name: i for i, name in enumerate(before.names)}
        strangers = [name for name in after.names if name not in place]
        if strangers:
            raise InputError(
                f"the matches after are about {strangers[0]!r}, which those before do not know;"
                " only matches of the same objects can be compared"
            )
        where = np.array([place[name] for name in after.names], dtype=np.int64)
    elif after.n_objects == before.n_objects:
        where = np.arange(before.n_objects)
    else:
        raise InputError(f"the matches after have {after.n_objects} objects, those before {before.n_objects}")
    longer = np.flatnonzero(after.sizes > before.sizes[where])
    if len(longer):
        i = int(longer[0])
        name = f"object {i}" if after.names is None else repr(after.names[i])
        raise InputError(
            f"{name} has {after.sizes[i]} points after and {before.sizes[where[i]]} before;"
            " only matches of the same points can be compared"
        )
    return where


def _aligned(after: Matchings, before: Matchings) -> Matchings:
    """Return `after` on the objects and points of `before`.

    Points without a match may be absent.
    """
    if after.names == before.names and np.array_equal(after.sizes, before.sizes):
        return after
    objects = places(before, after)[after.pair_objects[after.match_pairs]].reshape(-1, 2)
    return Matchings.from_arrays(objects, after.indices, before.sizes)


def _side(matchings: Matchings, track: Ints, n_matches: int) -> Side:
    lengths = np.bincount(track)
    conflicted = np.zeros(len(lengths), dtype=bool)
    conflicted[conflicts(matchings, track).which] = True
    matched = lengths[lengths > 1]
    return Side(n_matches, track, lengths, conflicted, len(matched), int(conflicted.sum()), int(matched.sum()))
