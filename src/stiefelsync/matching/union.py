"""All that several files say of the same points, as one problem."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync._core.binding import call
from stiefelsync.errors import InputError, counted
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.records import Records

__all__ = ["together", "union"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SAME = 8.0
"""Pixels within which two files may have one keypoint: `sync` moves those of a grid by half of its cells."""
SAME_NORMALISED = 0.01
"""The same, where positions are OpenSfM's."""
DIGITS = 3
"""Decimals of positions by which points are told where their numbers differ."""


@typed
def union(problems: Sequence[Matchings]) -> tuple[Matchings, list[Ints]]:
    """Return the problem of all matches of several, and which of its points each of theirs is.

    Records are one if source and id are equal, other objects if their names are, or their numbers
    where they have no names. Points of one object are told by number where all positions known to
    two problems agree, else by position. Of matches that lead from one point to two of one object
    the one in more triangles stays, the first of equals.

    Parameters
    ----------
    problems
        At least two, which share objects.

    Returns
    -------
    problem : Matchings
        Weights are kept if all problems have some; a match of several has the largest.
    places : list of (m_i,) int64

    Raises
    ------
    InputError
        If they share nothing, or are not about the same points.

    Examples
    --------
    >>> one = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], names=["a", "b"])
    >>> two = Matchings.from_pairs({(0, 1): [[1, 0]]}, [2, 1], names=["b", "c"])
    >>> found, places = union([one, two])
    >>> found, found.names, places[1].tolist()
    (Matchings(3 objects, 4 points, 2 matches in 2 of 3 pairs), ('a', 'b', 'c'), [1, 2, 3])
    """
    if len({(one.records is None, one.names is None) for one in problems}) > 1:
        raise InputError("some of these have names of objects or ids of records, others have none; give all the same")
    if problems[0].records is not None:
        return _of_records(problems)
    names = dict.fromkeys(name for one in problems for name in _names(one))
    number = {name: i for i, name in enumerate(names)}
    objects = [np.array([number[name] for name in _names(one)], dtype=np.int64) for one in problems]
    _check_shared(objects)
    within, sizes, positions = _points(problems, objects, list(names))
    offsets = np.append(0, np.cumsum(sizes))
    places = [
        offsets[of[one.point_objects]] + inside for one, of, inside in zip(problems, objects, within, strict=True)
    ]
    named = None if problems[0].names is None else list(names)
    return _made(problems, places, sizes, names=named, coordinates=positions), places


def _names(problem: Matchings) -> Sequence[object]:
    """Return what tells the objects of a problem from each other."""
    return range(problem.n_objects) if problem.names is None else problem.names


def _check_shared(held: Sequence[Ints]) -> None:
    """Raise an error if one of several shares nothing with those before it."""
    seen = held[0]
    for place, these in enumerate(held[1:], start=2):
        if not np.isin(these, seen).any():
            raise InputError(
                f"input {place} shares no image, object or record with those before it; nothing joins them"
            )
        seen = np.concatenate([seen, these])


def _points(
    problems: Sequence[Matchings], objects: Sequence[Ints], names: list[object]
) -> tuple[list[Ints], Ints, Floats | None]:
    """Return the number within its object that every point gets, the sizes of the objects, and positions."""
    sizes = np.zeros(len(names), dtype=np.int64)
    known = [np.empty((0, 2))] * len(names)
    located = all(one.coordinates is not None for one in problems)
    given = [None if one.coordinates is None else np.asarray(one.coordinates, dtype=np.float64) for one in problems]
    within = []
    for one, of, xy in zip(problems, objects, given, strict=True):
        inside = np.arange(one.n_points) - one.offsets[one.point_objects]
        for i, there in enumerate(of.tolist()):
            span = slice(int(one.offsets[i]), int(one.offsets[i + 1]))
            size = span.stop - span.start
            if located and xy is not None:
                inside[span], known[there] = together(known[there], xy[span], names[there])
                sizes[there] = len(known[there])
            else:
                sizes[there] = max(sizes[there], size)
        within.append(inside)
    return within, sizes, np.concatenate(known) if located else None


def together(known: Floats, new: Floats, name: object) -> tuple[Ints, Floats]:
    """Return which point of an object each of those of another file is, and the positions of all.

    Parameters
    ----------
    known, new : (n, 2), (n', 2)
        Positions. Where they agree number by number, points are told by their numbers.
    name
        Of the object, for the error if positions do not tell them either.

    Examples
    --------
    >>> known = np.array([[1.0, 1.0], [50.0, 1.0]])
    >>> together(known, np.array([[50.0, 1.0], [99.0, 1.0]]), "a")[0].tolist()
    [1, 2]
    """
    both = min(len(known), len(new))
    extents = [float(np.nanmax(np.abs(xy), initial=0.0)) for xy in (known, new)]
    apart = np.abs(known[:both] - new[:both]).max(axis=1, initial=0.0) > (
        SAME_NORMALISED if max(extents) <= 1 else SAME
    )
    # Positions of OpenSfM cannot be compared with pixels.
    if not apart.any() or (extents[0] <= 1) != (extents[1] <= 1):
        return np.arange(len(new)), np.concatenate([known, new[len(known) :]])
    # Their numbers say nothing: whoever wrote the file counted only the points of tracks.
    key = {tuple(at): p for p, at in enumerate(known.round(DIGITS).tolist())}
    at = [tuple(place) for place in new.round(DIGITS).tolist()]
    if len(key) < len(known) or len(set(at)) < len(new) or not any(place in key for place in at):
        raise InputError(
            f"the points of {name!r} are not the same: point {int(np.argmax(apart))} lies elsewhere, and"
            " positions do not tell them; both must come from one detection of keypoints"
        )
    place = np.array([key.get(one, -1) for one in at], dtype=np.int64)
    fresh = np.flatnonzero(place < 0)
    place[fresh] = len(known) + np.arange(len(fresh))
    return place, np.concatenate([known, new[fresh]])


def _of_records(problems: Sequence[Matchings]) -> tuple[Matchings, list[Ints]]:
    """Return the union of problems whose points are records, told by source and id."""
    keys = [one.records.named() for one in problems if one.records is not None]
    sources = sorted({name for these in keys for name, _ in these})
    unclean = {
        name
        for one in problems
        if one.records is not None
        for name, clean in zip(one.records.sources, one.records.duplicate_free, strict=True)
        if not clean
    }
    rank = {name: s for s, name in enumerate(sources)}
    # Points are ordered by source, and within it as they are first met.
    listed = sorted(dict.fromkeys(key for these in keys for key in these), key=lambda key: rank[key[0]])
    number = {key: p for p, key in enumerate(listed)}
    places = [np.array([number[key] for key in these], dtype=np.int64) for these in keys]
    _check_shared(places)
    source = np.array([rank[name] for name, _ in listed], dtype=np.int64)
    clean = np.array([name not in unclean for name in sources])
    records = Records(tuple(sources), source, _ids(problems, listed), clean)
    whole = bool(clean.all())
    sizes = np.bincount(source, minlength=len(sources)) if whole else np.ones(len(listed), dtype=np.int64)
    made = _made(problems, places, sizes, names=sources if whole and len(sources) < len(listed) else None)
    return made.with_records(records), places


def _ids(problems: Sequence[Matchings], listed: Sequence[tuple[str, str]]) -> NDArray[np.generic]:
    """Return ids as numbers where all problems have numbers, else as texts."""
    numbers = all(np.issubdtype(one.records.ids.dtype, np.integer) for one in problems if one.records is not None)
    ids = [key[1] for key in listed]
    return np.array([int(one) for one in ids], dtype=np.int64) if numbers else np.array(ids, dtype=object)


def _made(
    problems: Sequence[Matchings],
    places: Sequence[Ints],
    sizes: Ints,
    *,
    names: Sequence[object] | None,
    coordinates: Floats | None = None,
) -> Matchings:
    """Return the problem of all matches; of those that lead to two points of one object the best supported."""
    ends = np.sort(np.concatenate([place[one.endpoints] for one, place in zip(problems, places, strict=True)]), axis=1)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    inside = owner[ends[:, 0]] == owner[ends[:, 1]]
    if inside.any():
        raise InputError(f"{counted(int(inside.sum()), 'match')} would join points of one object")
    # Every match once, with the largest of its weights and the first file that has it.
    m = int(sizes.sum())
    file = np.repeat(np.arange(len(problems)), [one.n_matches for one in problems])
    order = np.lexsort((file, ends[:, 1], ends[:, 0]))
    ends = ends[order]
    first = np.flatnonzero(np.append(True, (ends[1:] != ends[:-1]).any(axis=1))[: len(ends)])
    weights = None
    if all(one.weights is not None for one in problems) and len(first):
        weights = np.maximum.reduceat(np.concatenate([one.match_weights for one in problems])[order], first)
    ends, file = ends[first], file[order][first]
    one, two = (np.ascontiguousarray(end) for end in ends.T)
    support = np.zeros(len(ends), dtype=np.int64)
    call("count_edge_triangles", one, two, len(ends), m, support)
    # Equal numbers of triangles differ by less than one: by the file.
    preference = support + 1 - file / len(problems)
    kept = Matchings.from_endpoints(ends, sizes, weights=preference, one_to_many="repair")
    chosen = np.searchsorted(ends @ np.array([m, 1]), kept.endpoints @ np.array([m, 1]))
    return Matchings.from_endpoints(
        ends[chosen], sizes, weights=None if weights is None else weights[chosen],
        names=None if names is None else [str(name) for name in names], coordinates=coordinates,
    )  # fmt: skip
