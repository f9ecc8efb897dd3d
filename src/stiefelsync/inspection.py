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
from stiefelsync.stiefel.checks import generator
from stiefelsync.sync.method import BY_POSITIONS
from stiefelsync.sync.synchronise import synchronise
from stiefelsync.sync.tracks.details import TracksDetails

__all__ = ["MIN_CYCLES", "NEAR", "Inspection", "inspect"]

FEW_WRONG, FEW_IN_CONFLICT, FEW_OPEN = 0.0075, 0.02, 0.02
"""Shares of wrong matches, of points in conflict, and of ways of two matches without a direct one, below which the
fscore changes by less than .01."""
MAX_WAYS = 100_000
"""Ways of two matches looked at for `transitivity`."""
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
    conflict_share
        Share of the points with matches that lie in components in conflict; where there are coordinates in pixels, in
        those of `conflicts_apart`.
    transitivity
        Share of the ways of two matches, from a point over a second one to a third, whose ends are matched with each
        other, too; None where there is no such way. In a complete and consistent problem it is 1.
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
    conflict_share: float
    transitivity: float | None
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
        return self.verdict()

    @property
    def doubt(self) -> float:
        """The share of the matches that are likely wrong, by cycles or, if that is more, by positions."""
        # Without conflicts and few matches that move alone, `tracks` doubts nothing.
        by_positions = (self.alone_share or 0.0) + (self.doubtful_share or 0.0 if self.conflicts else 0.0)
        return max(self.wrong_share or 0.0, by_positions)

    def verdict(self, *, adds: bool = True) -> str:
        """Return whether synchronising is worth while, in a sentence.

        It is if it changes the matches, or the tracks that they form by themselves, by more than .01 of the fscore.

        Parameters
        ----------
        adds
            Whether matches that follow from those there are wanted. If not, as in databases of verified matches, it
            does not count that matches are incomplete.

        Examples
        --------
        >>> found = inspect(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1]))
        >>> found.verdict()
        'yes: nothing contradicts, but matches that follow are missing: 100.0 % of two steps have no direct match'
        >>> found.verdict(adds=False)
        'no: the matches are consistent'
        """
        if not self.matches:
            return "no: there are no matches, hence nothing to judge"
        missing = 1 - self.transitivity if adds and self.transitivity is not None else 0.0
        wrong = f"some {100 * self.doubt:.1f} % of the matches are wrong"
        in_conflict = (
            f"{100 * self.conflict_share:.1f} % of the matched points lie in tracks that contradict themselves"
        )
        if self.doubt >= FEW_WRONG:
            return f"yes: {wrong}; {in_conflict}" if self.conflict_share >= FEW_IN_CONFLICT else f"yes: {wrong}"
        if self.conflict_share >= FEW_IN_CONFLICT:
            return f"yes: {in_conflict}"
        if missing >= FEW_OPEN:
            open_ = f"{100 * missing:.1f} % of two steps have no direct match"
            agreed = "little contradicts" if self.conflicts else "nothing contradicts"
            return f"yes: {agreed}, but matches that follow are missing: {open_}"
        if self.conflicts or self.doubt or missing:
            return "hardly: few conflicts, few doubtful matches: the answer will hardly differ"
        return "no: the matches are consistent"


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
    apart = None if near is None else _apart(matchings, labels, near)
    in_conflict = found.n_points if apart is None else int(np.bincount(labels)[apart].sum())
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
        conflicts_apart=None if apart is None else len(apart),
        conflict_share=in_conflict / max(int(matched.sum()), 1),
        transitivity=_transitivity(matchings, generator(rng)),
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


def _transitivity(matchings: Matchings, rng: np.random.Generator) -> float | None:
    """Return the share of the ways of two matches whose ends are matched, too.

    All ways are looked at if there are no more than `MAX_WAYS`, else as many of them, drawn evenly.
    """
    # The partners of every point, one point after another.
    a, b = matchings.endpoints.T
    ends, partners = np.concatenate([a, b]), np.concatenate([b, a])
    partners = partners[np.argsort(ends, kind="stable")]
    degree = np.bincount(ends, minlength=matchings.n_points)
    start = np.cumsum(degree) - degree
    last = np.cumsum(degree * (degree - 1) // 2)
    total = int(last[-1]) if len(last) else 0
    if not total:
        return None
    drawn = np.arange(total) if total <= MAX_WAYS else np.sort(rng.integers(total, size=MAX_WAYS))
    # Ways are numbered through the points in their middle, and within a point as (1, 0), (2, 0), (2, 1), (3, 0), …
    point = np.searchsorted(last, drawn, side="right")
    within = drawn - (last[point] - degree[point] * (degree[point] - 1) // 2)
    second = np.floor((1 + np.sqrt(1 + 8.0 * within)) / 2).astype(np.int64)
    first = within - second * (second - 1) // 2
    one, other = partners[start[point] + first], partners[start[point] + second]
    key = np.minimum(one, other) * matchings.n_points + np.maximum(one, other)
    known = np.sort(np.minimum(a, b) * matchings.n_points + np.maximum(a, b))
    found = known[np.minimum(np.searchsorted(known, key), len(known) - 1)] == key
    return float(found.mean())


def _apart(matchings: Matchings, labels: NDArray[np.int64], near: float) -> NDArray[np.int64]:
    """Return the components that hold two points of one object more than `near` pixels apart, ascending."""
    assert matchings.coordinates is not None
    key = labels * matchings.n_objects + matchings.point_objects
    order = np.argsort(key, kind="stable")
    key, x = key[order], matchings.coordinates[order].astype(np.float64)
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.empty(0, dtype=np.int64)
    if not len(first):
        return np.empty(0, dtype=np.int64)
    box = np.maximum.reduceat(x, first) - np.minimum.reduceat(x, first)
    apart: NDArray[np.bool_] = np.asarray((box > near).any(axis=1))
    # Only a box that is narrow but long across its corners leaves it open whether two points are that far apart.
    stop = np.append(first[1:], len(key))
    for group in np.flatnonzero(~apart & (np.hypot(*box.T) > near)).tolist():
        inside = x[first[group] : stop[group]]
        apart[group] = (np.linalg.norm(inside[:, None] - inside, axis=2) > near).any()
    return np.asarray(np.unique(key[first[apart]] // max(matchings.n_objects, 1)))
