"""Moves of groups of objects, starts from groups, large objects, rogues, and the posterior of few objects."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from stiefelsync import datasets, score, synchronise
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.choose import has_large_objects
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.exchange import _Entries, exchange, lightest_cut
from stiefelsync.sync.likelihood.gauss_seidel import leave_out
from stiefelsync.sync.likelihood.groups import _part, grouped_start, neighbouring_groups
from stiefelsync.sync.likelihood.large_objects import refine_large
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood, log_odds
from stiefelsync.sync.likelihood.posterior import evidence, sample_posterior
from stiefelsync.sync.likelihood.sampling import pair_scores


@pytest.mark.parametrize("make", [datasets.shapes.ring, lambda **o: datasets.synthetic(25, 12, 1.0, 0.5, **o)])
def test_the_cut_is_what_an_exchange_gains_in_pairwise_score(make):
    matchings, truth = make(rng=0)
    table = MatchTable.of(matchings, 25)
    rates = log_odds(table, block_counts(table, truth))
    T = pair_scores(table, rates)

    def value(labels):
        return 0.5 * T[labels[:, None] == labels].sum()

    objects, J = _Entries(table, truth, rates).coupling(3, 7)
    np.testing.assert_allclose(J, J.T)
    for seed in range(5):
        group = np.random.default_rng(seed).random(len(objects)) < 0.4
        inside = np.isin(table.owner, objects[group])
        moved = truth.copy()
        moved[inside & (truth == 3)], moved[inside & (truth == 7)] = 7, 3
        assert value(moved) - value(truth) == pytest.approx(-J[group][:, ~group].sum(), abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_found_has_the_weight_told_and_two_clusters_are_cut_apart(seed):
    rng = np.random.default_rng(seed)
    side = rng.permutation(np.repeat([1, -1], 5))
    J = np.outer(side, side) + 0.3 * rng.standard_normal((10, 10))
    J = (J + J.T) / 2
    np.fill_diagonal(J, 0)
    gain, group = lightest_cut(J)
    assert gain == pytest.approx(-J[group][:, ~group].sum())
    best = max(-J[np.ix_(g, ~g)].sum() for g in map(np.array, product([True, False], repeat=10)))
    assert gain == pytest.approx(best)


def test_a_run_of_objects_that_swapped_two_labels_is_put_right_at_once():
    matchings, truth = datasets.shapes.ring(24, 12, error=0.1, rng=0)
    table = MatchTable.of(matchings, 12)
    run = matchings.point_objects < 10
    swapped = truth.copy()
    swapped[run & (truth == 2)], swapped[run & (truth == 5)] = 5, 2
    labels, value = exchange(table, swapped)
    assert score(swapped, truth).fscore < 0.95
    assert score(labels, truth).fscore > 0.99
    assert value == pytest.approx(log_likelihood(table, labels))
    assert value > log_likelihood(table, swapped)


def test_groups_are_neighbours_and_cover_everybody_once():
    matchings, _ = datasets.shapes.ring(30, 12, reach=3, rng=0)
    groups = neighbouring_groups(matchings, 8)
    assert sorted(np.concatenate(groups).tolist()) == list(range(30))
    assert max(len(group) for group in groups) <= 8
    first = np.sort(groups[0])
    gaps = np.diff(np.append(first, first[0] + 30))
    assert np.sort(gaps)[-2] <= 3


def test_groups_solved_right_are_joined_right():
    matchings, truth = datasets.shapes.ring(30, 25, observed=0.9, error=0.1, rng=1)
    points_of = {
        part.n_matches: points for points, part in (_part(matchings, g) for g in neighbouring_groups(matchings))
    }

    def oracle(part, d):
        # The labels of each group under names of its own.
        return np.random.default_rng(part.n_matches).permutation(25)[truth[points_of[part.n_matches]]]

    assert score(grouped_start(matchings, 25, oracle), truth).fscore > 0.97


def test_large_objects_take_the_sparse_way_and_say_so():
    matchings, truth = datasets.shapes.large(250, rng=0)
    assert has_large_objects(matchings, 312)
    for method in ("accurate", "fast"):
        result = synchronise(matchings, method=method)
        assert result.outcome.details.route == "sparse"
        assert score(result.labels, truth).fscore > score(matchings, truth).fscore
    assert synchronise(datasets.synthetic(10, 6, 0.6, 0.2, rng=0)[0], 10).outcome.details.route == "dense"


def test_sparse_refinement_never_ends_below_its_start():
    matchings, _ = datasets.shapes.large(60, rng=1)
    start = synchronise(matchings, method="tracks").labels
    labels, value = refine_large(matchings, start)
    table = MatchTable.of(matchings, matchings.n_points)
    assert value == pytest.approx(log_likelihood(table, labels))
    assert value >= log_likelihood(table, start)
    for a, b in zip(matchings.offsets[:-1], matchings.offsets[1:], strict=True):
        held = labels[a:b][labels[a:b] >= 0]
        assert len(np.unique(held)) == len(held)


def test_a_rogue_stays_out_and_nobody_else():
    matchings, truth = datasets.shapes.rogue(rng=3)
    wrong = np.array(truth[matchings.endpoints[:, 0]] != truth[matchings.endpoints[:, 1]])
    objects = matchings.point_objects[matchings.endpoints]
    share = [wrong[(objects == i).any(axis=1)].mean() for i in range(20)]
    labels = synchronise(matchings, 25).labels
    out = [i for i in range(20) if (labels[matchings.offsets[i] : matchings.offsets[i + 1]] < 0).all()]
    assert out == [int(np.argmax(share))]
    clean, same = datasets.synthetic(25, 20, 0.6, 0.6, rng=0)
    assert (leave_out(MatchTable.of(clean, 25), same) == same).all()


def test_full_permutations_when_asked_for():
    matchings, _ = datasets.shapes.networks(rng=0)
    assert (synchronise(matchings, 64, full=True).labels >= 0).all()


def test_kinds_of_evidence():
    # Point 1 of object 0 is matched with point 0 of object 1; object 2 was compared with nobody.
    table = MatchTable.of(Matchings.from_pairs({(0, 1): [[1, 0]]}, [2, 2, 1]), 3)
    kinds = evidence(table).kinds
    assert kinds[1, 2] == 5
    assert (kinds[0, 2], kinds[1, 3], kinds[0, 3]) == (3, 2, 4)
    assert not kinds[4].any()
    assert (kinds == kinds.T).all()


def test_posterior_of_clear_and_of_contradicted_matches():
    matchings, truth = datasets.synthetic(8, 5, 1.0, 0.2, rng=0)
    halves = sample_posterior(MatchTable.of(matchings, 8), truth, rng=np.random.default_rng(0), sweeps=600, burn=400)
    assert not np.array_equal(*halves)
    P = halves.mean(axis=0)
    same = truth[:, None] == truth
    assert np.allclose(P, P.T)
    assert np.allclose(np.diag(P), 1)
    assert P[same].mean() > 0.95
    assert P[~same].mean() < 0.02
