"""Labels handed on along a tree, against a slow way."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.sync.methods.rivals._tree import along_tree


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
