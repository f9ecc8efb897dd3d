"""What a report says of a difference, as plain counts: nothing here knows of pages or pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.difference import Difference

__all__ = ["TrackBin", "match_matrix", "per_object", "track_bins"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TrackBin:
    """Tracks of `low` to `high` points: how many before (and how many of those in conflict) and after."""

    low: int
    high: int
    before: int
    before_conflicted: int
    after: int


def per_object(found: Difference) -> dict[str, Ints]:
    """Return kept, removed and added matches touching every object, each of shape (k,).

    Examples
    --------
    >>> from stiefelsync.matching.difference import difference
    >>> from stiefelsync.matching.matchings import Matchings
    >>> before = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
    >>> after = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1, 1])
    >>> {key: value.tolist() for key, value in per_object(difference(before, after)).items()}
    {'kept': [1, 1, 0], 'removed': [0, 1, 1], 'added': [0, 0, 0]}
    """
    ends = found.input.pair_objects[found.input.match_pairs]
    new = found.added.pair_objects[found.added.match_pairs]
    count = {"kept": ends[found.kept], "removed": ends[~found.kept], "added": new}
    k = found.input.n_objects
    return {key: np.bincount(value.ravel(), minlength=k).astype(np.int64) for key, value in count.items()}


def track_bins(found: Difference, limit: int = 20) -> list[TrackBin]:
    """Return the histogram of track lengths from 2 up, in at most `limit` bins; the last ones grow in width.

    Examples
    --------
    >>> from stiefelsync.matching.difference import difference
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 0, 0], [1, 1, 1])
    >>> track_bins(difference(problem, problem))
    [TrackBin(low=2, high=2, before=0, before_conflicted=0, after=0),
     TrackBin(low=3, high=3, before=1, before_conflicted=0, after=1)]
    """
    before, after = found.before.lengths, found.after.lengths
    longest = int(max(before.max(initial=1), after.max(initial=1)))
    if longest < 2:
        return []
    edges = np.arange(2, longest + 2, dtype=np.int64)
    if longest - 1 > limit:
        grouped = limit // 3
        single = limit - grouped
        tail = np.geomspace(2 + single, longest + 1, grouped + 1).round().astype(np.int64)
        edges = np.unique(np.concatenate([edges[:single], tail]))
    counts = [np.histogram(lengths, edges)[0] for lengths in (before, before[found.before.conflicted], after)]
    return [
        TrackBin(int(low), int(high) - 1, int(a), int(c), int(b))
        for low, high, a, c, b in zip(edges[:-1], edges[1:], *counts, strict=True)
    ]


def match_matrix(found: Difference, limit: int = 256) -> tuple[Ints, dict[str, NDArray[np.uint32]]]:
    """Count the matches between objects, or between groups of neighbours when there are more than `limit` objects.

    Returns
    -------
    bounds : (n + 1,) int64
        Group g holds the objects ``bounds[g]:bounds[g + 1]``.
    counts
        "before", "removed" and "added", each symmetric of shape (n, n).

    Examples
    --------
    >>> from stiefelsync.matching.difference import difference
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 0, 0, 0], [1, 1, 1, 1])
    >>> bounds, counts = match_matrix(difference(problem, problem), limit=2)
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
