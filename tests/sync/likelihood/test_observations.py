"""What was observed, array by array, against loops over the matches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from stiefelsync.sync.likelihood import observations
from stiefelsync.sync.likelihood.observations import observe
from tests.sync.likelihood import literal
from tests.sync.likelihood.literal import KINDS, earlier, matched_points


@pytest.fixture(params=KINDS)
def both(request):
    problem, _ = literal.problem(request.param)
    return problem, observe(problem)


def test_partners_are_those_of_the_matches(both):
    problem, seen = both
    compared = [set() for _ in range(problem.n_objects)]
    for p, (i, j) in enumerate(problem.pair_objects.tolist()):
        compared[i].add((j, p))
        compared[j].add((i, p))
    partner = matched_points(seen)
    for i, (start, stop) in enumerate(pairwise(seen.near_start.tolist())):
        near = list(zip(seen.near_object[start:stop].tolist(), seen.near_pair[start:stop].tolist(), strict=True))
        assert near == sorted(compared[i])
        for x, (j, _) in enumerate(near):
            assert seen.near_object[seen.near_start[j] + seen.near_back[start + x]] == i
            for a in range(seen.offsets[i], seen.offsets[i + 1]):
                at = seen.partner_start[i] + (a - seen.offsets[i]) * (stop - start) + x
                assert seen.partner[at] == partner[a].get(j, -1)
    (a, b), (one, two) = seen.ends, seen.entries
    assert seen.partner[one].tolist() == b.tolist()
    assert seen.partner[two].tolist() == a.tolist()


def test_compared_objects_are_in_an_order_and_weigh_by_their_overlap(both):
    problem, seen = both
    near, far = earlier(seen)
    weight = {}
    for (i, j), n in zip(seen.pairs.tolist(), seen.matched.tolist(), strict=True):
        overlap = min(1.0, n / min(seen.sizes[i], seen.sizes[j]))
        weight[i, j] = weight[j, i] = max(1, round(1024 * overlap**2))
        assert (i in near[j]) != (j in near[i])  # one of them comes first
    before = [set(one) for one in near]
    for i, of in enumerate(near):
        assert of == {j: weight[i, j] for j in of}
        assert seen.total[i] >= max(1, sum(of.values()))
        assert seen.total[i] <= sum(of.values()) + 0.3 * 1024 + 1
        # What is far was not compared.
        assert not far[i] & {j for j in range(problem.n_objects) if (i, j) in weight}
        assert i not in far[i]
    # An order without circles: objects can be taken one by one, each after all that come before it.
    taken = set()
    while len(taken) < problem.n_objects:
        ready = {i for i in range(problem.n_objects) if i not in taken and before[i] <= taken}
        assert ready
        taken |= ready


def test_objects_far_away_come_before_and_are_the_nearest_of_these(both, monkeypatch):
    problem, seen = both
    monkeypatch.setattr(observations, "_MAX_FAR", 2)
    fewer, every = earlier(observe(problem))[1], earlier(seen)[1]
    for i, (few, all_) in enumerate(zip(fewer, every, strict=True)):
        assert few <= all_
        assert len(few) == min(2, len(all_))
        others = [seen.distance[i, j] for j in all_ - few]
        assert not others or max(seen.distance[i, j] for j in few) <= min(others)
        assert not any(i in every[j] for j in all_)


def test_ranks_are_normal_scores_within_pairs():
    problem, _ = literal.problem("weighted")
    seen = observe(problem)
    for start, stop in pairwise(problem.pair_start.tolist()):
        rank = rankdata(problem.weights[start:stop])  # ties share theirs
        np.testing.assert_allclose(seen.ranks[start:stop], norm.ppf((rank - 0.5) / (stop - start)), atol=1e-12)
    assert observe(problem.with_weights(None)).ranks is None
    assert observe(problem.with_weights(np.full(problem.n_matches, 3.0))).ranks is None
