"""Kruskal's rule: the heaviest match first, never two points of an object in a track."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.methods.rivals._joining import join_in_order, label_tracks

__all__ = ["KruskalDetails", "run"]


@dataclass(frozen=True, eq=False, repr=False)
class KruskalDetails(Details):
    """What Kruskal tells.

    Attributes
    ----------
    rejected_matches
        Matches between points of different labels.
    """

    rejected_matches: int


@register(
    "kruskal",
    summary="joins points along matches, the heaviest first, never two points of an object",
    consistent=True,
    cost="O(M log M + m log m), a loop in Python",
    reference="Lindenberger, Sarlin, Larsson, Pollefeys: Pixel-perfect structure-from-motion, ICCV 2021",
    choose="when weights tell right matches from wrong ones; without weights it takes matches as they come",
    sized=False,
)
def run(
    matchings: Matchings,
    _universe: int,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Grow a forest of large total weight whose trees hold at most one point of every object.

    Matches are taken by descending weight. One that joins two tracks is accepted unless both have a
    point of the same object, which is Kruskal's algorithm for a maximum spanning forest with that
    one exception. Matches of equal weight come in an order drawn from `rng`, so that no pair of
    objects is preferred; the universe size plays no part.

    Notes
    -----
    Cycle-consistent. Greedy: a wrong match accepted early is never taken back. O(M log M + m log m)
    in time, O(m + M) in memory. Stopped by the callback it leaves what later matches would join
    apart.

    Examples
    --------
    Point 0 of object 1 can belong to one of two tracks; the heavier match decides.

    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 1],
    ...                                weights={(0, 1): [0.9], (1, 2): [0.3], (0, 2): [0.8]})
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 0, 1]
    """
    watch, report = Stopwatch(), Reporter(callback)
    with watch("order"):
        drawn = rng.permutation(matchings.n_matches)
        order = drawn[np.argsort(-matchings.match_weights[drawn], kind="stable")]
    with watch("joining"):
        track = join_in_order(
            matchings.point_objects,
            matchings.endpoints[order],
            stop=lambda done: report(Progress("matches", done, matchings.n_matches)),
        )
        labels = label_tracks(track)
    return Outcome(
        labels=labels,
        status=report.status,
        timings=watch.seconds,
        details=KruskalDetails(int(np.count_nonzero(~matchings.agreeing(labels)))),
    )
