"""Matches of tracks between objects that are near each other in a sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import InputError
from stiefelsync.io.base import MOST_MATCHES
from stiefelsync.matching.matchings import Matchings

__all__ = ["in_window"]

_MOST_PLACES = 2**28  # of a table of objects and tracks, 4 bytes each


def in_window(
    labels: NDArray[np.int64],
    sizes: ArrayLike,
    window: int,
    *,
    names: Sequence[str] | None = None,
    coordinates: ArrayLike | None = None,
) -> Matchings:
    """Return the matches of tracks between objects at most `window` places apart, and between every `window`-th two.

    Through the latter what is seen in objects far apart stays one track.

    Parameters
    ----------
    labels : (m,) int64
        Track of every point, -1 for none.
    sizes : (k,) int
        Points per object; the objects are in the order of the sequence.

    Examples
    --------
    >>> in_window(np.zeros(3, dtype=np.int64), [1] * 3, 1).n_matches
    2
    >>> in_window(np.zeros(5, dtype=np.int64), [1] * 5, 2).pair_objects.tolist()
    [[0, 1], [0, 2], [0, 4], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4]]
    """
    if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
        raise InputError(f"window must be a whole number of at least 1, got {window!r}", setting="window")
    counts = np.asarray(sizes, dtype=np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    point = np.arange(len(labels)) - (np.cumsum(counts) - counts)[owner]
    on = np.flatnonzero(labels >= 0)
    tracks, number = np.unique(labels[on], return_inverse=True)
    if len(tracks) * len(counts) > _MOST_PLACES:
        raise InputError(
            f"{len(tracks):,} tracks through {len(counts):,} objects are more than a window is found for; cut the"
            " sequence into parts"
        )
    # Which point of every object a track goes through: a row per object, so that two objects are
    # compared by two rows.
    place = np.full((len(counts), len(tracks)), -1, dtype=np.int32)
    place[owner[on], number] = point[on]
    objects, points, total = [np.empty((0, 2), np.int64)], [np.empty((0, 2), np.int32)], 0
    for i in range(len(counts)):
        near = list(range(i + 1, min(i + window, len(counts) - 1) + 1))
        if window > 1 and i % window == 0:
            near += range(i + 2 * window, len(counts), window)
        others = np.array(near, dtype=np.int64)
        row, track = np.nonzero((place[others] >= 0) & (place[i] >= 0))
        j = others[row]
        objects.append(np.stack([np.full(len(j), i), j], axis=1))
        points.append(np.stack([place[i, track], place[j, track]], axis=1))
        total += len(j)
        if total > MOST_MATCHES:
            raise InputError(
                f"more than {MOST_MATCHES:,} matches are within {window} objects; take a smaller window",
                setting="window",
            )
    return Matchings.from_arrays(
        np.concatenate(objects), np.concatenate(points), counts, names=names, coordinates=coordinates
    )
