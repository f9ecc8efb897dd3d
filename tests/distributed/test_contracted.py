"""Clusters of groups that grow on: what is left, what was dropped, what was lost_edge, and who has to wait."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.distributed.contracted import Contracted, Edges, _near
from stiefelsync.sync.tracks.grow import _clusters


def contracted(seed: int, lost_edge: tuple[int, ...] = (), dropped: int = 0) -> tuple[Contracted, np.ndarray]:
    """Return every point of a scene as a cluster of its own, the matches as edges."""
    problem, _ = datasets.scene(90, 10, 45, 60, 0.35, 0.2, rng=seed)
    points, (A, B) = np.arange(problem.n_points), problem.endpoints.T
    edges = Edges(A.copy(), B.copy(), np.ones(len(A), dtype=np.int64), np.ones(len(A)))
    return Contracted(points, problem.point_objects, np.isin(points, lost_edge), edges, dropped), problem.endpoints


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_dropped_and_in_conflict(seed: int) -> None:
    given, ends = contracted(seed, lost_edge=(3, 70), dropped=4)
    after = given.go_on(np.zeros(len(given.first), dtype=bool))
    first, owner = after.first, given.owner
    names = set(first.tolist())
    held = {name: set(owner[first == name].tolist()) for name in names}
    assert all(len(held[name]) == np.sum(first == name) and np.flatnonzero(first == name)[0] == name for name in names)
    apart = [(int(first[a]), int(first[b])) for a, b in ends.tolist() if first[a] != first[b]]
    against = [pair for pair in apart if held[pair[0]] & held[pair[1]]]
    assert after.dropped == 4 + len(against)
    lost_edge = {name for pair in against for name in pair} | {int(first[3]), int(first[70])}
    assert set(first[after.lost_edge].tolist()) == lost_edge
    np.testing.assert_array_equal(after.lost_edge, np.isin(first, list(lost_edge)))
    left: dict[tuple[int, int], int] = {}
    for a, b in apart:
        if not held[a] & held[b]:
            left[min(a, b), max(a, b)] = left.get((min(a, b), max(a, b)), 0) + 1
    found = {
        (min(a, b), max(a, b)): n
        for a, b, n in zip(after.edges.A.tolist(), after.edges.B.tolist(), after.edges.count.tolist(), strict=True)
    }
    assert found == left
    assert against


def test_clusters_at_a_border_and_their_neighbours_wait() -> None:
    given, _ = contracted(1)
    nobody = np.zeros(len(given.first), dtype=bool)
    free, held = given.go_on(nobody), given.go_on(~nobody)
    together = [np.sum(found.first != np.arange(len(nobody))) for found in (free, held)]
    assert together[0] > together[1] > 0  # triangles close whatever waits outside
    # All that waits merges by triangles only: no two clusters left have three matches in a ring.
    edges = set(zip(held.edges.A.tolist(), held.edges.B.tolist(), strict=True))
    near = {a: {b for pair in edges for b in pair if a in pair} - {a} for pair in edges for a in pair}
    assert not any(near[a] & near[b] for a, b in edges)


def test_near_is_who_holds_a_watched_point_or_has_an_edge_with_one_that_does() -> None:
    objects = np.arange(6, dtype=np.int32)
    q = _clusters(np.arange(6), objects, np.array([[0, 1], [1, 2], [3, 4]]), np.ones(3))
    assert _near(q, np.array([True, False, False, False, True, False])).tolist() == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]
    assert not _near(q, np.zeros(6, dtype=bool)).any()


def test_edges_are_taken_renamed_and_put_together() -> None:
    one = Edges(np.array([0, 2]), np.array([1, 3]), np.array([5, 6]), np.array([0.5, 0.6]))
    two = one.renamed(np.array([9, 8, 7, 6])).take(np.array([1]))
    assert (two.A.tolist(), two.B.tolist(), two.count.tolist(), two.weight.tolist()) == ([7], [6], [6], [0.6])
    every = Edges.together([one, two])
    assert (every.A.tolist(), every.B.tolist(), every.count.tolist()) == ([0, 2, 7], [1, 3, 6], [5, 6, 6])
    assert len(Edges.together([]).A) == 0
