"""The search: which recipe for what, moves at temperature zero, and how much is done."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stiefelsync import datasets, score, synchronise
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood import search
from stiefelsync.sync.likelihood.observations import observe
from stiefelsync.sync.likelihood.search import RECIPES, affordable, improve, recipe_for, shared
from stiefelsync.sync.likelihood.state import State
from tests.sync.likelihood import literal
from tests.sync.likelihood.literal import log_probability


def named(seen, universe):
    recipe = recipe_for(seen, universe)
    return next(name for name, one in RECIPES.items() if one is recipe)


def test_recipes_follow_the_kind_of_problem():
    everywhere = observe(datasets.synthetic(7, 15, 1.0, 0.3, rng=0)[0])
    assert named(everywhere, 7) == "full"
    assert named(everywhere, 8) == named(everywhere, -1) == "compared"
    assert named(observe(datasets.synthetic(7, 15, 0.7, 0.3, rng=0)[0]), 7) == "compared"
    assert named(observe(datasets.shapes.ring(24, 7, reach=2, rng=0)[0]), 8) == "nearby"
    assert named(observe(datasets.synthetic(7, 5, 0.7, 0.3, rng=0)[0]), 7) == "few"


def test_objects_without_points_are_none():
    problem = datasets.synthetic(7, 15, 0.7, 0.3, rng=0)[0]
    sizes = np.append(problem.sizes, np.zeros(20, dtype=int))
    more = Matchings.from_arrays(problem.pair_objects[problem.match_pairs], problem.indices, sizes)
    assert named(observe(more), 7) == "compared"


def test_what_is_too_large_is_not_begun(monkeypatch):
    problem = datasets.synthetic(7, 15, 0.7, 0.3, rng=0)[0]
    assert affordable(problem)
    monkeypatch.setattr(search, "_MAX_SAMPLED_CELLS", problem.n_objects * problem.n_points - 1)
    assert not affordable(problem)
    assert affordable(problem, sampled=False)
    result = synchronise(problem)
    assert result.outcome.details.samples is None
    assert (result.labels >= 0).any()


@pytest.mark.parametrize("kind", literal.KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_moves_at_temperature_zero_never_make_labels_less_likely(kind, seed):
    problem, truth = literal.problem(kind)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(len(truth)) < 0.4, -1, truth)
    if kind == "full":
        labels = np.concatenate([rng.permutation(7) for _ in problem.sizes])
    state = State(observe(problem), labels, seed=seed, most=7 if kind == "full" else None)

    def value():
        weight = None
        if state._weight is not None:
            (a, b), at = state.seen.ends.tolist(), state._weight[state.seen.entries[0]].tolist()
            weight = dict(zip([*zip(a, b, strict=True), *zip(b, a, strict=True)], at + at, strict=True))
        return log_probability(state.seen, state.labels, state.rates, weight)

    start = before = value()
    for climbs in (False, False, False, True, True):
        if climbs:
            state.climb()
        else:
            state.move(temperature=0.0)
        after = value()
        assert after > before - 1e-6 * len(labels)  # what a point has is worth 1e-6 more, so that ties stay
        before = after
    assert before > start


@pytest.mark.parametrize("reach", [12, 4])
def test_improved_labels_are_where_nothing_moves(reach):
    problem, truth = datasets.synthetic(7, 12, 0.7, 0.2, rng=0)
    i, j = problem.pair_objects[problem.match_pairs].T
    problem, rng = problem.keep(j - i <= reach), np.random.default_rng(0)
    state = improve(observe(problem), np.where(rng.random(len(truth)) < 0.3, -1, truth), seed=0, most=None)
    assert score(shared(state.labels), truth).fscore > 0.95
    again = improve(observe(problem), state.labels, seed=0, most=None)
    assert score(shared(again.labels), shared(state.labels)).fscore > 0.98


@pytest.mark.parametrize("most", [7, 8, 12])
@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_no_more_labels_are_shared_than_there_may_be(most, temperature):
    problem, truth = literal.problem("compared")
    state = State(observe(problem), np.full(len(truth), -1), seed=0, most=most, informed=False)
    for _ in range(20):
        state.move(exchanges=30, temperature=temperature)
        state.climb()
        assert (np.bincount(state.labels) > 1).sum() <= most


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_where_every_object_has_every_point_nobody_gets_a_label_of_their_own(temperature):
    problem, truth = literal.problem("full")
    state = State(observe(problem), truth, seed=0, most=7)
    for _ in range(20):
        state.move(exchanges=30, temperature=temperature)
        assert len(set(state.labels.tolist())) == 7
        state.fit()


def test_labels_follow_from_the_seed():
    problem, truth = literal.problem("nearby")
    found = []
    for seed in (1, 1, 2):
        state = State(observe(problem), truth, seed=seed)
        for _ in range(5):
            state.move(exchanges=10)
            state.fit()
        found.append(state.labels.tolist())
    assert found[0] == found[1] != found[2]


def test_a_budget_shortens_the_search(monkeypatch):
    problem, truth = datasets.synthetic(12, 14, 0.7, 0.4, rng=0)
    monkeypatch.setattr(search, "_SURE", 2.0)  # labels are never sure enough to be returned at once
    told = []
    for budget in (search._BUDGET, 1):
        monkeypatch.setattr(search, "_BUDGET", budget)
        told.append([])
        result = synchronise(problem, 12, callback=told[-1].append)
        assert score(result.labels, truth).fscore > 0.9
    totals = [steps[-1].total for steps in told]
    assert totals[1] < totals[0]
    assert totals[1] <= 2 * search._LEAST_SWEEPS


def test_samples_are_as_many_as_the_recipe_says(monkeypatch):
    problem = datasets.synthetic(12, 14, 0.7, 0.5, rng=0)[0]
    monkeypatch.setitem(RECIPES, "compared", replace(RECIPES["compared"], burn=20, samples=5))
    monkeypatch.setattr(search, "_SURE", 2.0)  # labels are never sure enough to be returned at once
    samples = synchronise(problem, 12).outcome.details.samples
    assert len(samples.label) == 2 * 5
