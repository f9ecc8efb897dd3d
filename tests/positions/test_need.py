"""Pairs that are needed stay, unless most of them is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import Matchings
from stiefelsync.positions.doubt import LOSS, _affordable, _mean, doubt
from stiefelsync.positions.need import expendable


def chain(k: int, n: int = 40) -> Matchings:
    """Return objects of which neighbours and next neighbours match, all points in all."""
    every = np.stack([np.arange(n)] * 2, axis=1)
    return Matchings.from_pairs({(i, j): every for i in range(k) for j in range(i + 1, min(i + 3, k))}, [n] * k)


def test_a_chain_is_not_cut() -> None:
    problem = chain(8)
    between = (problem.pair_objects >= 4).sum(axis=1) == 1  # the pairs between the first four and the last
    kept = np.ones(problem.n_matches, dtype=bool)
    assert between.sum() == 3
    for share in (0.2, 0.5):
        dropped = expendable(problem, kept, np.where(between, share, 0.0), between)
        assert dropped.sum() == 2
        assert not dropped[~between].any()
    assert expendable(problem, kept, np.where(between, 0.51, 0.0), between).sum() == 3


def test_the_worst_go_first() -> None:
    problem = chain(8)
    between = (problem.pair_objects >= 4).sum(axis=1) == 1
    wrong = np.zeros(len(between))
    wrong[between] = [0.3, 0.2, 0.4]
    dropped = expendable(problem, np.ones(problem.n_matches, dtype=bool), wrong, between)
    assert wrong[dropped].tolist() == [0.3, 0.4]


def test_an_object_keeps_half_of_its_matched_points() -> None:
    # Object 2 has forty points with object 0 alone, and twenty with object 1.
    blocks = {(0, 1): np.arange(60), (0, 2): np.arange(40), (1, 2): np.arange(40, 60)}
    problem = Matchings.from_pairs({key: np.stack([at, at], axis=1) for key, at in blocks.items()}, [60] * 3)
    kept, wrong = np.ones(problem.n_matches, dtype=bool), np.array([0.0, 0.3, 0.2])
    assert expendable(problem, kept, wrong, wrong > 0).tolist() == [False, False, True]


def test_a_connection_by_few_matches_is_none() -> None:
    # Without the pair (0, 1) the two would hang together by fourteen matches with a third; by fifteen they would.
    for few, expected in ((14, False), (15, True)):
        at = np.arange(40)
        blocks = {(0, 1): at, (0, 2): at[:few], (1, 2): at[:few], (0, 3): at, (1, 4): at}
        problem = Matchings.from_pairs({key: np.stack([at, at], axis=1) for key, at in blocks.items()}, [40] * 5)
        candidates = np.arange(5) == 0
        kept = np.ones(problem.n_matches, dtype=bool)
        assert expendable(problem, kept, 0.3 * candidates, candidates)[0] == expected


def test_what_was_kept_before_counts() -> None:
    problem, candidates = chain(3), np.array([False, True, False])
    kept = problem.match_pairs != 2  # object 2 hangs on the pair (0, 2) alone
    wrong = np.where(candidates, 0.3, 0.0)
    assert not expendable(problem, kept, wrong, candidates).any()


def test_doubts_cost_few_right_matches() -> None:
    # A third of the matches contradicted at every level but the best: many look doubtful, and few of them are spent.
    rng = np.random.default_rng(0)
    problem = Matchings.from_labels(np.tile(np.arange(400), 6), [400] * 6)
    support = np.where(problem.indices[:, 0] < 200, rng.uniform(0.05, 0.3, problem.n_matches), 0.9)
    kept = (support > 0.5) | (rng.random(problem.n_matches) > 0.3)
    found = doubt(problem, kept, support, harm=1e3)
    lost = (1 / (1 + found.odds[found.matches])).sum()
    assert found.matches.sum() > 100
    assert lost <= LOSS * kept.sum()
    every = (found.odds * 1e3 > 1) & kept
    assert every.sum() > 2 * found.matches.sum()
    assert found.odds[found.matches].min() >= found.odds[every & ~found.matches].max()


def slow_expendable(problem: Matchings, kept: np.ndarray, wrong: np.ndarray, candidates: np.ndarray) -> list[bool]:
    """The rule as it is told, from nothing at every step."""
    matches = {pair: [] for pair in range(len(wrong))}
    for number, (a, b) in enumerate(problem.endpoints.tolist()):
        if kept[number]:
            matches[int(problem.match_pairs[number])].append((a, b))

    def matched(pairs: list[int], owner: int) -> int:
        points = {end for pair in pairs for ends in matches[pair] for end in ends}
        return sum(problem.point_objects[point] == owner for point in points)

    def together(pairs: list[int], i: int, j: int) -> bool:
        reached = {i}
        for _ in range(problem.n_objects):
            for pair in pairs:
                ends = set(problem.pair_objects[pair].tolist())
                if len(matches[pair]) >= 15 and ends & reached:
                    reached |= ends
        return j in reached

    every, dropped = list(matches), list[int]()
    for pair in sorted(np.flatnonzero(candidates).tolist(), key=lambda pair: (-wrong[pair], pair)):
        i, j = problem.pair_objects[pair].tolist()
        others = [other for other in every if other not in (*dropped, pair)]
        needed = any(matched(others, owner) < 0.5 * matched(every, owner) for owner in (i, j))
        needed |= len(matches[pair]) >= 15 and not together(others, i, j)
        if not needed or wrong[pair] > 0.5:
            dropped.append(pair)
    return [pair in dropped for pair in every]


@pytest.mark.parametrize("seed", range(8))
def test_what_is_expendable_is_so_the_slow_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = {}
    for i in range(6):
        for j in range(i + 1, 6):
            at = np.flatnonzero(rng.random(40) < rng.choice([0.0, 0.3, 0.5, 0.9]))
            pairs[i, j] = np.stack([at, at], axis=1)
    problem = Matchings.from_pairs(pairs, [40] * 6)
    kept, P = rng.random(problem.n_matches) < 0.9, len(problem.pair_objects)
    wrong = rng.choice([0.1, 0.2, 0.3, 0.4, 0.5, 0.7], P, p=[0.2, 0.2, 0.2, 0.2, 0.1, 0.1])
    candidates = rng.random(P) < 0.8
    expected = slow_expendable(problem, kept, wrong, candidates)
    assert 0 < sum(expected) < candidates.sum()
    assert expendable(problem, kept, wrong, candidates).tolist() == expected


@pytest.mark.parametrize("seed", range(8))
def test_right_matches_are_spent_on_the_worst_pairs_then_on_single_matches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = chain(7)
    M, P = problem.n_matches, len(problem.pair_objects)
    odds = np.where(rng.random(M) < 0.3, rng.choice([1.0, 2.0, 9.0, 30.0], M), 0.001)
    kept, doubtful = rng.random(M) < 0.9, odds > 1.5
    wrong, hopeless = rng.choice([0.2, 0.3, 0.6], P), rng.permutation(P) < 5
    bad = np.isin(problem.match_pairs, np.flatnonzero(hopeless))
    odds[bad] = rng.choice([3.0, 9.0, 30.0], bad.sum())
    doubtful &= kept
    budget, spent, whole = LOSS * kept.sum(), 0.0, []
    for pair in sorted(np.flatnonzero(hopeless).tolist(), key=lambda pair: (-wrong[pair], pair)):
        cost = sum(1 / (1 + odds[n]) for n in range(M) if kept[n] and problem.match_pairs[n] == pair)
        if spent + cost > budget:
            break
        spent += cost
        whole.append(pair)
    expected = [bool(kept[n]) and problem.match_pairs[n] in whole for n in range(M)]
    for n in sorted(range(M), key=lambda n: (-odds[n], n)):
        if doubtful[n] and not expected[n]:
            if spent + 1 / (1 + odds[n]) > budget:
                break
            spent += 1 / (1 + odds[n])
            expected[n] = True
    found, pairs = _affordable(problem, odds, kept, doubtful, wrong, hopeless)
    assert np.flatnonzero(pairs).tolist() == sorted(whole)
    assert found.tolist() == expected
    assert 0 < len(whole) < hopeless.sum()
    assert any(expected[n] and problem.match_pairs[n] not in whole for n in range(M))


def test_the_mean_over_the_matches_of_a_pair() -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[0, 0], [1, 1]], (1, 2): [[1, 1]]}, [2, 2, 2])
    odds, which = np.array([1.0, 3.0, 0.0, np.inf]), np.array([True, True, True, False])
    assert _mean(problem, odds, which).tolist() == [0.5, 0.375, 0.0]
