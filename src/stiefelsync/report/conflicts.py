"""The conflicting tracks of the input that contradict themselves most, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stiefelsync.matching.difference import Difference
from stiefelsync.report.viewer import frame

__all__ = ["Conflict", "describe", "spots_of", "worst_conflicts"]

MAX_COLUMNS = 12  # a conflict among at most this many objects has one column for each
THUMB = 80  # side of the square that a point's place is drawn in, as the page's style has it


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


def worst_conflicts(found: Difference, *, limit: int = 10, rows: int = 5, row_length: int = 12) -> list[Conflict]:
    """Return the conflicted components of the input with the most surplus points, and what became of each.

    A component's surplus is the number of its points less the number of different objects among them.

    Examples
    --------
    >>> from stiefelsync.matching.difference import difference
    >>> from stiefelsync.matching.matchings import Matchings
    >>> before = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 1])
    >>> after = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[0, 0]]}, [2, 1, 1])
    >>> worst_conflicts(difference(before, after))
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


def describe(
    found: Difference, listed: Sequence[Conflict], names: Sequence[str], patches: Mapping[int, str]
) -> list[dict[str, Any]]:
    """Return the conflicts as the page shows them: a row of spots for every track, and one for points left alone.

    Parameters
    ----------
    names
        Of all objects.
    patches
        Point → data URI of the picture around it, where there is one.
    """
    owner = found.input.point_objects
    spots = spots_of(found, [p for one in listed for row in (*one.tracks, one.alone) for p in row])
    described = []
    for one in listed:
        owners = owner[[p for row in (*one.tracks, one.alone) for p in row]].tolist()
        times = {i: owners.count(i) for i in sorted(set(owners))}
        columns = {i: c + 1 for c, i in enumerate(times)} if one.objects <= MAX_COLUMNS else {}
        rows = [
            {
                "label": label,
                "length": length,
                "alone": points is one.alone,
                "spots": [
                    spots[p] | {"name": names[i], "times": times[i], "column": columns.get(i), "patch": patches.get(p)}
                    for p, i in zip(points, owner[list(points)].tolist(), strict=True)
                ],
            }
            for label, points, length in (
                *(
                    (f"Track {chr(65 + t)}", *track)
                    for t, track in enumerate(zip(one.tracks, one.track_lengths, strict=True))
                ),
                ("Unmatched", one.alone, one.n_alone),
            )
            if length
        ]
        described.append({"about": one, "rows": rows, "columns": len(columns) or MAX_COLUMNS})
    return described


def spots_of(found: Difference, points: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return for every point its number within its object and, where it is known, where it lies."""
    problem, frames = found.input, {}
    spots: dict[int, dict[str, Any]] = {}
    for point in points:
        i = int(problem.point_objects[point])
        spots[point] = {"index": point - int(problem.offsets[i]), "position": "", "place": None}
        if problem.coordinates is not None and np.isfinite(problem.coordinates[point]).all():
            if i not in frames:
                frames[i] = frame(problem.coordinates[problem.offsets[i] : problem.offsets[i + 1]].astype(np.float64))
            low, extent = frames[i]
            x, y = problem.coordinates[point].tolist()
            place = [round(THUMB * float(share), 1) for share in (problem.coordinates[point] - low) / extent]
            spots[point] |= {"position": f"({x:.5g}, {y:.5g})", "place": place}
    return spots
