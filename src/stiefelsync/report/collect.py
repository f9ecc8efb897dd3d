"""What a report says, as plain numbers: nothing here knows of pages or pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.graph import components, conflicts
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.result import Synchronisation

__all__ = [
    "Change",
    "Conflict",
    "Side",
    "TrackBin",
    "change",
    "match_matrix",
    "places",
    "worst_conflicts",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """One side of the comparison, before or after.

    Attributes
    ----------
    matches
        Number of matches.
    track : (m,) int64
        The connected component of every point.
    lengths : (n,) int64
        Points in every component.
    conflicted : (n,) bool
        Whether a component holds two points of one object.
    """

    matches: int
    track: Ints
    lengths: Ints
    conflicted: NDArray[np.bool_]

    @property
    def tracks(self) -> int:
        """Components of at least two points."""
        return int((self.lengths > 1).sum())

    @property
    def conflicts(self) -> int:
        """Components that contradict themselves."""
        return int(self.conflicted.sum())

    @property
    def matched_points(self) -> int:
        """Points that have at least one match."""
        return int(self.lengths[self.lengths > 1].sum())

    @property
    def mean_length(self) -> float:
        """Mean number of points of a track, 0 when there is none."""
        return self.matched_points / max(self.tracks, 1)


@dataclass(frozen=True)
class TrackBin:
    """Tracks of `low` to `high` points: how many before (and how many of those in conflict) and after."""

    low: int
    high: int
    before: int
    before_conflicted: int
    after: int


@dataclass(frozen=True)
class Conflict:
    """A conflicted component of the input and the tracks it became.

    Attributes
    ----------
    points, objects
        Points in it and different objects among them.
    tracks
        Points of each of its largest tracks afterwards, largest first, shortened to the longest rows asked for.
    track_lengths
        Points of each of those tracks before shortening.
    n_tracks
        Tracks afterwards, in all.
    alone
        Some of the points left without a match.
    n_alone
        Points left without a match, in all.
    """

    points: int
    objects: int
    tracks: tuple[tuple[int, ...], ...]
    track_lengths: tuple[int, ...]
    n_tracks: int
    alone: tuple[int, ...]
    n_alone: int


@dataclass(frozen=True)
class Change:
    """The difference between the matches before and after synchronisation.

    Attributes
    ----------
    input
        The matches before.
    kept : (M,) bool
        Which of them are still there.
    support : (M,) float64 or None
        How far the other matches agree with each, if known.
    added
        The matches that were not there before.
    adds
        Whether these are part of the answer, or would only follow from it.
    """

    input: Matchings
    kept: NDArray[np.bool_]
    support: Floats | None
    added: Matchings
    adds: bool = True

    @property
    def removed(self) -> int:
        """Number of removed matches."""
        return int((~self.kept).sum())

    @cached_property
    def before(self) -> Side:
        """Tracks before: the connected components of the input."""
        return _side(self.input)

    @cached_property
    def after(self) -> Side:
        """Tracks after: the connected components of the kept matches and, where they count, the added ones."""
        kept = self.input.keep(self.kept)
        parts = (kept, self.added) if self.adds else (kept,)
        objects = np.concatenate([part.pair_objects[part.match_pairs] for part in parts])
        points = np.concatenate([part.indices for part in parts])
        return _side(Matchings.from_arrays(objects, points, self.input.sizes))

    def name(self, i: int) -> str:
        """Return the name of object i, or its number when objects have no names."""
        return str(i) if self.input.names is None else self.input.names[i]

    def per_object(self) -> dict[str, Ints]:
        """Return kept, removed and added matches touching every object, each of shape (k,).

        Examples
        --------
        >>> before = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
        >>> after = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1, 1])
        >>> {key: value.tolist() for key, value in change(before, after).per_object().items()}
        {'kept': [1, 1, 0], 'removed': [0, 1, 1], 'added': [0, 0, 0]}
        """
        ends = self.input.pair_objects[self.input.match_pairs]
        new = self.added.pair_objects[self.added.match_pairs]
        k = self.input.n_objects
        count = {"kept": ends[self.kept], "removed": ends[~self.kept], "added": new}
        return {key: np.bincount(value.ravel(), minlength=k).astype(np.int64) for key, value in count.items()}

    def track_bins(self, limit: int = 20) -> list[TrackBin]:
        """Return the histogram of track lengths from 2 up, in at most `limit` bins; the last ones grow in width.

        Examples
        --------
        >>> problem = Matchings.from_labels([0, 0, 0], [1, 1, 1])
        >>> change(problem, problem).track_bins()
        [TrackBin(low=2, high=2, before=0, before_conflicted=0, after=0),
         TrackBin(low=3, high=3, before=1, before_conflicted=0, after=1)]
        """
        longest = int(max(self.before.lengths.max(initial=1), self.after.lengths.max(initial=1)))
        if longest < 2:
            return []
        edges = _bin_edges(longest, limit)
        counts = [
            np.histogram(lengths, edges)[0]
            for lengths in (self.before.lengths, self.before.lengths[self.before.conflicted], self.after.lengths)
        ]
        return [
            TrackBin(int(low), int(high) - 1, int(a), int(c), int(b))
            for low, high, a, c, b in zip(edges[:-1], edges[1:], *counts, strict=True)
        ]


def change(before: Matchings, after: Synchronisation | Matchings) -> Change:
    """Compare matches with the result of synchronising them, or with other matches of the same points.

    Parameters
    ----------
    before
        The matches before.
    after
        What synchronising them gave, or the matches afterwards, which have no confidence. Objects are then compared
        by name, if they have names, and those or points without a match may be absent.

    Raises
    ------
    InputError
        When `after` is about other objects or points than `before`.

    Notes
    -----
    O(M log M), M the larger number of matches.

    Examples
    --------
    >>> before = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2])
    >>> found = change(before, Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 2]))
    >>> found.kept.tolist(), found.removed, found.added.n_matches
    ([True, False], 1, 0)
    """
    if isinstance(after, Matchings):
        after = _aligned(after, before)
        old, new = _keys(before), _keys(after)
        return Change(before, np.isin(old, new), None, after.keep(~np.isin(new, old)))
    if after.input is not before and after.input != before:
        raise InputError(
            f"the result is about {after.input}, not about {before}; pass the matches that were synchronised"
        )
    return Change(before, after.kept, after.confidence if after.consistent else None, after.added())


def match_matrix(found: Change, limit: int = 256) -> tuple[Ints, dict[str, NDArray[np.uint32]]]:
    """Count the matches between objects, or between groups of neighbours when there are more than `limit` objects.

    Returns
    -------
    bounds : (n + 1,) int64
        Group g holds the objects ``bounds[g]:bounds[g + 1]``.
    counts
        "before", "removed" and "added", each symmetric of shape (n, n).

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 0, 0, 0], [1, 1, 1, 1])
    >>> bounds, counts = match_matrix(change(problem, problem), limit=2)
    >>> bounds.tolist(), counts["before"].tolist()
    ([0, 2, 4], [[1, 4], [4, 1]])
    """
    k = found.input.n_objects
    width = max(-(-k // limit), 1)
    n = -(-k // width)
    group = np.arange(k) // width
    parts = {
        "before": found.input.pair_objects[found.input.match_pairs],
        "removed": found.input.pair_objects[found.input.match_pairs[~found.kept]],
        "added": found.added.pair_objects[found.added.match_pairs],
    }
    counts = {}
    for key, ends in parts.items():
        a, b = group[ends].T
        half = np.bincount(a * n + b, minlength=n * n).reshape(n, n)
        counts[key] = (half + half.T - np.diag(half.diagonal())).astype(np.uint32)
    return np.minimum(np.arange(n + 1) * width, k), counts


def worst_conflicts(found: Change, *, limit: int = 10, rows: int = 5, row_length: int = 12) -> list[Conflict]:
    """Return the conflicted components of the input with the most surplus points, and what became of each.

    A component's surplus is the number of its points less the number of different objects among them.

    Examples
    --------
    >>> before = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 1])
    >>> after = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[0, 0]]}, [2, 1, 1])
    >>> worst_conflicts(change(before, after))
    [Conflict(points=4, objects=3, tracks=((0, 2, 3),), track_lengths=(3,), n_tracks=1, alone=(1,), n_alone=1)]
    """
    before, after = found.before, found.after
    owner = found.input.point_objects
    in_conflict = np.flatnonzero(before.conflicted[before.track])
    which, place = np.unique(before.track[in_conflict], return_inverse=True)
    different = np.unique(place * np.int64(found.input.n_objects) + owner[in_conflict]) // max(found.input.n_objects, 1)
    points, objects = np.bincount(place, minlength=len(which)), np.bincount(different, minlength=len(which))
    worst = np.lexsort((which, -points, objects - points))[:limit]
    listed = []
    for c in worst:
        members = in_conflict[place == c]
        lengths = after.lengths[after.track[members]]
        alone = members[lengths == 1]
        members = members[lengths > 1]
        names, counts = np.unique(after.track[members], return_counts=True)
        largest = np.argsort(-counts, kind="stable")[:rows]
        tracks = [members[after.track[members] == names[t]] for t in largest]
        listed.append(
            Conflict(
                points=int(points[c]),
                objects=int(objects[c]),
                tracks=tuple(tuple(track[:row_length].tolist()) for track in tracks),
                track_lengths=tuple(len(track) for track in tracks),
                n_tracks=len(names),
                alone=tuple(alone[:row_length].tolist()),
                n_alone=len(alone),
            )
        )
    return listed


def places(before: Matchings, after: Matchings) -> Ints:
    """Return which object of `before` each object of `after` is, shape (k,): by name where both have names.

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
                " a report compares matches of the same objects"
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
            " a report compares matches of the same points"
        )
    return where


def _aligned(after: Matchings, before: Matchings) -> Matchings:
    """Return `after` on the objects and points of `before`: points without a match may be absent."""
    where = places(before, after)
    objects = where[after.pair_objects[after.match_pairs]].reshape(-1, 2)
    return Matchings.from_arrays(objects, after.indices, before.sizes)


def _side(matchings: Matchings) -> Side:
    n, track = components(matchings)
    conflicted = np.zeros(n, dtype=bool)
    conflicted[conflicts(matchings, track).which] = True
    return Side(matchings.n_matches, track, np.bincount(track, minlength=n), conflicted)


def _keys(matchings: Matchings) -> Ints:
    a, b = matchings.endpoints.T
    keys: Ints = a * np.int64(matchings.n_points) + b
    return keys


def _bin_edges(longest: int, limit: int) -> Ints:
    """Return edges over 2..longest: bins of one, then of growing width when there are too many lengths."""
    if longest - 1 <= limit:
        return np.arange(2, longest + 2, dtype=np.int64)
    grouped = limit // 3
    single = limit - grouped
    tail = np.geomspace(2 + single, longest + 1, grouped + 1).round().astype(np.int64)
    return np.asarray(np.unique(np.concatenate([np.arange(2, 2 + single), tail])))
