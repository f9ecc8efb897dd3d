"""The sparse way for large objects: its names, its limit, and each relabelling against all choices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.choose import has_large_objects
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.large_objects import _alone, _named, _Sparse, refinements
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood, log_odds
from stiefelsync.sync.likelihood.sampling import pair_scores


@pytest.mark.parametrize(("points", "d", "large"), [(250, 199, False), (250, 200, True), (250, 201, True)])
def test_objects_are_large_from_fifty_thousand_scores_on(points, d, large):
    matches = np.tile(np.arange(points)[:, None], 2)
    problem = Matchings.from_pairs({(0, 1): matches[:9], (1, 2): matches[:9]}, [points, points, points, 0])
    assert has_large_objects(problem, d) is large


def test_many_matches_are_quicker_the_dense_way():
    # Twenty objects that see all 520 points: 30·nnz·k ≤ (nnz + m·d)·d where (19 + d)·d ≥ 30·19·20.
    problem = Matchings.from_labels(np.tile(np.arange(520), 20), [520] * 20)
    assert (19 + 97) * 97 < 30 * 19 * 20 <= (19 + 98) * 98
    assert has_large_objects(problem, 98)
    assert not has_large_objects(problem, 97)


def test_everybody_has_a_name_and_who_is_alone_none():
    labels = np.array([7, -1, 3, 7, -1, 3, 9])
    named = _named(labels)
    assert len(set(named.tolist())) == 5
    assert named[0] == named[3]
    assert named[2] == named[5]
    assert ((named >= 0) & (named < 7)).all()
    assert (_alone(named) < 0).tolist() == [False, True, False, False, True, False, True]


@pytest.mark.parametrize("compared", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_an_object_takes_the_best_of_all_labels_it_is_matched_with(seed, compared):
    problem, truth = datasets.synthetic(4, 6, 0.7, 0.4, rng=seed)
    if not compared:
        i, j = problem.pair_objects[problem.match_pairs].T
        problem = problem.keep(j - i <= 3)
    table = MatchTable.of(problem, problem.n_points)
    labels = _named(np.where(np.random.default_rng(seed).random(len(truth)) < 0.2, -1, truth).astype(np.int64))
    rates = log_odds(table, block_counts(table, _alone(labels)))
    T, owner = pair_scores(table, rates), table.owner
    state = _Sparse(table, labels, rates)
    for i in range(6):
        own, before = np.flatnonzero(owner == i), state.labels.copy()
        matched = [[before[b] for b in range(len(owner)) if table.matrix(rates.right)[a, b] > 0] for a in own]

        def worth(choice, own=own, before=before):
            return sum(
                T[a, b] for a, c in zip(own, choice, strict=True) if c is not None
                for b in np.flatnonzero((before == c) & (owner != owner[a]))
            )  # fmt: skip

        choices = [
            choice for choice in product(*[[None, *set(some)] for some in matched])
            if len({c for c in choice if c is not None}) == sum(c is not None for c in choice)
        ]  # fmt: skip
        best = max(map(worth, choices))
        changed = state.relabel(i)
        assert worth(state.labels[own]) == pytest.approx(best, abs=1e-9)
        assert changed == (state.labels != before).any()
        assert (state.labels[owner != i] == before[owner != i]).all()
        assert len(set(state.labels[own].tolist())) == len(own)
        fresh = _Sparse(table, state.labels, rates)
        np.testing.assert_array_equal(state.where, fresh.where)


def test_rounds_are_ever_likelier_and_end_where_one_is_not():
    problem, _ = datasets.shapes.large(60, rng=2)
    start = np.full(problem.n_points, -1)
    found = list(refinements(problem, start))
    values = [value for _, value in found]
    assert len(found) > 1
    assert values == sorted(set(values))
    table = MatchTable.of(problem, problem.n_points)
    for labels, value in found:
        assert value == pytest.approx(log_likelihood(table, labels))
    assert len(list(refinements(problem, start, rounds=1))) == 2
