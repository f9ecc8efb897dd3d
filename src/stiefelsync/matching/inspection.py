"""What a problem holds and how consistent it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching._canonical import Repair
from stiefelsync.matching.graph import components, conflicts
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import cycle_error

__all__ = ["FEW", "NEAR", "Inspection", "are_normalised", "inspect"]

NEAR = 10.0
"""Pixels within which structure-from-motion programs take two keypoints of one image for one."""
HALF = 0.55
"""Half the larger side of an image in OpenSfM's coordinates, with room for positions a little outside."""
FEW = 30
"""Cycles of three matches below which nothing is said about the share of wrong matches."""


@dataclass(frozen=True)
class Inspection:
    """What a problem holds and how consistent it is.

    Attributes
    ----------
    pairs, possible_pairs
        Object pairs with at least one match, and pairs in all.
    unmatched
        Points without any match.
    components
        Connected components of the points with matches; each would be one track.
    largest_component
        Points in the largest of them.
    conflicts
        Components that hold two points of one object.
    conflicts_apart
        Those of them with two such points more than 10 px apart; None without coordinates in pixels.
    cycle_error, cycle_error_uncertainty
        Share of the cycles of three matches that do not close, and its standard error where cycles were sampled; None
        where there is no such cycle.
    cycles, triplets
        How many cycles, one for each way over a third object, in how many triplets of objects that rests on.
    wrong_share
        Share of wrong matches that would explain it if errors were independent, 1 - (1 - cycle error)^(1/3); None where
        fewer than 30 cycles speak.
    repair
        What was dropped to make the matches one-to-one, if anything was.
    """

    objects: int
    points: int
    matches: int
    pairs: int
    possible_pairs: int
    unmatched: int
    components: int
    largest_component: int
    conflicts: int
    conflicts_apart: int | None
    cycle_error: float | None
    cycle_error_uncertainty: float | None
    cycles: int
    triplets: int
    wrong_share: float | None
    repair: Repair | None


def inspect(matchings: Matchings, *, rng: np.random.Generator | int | None = 0) -> Inspection:
    """Count what a problem holds and measure how consistent it is.

    Parameters
    ----------
    rng
        For the cycle error of problems so large that triplets of objects are sampled.

    Notes
    -----
    O(m log m + M) and the cost of :func:`cycle_error`. A cycle of three matches closes if all are right and, but for
    chance, only then; with independent errors of share e that is (1 - e)³ of them.

    Examples
    --------
    >>> found = inspect(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 1]))
    >>> found.components, found.conflicts, found.cycle_error, found.cycles, found.wrong_share
    (1, 1, 1.0, 2, None)
    """
    k = matchings.n_objects
    _, labels = components(matchings)
    matched = np.zeros(matchings.n_points, dtype=bool)
    matched[matchings.endpoints] = True
    sizes = np.bincount(labels[matched])
    found = conflicts(matchings, labels)
    error = cycle_error(matchings, rng=rng)
    in_pixels = matchings.coordinates is not None and not are_normalised(matchings.coordinates)
    return Inspection(
        objects=k,
        points=matchings.n_points,
        matches=matchings.n_matches,
        pairs=len(matchings.pair_objects),
        possible_pairs=k * (k - 1) // 2,
        unmatched=int((~matched).sum()),
        components=int((sizes > 0).sum()),
        largest_component=int(sizes.max(initial=0)),
        conflicts=found.count,
        conflicts_apart=_apart(matchings, labels) if in_pixels else None,
        cycle_error=error.value if error.judged else None,
        cycle_error_uncertainty=error.standard_error if error.judged else None,
        cycles=error.judged,
        triplets=error.triplets,
        wrong_share=1 - (1 - error.value) ** (1 / 3) if error.judged >= FEW else None,
        repair=matchings.repair,
    )


def are_normalised(coordinates: NDArray[Any] | None) -> bool:
    """Return whether positions, (m, 2), are OpenSfM's: the origin at the image's centre, the larger side 1.

    They are if none lies much farther than half a side from the origin and some are negative, which pixels are not.

    Examples
    --------
    >>> are_normalised(np.array([[-0.501, 0.3], [0.2, np.nan]])), are_normalised(np.array([[0.0, 0.3], [812.0, 55.0]]))
    (True, False)
    """
    if coordinates is None:
        return False
    known = coordinates[np.isfinite(coordinates)]
    return bool((np.abs(known) <= HALF).all() and (known < 0).any())


def _apart(matchings: Matchings, labels: NDArray[np.int64]) -> int:
    """Count the components that hold two points of one object more than `NEAR` pixels apart."""
    assert matchings.coordinates is not None
    key = labels * matchings.n_objects + matchings.point_objects
    order = np.argsort(key, kind="stable")
    key, x = key[order], matchings.coordinates[order].astype(np.float64)
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.empty(0, dtype=np.int64)
    if not len(first):
        return 0
    box = np.maximum.reduceat(x, first) - np.minimum.reduceat(x, first)
    apart: NDArray[np.bool_] = np.asarray((box > NEAR).any(axis=1))
    # Only a box that is narrow but long across its corners leaves it open whether two points are that far apart.
    stop = np.append(first[1:], len(key))
    for group in np.flatnonzero(~apart & (np.hypot(*box.T) > NEAR)).tolist():
        inside = x[first[group] : stop[group]]
        apart[group] = (np.linalg.norm(inside[:, None] - inside, axis=2) > NEAR).any()
    return len(np.unique(key[first[apart]] // max(matchings.n_objects, 1)))
