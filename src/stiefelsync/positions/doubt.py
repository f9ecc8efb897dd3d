"""Which matches, and which pairs of objects, deserve doubt.

Third objects and neighbours as witnesses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.need import expendable

__all__ = ["Doubt", "Witnesses", "doubt", "witnesses"]

Ints = NDArray[np.int64]
Counts = NDArray[np.int32]
Levels = NDArray[np.uint8]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

HOPELESS = 0.15
"""A pair of objects is hopeless if more than this share of what is left of it is wrong."""
MOSTLY_WRONG = 0.5
"""And if more than this share of what stays of it is, where little harm lets doubtful matches stay."""
CLEAN = 1 / 100
"""Estimated share of wrong matches among those kept, below which single ones are not doubted."""
LOSS = 0.03
"""Share of the matches kept that doubts may cost in right ones, by estimate."""
# Wrong matches that no cycle contradicts, for one that is contradicted: docs/evidence/poses.md.
_UNCAUGHT_PER_CAUGHT = 9.0
# Matches that cycles could contradict, below which their rates say nothing.
_MIN_JUDGED_MATCHES = 100
_QUANTILES_OF_SUPPORT = (0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_CELLS_TO_SORT = 4096  # of support, to sort few
# Contradictions added to those found and those expected, so that few matches say little.
_PRIOR_CONTRADICTIONS = 1.0
_MAX_MATCHES = 2**30  # matches whose ends 32 bits can count


@dataclass(frozen=True)
class Witnesses:
    """What third objects say on every match (x, y); each shape (M,) int32.

    Attributes
    ----------
    agree
        Third objects in which x and y have the same partner: triangles of matches.
    differ
        Third objects in which they have different partners.
    silent
        Third objects compared with both, in which only one of them has a partner.
    """

    agree: Counts
    differ: Counts
    silent: Counts


@dataclass(frozen=True)
class Doubt:
    """Matches and pairs of objects that deserve doubt.

    Attributes
    ----------
    matches : (M,) bool
        Matches among those kept whose odds of being wrong exceed 1 / harm, and all of hopeless
        pairs.
    odds : (M,) float64
        Odds of being wrong, infinite for matches that are not kept.
    wrong : (P,) float64
        Estimated share of wrong matches of every pair, those not kept among them.
    hopeless : (P,) bool
        Pairs of which more than `HOPELESS` are wrong even without the doubtful matches, or most of
        what stays, and which are not needed.
    """

    matches: Bools
    odds: Floats
    wrong: Floats
    hopeless: Bools


def witnesses(matchings: Matchings, kept: Bools | None = None, asked: Bools | None = None) -> Witnesses:
    """Ask for every match the third objects in which one of its points, or both, have a partner.

    Parameters
    ----------
    kept : (M,) bool, optional
        The matches that count: of others there is nothing to say, and they say nothing.
    asked : (M,) bool, optional
        The matches to ask about, all of them by default; of others there is nothing to say, either.

    Notes
    -----
    O(Σ (deg x + deg y)) over the matches (x, y).

    Examples
    --------
    Points of four objects; the match between the objects 0 and 1 closes a triangle with object 2,
    and object 3 knows only the point of object 0.

    >>> problem = Matchings.from_pairs(
    ...     {(0, 1): [[0, 0]], (0, 2): [[0, 0]], (1, 2): [[0, 0]], (0, 3): [[0, 0]], (1, 3): [[1, 1]]}, [1, 2, 1, 2]
    ... )
    >>> found = witnesses(problem)
    >>> found.agree.tolist(), found.differ.tolist(), found.silent.tolist()
    ([1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 1, 0, 0])
    """
    if matchings.n_matches >= _MAX_MATCHES:
        raise InputError(
            f"{matchings.n_matches:,} matches are more than the {_MAX_MATCHES - 1:,} that can be doubted at once"
        )
    found, every = np.zeros((3, matchings.n_matches), dtype=np.int32), np.ones(matchings.n_matches, dtype=bool)
    count, wanted = (every if which is None else np.asarray(which, dtype=bool) for which in (kept, asked))
    sizes = matchings.n_objects, matchings.n_points, len(matchings.pair_objects)
    given = matchings.pair_objects, matchings.pair_start, matchings.endpoints, count, wanted
    call("ask_witnesses", *sizes, *map(np.ascontiguousarray, given), *found)
    return Witnesses(*found)


def doubt(matchings: Matchings, kept: Bools, support: Floats, *, harm: float = 1.0, estimates: bool = True) -> Doubt:
    """Estimate how likely every match is wrong: how often those like it contradict others.

    Wrong matches are found by contradiction, and only some of them: a wrong match into a point that
    no other match knows contradicts nothing. Let ρ(s) be the odds of contradiction among matches of
    support s between points with other matches, made to fall with s, and ρ(∞) those of
    well-supported matches, which are right. Let λ be how many times more of a pair's matches are
    contradicted than their supports make expect. For u wrong matches left per one found, and T
    third objects that confirm a match, each of which halves them, its odds of being wrong are::

        u · (ρ(s) - ρ(∞)) · λ / 2^T

    Matches with odds above ``1 / harm`` are doubtful. Those that no third object could confirm are
    left alone: they contradict nothing and mappers ignore them. Where few wrong ones are left, only
    hopeless pairs are doubted: those of which too many matches are wrong even without the doubtful
    ones, or most of those that stay. A pair without which objects fall apart or lose most of their
    matched points is hopeless only if most of it is wrong
    (:func:`~stiefelsync.positions.need.expendable`). Of the right matches doubts cost `LOSS` at
    most, by these odds: whole pairs go first, the worst before the others, then single matches, the
    likeliest to be wrong first.

    Parameters
    ----------
    matchings
        All matches.
    kept : (M,) bool
        Those that agree with tracks, or with whatever else was made of them, up to copies of
        keypoints (:func:`~stiefelsync.positions.same_keypoint.lead_to_copies`): others count as
        mistakes.
    support : (M,) float64
        Of :func:`~stiefelsync.positions.neighbours.fitting_support`; NaN where unknown: such
        matches are not doubted.
    harm
        How many right matches it is worth losing to remove a wrong one.
    estimates
        Whether odds and shares are wanted, too. Else third objects are asked only where what they
        say decides on doubts, which are the same; T counts as 0 elsewhere, and odds and shares are
        upper bounds.

    Notes
    -----
    Cost of :func:`witnesses`, who are never asked where nothing would be doubted whatever they
    said. With fewer than 100 matches that cycles could contradict nothing is doubted.

    Examples
    --------
    Four objects that see the same 40 points; the matches of ten other points have little support,
    and most of them were contradicted.

    >>> right = np.tile(np.append(np.arange(40), np.full(10, -1)), 4)
    >>> problem = Matchings.from_labels(right, [50] * 4)
    >>> wrong = {pair: np.vstack([block, [[t, t] for t in range(40, 50)]]) for pair, block in problem.pairs().items()}
    >>> problem = Matchings.from_pairs({**wrong, (2, 3): problem.pair(2, 3)}, [50] * 4)
    >>> few = problem.indices[:, 0] >= 40
    >>> kept = ~few | (problem.match_pairs == 0)
    >>> found = doubt(problem, kept, np.where(few, 0.1, 0.8))
    >>> int(found.matches.sum()), found.wrong.round(2).tolist()
    (0, [0.0, 0.2, 0.2, 0.2, 0.2, 0.0])
    """
    if not 0 < harm < np.inf:
        raise InputError(f"the harm of a wrong match is {harm}; it must be a positive number")
    kept, support = np.ascontiguousarray(kept, np.bool_), np.ascontiguousarray(support, np.float64)
    rates, judged = _rates(matchings, kept, support), np.zeros(len(kept), dtype=bool)
    odds = np.where(kept, 0.0, np.inf) if rates is None else _odds(matchings, kept, *rates)
    # Third objects only lower odds. So the costly question is put only where the answer can decide:
    # first to what may be doubtful, then to all others if it is open whether enough wrong matches
    # are left to doubt single ones.
    if (decisive := _decisive(matchings, kept, odds, harm)) is not None:
        which = odds > 0 if estimates else decisive
        judged = _ask(matchings, kept, support, odds, which)
        least, most = (_wrong(matchings, odds, some)[0].sum() for some in (kept & which, kept))
        clean = CLEAN * np.count_nonzero(kept)
        if least < clean <= most:  # those not asked decide
            judged |= _ask(matchings, kept, support, odds, ~which & (odds > 0))
            most = _wrong(matchings, odds, kept)[0].sum()
        judged &= most >= clean
    # A pair is judged by what would be left of it without the matches that are more likely wrong
    # than right.
    left = _mean(matchings, odds, kept & ~(judged & (odds > 1)))
    # With little harm, as on grids, these stay all the same: then so does most of a bad pair.
    doubtful = judged & kept & (odds * harm > 1)
    staying = _mean(matchings, odds, kept & ~doubtful)
    worse = np.where(staying > MOSTLY_WRONG, staying, left)
    hopeless = expendable(matchings, kept, worse, worse > HOPELESS)
    doubtful, hopeless = _affordable(matchings, odds, kept, doubtful, worse, hopeless)
    return Doubt(doubtful, odds, _mean(matchings, odds, np.ones_like(kept)), hopeless)


def _affordable(
    matchings: Matchings, odds: Floats, kept: Bools, doubtful: Bools, wrong: Floats, hopeless: Bools
) -> tuple[Bools, Bools]:
    """Return which matches to doubt and which pairs as a whole, so that few right ones are lost.

    (M,) and (P,).
    """
    budget = LOSS * np.count_nonzero(kept)
    # Whole pairs first: the programs that reconstruct scenes suffer more from them than from single
    # matches.
    lost, counts = _wrong(matchings, odds, kept)
    worst = np.flatnonzero(hopeless)[np.argsort(-wrong[hopeless], kind="stable")]
    spent = np.cumsum((counts - lost)[worst])
    whole = np.zeros_like(hopeless)
    whole[worst[spent <= budget]] = True
    found = kept & whole[matchings.match_pairs]
    # What is left of the budget goes to single matches, the likeliest to be wrong first.
    single = np.flatnonzero(doubtful & ~found)
    single = single[np.argsort(-odds[single], kind="stable")]
    budget -= float(spent[spent <= budget].max(initial=0.0))
    found[single[np.cumsum(1 / (1 + odds[single])) <= budget]] = True
    return found, whole


def _decisive(matchings: Matchings, kept: Bools, odds: Floats, harm: float) -> Bools | None:
    """Return which matches to ask third objects about, who only lower these odds.

    None if nothing could be doubted.

    They are those that might be doubtful, all of pairs that might be hopeless, and those of most
    weight for whether few wrong ones are left.
    """
    wrong, counts = _wrong(matchings, odds, kept)
    hopeless = wrong > HOPELESS * counts
    if not (counts.any() and wrong.sum() >= CLEAN * counts.sum()) and not hopeless.any():
        return None
    pairs = np.repeat(hopeless, np.diff(matchings.pair_start))
    return np.asarray((odds > 0) & (pairs | (odds > min(CLEAN, 1 / harm))))


def _ask(matchings: Matchings, kept: Bools, support: Floats, odds: Floats, which: Bools) -> Bools:
    """Lower the odds of some matches by the third objects that confirm them.

    Return which of them any could, (M,).
    """
    # Beyond a thousand that is zero, and infinite odds times zero.
    asked, lower = witnesses(matchings, kept, which), 0.5 ** np.arange(1001)
    call("lower_odds", len(odds), asked.agree, 1000, lower, odds)
    return np.asarray(kept & np.isfinite(support) & (asked.agree | asked.differ | asked.silent).astype(bool))


def _mean(matchings: Matchings, odds: Floats, which: Bools) -> Floats:
    """Return the share of wrong ones among some of every pair's matches, 0 without any; (P,)."""
    wrong, counts = _wrong(matchings, odds, which)
    return wrong / np.maximum(counts, 1)


def _wrong(matchings: Matchings, odds: Floats, which: Bools) -> tuple[Floats, Ints]:
    """Return how many of some of every pair's matches are wrong, and how many they are; (P,)."""
    P = len(matchings.pair_objects)
    sums, counts = np.zeros(P), np.zeros(P, dtype=np.int64)
    call("sum_probabilities", P, matchings.pair_start, odds, which, sums, counts)
    return sums, counts


def _odds(matchings: Matchings, kept: Bools, level: Levels, rates: Floats, surprise: Floats) -> Floats:
    """Return the odds of being wrong if no third object speaks, infinite if not kept; (M,)."""
    odds = np.empty(len(kept))
    left = _UNCAUGHT_PER_CAUGHT * rates
    call("spread_odds", len(surprise), matchings.pair_start, level, left, surprise, kept, odds)
    return odds


def _rates(matchings: Matchings, kept: Bools, support: Floats) -> tuple[Levels, Floats, Floats] | None:
    """Return the level of every match's support, (M,), ρ(s) - ρ(∞) of every level, and λ, (P,).

    None if too few speak.

    The last level but one is that of no support at all, the last that of matches whose support is
    unknown.
    """
    speak = _others(matchings, kept)
    speak &= np.isfinite(support) & (support > 0)
    if np.count_nonzero(speak & kept) < _MIN_JUDGED_MATCHES:
        return None
    # Levels are quantiles, finer where support is small: most wrong matches are there.
    borders = np.unique(_quantiles(support.compress(speak & kept)))
    n = len(borders) + 1
    level, counts = _graded(support, borders, speak, kept)
    # ρ(s) − ρ(∞): well-supported matches are taken for right, so their rate is that of
    # contradictions by others.
    odds = _contradicted(counts[:n, 1, 1], counts[:n, 1].sum(axis=1))
    odds = np.maximum(odds / (1 - odds) - odds[-1] / (1 - odds[-1]), 0)
    # λ compares what a pair has lost with what the supports of its matches make expect, over all
    # pairs alike.
    expected = _contradicted(counts[:n, :, 1].sum(axis=1), counts[:n].sum(axis=(1, 2)))
    still = counts[n, 0, 1] / max(counts[n, 0].sum(), 1)
    due = _due(matchings, level, np.append(expected, [still, 0.0]))
    lost = np.add.reduceat((level <= n) & ~kept, matchings.pair_start[:-1], dtype=np.int64)
    surprise = (lost + _PRIOR_CONTRADICTIONS) / (due + _PRIOR_CONTRADICTIONS)
    return level, np.append(odds, [np.inf, 0.0]), surprise


def _due(matchings: Matchings, level: Levels, expected: Floats) -> Floats:
    """Return the sums of what is expected of the levels of every pair's matches, shape (P,)."""
    P = len(matchings.pair_objects)
    sums = np.zeros(P)
    call("sum_levels", P, matchings.pair_start, level, expected, sums)
    return sums


def _graded(support: Floats, borders: Floats, speak: Bools, kept: Bools) -> tuple[Levels, Ints]:
    """Return the levels of support, (M,), and how many matches there are of each.

    Levels lie between n - 1 borders; n is that of no support, n + 1 that of an unknown one.

    These counts, (n + 2, 2, 2), are by level, whether a match speaks, and whether it is not kept.
    """
    M, n = len(support), len(borders) + 1
    level, counts = np.zeros(M, dtype=np.uint8), np.zeros((n + 2, 2, 2), dtype=np.int64)
    call("grade_matches", M, support, n - 1, borders, speak, kept, level, counts)
    return level, counts


def _quantiles(support: Floats) -> Floats:
    """Return `_QUANTILES_OF_SUPPORT` as ``np.quantile`` does.

    Only those near one are sorted, in cells of [0, 1].
    """
    place = np.array(_QUANTILES_OF_SUPPORT) * (len(support) - 1)
    low = place.astype(np.int64)
    cell = (np.minimum(support, 1) * _CELLS_TO_SORT).astype(np.int16)
    count = np.bincount(cell, minlength=_CELLS_TO_SORT + 1)
    ranks = np.stack([low, low + 1])
    cells = np.searchsorted(np.cumsum(count), ranks, side="right")
    near = np.isin(np.arange(_CELLS_TO_SORT + 1), cells)
    some = np.sort(support.compress(near.take(cell)))
    a, b = some[ranks - np.cumsum(np.where(near, 0, count))[cells]]
    rest = place - low
    return np.asarray(a + (b - a) * rest)


def _others(matchings: Matchings, kept: Bools) -> Bools:
    """Return which matches join two points that both have other matches kept; shape (M,)."""
    others, degree = np.empty(len(kept), dtype=bool), np.zeros(matchings.n_points, dtype=np.int32)
    call("have_others", len(kept), matchings.endpoints, kept, degree, others)
    return others


def _contradicted(lost: Ints, all_: Ints) -> Floats:
    """Return the share of matches of every level that are lost, made to fall from level to level.

    All shape (n,).

    Neighbouring levels that rise are pooled, which is isotonic regression.
    """
    shares: list[list[float]] = []
    for one, of in zip(lost.tolist(), all_.tolist(), strict=True):
        shares.append([float(one), float(of) + 1e-9, 1])
        while len(shares) > 1 and shares[-2][0] * shares[-1][1] <= shares[-1][0] * shares[-2][1]:
            last = shares.pop()
            shares[-1] = [a + b for a, b in zip(shares[-1], last, strict=True)]
    return np.repeat([min(one / of, 0.99) for one, of, _ in shares], [int(count) for *_, count in shares])
