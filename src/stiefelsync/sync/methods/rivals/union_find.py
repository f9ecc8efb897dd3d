"""Union-find tracks, as structure-from-motion programs build them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stiefelsync.matching.graph import components, conflicts
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Details, Outcome, Stopwatch, register

__all__ = ["UnionFindDetails", "run"]


@dataclass(frozen=True, eq=False, repr=False)
class UnionFindDetails(Details):
    """What union-find tells.

    Attributes
    ----------
    tracks
        Components of two or more points that became tracks.
    dropped_tracks
        Components given up because an object has two points in them.
    """

    tracks: int
    dropped_tracks: int


@register(
    "union-find",
    summary="connected components; components with a conflict are dropped whole",
    consistent=True,
    cost="O(m + M)",
    reference="Moulon, Monasse: Unordered feature tracking made fast and easy, CVMP 2012",
    choose="to see what structure-from-motion programs do; one wrong match can destroy two tracks",
    sized=False,
    discards=True,
)
def run(
    matchings: Matchings,
    _universe: int,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Label every connected component of the match graph.

    Unmatch those that hold two points of one object.

    The universe size, match weights and hence precision play no part. A point without matches stays
    unmatched.

    Notes
    -----
    Cycle-consistent, exact when there is no wrong match. O(m + M).

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 1]]}, [2, 1, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 0, 0, 1]
    """
    watch = Stopwatch()
    with watch("components"):
        n, component = components(matchings)
    with watch("conflicts"):
        bad = np.zeros(n, dtype=bool)
        bad[conflicts(matchings, component).which] = True
        good = ~bad & (np.bincount(component, minlength=n) > 1)
        labels = np.where(good, np.cumsum(good) - 1, -1)[component]
    return Outcome(labels=labels, timings=watch.seconds, details=UnionFindDetails(int(good.sum()), int(bad.sum())))
