"""What is compiled gives the same answers as NumPy, bit for bit."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from stiefelsync import datasets, synchronise
from stiefelsync._kernels.library import address, library
from stiefelsync.sync.tracks import clusters, kernels
from stiefelsync.sync.tracks.integer_arrays import ordered
from stiefelsync.sync.tracks.join import join
from stiefelsync.sync.tracks.rules import triangle_counts

pytestmark = pytest.mark.skipif(library() is None, reason="no compiled kernels")


def both(monkeypatch, function):
    """Return what a function returns with kernels and without."""
    compiled = function()
    with monkeypatch.context() as plain:
        plain.setenv("STIEFELSYNC_COMPILED", "0")
        return compiled, function()


@pytest.mark.parametrize("weights", ["none", "few", "many"])
@pytest.mark.parametrize("wrong", [0.1, 0.5])
def test_labels_and_account_do_not_depend_on_it(monkeypatch, wrong, weights):
    rng = np.random.default_rng(3)
    problem, _ = datasets.scene(2000, 90, 200, 400, wrong=wrong, missing=0.3, rng=7)
    if weights != "none":
        problem = problem.with_weights(
            rng.choice([0.25, 0.5], problem.n_matches) if weights == "few" else rng.random(problem.n_matches) + 0.1
        )
    one, two = both(monkeypatch, lambda: synchronise(problem, method="tracks").outcome)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.details == two.details
    assert one.n_iter == two.n_iter


def test_what_32_bits_cannot_count_is_left_to_numpy(monkeypatch):
    problem, _ = datasets.scene(2000, 60, 200, 400, wrong=0.3, missing=0.3, rng=7)
    compiled = synchronise(problem, method="tracks").labels
    monkeypatch.setattr(kernels, "_MOST", 10)
    few = np.arange(20)
    assert kernels.order_by((few,), [19]) is None
    assert kernels.contracted(few, few + 1, few, np.ones(20), 21) is None
    np.testing.assert_array_equal(synchronise(problem, method="tracks").labels, compiled)


def graph(rng, n=300, edges=6000):
    A, B = rng.integers(n, size=(2, edges))
    return A, B, rng.integers(1, 4, edges), rng.random(edges)


def test_parts(monkeypatch):
    rng = np.random.default_rng(0)
    A, B, count, weight = graph(rng)
    given = [array.copy() for array in (A, B, count, weight)]
    one, two = both(monkeypatch, lambda: clusters._contracted(A, B, count, weight, 300))
    for part, other in zip(one, two, strict=True):
        np.testing.assert_array_equal(part, other)
        assert part.dtype == other.dtype
    for before, after in zip(given, (A, B, count, weight), strict=True):  # nothing was written where it was read
        np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(*both(monkeypatch, lambda: triangle_counts(one[0], one[1], 300)))
    assert triangle_counts(one[0], one[1], 300).max() > 0
    for keys in ((A,), (A, B)):
        np.testing.assert_array_equal(*both(monkeypatch, lambda keys=keys: ordered(*keys)))


def test_conflicts_of_objects_beyond_sixty_four(monkeypatch):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 6, 400)
    objects = np.concatenate([np.sort(rng.choice(200, size, replace=False)) for size in sizes])
    start, nothing = np.append(0, np.cumsum(sizes)), np.empty(0, dtype=np.int64)
    q = clusters.Quotient(
        np.arange(len(objects)), objects, start, nothing, nothing, nothing, np.empty(0), np.zeros(400, dtype=bool)
    )
    A, B = rng.integers(400, size=(2, 3000))
    expected = [
        bool(set(objects[start[a] : start[a + 1]]) & set(objects[start[b] : start[b + 1]]))
        for a, b in zip(A, B, strict=True)
    ]
    for found in both(monkeypatch, lambda: clusters.conflicting(q, A, B)):
        np.testing.assert_array_equal(found, expected)


def test_edges_may_be_renamed_on_the_way(monkeypatch):
    rng = np.random.default_rng(2)
    A, B, count, weight = graph(rng)
    name = rng.integers(40, size=300)
    found = kernels.contracted(A, B, count, weight, 40, name)
    with monkeypatch.context() as plain:
        plain.setenv("STIEFELSYNC_COMPILED", "0")
        assert kernels.contracted(A, B, count, weight, 40, name) is None
        expected = clusters._contracted(name[A], name[B], count, weight, 40)
    for part, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, other)


def test_points_of_merged_clusters_are_sorted_by_object():
    tree = np.array([2, 3, 2, 3, 4])
    start, points = np.array([0, 2, 3, 4, 6, 7]), np.array([10, 11, 12, 13, 14, 15, 16])
    found = kernels.merged_points(tree, start, points, np.array([1, 5, 2, 3, 0, 9, 4]))
    assert [part.tolist() for part in found] == [
        [10, 13, 11, 14, 12, 15, 16], [1, 3, 5, 0, 2, 9, 4], [0, 3, 6, 7], [2, 2, 1],
    ]  # fmt: skip
    assert tree.tolist() == [0, 1, 0, 1, 2]


def test_without_edges(monkeypatch):
    nothing = np.empty(0, dtype=np.int64)
    for edges in both(monkeypatch, lambda: clusters._contracted(nothing, nothing, nothing, np.empty(0), 3)):
        assert [len(part) for part in edges] == [0, 0, 0, 0]
    assert kernels.tree_of(nothing, nothing, nothing, np.arange(4), np.arange(3)).tolist() == [0, 1, 2]


def quotient(rng, n=60, objects=90, edges=200):
    """Clusters of one to four points, all of different objects, edges between those without an object in common."""
    sizes = rng.integers(1, 5, n)
    held = np.concatenate([np.sort(rng.choice(objects, size, replace=False)) for size in sizes])
    start, nothing = np.append(0, np.cumsum(sizes)), np.empty(0, dtype=np.int64)
    given = np.arange(len(held)), held, start
    q = clusters.Quotient(*given, nothing, nothing, nothing, np.empty(0), np.zeros(n, dtype=bool))
    A, B = (rng.integers(n, size=edges) for _ in range(2))
    A, B, count, weight = clusters._contracted(A, B, np.ones(edges, dtype=np.int64), rng.random(edges), n)
    free = ~clusters.conflicting(q, A, B)
    return clusters.Quotient(*given, A[free], B[free], count[free], weight[free], np.zeros(n, dtype=bool))


@pytest.mark.parametrize("objects", [12, 90])
def test_merges_are_the_same_even_among_equal_gains(monkeypatch, objects):
    rng, whole, merged = np.random.default_rng(4), 0, 0
    for levels in (1, 3, 1000):
        for _ in range(20):
            q = quotient(rng, objects=objects)
            gain = rng.integers(levels + 1, size=q.n_edges) / levels  # zeros among them
            one, two = both(monkeypatch, lambda q=q, gain=gain: clusters.merge(q, gain))
            for field in ("points", "objects", "start", "A", "B", "count", "weight", "fresh"):
                np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
                assert getattr(one, field).dtype == getattr(two, field).dtype
            for a, b in zip(one.start, one.start[1:], strict=False):
                assert (np.diff(one.objects[a:b]) > 0).all()
            merged += q.n - one.n
            whole += (one.sizes > 8).sum()
    assert merged > 500
    assert whole  # trees of three clusters and more


@pytest.mark.parametrize("objects", [12, 90])
def test_prunings_are_the_same(monkeypatch, objects):
    rng, dropped, finished = np.random.default_rng(6), 0, 0
    for _ in range(20):
        q = quotient(rng, objects=objects, edges=60)
        q = clusters.merge(q, rng.random(q.n_edges))
        (one, *done), (two, *others) = both(monkeypatch, lambda q=q: clusters.prune(q))
        for field in ("points", "objects", "start", "A", "B", "count", "weight", "fresh"):
            np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
            assert getattr(one, field).dtype == getattr(two, field).dtype
        for part, other in zip(done, others, strict=True):
            np.testing.assert_array_equal(part, other)
        dropped += q.n_edges - one.n_edges
        finished += q.n - one.n
    assert dropped > 20
    assert finished > 20


def tracks_in_conflict(rng, n=600, k=25, matches=4000):
    """Return tracks of points in different objects, the objects, and matches between points of different objects."""
    objects, track = rng.integers(k, size=n), np.arange(n)
    for p in range(n):
        t = rng.integers(max(p, 1)) if rng.random() < 0.8 else p
        if objects[p] not in objects[:p][track[:p] == track[t]]:
            track[p] = track[t]
    near = np.minimum(rng.integers(n, size=matches) + rng.integers(40, size=matches), n - 1)
    ends = np.sort(np.stack([rng.integers(n, size=matches), near], axis=1), axis=1)
    return track, objects, ends[objects[ends[:, 0]] != objects[ends[:, 1]]]


@pytest.mark.parametrize("least", [1, 2, None])
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("weights", ["equal", "few", "many"])
def test_joins(monkeypatch, weights, placed, least):
    rng, total = np.random.default_rng(11), 0
    for _ in range(6):
        track, objects, ends = tracks_in_conflict(rng)
        w = {"equal": np.ones(len(ends)), "few": rng.choice([0.25, 1.0], len(ends)), "many": rng.random(len(ends))}
        places = rng.random((len(track), 2)) * 1.5 if placed else None
        (one, joins), (two, others) = both(
            monkeypatch,
            lambda given=(track, objects, ends, w[weights], places): join(*given, least=least),
        )
        np.testing.assert_array_equal(one, two)
        assert joins == others
        total += joins
    assert total > 100


def test_joins_of_nothing():
    nothing = np.empty((0, 2), dtype=np.int64)
    assert join(np.arange(3), np.zeros(3, int), nothing, np.empty(0), least=1)[0].tolist() == [0, 1, 2]
    assert join(nothing[:, 0], nothing[:, 0], nothing, np.empty(0))[1] == 0


def test_arrays_live_until_the_kernel_has_read_them(monkeypatch):
    rng, given, called = np.random.default_rng(5), [], set()

    def noted(array):
        given.append(weakref.ref(array))
        return address(array)

    class Watched:
        def __getattr__(self, name):
            kernel = getattr(library(), name)

            def call(*args):
                assert all(array() is not None for array in given), name
                called.add(name)
                given.clear()
                return kernel(*args)

            return call

    monkeypatch.setattr(kernels, "address", noted)
    monkeypatch.setattr(kernels, "library", Watched)
    q = quotient(rng)
    clusters.prune(clusters.merge(q, rng.random(q.n_edges)))
    clusters.conflicting(q, q.A, q.B)
    triangle_counts(q.A, q.B, q.n)
    ordered(*rng.integers(50, size=(2, 5000)))
    track, objects, ends = tracks_in_conflict(rng)
    join(track, objects, ends, rng.random(len(ends)), rng.random((len(track), 2)))
    assert len(called) == 8
