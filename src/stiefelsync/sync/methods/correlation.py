"""Correlation clustering of the log-odds of scores, for records of sources that may hold duplicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError, unknown_name
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.methods._contraction import clusters, total_value
from stiefelsync.sync.methods._exclusive import exclusive_clusters
from stiefelsync.sync.options import option
from stiefelsync.sync.scores import (
    MISSING,
    OFFSET,
    are_probabilities,
    log_odds,
    match_values,
    move_confidence,
)

__all__ = ["CorrelationDetails", "CorrelationOptions", "run"]

# Where sources are free of duplicates a record that nobody else claims is likelier to be of its
# only candidate: pairs of probability .15 may join. On simulated records .1 to .2 were as good.
UNCLAIMED = 1.25
# How sure a record is of its place per unit of what the best other one would lose; fitted on the
# same records, where 1.2 to 1.3 was best in every setting.
SURENESS = 1.2
UNSEEN = -0.3  # of records alone six in ten were right, whatever their scores


@dataclass(frozen=True)
class CorrelationOptions:
    """Options of method "correlation"."""

    missing: float = option(
        MISSING, "value, at most 0, of two points in one cluster that no match joins, in units of log-odds."
    )
    offset: float = option(
        OFFSET, "added to the log-odds of every probability: the larger, the more pairs are taken for the same."
    )
    duplicate_free: Any = option(
        None,
        "names of the sources, with commas between, that hold everything once, so that none of their records meet; "
        "by default as the problem says.",
    )
    sweeps: int = option(20, "most rounds of moves of single points.", least=0)


@dataclass(frozen=True, eq=False, repr=False)
class CorrelationDetails(Details):
    """What correlation clustering tells.

    Attributes
    ----------
    value
        Sum of the values of all pairs inside clusters, those without a match included.
    clusters
        Clusters of two or more points.
    moves
        Moves of single points that followed the contractions.
    missing
        Value of a pair without a match that was used.
    belonging : (m,) float64
        For every point the probability of its cluster against the next best place.
    """

    value: float
    clusters: int
    moves: int
    missing: float
    belonging: NDArray[np.float64] = field(repr=False)

    def point_confidence(self) -> NDArray[np.float64] | None:
        """Return `belonging`."""
        return self.belonging

    def figures(self, problem: Matchings) -> dict[str, Any]:
        """Return the value and the moves."""
        return {"value": self.value, "moves": self.moves}


@register(
    "correlation",
    summary="clusters of large log-odds; duplicates inside a source are allowed",
    consistent=True,
    cost="O(M log² M)",
    reference="Bansal, Blum, Chawla: Correlation clustering, Machine Learning 56, 2004; Keuper et al.: Efficient "
    "decomposition of image and mesh graphs by lifted multicuts, ICCV 2015",
    choose="where weights are probabilities and objects have one point each: records of sources that hold duplicates",
    sized=False,
    ours=True,
    options=CorrelationOptions,
)
def run(
    matchings: Matchings,
    _universe: int,
    options: CorrelationOptions,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Choose clusters so that the sum, over all pairs inside them, of w = log p / (1 - p) + `offset` is large.

    A match of weight p is a pair that is the same with probability p; a pair without a match has the value `missing`.
    Points of one object are never joined, nor records of a source that is free of duplicates; nothing else is
    forbidden, so where sources may hold duplicates every record is an object of its own. Clusters are contracted
    greedily, the two of largest mean value between them first, as long as one is positive; then single points move to
    where they are worth most until no move gains.

    Where all sources are free of duplicates, all pairs that were scored count, not only the best one-to-one choice
    among them, and what two clusters are worth to each other is between the mean and the largest value between them;
    records also change places. `missing` has no part in it, and `offset` grows by 1.25.

    Notes
    -----
    Cycle-consistent by construction. The contraction is exact in the sense that every mean is that of all pairs
    between the two clusters, those without a match included; the clustering is a local optimum, for the problem is
    NP-hard. Deterministic. O(M log² M).

    Examples
    --------
    >>> links = {(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[0, 0]]}
    >>> chain = Matchings.from_pairs(links, [1, 1, 1], weights={(0, 1): [0.9], (1, 2): [0.8], (0, 2): [0.01]})
    >>> run(chain, 1, rng=np.random.default_rng(0)).labels.tolist()
    [0, 0, 1]
    """
    watch, report = Stopwatch(), Reporter(callback)
    with watch("values"):
        values, missing = match_values(matchings, options.offset), float(options.missing)
        if not -np.inf < missing <= 0:
            raise InputError(f"option missing must be a finite number of at most 0, got {missing!r}")
        apart = _apart(matchings, options.duplicate_free)
    ends = matchings.endpoints
    clean = _all_clean(matchings, options.duplicate_free)
    if clean:
        assert matchings.records is not None
        ends, probability = matchings.records.scored or (ends, matchings.match_weights)
        values = log_odds(probability, options.offset)

    def stop(done: int, total: int) -> bool:
        return report(Progress("clustering", done, total))

    with watch("clusters"):
        if clean:
            labels, moves, gains = exclusive_clusters(
                matchings.n_points, ends, values + UNCLAIMED, apart[-1], sweeps=options.sweeps, stop=stop
            )
        else:
            labels, moves = clusters(
                matchings.n_points, ends, values, apart=apart, missing=missing, sweeps=options.sweeps, stop=stop
            )
    with watch("confidence"):
        if clean:
            # A record alone may belong to one that it was never compared with.
            alone = np.bincount(labels)[labels] == 1
            gains = np.where(alone, np.maximum(gains, UNSEEN), gains)
            belonging = 1 / (1 + np.exp(np.clip(SURENESS * gains, -700, 700)))
        else:
            belonging = move_confidence(ends, values, labels, missing)
        value = total_value(ends, values, labels, missing)
    many = int((np.bincount(labels) > 1).sum())
    details = CorrelationDetails(value, many, moves, missing, belonging)
    return Outcome(labels=labels, status=report.status, n_iter=moves, timings=watch.seconds, details=details)


def _all_clean(matchings: Matchings, duplicate_free: str | Iterable[str] | None) -> bool:
    """Return whether all sources hold everything once, and scores are probabilities."""
    records = matchings.records
    return (
        duplicate_free is None
        and records is not None
        and len(records.sources) > 1
        and bool(records.duplicate_free.all())
        and are_probabilities(matchings)
    )


def _apart(matchings: Matchings, duplicate_free: str | Iterable[str] | None) -> list[NDArray[np.int64]]:
    """Return arrays, (m,), in which equal numbers of at least 0 mark points that must not meet."""
    apart = []
    if int(matchings.sizes.max(initial=0)) > 1:
        apart.append(matchings.point_objects.astype(np.int64))
    records = matchings.records
    if duplicate_free is None:
        return apart if records is None or not records.duplicate_free.any() else [*apart, records.apart]
    if records is None:
        raise InputError("duplicate_free names sources of records, and this problem has none; leave it out")
    listed = duplicate_free.split(",") if isinstance(duplicate_free, str) else list(duplicate_free)
    clean = [str(name).strip() for name in listed if str(name).strip()]
    for name in clean:
        if name not in records.sources:
            raise unknown_name("source", name, records.sources)
    numbers = np.array([name in clean for name in records.sources])[records.source]
    return [*apart, np.where(numbers, records.source, -1)]
