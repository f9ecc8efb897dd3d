"""What is compiled gives the same answers as NumPy, bit for bit."""

from __future__ import annotations

import weakref
from functools import partial

import numpy as np
import pytest

from stiefelsync import datasets, synchronise
from stiefelsync._kernels.library import address, library
from stiefelsync.sync.tracks import clusters, kernels, rules
from stiefelsync.sync.tracks.grow import _heavier, matches_of, split
from stiefelsync.sync.tracks.integer_arrays import ordered
from stiefelsync.sync.tracks.join import join
from stiefelsync.sync.tracks.rules import few_choices, rule_gain, squares, triangle_counts, triangles

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


def test_without_edges(monkeypatch):
    nothing = np.empty(0, dtype=np.int64)
    for edges in both(monkeypatch, lambda: clusters._contracted(nothing, nothing, nothing, np.empty(0), 3)):
        assert [len(part) for part in edges] == [0, 0, 0, 0]
    q = clusters.singletons(np.arange(3), np.arange(3), np.empty((0, 2), dtype=np.int64), np.empty(0))
    for rest, done, first, dropped in both(monkeypatch, lambda: clusters.merge_and_prune(q, np.empty(0))):
        assert (rest.n, done.tolist(), first.tolist(), dropped) == (0, [0, 1, 2], [0, 1, 2], 0)
    for rule in (triangles, squares, few_choices):
        for gain in both(monkeypatch, lambda rule=rule: rule_gain(q, rule)):
            assert len(gain) == 0


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


def assert_same(one, two):
    """The quotients one and two are equal, and so are their types."""
    for part, other in zip(one.arrays, two.arrays, strict=True):
        np.testing.assert_array_equal(part, other)
        assert part.dtype == other.dtype


@pytest.mark.parametrize("objects", [12, 90])
def test_merges_are_the_same_even_among_equal_gains(monkeypatch, objects):
    rng, whole, merged, finished, dropped = np.random.default_rng(4), 0, 0, 0, 0
    for levels in (1, 3, 1000):
        for _ in range(20):
            q = quotient(rng, objects=objects)
            gain = rng.integers(levels + 1, size=q.n_edges) / levels  # zeros among them
            torn = []

            def round_(q=q, gain=gain, torn=torn):
                torn.append(np.zeros(len(q.points), dtype=bool))
                return clusters.merge_and_prune(q, gain, torn[-1])

            (one, *done), (two, *others) = both(monkeypatch, round_)
            assert_same(one, two)
            np.testing.assert_array_equal(*torn)
            for part, other in zip(done, others, strict=True):
                np.testing.assert_array_equal(part, other)
            for a, b in zip(one.start, one.start[1:], strict=False):
                assert (np.diff(one.objects[a:b]) > 0).all()
            finished += len(done[0])
            dropped += done[2]
            assert torn[0].any() == (done[2] > 0)
            sizes = np.unique(done[1], return_counts=True)[1]
            merged += q.n - one.n - len(sizes)
            whole += (one.sizes > 8).sum() + (sizes > 8).sum()
    assert merged > 500
    assert finished > 20
    assert dropped > 100
    assert whole  # trees of three clusters and more


def test_a_round_says_what_it_did():
    # Clusters of objects {0, 4}, {1}, {2}, {1, 3}, {9}; the first two are merged, so the match of the fourth goes.
    q = clusters.Quotient.tested(
        np.array([10, 14, 11, 12, 21, 23, 29]), np.array([0, 4, 1, 2, 1, 3, 9]), np.array([0, 2, 3, 4, 6, 7]),
        np.array([0, 0, 0]), np.array([1, 2, 3]), np.array([3, 1, 5]), np.array([3.0, 0.5, 5.0]),
    )  # fmt: skip
    torn = np.zeros(30, dtype=bool)
    rest, done, first, dropped = clusters.merge_and_prune(q, np.array([1.0, 0.0, 0.0]), torn)
    assert rest.points.tolist() == [10, 11, 14, 12]
    assert rest.objects.tolist() == [0, 1, 4, 2]
    assert [part.tolist() for part in (rest.start, rest.A, rest.B, rest.count)] == [[0, 3, 4], [0], [1], [1]]
    assert (done.tolist(), first.tolist(), dropped) == ([21, 23, 29], [21, 21, 29], 5)
    assert np.flatnonzero(torn).tolist() == [10, 21]


def test_long_rows_are_sorted(monkeypatch):
    rng, n = np.random.default_rng(8), 400  # the first cluster has an edge with most others, merged in pairs
    ends = np.concatenate([[[0, b] for b in range(1, n)], [[b, b + 1] for b in range(1, n - 1, 2)]])
    q = clusters.singletons(np.arange(n), np.arange(n), ends, rng.random(len(ends)))
    gain = np.where(q.A > 0, 1.0, 0.0)
    (one, *_), (two, *_) = both(monkeypatch, lambda: clusters.merge_and_prune(q, gain))
    assert_same(one, two)
    assert one.n_edges == n // 2


@pytest.mark.parametrize("objects", [12, 90])
def test_prunings_are_the_same(monkeypatch, objects):
    rng, dropped, finished = np.random.default_rng(6), 0, 0
    for _ in range(20):
        q = quotient(rng, objects=objects, edges=60)
        q = clusters._merge(q, rng.random(q.n_edges))
        (one, *done), (two, *others) = both(monkeypatch, lambda q=q: clusters.prune(q))
        assert_same(one, two)
        for part, other in zip(done, others, strict=True):
            np.testing.assert_array_equal(part, other)
        dropped += q.n_edges - one.n_edges
        finished += q.n - one.n
    assert dropped > 20
    assert finished > 20


@pytest.mark.parametrize("hub", [3, 64])
@pytest.mark.parametrize("rule", [triangles, squares, few_choices, partial(few_choices, most=4)])
def test_evidence_is_the_same(monkeypatch, rule, hub):
    monkeypatch.setattr(rules, "_HUB", hub)
    rng, found = np.random.default_rng(9), 0
    for _ in range(10):
        q = quotient(rng, n=80, objects=200, edges=260)
        one, two = both(monkeypatch, lambda q=q: rule_gain(q, rule))
        np.testing.assert_array_equal(one, two)
        found += np.count_nonzero(one)
        assert (q.count > 1).any()
    assert found > 50


def test_matches_are_sorted_by_their_ends(monkeypatch):
    rng = np.random.default_rng(10)
    problem, _ = datasets.scene(300, 20, 60, 120, wrong=0.3, missing=0.3, rng=1)
    ends, chosen = problem.endpoints, rng.random(problem.n_points) < 0.7
    one, two = both(monkeypatch, lambda: matches_of(chosen, ends))
    for part, other in zip(one, two, strict=True):
        np.testing.assert_array_equal(part, other)
    np.testing.assert_array_equal(ends[one[0]], one[1])
    assert 0 < len(one[0]) < len(ends)
    backwards = np.ascontiguousarray(ends[::-1])
    assert kernels.sorted_matches(backwards, chosen) is None  # NumPy has to do it
    np.testing.assert_array_equal(matches_of(chosen, backwards)[1], one[1])


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


def test_components_pieces_and_the_heavier_of_two_answers(monkeypatch):
    rng, conflicts = np.random.default_rng(4), set()
    for n in (2, 30, 600):
        track, objects, ends = tracks_in_conflict(rng, n, 25, n // 2)
        weights, labels = rng.random(len(ends)), np.where(rng.random(n) < 0.2, -1, rng.integers(5, size=n))
        for given in (np.sort(objects), objects):  # of which the second is left to NumPy
            (component, broken), plain = both(monkeypatch, lambda given=(given, ends): split(*given))
            np.testing.assert_array_equal(component, plain[0])
            np.testing.assert_array_equal(broken, plain[1])
            conflicts |= set(broken.tolist())
        given = rng.permutation(track), track, component, ends, weights
        for function in (lambda given=(labels, ends): clusters.pieces(*given), lambda given=given: _heavier(*given)):
            np.testing.assert_array_equal(*both(monkeypatch, function))
    assert conflicts == {False, True}


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
    clusters.prune(q)
    clusters.merge_and_prune(q, rng.random(q.n_edges))
    clusters._contracted(*q.arrays[3:7], q.n)
    clusters.conflicting(q, q.A, q.B)
    for rule in (triangles, squares, few_choices):
        rule_gain(q, rule)
    matches_of(np.ones(len(q.points), dtype=bool), np.stack([q.A, q.B], axis=1))
    ordered(*rng.integers(50, size=(2, 5000)))
    track, objects, ends = tracks_in_conflict(rng)
    join(track, objects, ends, rng.random(len(ends)), rng.random((len(track), 2)))
    clusters.pieces(track, ends)
    component, _ = split(np.sort(objects), ends)
    _heavier(component, track, component, ends, rng.random(len(ends)))
    assert len(called) == 14  # all kernels of tracks
