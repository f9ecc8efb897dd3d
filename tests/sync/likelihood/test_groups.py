"""Groups of neighbouring objects and how their labels are made to agree, written out literally."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.groups import _agree, _part, grouped_start, neighbouring_groups


def scattered(seed):
    """Return objects, one of them empty, that share different numbers of matches, or none."""
    rng = np.random.default_rng(seed)
    sizes = [6] * 9 + [0, 6, 6]
    pairs = {
        (i, j): np.tile(np.arange(rng.integers(1, 7))[:, None], 2)
        for i in range(12) for j in range(i + 1, 12) if sizes[i] and sizes[j] and rng.random() < 0.35
    }  # fmt: skip
    return Matchings.from_pairs(pairs, sizes)


@pytest.mark.parametrize("size", [3, 5, 20])
@pytest.mark.parametrize("seed", range(3))
def test_groups_begin_at_an_end_and_take_up_who_shares_most(seed, size):
    problem = scattered(seed)
    shared = {(i, j): len(block) for (i, j), block in problem.pairs().items()}
    shared |= {(j, i): n for (i, j), n in shared.items()}
    left, expected = [i for i in range(12) if problem.sizes[i]], []
    while left:
        group = [min(left, key=lambda i: (sum(shared.get((i, j), 0) for j in left), i))]
        left.remove(group[0])
        while len(group) < size:
            with_group = {i: sum(shared.get((i, j), 0) for j in group) for i in left}
            if not any(with_group.values()):
                break
            group.append(max(with_group, key=lambda i: (with_group[i], -i)))
            left.remove(group[-1])
        expected.append(group)
    assert [group.tolist() for group in neighbouring_groups(problem, size)] == expected


def test_labels_agree_by_most_matches_and_others_take_what_fewest_have():
    votes = np.array([[0, 5, 0, 0], [0, 4, 2, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
    # 0 takes 1 and 1 takes 2; one match is not enough for 2 and 3, and of what is left number 3 has fewer holders.
    assert _agree(votes, np.arange(3), np.array([4, 9, 9, 2])).tolist() == [1, 2, 3, -1]
    assert _agree(votes, np.arange(4), np.array([4, 9, 9, 2])).tolist() == [1, 2, 3, 0]
    rng = np.random.default_rng(0)
    for _ in range(10):
        votes = rng.integers(2, 30, (4, 4)).astype(float)
        best = max(permutations(range(4)), key=lambda p, votes=votes: sum(votes[c, e] for c, e in enumerate(p)))
        found = _agree(votes, np.arange(4), np.zeros(4, dtype=int))
        assert sum(votes[c, e] for c, e in enumerate(found)) == sum(votes[c, e] for c, e in enumerate(best))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_has_the_matches_between_its_objects(weighted):
    problem, _ = datasets.synthetic(6, 7, 0.7, 0.3, rng=1)
    if weighted:
        problem = problem.with_weights(np.arange(1.0, problem.n_matches + 1))
    objects = np.array([5, 0, 3])
    points, part = _part(problem, objects)
    assert points.tolist() == [a for i in objects for a in np.flatnonzero(problem.point_objects == i)]
    weight = dict(zip(map(tuple, problem.endpoints.tolist()), problem.match_weights.tolist(), strict=True))
    expected = {ends: w for ends, w in weight.items() if set(problem.point_objects[list(ends)]) <= {0, 3, 5}}
    found = {
        tuple(sorted(ends)): w for ends, w in zip(points[part.endpoints].tolist(), part.match_weights, strict=True)
    }
    assert found == expected
    assert (part.weights is None) == (not weighted)


def test_groups_are_placed_by_their_matches_with_those_before():
    # Forty objects in a row, solved in groups under names of their own; whoever is placed later takes over the names.
    labels = np.tile(np.arange(4), 40)
    problem = Matchings.from_labels(labels, [4] * 40)
    i, j = problem.pair_objects[problem.match_pairs].T
    problem = problem.keep(j - i <= 3)
    names = iter(np.random.default_rng(2).permuted(np.tile(np.arange(4), (10, 1)), axis=1))

    def solve(part, d):
        assert d == 4
        return next(names)[np.tile(np.arange(4), part.n_objects)]

    found = grouped_start(problem, 4, solve).reshape(40, 4)
    assert (found == found[0]).all()
    assert sorted(found[0].tolist()) == [0, 1, 2, 3]


def test_who_has_no_matches_has_no_label():
    problem = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2, 3])
    assert grouped_start(problem, 2, lambda part, d: np.tile([0, 1], 2)).tolist() == [0, 1, 0, 1, -1, -1, -1]
