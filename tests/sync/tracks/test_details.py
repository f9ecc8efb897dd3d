"""How many points, matches and tracks were decided by which rule, counted one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stiefelsync import Matchings
from stiefelsync.sync.tracks.details import MatchesByRule, TracksDetails, account

FOUND = TracksDetails({"consistent": 5, "squares": 0}, MatchesByRule(9, 2, 1, 3, 4), 2, 1, 0, 0.1)
PROBLEM = Matchings.from_labels([0, 0, 0], [1, 1, 1], names=["left", "middle", "right"])


@pytest.mark.parametrize("seed", range(20))
def test_account_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Matchings.from_labels(rng.permuted(np.tile(np.arange(-1, 3), (4, 1)), axis=1).ravel(), [4] * 4)
    rules = ["triangles", "squares", "heaviest first"]
    labels = rng.permuted(np.tile(np.arange(-1, 3), (4, 1)), axis=1).ravel()
    conflicted, rule_of = rng.random(16) < 0.5, rng.integers(-1, 3, size=16).astype(np.int8)
    found = account(problem, labels, conflicted, rule_of, rules, 7)
    placed = [p for p in range(16) if labels[p] >= 0]
    assert found.points_by_rule == {
        "consistent": sum(not conflicted[p] for p in placed),
        **{rule: sum(bool(conflicted[p]) and rule_of[p] == n for p in placed) for n, rule in enumerate(rules)},
        "joining": sum(bool(conflicted[p]) and rule_of[p] == -1 for p in placed),
        "unmatched": 16 - len(placed),
    }
    ends = problem.endpoints.tolist()
    kept = [labels[a] == labels[b] >= 0 for a, b in ends]
    assert found.matches_by_rule == MatchesByRule(
        consistent=sum(not conflicted[a] for a, _ in ends),
        kept=sum(bool(keep) and bool(conflicted[a]) for keep, (a, _) in zip(kept, ends, strict=True)),
        removed=sum(not keep for keep in kept),
    )
    repaired = {labels[p] for p in placed if conflicted[p]}
    assert (found.repaired_tracks, found.consistent_tracks) == (len(repaired), 3 - len(repaired))
    assert (found.joins, found.hopeless) == (7, ())
    assert found.wrong == sum(not keep for keep in kept) / len(ends)


def test_nothing_to_count() -> None:
    found = account(Matchings.from_pairs({}, [1, 1]), -np.ones(2, int), np.zeros(2, bool), np.zeros(2, np.int8), [], 0)
    assert (found.wrong, found.consistent_tracks, found.points_by_rule["unmatched"]) == (0.0, 0, 2)


def test_what_is_said_of_it() -> None:
    figures = FOUND.figures(PROBLEM)
    assert figures == {
        "points_by_rule": {"consistent": 5, "squares": 0},
        "matches_by_rule": {
            "consistent": 9,
            "kept": 2,
            "removed": 1,
            "unsupported": 3,
            "doubtful": 4,
            "copies": 0,
            "scored": 0,
        },
        "rules": "points: 5 where no matches contradict each other, 0 in no track; matches removed:"
        " 1 contradicting the tracks, 3 moving unlike their neighbours, 4 doubtful",
    }
    points = {"consistent": 1, "squares": 20, "triangles": 0, "joining": 1000, "unmatched": 7}
    plain = replace(FOUND, points_by_rule=points, matches_by_rule=MatchesByRule(9, 2, 0))
    assert plain.figures(PROBLEM)["rules"] == (
        "points: 1 where no matches contradict each other, 1,020 where some do, by rule (squares 20, joining 1,000),"
        " 7 in no track"
    )


def test_hopeless_pairs_are_named() -> None:
    figures = replace(FOUND, hopeless=((0, 2),)).figures(PROBLEM)
    assert figures["hopeless_pairs"] == [["left", "right"]]
    assert figures["rules"].endswith("; 1 pair doubtful as a whole: left–right")
    nameless = Matchings.from_labels(np.zeros(9, dtype=int), [1] * 9)
    six = replace(FOUND, hopeless=tuple((0, j) for j in range(1, 7))).figures(nameless)
    assert len(six["hopeless_pairs"]) == 6
    assert six["rules"].endswith("; 6 pairs doubtful as a whole: 0–1, 0–2, 0–3, 0–4, 0–5 …")
    five = replace(FOUND, hopeless=tuple((0, j) for j in range(1, 6))).figures(nameless)
    assert five["rules"].endswith("; 5 pairs doubtful as a whole: 0–1, 0–2, 0–3, 0–4, 0–5")
