"""Labels that are sampled: the sums that moves change in place, and how often every labelling comes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from stiefelsync._core.binding import constant
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.observations import observe
from stiefelsync.sync.likelihood.state import State
from tests.sync.likelihood import literal
from tests.sync.likelihood.literal import KINDS, cells, holders, labellings, log_probability, matched_points, numbered


def test_bins_are_those_of_the_compiled_code():
    assert (constant("bins"), constant("reaches")) == (literal.BINS, literal.REACHES)


def begun(kind, seed=0, **options):
    """Return what was observed, and labels drawn at random that many points share."""
    problem, truth = literal.problem(kind)
    rng = np.random.default_rng(seed)
    labels = np.concatenate([rng.permutation(7)[:n] for n in problem.sizes.tolist()])
    labels[rng.random(len(labels)) < 0.3] = -1
    return State(observe(problem), np.where(rng.random(len(labels)) < 0.5, truth, -1) if seed % 2 else labels,
                 seed=seed, **options)  # fmt: skip


def arrays(state):
    """Return the arrays that the compiled moves keep up to date."""
    chain = state._chain
    given = dict(zip([name for name, _ in chain._fields_], chain.kept, strict=True))
    return {name: given[name] for name in ("point", "near", "far", "size", "begun", "shared")}


def literal_arrays(state):
    """Return what these arrays should be for the state's labels."""
    seen, labels = state.seen, state.labels
    k, m = len(seen.sizes), len(labels)
    held, cell = holders(seen, labels), cells(seen, labels)
    point, near, far = np.full((m, k), -1), np.zeros((m, k)), np.zeros((m, k))
    size, begins = np.zeros(m), np.zeros(m)
    for c, of in held.items():
        size[c] = len(of)
        for i in range(k):
            near[c, i], far[c, i] = cell[i, c]
            point[c, i] = of.get(i, -1)
            begins[c] += i in of and not near[c, i]
    return {
        "point": point.ravel(), "near": near.ravel(), "far": far.ravel(), "size": size, "begun": begins,
        "shared": [sum(len(of) > 1 for of in held.values())],
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_sums_follow_the_labels_through_all_moves(kind, temperature):
    state = begun(kind)
    before = state.labels.copy()
    for _ in range(15):
        state.move(exchanges=40, temperature=temperature)
        state.climb()
        state.fit()
        found = arrays(state)
        for name, expected in literal_arrays(state).items():
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
    assert (state.labels != before).any()


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_labels(kind):
    state = begun(kind, 1)
    for _ in range(4):
        state.move(exchanges=20)
        state.climb()
    seen, labels, counts = state.seen, state.labels, state.counts()
    held, partner = holders(seen, labels), matched_points(seen)
    for p, (i, j) in enumerate(seen.pairs.tolist()):
        both = [(of[i], of[j]) for of in held.values() if i in of and j in of]
        assert counts.both[p] == len(both)
        assert counts.right[p] == sum(partner[a].get(j) == b for a, b in both)
        assert counts.rows[p] == sum(j in partner[a] for a, _ in both)
        assert counts.columns[p] == sum(i in partner[b] for _, b in both)
    has, lacks = np.zeros(literal.BINS * literal.REACHES), np.zeros(literal.BINS * literal.REACHES)
    births, begins = np.zeros(len(seen.sizes)), Counter()
    for (i, c), (near, far) in cells(seen, labels).items():
        if near:
            (has if i in held[c] else lacks)[literal.bin_of(seen, i, near, far)] += 1
        elif i in held[c]:
            births[i] += 1
            begins[c] += 1
    np.testing.assert_array_equal(counts.held, has)
    np.testing.assert_array_equal(counts.absent, lacks)
    np.testing.assert_array_equal(counts.begun, births)
    assert counts.returns == sum(n - 1 for n in begins.values())
    assert counts.labels == len(held)


def small(name):
    """Return matchings of few points: all compared, in a row, in a row with weights, or full."""
    if name == "compared":
        pairs = {(0, 1): [[0, 0], [1, 1]], (0, 2): [[0, 1], [1, 2]], (1, 2): [[0, 0], [1, 1]]}
        return Matchings.from_pairs(pairs, [2, 2, 3])
    if name == "full":
        pairs = {(0, 1): [[0, 0], [1, 1], [2, 2]], (0, 2): [[0, 1], [1, 0], [2, 2]], (1, 2): [[0, 0], [1, 2], [2, 1]]}
        return Matchings.from_pairs(pairs, [3, 3, 3])
    row = {(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 1], [1, 0]], (2, 3): [[0, 0]]}
    if name == "weighted row":
        weights = {(0, 1): [0.2, 0.9], (1, 2): [0.5, 0.3], (2, 3): [0.7]}
        return Matchings.from_pairs(row, [2, 2, 2, 1], weights=weights)
    return Matchings.from_pairs(row, [2, 2, 2, 1])


def at_fixed_rates(name, seed, **options):
    """Return a state of mild rates, so that every labelling comes often, and the log-odds of the matches' weights."""
    problem = small(name)
    seen = observe(problem)
    start = np.tile(np.arange(3), 3) if name == "full" else np.full(problem.n_points, -1)
    state = State(seen, start, seed=seed, informed=False, **options)
    rng = np.random.default_rng(7)
    birth = np.round(rng.normal(-0.3, 0.3, len(seen.sizes)) * 1024) / 1024
    pi = np.round(rng.uniform(0.25, 0.75, literal.BINS * literal.REACHES) * 1024) / 1024
    worth = np.stack([rng.uniform(low, high, len(seen.pairs)) for low, high in WORTH], axis=1)
    state._use(replace(state.rates, worth=worth, held=np.log(pi), absent=np.log1p(-pi), birth=birth, back=-0.4))
    if state._weight is None:
        return state, None
    ends = {}
    for x, (a, b) in enumerate(seen.ends.T.tolist()):
        ends[a, b] = float(rng.normal(0, 0.5))
        state._weight[seen.entries[:, x]] = ends[a, b]
    return state, ends


WORTH = ((0.5, 1.3), (-0.4, 0.1), (-0.9, -0.3), (-0.3, 0.2), (-0.6, -0.1))
SAMPLES = 150_000
CASES = [(name, exchanges) for name in ("compared", "row", "weighted row", "full", "capped") for exchanges in (0, 4)]


def sampled(state, exchanges, n):
    """Return how often each labelling came, as a share."""
    found = Counter()
    for _ in range(n):
        state.move(exchanges=exchanges)
        found[state.labels.tobytes()] += 1
    total = Counter()
    for labels, count in found.items():
        total[numbered(np.frombuffer(labels, dtype=np.int64))] += count / n
    return total


@pytest.mark.parametrize(("name", "exchanges"), CASES)
def test_labellings_come_as_often_as_they_are_likely(name, exchanges):
    options = {"full": {"most": 3}, "capped": {"most": 2}}.get(name, {})
    state, weight = at_fixed_rates("compared" if name == "capped" else name, 5, **options)
    seen = state.seen
    possible = [
        labels
        for labels in labellings(seen.sizes.tolist())
        if (name != "full" or max(labels) == 2)
        and sum(labels.count(c) > 1 for c in set(labels)) <= options.get("most", len(labels))
    ]
    value = np.array([log_probability(seen, labels, state.rates, weight) for labels in possible])
    likely = np.exp(value - value.max())
    likely /= likely.sum()
    found = sampled(state, exchanges, SAMPLES)
    assert set(found) <= set(possible)
    distance = np.abs(likely - [found[labels] for labels in possible]).sum() / 2
    # Independent samples come this close; successive ones are not quite independent.
    expected = np.sqrt(likely * (1 - likely) / (2 * np.pi * SAMPLES)).sum()
    assert distance < 1.35 * expected
