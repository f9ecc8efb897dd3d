"""Tracks as COLMAP's global mapper builds them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from stiefelsync.matching.graph import components
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Outcome, Stopwatch, register
from stiefelsync.sync.methods.rivals.union_find import UnionFindDetails
from stiefelsync.sync.options import option

__all__ = ["ColmapTracksDetails", "Options", "run"]


@dataclass(frozen=True)
class Options:
    """Options of colmap-tracks."""

    apart: float = option(
        10.0, "Two points of one object farther apart than this, in pixels, condemn their track.", least=0
    )


@dataclass(frozen=True, eq=False, repr=False)
class ColmapTracksDetails(UnionFindDetails):
    """What COLMAP's rule tells beyond union-find.

    Attributes
    ----------
    tracks, dropped_tracks
        As in :class:`~stiefelsync.sync.methods.rivals.union_find.UnionFindDetails`.
    copies
        Points left out because another of their object, close by, is in the track.
    """

    copies: int


@register(
    "colmap-tracks",
    summary="connected components; those with two points of an object more than 10 px apart are dropped whole",
    consistent=True,
    cost="O((m + M) log m)",
    reference="Pan, Baráth, Pollefeys, Schönberger: Global structure-from-motion revisited, ECCV 2024",
    choose="to see what COLMAP's global mapper makes of the matches; without positions it is union-find",
    sized=False,
    discards=True,
    options=Options,
)
def run(
    matchings: Matchings,
    _universe: int,
    options: Options,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Label every connected component of the match graph unless it holds far-apart points of one object.

    A component is dropped whole when two of its points in one object are more than `apart` from
    each other: ``‖x_a − x_b‖ > 10 px``. Nearer ones are taken for one point found twice. A label
    can hold only one of them: the first stays, the others are unmatched.

    Without positions, or where one of the two positions is unknown (NaN), two points of an object
    count as far apart, so that the answer is that of union-find. Universe size, weights and random
    numbers play no part.

    Notes
    -----
    Cycle-consistent, exact when there is no wrong match. O((m + M) log m), and the pairwise
    distances of points of an object that share a component and lie in a square of side `apart`.

    This differs from the mapper in: it keeps both points of a point found twice as observations of
    the track.

    Examples
    --------
    Points 0 and 1 of object 0 are 3 px apart in one track; points 2 and 3 are 50 px apart in
    another.

    >>> pairs = {(0, 1): [[0, 0], [2, 1]], (1, 2): [[0, 0], [1, 1]], (0, 2): [[1, 0], [3, 1]]}
    >>> places = [[0, 0], [3, 0], [100, 0], [150, 0], [0, 0], [100, 0], [0, 0], [100, 0]]
    >>> problem = Matchings.from_pairs(pairs, [4, 2, 2], coordinates=places)
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, -1, -1, -1, 0, -1, 0, -1]
    """
    watch = Stopwatch()
    with watch("components"):
        n, component = components(matchings)
    with watch("conflicts"):
        # Points of an object follow each other, so a stable sort by component puts those to compare
        # side by side.
        order = np.argsort(component, kind="stable")
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = (np.diff(component[order]) != 0) | (np.diff(matchings.point_objects[order]) != 0)
        starts = np.flatnonzero(begins)
        sizes = np.diff(starts, append=len(order))
        several = np.flatnonzero(sizes > 1)
        far = _far_apart(matchings.coordinates, order, starts[several], sizes[several], options.apart)
        good = np.bincount(component, minlength=n) > 1
        good[component[order[starts[several[far]]]]] = False
        labels = np.where(good, np.cumsum(good) - 1, -1)[component]
        copies = order[~begins]
        lost = int(np.count_nonzero(labels[copies] >= 0))
        labels[copies] = -1
        dropped = len(np.unique(component[order[starts[several[far]]]]))
    return Outcome(
        labels=labels,
        timings=watch.seconds,
        details=ColmapTracksDetails(int(good.sum()), dropped, lost),
    )


def _far_apart(
    places: NDArray[np.float32] | None,
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    apart: float,
) -> NDArray[np.bool_]:
    """Return which groups ``order[start : start + size]`` hold two points more than `apart` from each other, or NaN."""
    if places is None:
        return np.ones(len(starts), dtype=bool)
    far = np.zeros(len(starts), dtype=bool)
    for number, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        some = places[order[start : start + size]].astype(np.float64)
        extent = np.ptp(some, axis=0)
        # Within a box no wider than `apart` the largest distance may still exceed it, but then
        # there are few points.
        far[number] = not (extent <= apart).all() or pdist(some).max() > apart
    return far
