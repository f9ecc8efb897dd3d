"""The default preset: labels of largest expected fscore, decided from samples of the posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.decision import Samples, largest, shared
from stiefelsync.sync.likelihood.observations import observe
from stiefelsync.sync.likelihood.search import affordable, improve, search
from stiefelsync.sync.method import Callback, Details, Outcome, Reporter, Stopwatch, register
from stiefelsync.sync.methods._spectral_start import spectral_labels
from stiefelsync.sync.tracks.grow import grow_tracks

__all__ = ["AccurateDetails", "accurate"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class AccurateDetails(Details):
    """What `accurate` tells.

    Attributes
    ----------
    log_posterior
        Of matches and labels together: the mean over a few samples from the likeliest start.
    starts
        What was begun with, and how likely labels became from there.
    expected_fscore
        The fscore that samples of the posterior promise for the labels; None if there are none.
    samples
        Labels sampled from the posterior; None if the problem was too large for that, if nothing can
        contradict a match, or after an interruption.
    labels : (m,) int
        The answer that samples are compared with.
    """

    log_posterior: float
    starts: dict[str, float]
    expected_fscore: float | None = None
    samples: Samples | None = None
    labels: Ints | None = None

    def figures(self, problem: Matchings) -> dict[str, Any]:
        """Return the fscore to expect, where it is known."""
        return {} if self.expected_fscore is None else {"expected_fscore": self.expected_fscore}

    def match_confidence(self, problem: Matchings) -> NDArray[np.float64] | None:
        """Return in how many samples the ends of every match have the same label, (M,), as a share."""
        return None if self.samples is None else self.samples.share_equal(*problem.endpoints.T)

    def point_confidence(self) -> NDArray[np.float64] | None:
        """Return how often every point shares its label with the others of its track, (m,)."""
        if self.samples is None or self.labels is None:
            return None
        return self.samples.point_confidence(self.labels)


@register(
    "accurate",
    summary="samples of the posterior, by moves of points and of labels, and the labels of largest expected fscore",
    consistent=True,
    cost="O(M + m·labels near a point) per visit of all objects, some hundreds of visits",
    reference="this package; one of its starts follows Bernard, Cremers and Thunberg 2021",
    ours=True,
    choose="by default",
)
def accurate(
    matchings: Matchings,
    universe: int,
    /,
    *,
    start: Ints | None = None,
    sure: bool = True,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Return the labels of largest expected fscore.

    From each start of a recipe labels are moved at random, each move with the probability that the
    model gives it (:mod:`stiefelsync.sync.likelihood.model`), for a fixed number of visits of all
    objects. Then two chains of labels are sampled, and labels are returned whose expected fscore
    over the samples is as large as was found (:func:`stiefelsync.sync.likelihood.decision.decide`).
    The confidence of a match is the share of samples in which its ends have the same label. Where
    samples hardly differ from the likeliest labels, these are returned at once. The recipes are in
    :data:`stiefelsync.sync.likelihood.search.RECIPES`.

    Problems that are too large for samples get the tracks that matches form, or the given start,
    improved at temperature zero where a state can hold them.

    Parameters
    ----------
    start : (m,) int, optional
        Labels to begin with as well, -1 = unknown.
    sure
        Whether no more than `universe` labels may be used.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> accurate(problem, 2, rng=np.random.default_rng(0)).labels.tolist() in ([0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0])
    True
    """
    watch, report = Stopwatch(), Reporter(callback)
    tracks = partial(tracks_labels, matchings)
    if not affordable(matchings):
        with watch("tracks"):
            labels = tracks() if start is None else start
        if affordable(matchings, sampled=False):
            with watch("search"):
                state = improve(observe(matchings), labels, seed=0, most=universe if sure else None, exchange=False)
                labels = shared(state.labels)
        labels = largest(labels, universe if sure else matchings.n_points)
        return Outcome(
            labels=labels, status=report.status, timings=watch.seconds, details=AccurateDetails(float("nan"), {})
        )
    starts: dict[str, Callable[[], Ints | None]] = {
        "spectral": partial(spectral_labels, matchings, universe, rng=rng),
        "tracks": tracks,
    }
    if start is not None:
        starts["given"] = lambda: start
    with watch("search"):
        found = search(matchings, universe, sure=sure, starts=starts, rng=rng, report=report)
    details = AccurateDetails(found.log_posterior, found.starts, found.expected_fscore, found.samples, found.labels)
    return Outcome(labels=found.labels, status=report.status, timings=watch.seconds, details=details)


def tracks_labels(matchings: Matchings) -> Ints:
    """Return the labels of the tracks that matches form."""
    return np.asarray(grow_tracks(matchings).labels)
