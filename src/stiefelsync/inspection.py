"""What a problem holds and how consistent it is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync._html import facts
from stiefelsync.matching._canonical import Repair
from stiefelsync.matching.graph import components, conflicts
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import cycle_error
from stiefelsync.positions.grid import resolution
from stiefelsync.positions.units import NEAR, in_pixels
from stiefelsync.sync.method import BY_POSITIONS
from stiefelsync.sync.synchronise import synchronise
from stiefelsync.sync.tracks.details import TracksDetails

__all__ = ["MIN_CYCLES", "NEAR", "Inspection", "inspect"]

FEW_CONFLICTS, FEW_DOUBTFUL = 0.01, 0.015
"""Shares of components in conflict and of doubtful matches below which reconstructions hardly change."""
MIN_CYCLES = 30
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
        Those of them with two such points more than `near` pixels apart; None without coordinates in pixels.
    cycle_error, cycle_error_uncertainty
        Share of the cycles of three matches that do not close, and its standard error where cycles were sampled; None
        where there is no such cycle.
    cycles, triplets
        How many cycles, one for each way over a third object, in how many triplets of objects that rests on.
    wrong_share
        Share of wrong matches that would explain it if errors were independent, 1 - (1 - cycle error)^(1/3); None where
        fewer than 30 cycles speak.
    near
        The distance behind `conflicts_apart`: 10 px, or one and a half cells of a coarser grid that positions lie on.
    alone_share, doubtful_share
        Share of the matches that method `tracks` removes because they move with none of their neighbours, and of those
        that it removes because they contradict its tracks or are doubtful; None without positions, or where neighbours
        do not move alike. Matches that lead to another copy of a keypoint count for neither.
    hopeless_pairs
        Pairs of objects that it doubts as a whole; None as above.
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
    near: float | None
    alone_share: float | None
    doubtful_share: float | None
    hopeless_pairs: int | None
    repair: Repair | None

    def _told(self) -> dict[str, Any]:
        """Return what is known."""
        known = {at.name: getattr(self, at.name) for at in fields(self)}
        return {name: value for name, value in known.items() if value is not None}

    def __repr__(self) -> str:
        return f"Inspection({', '.join(f'{name}={value!r}' for name, value in self._told().items())})"

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return facts("Inspection", {name.replace("_", " "): value for name, value in self._told().items()})

    @property
    def worth(self) -> str:
        """Whether synchronising is worth while, in a sentence."""
        if not self.matches:
            return "no: there are no matches, hence nothing to judge"
        apart = self.conflicts if self.conflicts_apart is None else self.conflicts_apart
        # Without conflicts and few matches that move alone, `tracks` doubts nothing.
        doubtful = (self.alone_share or 0.0) + (self.doubtful_share or 0.0 if self.conflicts else 0.0)
        if not self.conflicts and doubtful < FEW_DOUBTFUL:
            return "no: the matches are consistent"
        if apart < FEW_CONFLICTS * self.components and doubtful < FEW_DOUBTFUL:
            return "hardly: few conflicts, few doubtful matches: the answer will hardly differ"
        return "yes: conflicts or doubtful matches enough to matter"


@typed
def inspect(matchings: Matchings, *, rng: np.random.Generator | int | None = 0) -> Inspection:
    """Count what a problem holds and measure how consistent it is.

    Parameters
    ----------
    rng
        For the cycle error of problems so large that triplets of objects are sampled.

    Notes
    -----
    O(m log m + M) and the cost of :func:`cycle_error` and, with positions, of the method `tracks`. A cycle of
    three matches closes if all are right and, but for chance, only then; with independent errors of share e that is
    (1 - e)³ of them.

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
    near, (alone, doubtful, hopeless) = _near(matchings), _doubts(matchings)
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
        conflicts_apart=None if near is None else _apart(matchings, labels, near),
        cycle_error=error.value if error.judged else None,
        cycle_error_uncertainty=error.standard_error if error.judged else None,
        cycles=error.judged,
        triplets=error.triplets,
        wrong_share=1 - (1 - error.value) ** (1 / 3) if error.judged >= MIN_CYCLES else None,
        near=near,
        alone_share=alone,
        doubtful_share=doubtful,
        hopeless_pairs=hopeless,
        repair=matchings.repair,
    )


def _near(matchings: Matchings) -> float | None:
    """Return how many pixels apart two points of one object may be that are taken for one; None if not in pixels."""
    if matchings.coordinates is None or not in_pixels(matchings.coordinates):
        return None
    cells = resolution(matchings.coordinates, matchings.sizes)
    return max(NEAR, 1.5 * float(np.median(cells)) if len(cells) else 0.0)


def _doubts(matchings: Matchings) -> tuple[float | None, float | None, int | None]:
    """Return the shares of matches that move alone and of doubtful ones, and the number of hopeless pairs.

    All of it is what :func:`~stiefelsync.sync.methods.tracks.tracks` finds, the method that looks at positions, so that
    the figures are those of the answer.
    """
    if matchings.coordinates is None or not matchings.n_matches:
        return None, None, None
    details = synchronise(matchings, method=BY_POSITIONS).outcome.details
    assert isinstance(details, TracksDetails)
    if not details.by_positions:
        return None, None, None
    found, n = details.matches_by_rule, matchings.n_matches
    return found.unsupported / n, (found.removed + found.doubtful) / n, len(details.hopeless)


def _apart(matchings: Matchings, labels: NDArray[np.int64], near: float) -> int:
    """Count the components that hold two points of one object more than `near` pixels apart."""
    assert matchings.coordinates is not None
    key = labels * matchings.n_objects + matchings.point_objects
    order = np.argsort(key, kind="stable")
    key, x = key[order], matchings.coordinates[order].astype(np.float64)
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.empty(0, dtype=np.int64)
    if not len(first):
        return 0
    box = np.maximum.reduceat(x, first) - np.minimum.reduceat(x, first)
    apart: NDArray[np.bool_] = np.asarray((box > near).any(axis=1))
    # Only a box that is narrow but long across its corners leaves it open whether two points are that far apart.
    stop = np.append(first[1:], len(key))
    for group in np.flatnonzero(~apart & (np.hypot(*box.T) > near)).tolist():
        inside = x[first[group] : stop[group]]
        apart[group] = (np.linalg.norm(inside[:, None] - inside, axis=2) > near).any()
    return len(np.unique(key[first[apart]] // max(matchings.n_objects, 1)))
