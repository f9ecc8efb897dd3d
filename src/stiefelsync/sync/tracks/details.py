"""By which rule the points of tracks were placed, and what became of the matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import counted
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Details

__all__ = ["MatchesByRule", "TracksDetails", "account"]

_MAX_NAMES = 5  # pairs named in one line; all of them are among the figures


@dataclass(frozen=True)
class MatchesByRule:
    """How many matches met which fate; together these are all matches.

    Attributes
    ----------
    consistent
        In components without a conflict, hence kept.
    kept
        Of the other components, those inside tracks.
    removed
        Those between tracks.
    unsupported
        Not kept because they move with none of their neighbours.
    doubtful
        Not kept because third objects or neighbours speak against them.
    copies
        Not kept because a track holds one point of an object, and they lead to another copy of the
        same keypoint, found twice or in the next cell of a grid.
    scored
        Not kept because they belong to pairs of objects that scores speak against.
    """

    consistent: int
    kept: int
    removed: int
    unsupported: int = 0
    doubtful: int = 0
    copies: int = 0
    scored: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class TracksDetails(Details):
    """What `tracks` tells.

    Attributes
    ----------
    points_by_rule
        How many points were placed by which of ``RULES``, lay in *consistent* components, found
        their track by *joining*, or stayed *unmatched*.
    matches_by_rule
        What became of the matches.
    consistent_tracks, repaired_tracks
        Tracks that were components without a conflict, and all others.
    joins
        Tracks joined although a conflict kept them apart.
    wrong
        Share of all matches that contradict the tracks.
    hopeless
        Pairs of objects so many matches of which are wrong that none is kept.
    by_positions
        Whether matches were judged by their neighbours: positions are known, and neighbours move
        alike.
    """

    points_by_rule: Mapping[str, int]
    matches_by_rule: MatchesByRule
    consistent_tracks: int
    repaired_tracks: int
    joins: int
    wrong: float
    hopeless: tuple[tuple[int, int], ...] = ()
    by_positions: bool = False

    def with_left_out(self, gone: int, kept: int) -> TracksDetails:
        """Return what is told of a problem with further matches, `gone` of them between tracks, `kept` inside."""
        rule, judged = self.matches_by_rule, sum(asdict(self.matches_by_rule).values())
        wrong = (self.wrong * judged + gone) / max(judged + gone + kept, 1)
        return replace(self, matches_by_rule=replace(rule, scored=gone, kept=rule.kept + kept), wrong=wrong)

    def figures(self, problem: Matchings) -> dict[str, Any]:
        """Return numbers by rule, hopeless pairs by name, and all of it in a line under "rules".

        Examples
        --------
        >>> found = TracksDetails({"consistent": 1200, "squares": 0}, MatchesByRule(5000, 0, 10, 3), 400, 0, 0, 0.01)
        >>> found.figures(Matchings.from_labels([0, 0], [1, 1]))["rules"].split("; ")[0]
        'points: 1,200 where no matches contradict each other, 0 in no track'
        """
        called = problem.names or [str(i) for i in range(problem.n_objects)]
        pairs = [[called[i], called[j]] for i, j in self.hopeless]
        points, matches = dict(self.points_by_rule), self.matches_by_rule
        alike, nowhere = points.pop("consistent", 0), points.pop("unmatched", 0)
        rules = ", ".join(f"{rule} {count:,}" for rule, count in points.items() if count)
        placed = f"{sum(points.values()):,} where some do, by rule ({rules}), " if rules else ""
        said = [f"points: {alike:,} where no matches contradict each other, {placed}{nowhere:,} in no track"]
        reasons = {
            "contradicting the tracks": matches.removed,
            "to another copy of a keypoint": matches.copies,
            "moving unlike their neighbours": matches.unsupported,
            "doubtful": matches.doubtful,
            "of pairs that scores speak against": matches.scored,
        }
        if any(reasons.values()):
            said.append("matches removed: " + ", ".join(f"{n:,} {why}" for why, n in reasons.items() if n))
        if pairs:
            shown = ", ".join(f"{a}–{b}" for a, b in pairs[:_MAX_NAMES]) + (" …" if len(pairs) > _MAX_NAMES else "")
            said.append(f"{counted(len(pairs), 'pair')} doubtful as a whole: {shown}")
        return {
            "points_by_rule": dict(self.points_by_rule),
            "matches_by_rule": asdict(self.matches_by_rule),
            **({"hopeless_pairs": pairs} if pairs else {}),
            "rules": "; ".join(said),
        }


def account(
    matchings: Matchings,
    labels: NDArray[np.int64],
    conflicted: NDArray[np.bool_],
    rule_of: NDArray[np.int8],
    rules: Iterable[str],
    joins: int,
) -> TracksDetails:
    """Count how many points, matches and tracks were decided by which rule.

    Parameters
    ----------
    labels : (m,) int64
        Track of each point, -1 for none.
    conflicted : (m,) bool
        Whether its component has two points of an object.
    rule_of : (m,) int8
        Place in `rules` of the one by which it found its track, -1 for none of them.
    """
    matched, repaired = labels >= 0, conflicted[matchings.endpoints[:, 0]]
    kept = matchings.agreeing(labels)
    removed = int((~kept).sum())
    mended = np.zeros(int(labels.max(initial=-1)) + 1, dtype=bool)
    mended[labels[matched & conflicted]] = True
    names = list(rules)
    placed = np.bincount(rule_of[matched & conflicted] + 1, minlength=len(names) + 1).tolist()
    return TracksDetails(
        points_by_rule={
            "consistent": int((matched & ~conflicted).sum()),
            **dict(zip(names, placed[1:], strict=True)),
            "joining": placed[0],
            "unmatched": int((~matched).sum()),
        },
        matches_by_rule=MatchesByRule(int((~repaired).sum()), int((repaired & kept).sum()), removed),
        consistent_tracks=int((~mended).sum()),
        repaired_tracks=int(mended.sum()),
        joins=joins,
        wrong=removed / max(matchings.n_matches, 1),
    )
