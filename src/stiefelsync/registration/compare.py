"""From the footprints of several days to the probabilities that two of them are one cell."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import ConvergenceWarning, InputError, counted
from stiefelsync.registration.align import Alignment, Views, align, chained
from stiefelsync.registration.candidates import Candidates
from stiefelsync.registration.mixture import Sameness, fit_sameness
from stiefelsync.registration.session import Session
from stiefelsync.registration.similarity import Near, similarities

__all__ = ["Compared", "compare_sessions"]

LEAST = 0.01  # pairs less probable than this are forgotten


@dataclass(frozen=True, eq=False)
class Compared:
    """What was found out about the cells of several sessions.

    Attributes
    ----------
    sessions
        Those that were compared.
    alignments : dict of (i, j) to Alignment
        How session j is laid over session i, i < j, for all that were compared.
    near : dict of (i, j) to Near
        Cells of the two that lie near each other, with their similarity.
    sameness
        The probability of being one cell as a function of similarity.
    candidates
        Near pairs and this probability.
    reach
        How far apart cells were compared, in pixels.
    """

    sessions: tuple[Session, ...]
    alignments: dict[tuple[int, int], Alignment]
    near: dict[tuple[int, int], Near]
    sameness: Sameness
    candidates: Candidates
    reach: float

    @property
    def failed(self) -> list[tuple[int, int]]:
        """Pairs of sessions that could not be laid over each other; no matches are taken from these."""
        return [pair for pair, found in self.alignments.items() if found.failed]


@typed
def compare_sessions(
    sessions: Sequence[Session],
    *,
    max_distance: float | None = None,
    window: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Compared:
    """Lay all sessions over each other in pairs, and say how probably near cells are the same.

    Parameters
    ----------
    sessions
        Two or more, of one plane.
    max_distance
        Centroids farther apart than this many pixels are not compared; the median diameter of a cell by default.
    window
        Compare only sessions at most this many apart; all by default, which is better: a cell that is silent for some
        days is found again.
    progress
        Called with the number of pairs done and the number of all; a true answer is ignored.

    Notes
    -----
    Per pair 25 transforms of an image reduced to 128 pixels, nearest neighbours in O(n log n), and products of sparse
    footprints. Turns by up to 12° are searched first, and all others where none of these fits; then the way by other
    sessions is tried. A pair whose cells meet hardly more often than by chance gives a warning and no matches.

    Examples
    --------
    >>> from stiefelsync import datasets
    >>> days, truth = datasets.sessions(3, 60, difficulty="easy", shape=(200, 200), rng=0)
    >>> found = compare_sessions(days)
    >>> found.failed, found.candidates.matchings(0.3).n_objects
    ([], 3)
    """
    sessions = tuple(sessions)
    if len(sessions) < 2:
        raise InputError(f"{counted(len(sessions), 'session')} cannot be followed; name two or more")
    diameters = [s.diameter for s in sessions if len(s)]
    reach = max_distance if max_distance is not None else float(np.median(diameters)) if diameters else 1.0
    if not 0 < reach < np.inf:
        raise InputError(f"max_distance is {max_distance}; it must be a number of pixels")
    pairs = [(i, j) for j in range(len(sessions)) for i in range(j) if window is None or j - i <= window]
    views = Views(sessions)
    still = [views.still(s) for s in sessions]
    alignments = dict[tuple[int, int], Alignment]()
    turned, of = dict[bool, NDArray[np.complex64]](), -1  # the second session, near and far
    for done, (i, j) in enumerate(pairs):
        if of != j:  # pairs are sorted by their second session, so every session is turned once
            turned, of = {}, j
        alignments[i, j] = _laid(sessions[i], sessions[j], views, still[i], turned)
        if progress is not None:
            progress(done + 1, len(pairs))
    alignments |= _by_way_of_others(sessions, alignments)
    near = {(i, j): similarities(sessions[i], sessions[j], alignments[i, j], reach) for i, j in pairs}
    good = [pair for pair in pairs if not alignments[pair].failed]
    _warn_of_empty(sessions)
    _warn(sessions, [pair for pair in pairs if alignments[pair].failed])
    cosines = np.concatenate([near[pair].cosine for pair in good] or [np.empty(0)])
    sameness = fit_sameness(cosines)
    candidates = _candidates(sessions, good, near, sameness)
    return Compared(sessions, dict(sorted(alignments.items())), dict(sorted(near.items())), sameness, candidates, reach)


def _laid(
    first: Session, second: Session, views: Views, still: NDArray[np.complex64], turned: dict[bool, NDArray[Any]]
) -> Alignment:
    """Return how the second session lies over the first: by small angles, as it is, or else by any angle."""
    best: Alignment | None = None
    for way in ("near", "as it is", "far"):
        if way == "as it is":
            begin = np.eye(2, 3)
        else:
            far = way == "far"
            if far not in turned:
                turned[far] = views.turned(second, far=far)
            begin = views.search(still, turned[far], far=far)
        found = align(first, second, begin)
        if best is None or found.luck < best.luck:
            best = found
        if not best.failed:
            break
    assert best is not None
    return best


def _by_way_of_others(
    sessions: Sequence[Session], alignments: Mapping[tuple[int, int], Alignment]
) -> dict[tuple[int, int], Alignment]:
    """Return better alignments of pairs that failed, begun at what the good ones of other pairs come to."""
    better, maps = dict[tuple[int, int], Alignment](), dict[int, dict[int, NDArray[np.float64]]]()
    for (i, j), found in alignments.items():
        if not found.failed:
            continue
        if i not in maps:
            maps[i] = chained(alignments, i)
        if j in maps[i]:
            begin = maps[i][j]
            other = align(sessions[i], sessions[j], begin, expected=begin)
            if other.luck < found.luck:
                better[i, j] = other
    return better


def _candidates(
    sessions: Sequence[Session],
    pairs: list[tuple[int, int]],
    near: dict[tuple[int, int], Near],
    sameness: Sameness,
) -> Candidates:
    sizes = np.array([len(s) for s in sessions])
    offsets = np.cumsum(sizes) - sizes
    ends, chances = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    for i, j in sorted(pairs):
        found = near[i, j]
        p = sameness(found.cosine)
        kept = p > LEAST
        ends.append(np.stack([found.first[kept] + offsets[i], found.second[kept] + offsets[j]], axis=1))
        chances.append(p[kept])
    return Candidates(sizes, np.concatenate(ends), np.concatenate(chances), tuple(s.name for s in sessions))


def _warn_of_empty(sessions: Sequence[Session]) -> None:
    empty = [s for s in sessions if not s.footprints.nnz]
    if empty:
        named = [
            repr(s.name) + (f" (none of its {counted(s.total, 'detection')} was accepted)" if s.total > len(s) else "")
            for s in empty
        ]
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        warnings.warn(f"there are no cells in {', '.join(named[:3])}{more}", ConvergenceWarning, stacklevel=4)


def _warn(sessions: Sequence[Session], failed: list[tuple[int, int]]) -> None:
    if failed:
        i, j = failed[0]
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        warnings.warn(
            f"sessions {sessions[i].name!r} and {sessions[j].name!r}{more} could not be laid over each other: their "
            "cells meet hardly more often than by chance; are they of one field of view? "
            "No matches were taken from them",
            ConvergenceWarning,
            stacklevel=4,
        )
