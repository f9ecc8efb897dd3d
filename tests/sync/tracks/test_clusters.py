"""Clusters as they are merged, matches as they are sorted, components as they are found."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.sync.tracks import clusters
from stiefelsync.sync.tracks.grow import matches_of, split
from stiefelsync.sync.tracks.join import join
from stiefelsync.sync.tracks.rules import few_choices, rule_gain, squares, triangles


def test_a_round_says_what_it_did():
    # Clusters of objects {0, 4}, {1}, {2}, {1, 3}, {9}; the first two are merged, so the match of the fourth goes.
    q = clusters.Quotient.tested(
        np.array([10, 14, 11, 12, 21, 23, 29]), np.array([0, 4, 1, 2, 1, 3, 9]), np.array([0, 2, 3, 4, 6, 7]),
        np.array([0, 0, 0]), np.array([1, 2, 3]), np.array([3, 1, 5]), np.array([3.0, 0.5, 5.0]),
    )  # fmt: skip
    lost_edge = np.zeros(30, dtype=bool)
    rest, done, first, dropped = clusters.merge_and_prune(q, np.array([1.0, 0.0, 0.0]), lost_edge)
    assert rest.points.tolist() == [10, 11, 14, 12]
    assert rest.objects.tolist() == [0, 1, 4, 2]
    assert [part.tolist() for part in (rest.start, rest.A, rest.B, rest.count)] == [[0, 3, 4], [0], [1], [1]]
    assert (done.tolist(), first.tolist(), dropped) == ([21, 23, 29], [21, 21, 29], 5)
    assert np.flatnonzero(lost_edge).tolist() == [10, 21]


def test_without_edges():
    q = clusters.singletons(np.arange(3), np.arange(3), np.empty((0, 2), dtype=np.int64), np.empty(0))
    rest, done, first, dropped = clusters.merge_and_prune(q, np.empty(0))
    assert (rest.n, done.tolist(), first.tolist(), dropped) == (0, [0, 1, 2], [0, 1, 2], 0)
    for rule in (triangles, squares, few_choices):
        assert len(rule_gain(q, rule)) == 0


def test_nothing_is_written_where_it_is_read():
    rng = np.random.default_rng(0)
    given = rng.integers(300, size=6000), rng.integers(300, size=6000), rng.integers(1, 4, 6000), rng.random(6000)
    copies = [array.copy() for array in given]
    edges = clusters._contracted(*given, 300)
    for before, after in zip(copies, given, strict=True):
        np.testing.assert_array_equal(before, after)
    assert (edges[0] < edges[1]).all()
    assert edges[2].sum() == given[2][given[0] != given[1]].sum()


def test_joins_of_nothing():
    nothing = np.empty((0, 2), dtype=np.int64)
    assert join(np.arange(3), np.zeros(3, int), nothing, np.empty(0), least=1)[0].tolist() == [0, 1, 2]
    assert join(nothing[:, 0], nothing[:, 0], nothing, np.empty(0))[1] == 0


@pytest.mark.parametrize("n", [1, 2, 30, 300])
def test_objects_in_any_order_tell_which_components_are_broken(n):
    rng = np.random.default_rng(n)
    objects = rng.integers(0, 25, n).astype(np.int32)
    ends = np.sort(rng.integers(n, size=(n // 2, 2)), axis=1)
    component, broken = split(objects, ends)
    assert (component <= np.arange(n)).all()
    for name in set(component.tolist()):
        inside = np.flatnonzero(component == name)
        assert name == inside[0]
        twice = len(set(objects[inside].tolist())) < len(inside)
        assert (broken[inside] == twice).all()
    if n == 300:
        assert set(broken.tolist()) == {False, True}


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_matches_of_points_are_sorted_by_both_ends(share):
    rng = np.random.default_rng(3)
    ends, chosen = np.unique(np.sort(rng.integers(50, size=(400, 2)), axis=1), axis=0), rng.random(50) < share
    ends = rng.permutation(ends)
    order, by_ends = matches_of(chosen, ends)
    expected = sorted((t for t in range(len(ends)) if chosen[ends[t, 0]]), key=lambda t: ends[t].tolist())
    assert order.tolist() == expected
    assert by_ends.tolist() == ends[expected].tolist()
