"""Pairs that are needed stay, unless most of them is wrong."""

from __future__ import annotations

import numpy as np

from stiefelsync import Matchings
from stiefelsync.positions.doubt import LOSS, doubt
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
