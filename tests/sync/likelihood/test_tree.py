"""Labels handed on along a tree, against a slow way."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.tree import agreement, along_tree, tree_start


def literal_tree(problem, length):
    """Kruskal: the shortest pairs first, unless they close a circle; then points are one if the tree connects them."""
    part = list(range(problem.n_objects))
    chosen = []
    for t in np.argsort(length, kind="stable"):
        i, j = problem.pair_objects[t].tolist()
        if part[i] != part[j]:
            part = [part[j] if p == part[i] else p for p in part]
            chosen.append((i, j))
    name = list(range(problem.n_points))
    for i, j in chosen:
        for a, b in problem.pair(i, j).tolist():
            a, b = problem.offsets[i] + a, problem.offsets[j] + b
            name = [name[b] if n == name[a] else n for n in name]
    return name


def literal_agreement(problem):
    """The share of triangles over the matches of every pair that close."""
    partner = [{} for _ in range(problem.n_points)]
    owner = problem.point_objects.tolist()
    for a, b in problem.endpoints.tolist():
        partner[a][owner[b]], partner[b][owner[a]] = b, a
    found = []
    for start, stop in zip(problem.pair_start[:-1], problem.pair_start[1:], strict=True):
        closed = every = 0
        for a, b in problem.endpoints[start:stop].tolist():
            both = partner[a].keys() & partner[b].keys()
            every += len(both)
            closed += sum(partner[a][j] == partner[b][j] for j in both)
        found.append(closed / max(every, 1))
    return found


@pytest.mark.parametrize("compared", [9, 2])
@pytest.mark.parametrize("seed", range(4))
def test_points_are_one_if_the_tree_connects_them(seed, compared):
    problem, _ = datasets.synthetic(6, 8, 0.7, 0.4, rng=seed)
    i, j = problem.pair_objects[problem.match_pairs].T
    problem = problem.keep((j - i <= compared) & ((i < 6) | (compared > 2)))  # the last object compared with nobody
    length = np.random.default_rng(seed).random(len(problem.pair_objects)) + 0.1
    found, expected = along_tree(problem, length), np.array(literal_tree(problem, length))
    np.testing.assert_array_equal(found[:, None] == found, expected[:, None] == expected)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))


def test_the_tree_is_that_of_largest_agreement_and_the_largest_labels_stay():
    problem, _ = datasets.synthetic(6, 8, 0.7, 0.4, rng=7)
    table = MatchTable.of(problem, 4)
    names = literal_tree(problem, -agreement(table))
    counts = {name: names.count(name) for name in names}
    found = tree_start(table)
    kept = [sum(found == label) for label in range(4)]
    assert kept == sorted(counts.values(), reverse=True)[:4]
    for label in range(4):
        assert len({names[a] for a in np.flatnonzero(found == label)}) == 1


def test_a_pair_without_triangles_agrees_with_nobody():
    table = MatchTable.of(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1]), 1)
    assert agreement(table).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("points", [254, 255, 256, 257])
def test_triangles_of_objects_at_the_limit_of_a_byte(points):
    rng = np.random.default_rng(points)
    labels = np.concatenate([rng.permutation(points) for _ in range(4)])
    problem = Matchings.from_labels(labels, [points] * 4)
    blocks = {pair: rows.copy() for pair, rows in problem.pairs().items()}
    for rows in blocks.values():
        rows[-9:, 1] = np.roll(rows[-9:, 1], 1)  # the last points, of the largest numbers, are matched wrongly
    wrong = Matchings.from_pairs(blocks, [points] * 4)
    found = agreement(MatchTable.of(wrong, points))
    assert found.tolist() == literal_agreement(wrong)
    assert (found < 1).all()
