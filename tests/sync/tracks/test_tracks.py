"""Tracks in large universes: invariants, the scene's targets, and every vectorised step against a slow one."""

from __future__ import annotations

import resource
import subprocess
import sys
import tracemalloc
from dataclasses import asdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stiefelsync import Matchings, datasets, score
from stiefelsync.matching.graph import components, conflicts
from stiefelsync.sync.tracks import clusters, integer_arrays, rules
from stiefelsync.sync.tracks.grow import _clusters, grow_by_weight, grow_tracks, split
from stiefelsync.sync.tracks.join import join

SCENE = {"points": 20_000, "cameras": 200, "seen": 1_000, "window": 2_000, "missing": 0.3}


@st.composite
def problems(draw: st.DrawFn) -> Matchings:
    """Small problems of any shape: mostly consistent ones with some matches sent elsewhere."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = np.array(draw(st.lists(st.integers(0, 6), min_size=2, max_size=8)))
    truth = np.concatenate([[], *(rng.permutation(8)[:n] for n in sizes)]).astype(int)
    clean = Matchings.from_labels(truth, sizes)
    clean = clean.keep(rng.random(clean.n_matches) < draw(st.floats(0.2, 1)))
    points = clean.indices.copy()
    moved = rng.random(len(points)) < draw(st.floats(0, 0.6))
    objects = clean.pair_objects[clean.match_pairs]
    points[moved, 1] = rng.integers(0, 6, moved.sum()) % sizes[objects[moved, 1]]
    return Matchings.from_arrays(objects, points, sizes, one_to_many="repair")


@settings(max_examples=150, deadline=None)
@given(problems())
def test_no_object_has_two_points_in_a_track(problem: Matchings) -> None:
    labels = grow_tracks(problem).labels
    Matchings.from_labels(labels, problem.sizes)  # raises if two points of an object carry one label
    used = np.unique(labels[labels >= 0])
    np.testing.assert_array_equal(used, np.arange(len(used)))
    assert np.bincount(labels[labels >= 0]).min(initial=2) >= 2


@settings(max_examples=100, deadline=None)
@given(problems())
def test_consistent_components_stay_whole_and_tracks_stay_inside_components(problem: Matchings) -> None:
    labels = grow_tracks(problem).labels
    _, component = components(problem)
    broken = np.isin(component, conflicts(problem, component).which)
    for c in np.unique(component):
        inside = labels[component == c]
        if broken[component == c].any():
            continue
        assert len(set(inside.tolist())) == 1
        assert (inside[0] == -1) == (len(inside) == 1)
    for t in range(labels.max(initial=-1) + 1):
        assert len(set(component[labels == t].tolist())) == 1


@settings(max_examples=100, deadline=None)
@given(problems(), st.booleans(), st.booleans())
def test_account_adds_up(problem: Matchings, weighed: bool, placed: bool) -> None:
    rng = np.random.default_rng(problem.n_matches)
    problem = problem.with_weights(rng.random(problem.n_matches) + 0.1 if weighed else None)
    outcome = grow_tracks(problem, places=2 * rng.random((problem.n_points, 2)) if placed else None)
    details, matches = outcome.details, outcome.details.matches_by_rule
    assert sum(details.points_by_rule.values()) == problem.n_points
    assert sum(asdict(matches).values()) == problem.n_matches
    assert details.consistent_tracks + details.repaired_tracks == outcome.labels.max(initial=-1) + 1
    a, b = problem.endpoints.T
    kept = (outcome.labels[a] == outcome.labels[b]) & (outcome.labels[a] >= 0)
    assert matches.consistent + matches.kept == kept.sum()


def test_without_wrong_matches_the_answer_is_union_find() -> None:
    problem, _ = datasets.scene(**SCENE, wrong=0.0, rng=1)
    _, component = components(problem)
    size = np.bincount(component)
    labels = grow_tracks(problem).labels
    np.testing.assert_array_equal(labels < 0, size[component] == 1)
    matched = labels >= 0
    assert len(np.unique(np.stack([labels, component])[:, matched], axis=1).T) == labels.max() + 1
    assert len(np.unique(component[matched])) == labels.max() + 1


@pytest.mark.parametrize(("wrong", "least"), [(0.1, 0.99), (0.3, 0.96), (0.5, 0.85)])
def test_scene_with_wrong_matches(wrong: float, least: float) -> None:
    problem, truth = datasets.scene(**SCENE, wrong=wrong, rng=2)
    outcome = grow_tracks(problem)
    assert score(outcome.labels, truth).fscore >= least
    a, b = problem.endpoints.T
    assert abs(outcome.details.wrong - (truth[a] != truth[b]).mean()) < 0.03


@pytest.mark.slow
def test_million_points_need_little_memory() -> None:
    program = (
        "from stiefelsync import datasets\n"
        "from stiefelsync.sync.tracks.grow import grow_tracks\n"
        "problem, _ = datasets.scene(100_000, 1_000, 1_000, 2_000, wrong=0.3, missing=0.3, rng=0)\n"
        "assert problem.n_points == 1_000_000\n"
        "grow_tracks(problem)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1.5e6  # kilobytes


def test_same_score_whatever_the_order_of_objects() -> None:
    problem, truth = datasets.scene(1_000, 40, 250, 500, 0.3, 0.3, rng=3)
    order = np.random.default_rng(0).permutation(40)
    turned = np.concatenate([truth[problem.offsets[o] : problem.offsets[o + 1]] for o in order])
    one = score(grow_tracks(problem).labels, truth).fscore
    other = score(grow_tracks(problem[order]).labels, turned).fscore
    assert min(one, other) > 0.95
    assert abs(one - other) < 0.01


def test_equal_calls_give_equal_answers() -> None:
    problem, _ = datasets.scene(1_000, 40, 250, 500, 0.4, 0.3, rng=4)
    np.testing.assert_array_equal(grow_tracks(problem).labels, grow_tracks(problem).labels)


def test_weight_decides_where_evidence_is_equal() -> None:
    pairs = {(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}  # a path from one point of object 0 to another
    for heavy in pairs:
        weights = {key: [2.0 if key == heavy else 1.0] for key in pairs}
        problem = Matchings.from_pairs(pairs, [2, 1, 1], weights=weights)
        labels = grow_tracks(problem).labels
        (a, b) = problem.keep(problem.weights == 2.0).endpoints[0]
        assert labels[a] == labels[b] >= 0


def test_weights_that_know_something_help() -> None:
    problem, truth = datasets.scene(1_000, 40, 250, 500, 0.5, 0.3, rng=3)
    rng = np.random.default_rng(0)
    a, b = problem.endpoints.T
    weights = np.where(truth[a] == truth[b], rng.beta(6, 2, len(a)), rng.beta(2, 4, len(a))) + 0.01
    told = score(grow_tracks(problem.with_weights(weights)).labels, truth).fscore
    assert told > score(grow_tracks(problem).labels, truth).fscore + 0.02


@settings(max_examples=50, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_merging_the_heaviest_first_leaves_nothing_to_merge(problem: Matchings, seed: int) -> None:
    points, weights = np.arange(problem.n_points), np.random.default_rng(seed).random(problem.n_matches) + 0.1
    track, _, _ = grow_by_weight(_clusters(points, problem.point_objects, problem.endpoints, weights), points, None)
    Matchings.from_labels(track, problem.sizes)
    for a, b in track[problem.endpoints]:
        both = problem.point_objects[(track == a) | (track == b)]
        assert a == b or len(set(both.tolist())) < len(both)
    if problem.n_matches:
        a, b = problem.endpoints[weights.argmax()]
        assert track[a] == track[b]


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_every_track_hangs_together_by_its_matches(problem: Matchings, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for weights in (None, rng.random(problem.n_matches) + 0.1):
        for places in (None, 2 * rng.random((problem.n_points, 2))):
            labels = grow_tracks(problem.with_weights(weights), places=places).labels
            Matchings.from_labels(labels, problem.sizes)
            a, b = problem.endpoints.T
            _, piece = components(problem.keep((labels[a] == labels[b]) & (labels[a] >= 0)))
            assert len(np.unique(piece[labels >= 0])) == labels.max(initial=-1) + 1


def test_no_few_matches_outvote_all_the_others() -> None:
    problem, truth = datasets.scene(1_000, 40, 250, 500, 0.3, 0.3, rng=3)
    plain = score(grow_tracks(problem).labels, truth).fscore
    a, b = truth[problem.endpoints].T
    outlier = np.ones(len(a))
    outlier[np.flatnonzero(a != b)[0]] = 1e6
    assert score(grow_tracks(problem.with_weights(outlier)).labels, truth).fscore > plain - 0.005
    meaningless = np.random.default_rng(0).lognormal(0, 2, len(a))
    assert score(grow_tracks(problem.with_weights(meaningless)).labels, truth).fscore > plain - 0.03


@pytest.mark.filterwarnings("error")
def test_the_unit_of_weights_does_not_matter() -> None:
    problem, _ = datasets.scene(300, 20, 100, 200, 0.3, 0.3, rng=3)
    weights = np.random.default_rng(0).random(problem.n_matches) + 0.5
    places = np.random.default_rng(1).random((problem.n_points, 2)) * 20
    one = grow_tracks(problem.with_weights(weights), places=places).labels
    for factor in (2.0**-1000, 2.0**-40, 2.0**40, 2.0**300):
        other = grow_tracks(problem.with_weights(weights * factor), places=places).labels
        np.testing.assert_array_equal(other, one)
    same = grow_tracks(problem.with_weights(np.full(problem.n_matches, 1e-200))).labels
    np.testing.assert_array_equal(same, grow_tracks(problem).labels)


@pytest.mark.filterwarnings("error")
def test_weights_of_any_size_come_to_an_end() -> None:
    problem, truth = datasets.scene(300, 20, 100, 200, 0.3, 0.3, rng=3)
    some = np.random.default_rng(0).random(problem.n_matches) < 0.5
    outcome = grow_tracks(problem.with_weights(np.where(some, 1e100, 1e-300)))
    assert outcome.status == "done"
    assert score(outcome.labels, truth).fscore > score(grow_tracks(problem).labels, truth).fscore - 0.1


def test_a_long_chain_of_growing_weights_ends_soon() -> None:
    n = 3_000  # objects 0 1 2 0 1 2 …: only neighbours in the chain can be one
    owner, place = np.arange(n) % 3, np.arange(n) // 3
    pairs, points = np.stack([owner[:-1], owner[1:]], axis=1), np.stack([place[:-1], place[1:]], axis=1)
    problem = Matchings.from_arrays(pairs, points, [n // 3] * 3, weights=1 + np.arange(n - 1) / n)
    assert grow_tracks(problem).n_iter < 100


def test_larger_pairs_of_objects_are_trusted_more() -> None:
    path = {(0, 1): [0, 0], (1, 2): [0, 0], (0, 2): [1, 0]}  # from one point of object 0 to another
    for small in path:
        pairs = {key: [match, *([p, p] for p in range(2, 2 if key == small else 12))] for key, match in path.items()}
        problem = Matchings.from_pairs(pairs, [12, 12, 12])
        labels = grow_tracks(problem).labels
        for key, match in path.items():
            a, b = labels[problem.offsets[list(key)] + match]
            assert (a == b >= 0) == (key != small)


def test_no_matches_and_no_points() -> None:
    assert grow_tracks(Matchings.from_pairs({}, [2, 0, 3])).labels.tolist() == [-1] * 5
    assert grow_tracks(Matchings.from_pairs({}, [])).labels.tolist() == []


def test_callback_sees_progress_and_can_stop() -> None:
    problem, _ = datasets.scene(1_000, 40, 250, 500, 0.4, 0.3, rng=5)
    seen: list[int] = []
    full = grow_tracks(problem, callback=lambda progress: seen.append(progress.step))
    assert seen == sorted(seen)
    assert len(seen) == full.n_iter > 5
    early = grow_tracks(problem, callback=lambda _: True)
    assert early.n_iter == 1
    assert early.status == "stopped by the callback"
    Matchings.from_labels(early.labels, problem.sizes)


# ---------------------------------------------------------------- the steps, against slow ones


@settings(max_examples=100, deadline=None)
@given(problems())
def test_components_are_named_by_their_first_points(problem: Matchings) -> None:
    track, conflicted = split(problem.point_objects, problem.endpoints)
    _, number = components(problem)
    _, first = np.unique(number, return_index=True)
    np.testing.assert_array_equal(track, first[number])
    for name in set(track.tolist()):
        objects = problem.point_objects[track == name]
        assert set(conflicted[track == name]) == {len(set(objects.tolist())) < len(objects)}


def quotient(rng: np.random.Generator, n: int = 40, k: int = 12, density: float = 0.15) -> clusters.Quotient:
    """A random quotient without conflicting edges: clusters of one to three objects."""
    held = [np.sort(rng.permutation(k)[: rng.integers(1, 4)]) for _ in range(n)]
    start = np.append(0, np.cumsum([len(h) for h in held]))
    edges = [(i, j) for i, j in combinations(range(n), 2) if rng.random() < density and not set(held[i]) & set(held[j])]
    A, B = np.array(edges).T.copy()
    return clusters.Quotient(
        rng.permutation(start[-1]), np.concatenate(held), start, A, B,
        rng.integers(1, 4, len(A)), rng.random(len(A)) + 0.1, np.zeros(n, dtype=bool),
    )  # fmt: skip


def adjacency(q: clusters.Quotient) -> np.ndarray:
    W = np.zeros((q.n, q.n), dtype=int)
    W[q.A, q.B] = W[q.B, q.A] = 1
    return W


def shares_an_object(q: clusters.Quotient, i: int, j: int) -> bool:
    return bool(set(q.objects[q.start[i] : q.start[i + 1]]) & set(q.objects[q.start[j] : q.start[j + 1]]))


@pytest.mark.parametrize("seed", range(5))
def test_triangle_counts_are_entries_of_the_square(seed: int) -> None:
    q = quotient(np.random.default_rng(seed), density=0.4)
    W = adjacency(q)
    expected = (W @ W)[q.A, q.B]
    np.testing.assert_array_equal(rules.triangle_counts(q.A, q.B, q.n), expected)


@pytest.mark.parametrize("seed", range(5))
def test_squares_are_cycles_of_four_without_opposite_conflicts(seed: int) -> None:
    q = quotient(np.random.default_rng(seed))
    W = adjacency(q)
    cycles = np.zeros(q.n_edges, dtype=int)
    for e, (a, b) in enumerate(zip(q.A, q.B, strict=True)):
        for c in np.flatnonzero(W[b]):
            for d in np.flatnonzero(W[c] & W[a]):
                if c == a or d == b:
                    continue
                # Each cycle a b c d has the diagonals a c and b d, and speaks as often as they are free of conflict.
                cycles[e] += int(not shares_an_object(q, a, c)) + int(not shares_an_object(q, b, d))
    value = cycles * q.weight / q.count
    np.testing.assert_allclose(rules.squares(q), value / (1 + value))


def test_squares_need_memory_for_the_edges_only() -> None:
    rng, n, degree = np.random.default_rng(0), 4_000, 40  # two sides of n points: 6.4 million paths, no triangle
    ends = np.stack([np.repeat(np.arange(n), degree), n + rng.integers(0, n, n * degree)], axis=1)
    ends = np.unique(ends, axis=0)
    q = clusters.singletons(np.arange(2 * n), np.repeat([0, 1], n), ends, np.ones(len(ends)))
    tracemalloc.start()
    rules.squares(q)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * q.n_edges  # bytes; all paths at once would take several times that


@pytest.mark.parametrize("k", [12, 80, 300])  # more than 64 objects do not fit into a word
@pytest.mark.parametrize("seed", range(5))
def test_conflicting(seed: int, k: int) -> None:
    q = quotient(np.random.default_rng(seed), n=80, k=k)
    A, B = np.triu_indices(q.n, 1)
    expected = [shares_an_object(q, i, j) for i, j in zip(A, B, strict=True)]
    assert any(expected)
    np.testing.assert_array_equal(clusters.conflicting(q, A, B), expected)


@pytest.mark.parametrize("n_wanted", [0, 50, 5_000])  # few are searched for, many go through a table first
def test_find(n_wanted: int) -> None:
    rng = np.random.default_rng(n_wanted)
    keys = np.unique(rng.integers(0, 2**40, 500) // 1_000 * 1_024)  # many low bits in common
    wanted = np.append(rng.choice(keys, n_wanted // 2), rng.integers(0, 2**40, n_wanted - n_wanted // 2))
    which, where = integer_arrays.find(keys, wanted)
    np.testing.assert_array_equal(np.sort(which), np.flatnonzero(np.isin(wanted, keys)))
    np.testing.assert_array_equal(keys[where], wanted[which])


@pytest.mark.parametrize("most", [2**10, 2**62])  # with and without room for the places in the low bits
def test_ordered_is_a_stable_sort(most: int) -> None:
    rng = np.random.default_rng(0)
    keys = rng.choice(rng.integers(0, most, 300), 1_000)
    np.testing.assert_array_equal(integer_arrays.ordered(keys), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("seed", range(10))
def test_merge_keeps_points_counts_and_constraints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = quotient(rng)
    after, done, first, dropped = clusters.merge_and_prune(q, rng.random(q.n_edges))
    assert after.n < q.n
    assert sorted([*after.points, *done]) == sorted(q.points)
    for i in range(after.n):
        objects = after.objects[after.start[i] : after.start[i + 1]]
        assert (np.diff(objects) > 0).all()
    assert (after.A < after.B).all()
    assert (np.diff(after.A * after.n + after.B) > 0).all()
    where = np.empty(len(q.points), dtype=int)
    where[after.points], where[done] = after.points[after.start[after.clusters]], first
    ends = where[q.points[q.start[:-1]]]
    between = ends[q.A] != ends[q.B]
    assert after.count.sum() + dropped == q.count[between].sum()
    a, b = ends[q.A[between]], ends[q.B[between]]
    left = np.isin(a, after.points) & np.isin(b, after.points)  # ends of which none is in a finished cluster
    assert after.weight.sum() <= q.weight[between][left].sum() + 1e-12
    assert not clusters.conflicting(after, after.A, after.B).any()


def test_prune_drops_an_edge_that_can_never_be_merged() -> None:
    q = clusters.singletons(np.arange(3), np.array([0, 1, 0]), np.array([[0, 1], [1, 2]]), np.array([2.0, 1.0]))
    rest, points, track, dropped = clusters.merge_and_prune(q, np.array([2.0, 1.0]))
    assert rest.n == rest.n_edges == 0
    assert dropped == 1
    assert points.tolist() == [0, 1, 2]
    assert track.tolist() == [0, 0, 2]


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_joining_never_loses_weight_and_never_breaks_a_track(problem: Matchings, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.random(problem.n_matches) + 0.1
    track = np.arange(problem.n_points)
    for a, b in problem.endpoints[rng.random(problem.n_matches) < 0.5]:  # any tracks will do as a start
        both = np.isin(track, track[[a, b]])
        if len(set(problem.point_objects[both].tolist())) == both.sum():
            track[both] = np.flatnonzero(both)[0]
    a, b = problem.endpoints.T
    after, joined = join(track, problem.point_objects, problem.endpoints, weights)
    Matchings.from_labels(after, problem.sizes)
    gain = weights[after[a] == after[b]].sum() - weights[track[a] == track[b]].sum()
    assert gain >= 0
    assert (gain > 0) == (joined > 0)
    if not joined:
        np.testing.assert_array_equal(after, track)


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_afterwards_no_two_tracks_gain_by_joining(problem: Matchings, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, owner, ends = rng.random(problem.n_matches) + 0.1, problem.point_objects, problem.endpoints
    places = 3 * rng.random((problem.n_points, 2))
    a, b = ends.T
    for where in (None, places) if len(a) > 1 else ():  # a single match is one of those of one weight
        track, joined = join(np.arange(problem.n_points), owner, ends, weights, where)
        for _ in range(10):  # a track that falls apart may leave something to do
            if joined:
                track, joined = join(track, owner, ends, weights, where)
        assert not joined or where is not None  # copies may win a match over and over, to lose another
        for A, B in {tuple(sorted(pair)) for pair in track[ends].tolist() if pair[0] != pair[1] and not joined}:
            both = np.flatnonzero((track == A) | (track == B))
            clashes = [(x, y) for x, y in combinations(both, 2) if owner[x] == owner[y]]
            clashes = [(x, y) if track[x] == A else (y, x) for x, y in clashes]
            copies = 0.0
            if where is not None and len(clashes) < min((track == A).sum(), (track == B).sum()):
                copies = weights.mean() * sum(np.hypot(*(where[x] - where[y])) < 1 for x, y in clashes)
            before = weights[(track[a] == track[b]) & np.isin(a, both)].sum()
            for side in (0, 1):
                stay = np.setdiff1d(both, [clash[side] for clash in clashes])
                kept = np.isin(a, stay) & np.isin(b, stay)
                linked = (track[a] != track[b])[kept].any()
                assert weights[kept].sum() + copies * linked <= before + 1e-6


def test_a_join_by_copies_makes_a_longer_track() -> None:
    # Point 3 is a copy of point 2 and knows point 0 nearly as well: nothing is won by taking it instead.
    ends, weights = np.array([[0, 1], [0, 2], [0, 3]]), np.array([1.0, 1.0, 0.9])
    track, owner = np.array([0, 0, 0, 3]), np.array([0, 1, 2, 2])
    assert join(track, owner, ends, weights, np.zeros((4, 2)))[0].tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize("unit", [0.01, 1.0, 100.0])
def test_all_copies_of_one_track_may_go(unit: float) -> None:
    # Points 1 and 5 are copies, and 3 and 6. Point 1 has more matches than 5, but less is lost if 1 and 3 go together.
    owner = np.array([0, 3, 4, 5, 2, 3, 5, 6, 7])
    first = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    second = [(4, 5), (4, 6), (4, 7), (5, 6), (5, 7), (6, 7), (7, 8)]
    ends = np.array([*first, *second, (2, 4), (2, 7), (2, 8)])
    heavier = {(1, 2): 1.4, (5, 6): 1.2}
    weights = unit * np.array([heavier.get((a, b), 1.0) for a, b in ends.tolist()])
    track = np.array([0, 0, 0, 0, 4, 4, 4, 4, 4])
    assert join(track, owner, ends, weights, np.zeros((9, 2)))[0].tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0]
    assert join(track, owner, ends, weights)[0].tolist() == track.tolist()


def test_a_join_by_copies_needs_a_match() -> None:
    # The only match between the tracks leads to point 3, the copy that would have to go.
    ends, weights = np.array([[0, 1], [0, 2], [1, 2], [3, 4], [0, 3]]), np.array([1.0, 1.0, 1.0, 0.5, 0.3])
    track, owner = np.array([0, 0, 0, 3, 3]), np.array([0, 1, 2, 2, 3])
    assert join(track, owner, ends, weights, np.zeros((5, 2)))[0].tolist() == [0, 0, 0, 3, 3]


def test_a_weak_match_does_not_glue_two_tracks() -> None:
    # Points 3 and 4 are of one object. Merged by cycles and choices, .1 and .2 win over .8; not so by weight.
    owner, local = np.array([0, 1, 2, 3, 3, 4, 5]), np.array([0, 0, 0, 0, 1, 0, 0])
    ends = np.array([[0, 1], [0, 3], [1, 2], [1, 5], [2, 4], [3, 5], [5, 6]])
    weights = [0.72, 0.11, 0.78, 0.25, 0.82, 0.63, 0.70]
    problem = Matchings.from_arrays(owner[ends], local[ends], [1, 1, 1, 2, 1, 1], weights=weights)
    outcome = grow_tracks(problem)
    assert outcome.labels.tolist() == [0, 0, 0, 1, 0, 1, 1]
    assert outcome.details.points_by_rule["heaviest first"] == 7


def test_a_point_found_twice_does_not_split_a_track() -> None:
    # Objects 0 to 5 see one point, object 2 twice: points 2 and 3. Both halves of the track know one of them.
    owner = np.array([0, 1, 2, 2, 3, 4, 5])
    halves = [*combinations([0, 1, 2], 2), *combinations([3, 4, 5, 6], 2)]
    ends = np.array([*halves, (0, 4), (0, 5), (1, 4), (1, 6)])
    track, joined = join(np.array([0, 0, 0, 3, 3, 3, 3]), owner, ends, np.ones(len(ends)))
    assert joined == 1
    assert track.tolist() == [0, 0, 2, 0, 0, 0, 0]  # point 2 has fewer matches than point 3
    problem = Matchings.from_arrays(owner[ends], ends - np.array([0, 1, 2, 2, 4, 5, 6])[ends], [1, 1, 2, 1, 1, 1])
    assert grow_tracks(problem).labels.tolist() == [0, 0, -1, 0, 0, 0, 0]
