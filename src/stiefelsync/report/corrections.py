"""The tracks of an answer that are most in need of a look, as cards that can be corrected on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.io.constraint_files import point_names
from stiefelsync.matching.difference import Difference
from stiefelsync.report.conflicts import Conflict, spots_of
from stiefelsync.sync.constraints import owners

__all__ = ["Checked", "cards", "tracks_to_check"]

MAX_TRACKS = 60
MAX_POINTS = 600  # on all cards together: with pictures some 2 MB
LONGEST = 60  # points of a track; nobody looks at longer ones by eye
MAX_ALONE = 4  # points without a track, of one conflict


@dataclass(frozen=True)
class Checked:
    """A track of the answer, or a point without one, to be looked at.

    Attributes
    ----------
    points
        Its points, by global index.
    confidence
        From 0 to 1, None where it is unknown.
    evidence
        What speaks against it, in a phrase.
    """

    points: tuple[int, ...]
    confidence: float | None
    evidence: str = ""


def tracks_to_check(
    found: Difference, worst: Sequence[Conflict], confidence: NDArray[np.float64] | None = None
) -> list[Checked]:
    """Return the tracks that the worst conflicts became, then those of least confidence.

    Parameters
    ----------
    worst
        The conflicts, as :func:`~stiefelsync.report.conflicts.worst_conflicts` returns them.
    confidence : (m,) float64, optional
        Of the track of every point, NaN where unknown.

    Examples
    --------
    >>> from stiefelsync.matching.difference import difference
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 1, 0, 1], [2, 2])
    >>> sure = np.array([0.9, 0.3, 0.9, 0.3])
    >>> [one.points for one in tracks_to_check(difference(problem, np.array([0, 1, 0, 1])), [], sure)]
    [(1, 3), (0, 2)]
    """
    track = found.after.track
    if found.labels is not None:
        alone = found.labels < 0
        track = np.where(alone, found.labels.max(initial=-1) + np.cumsum(alone), found.labels)
    members = np.argsort(track, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(track)))
    wanted = [track[row[0]] for one in worst for row in (*one.tracks, *((p,) for p in one.alone[:MAX_ALONE]))]
    if confidence is not None:
        # One point stands for its track, and tracks of two points or more are asked about.
        first = members[start[:-1][np.diff(start) > 1]]
        first = first[np.isfinite(confidence[first])]
        wanted += track[first[np.argsort(confidence[first], kind="stable")][:MAX_TRACKS]].tolist()
    listed, room = list[Checked](), MAX_POINTS
    for t in dict.fromkeys(int(t) for t in wanted):
        points = members[start[t] : start[t + 1]].tolist()
        if len(listed) == MAX_TRACKS:
            break
        if len(points) > min(LONGEST, room):
            continue
        room -= len(points)
        known = None if confidence is None or len(points) < 2 else float(confidence[points[0]])
        listed.append(Checked(tuple(points), known if known is not None and np.isfinite(known) else None))
    return listed


def cards(
    found: Difference, listed: Sequence[Checked], names: Sequence[str], patches: Mapping[int, str]
) -> list[dict[str, Any]]:
    """Return the tracks as the page shows them: every point with its picture, and how files of constraints call it.

    Parameters
    ----------
    names
        Of all objects.
    patches
        Point → data URI of the picture around it, where there is one.
    """
    points = np.array([p for one in listed for p in one.points], dtype=np.int64)
    spots = spots_of(found, points.tolist())
    called = dict(zip(points.tolist(), zip(*point_names(found.input, points), strict=True), strict=True))
    owner, owns = found.input.point_objects, owners(found.input)
    return [
        {
            "confidence": one.confidence,
            "evidence": one.evidence,
            "points": [
                spots[p]
                | {"name": names[owner[p]], "patch": patches.get(p), "times": 1, "column": None}
                | {"object": called[p][0], "point": called[p][1], "owner": int(owns[p])}
                for p in one.points
            ],
        }
        for one in listed
    ]
