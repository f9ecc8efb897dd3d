"""Kernels of tracks, against loops over points, matches and clusters that say what they do."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, pairwise

import numpy as np
import pytest

from stiefelsync._core.binding import call

SHUFFLE = 2654435761  # odd: multiplication permutes 31-bit numbers, so that ties make short trees and not chains


def matches(rng: np.random.Generator, n: int, count: int) -> np.ndarray:
    """Return matches of n points, the smaller first, (M, 2), in any order and some of them twice."""
    ends = np.sort(rng.integers(n, size=(count, 2)), axis=1) if n else np.empty((0, 2), dtype=np.int64)
    return np.ascontiguousarray(ends[ends[:, 0] < ends[:, 1]])


@pytest.mark.parametrize("n", [0, 1, 2, 50, 3000])
@pytest.mark.parametrize("most", [0, 1, 7, 4000])
def test_orders_are_stable(n, most):
    major, minor = np.random.default_rng(n).integers(most + 1, size=(2, n))
    order, largest = np.empty(n, dtype=np.int64), np.array([most, most])
    call("order_by", major, None, n, largest, order)
    assert order.tolist() == sorted(range(n), key=lambda t: major[t])
    call("order_by", major, minor, n, largest, order)
    assert order.tolist() == sorted(range(n), key=lambda t: (major[t], minor[t]))


@pytest.mark.parametrize("n", [0, 1, 30])
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_matches_of_chosen_points_are_sorted_by_their_first(n, share):
    rng = np.random.default_rng(n)
    ends, chosen = matches(rng, n, 80), rng.random(n) < share
    for given in (ends, np.unique(ends, axis=0)):  # of which the second ascends
        M = len(given)
        by_ends, order, rising = np.empty((M, 2), np.int64), np.empty(M, np.int64), np.empty(1, np.bool_)
        found = call("sort_matches", given, M, chosen, n, by_ends, order, rising)
        expected = sorted((t for t in range(M) if chosen[given[t, 0]]), key=lambda t: given[t, 0])
        assert order[:found].tolist() == expected
        assert by_ends[:found].tolist() == given[expected].tolist()
        pairs = given[expected].tolist()
        assert rising[0] == (pairs == sorted(pairs))


def test_edges_are_contracted():
    rng = np.random.default_rng(0)
    for n, E in ((1, 5), (4, 0), (4, 40), (60, 300)):
        A, B, count = rng.integers(n, size=E), rng.integers(n, size=E), rng.integers(1, 4, size=E)
        weight = rng.integers(1, 9, E) / 4
        one, two, counts, weights = np.empty(E, np.int64), np.empty(E, np.int64), np.empty(E, np.int64), np.empty(E)
        left = call("contract_edges", A, B, count, weight, E, n, one, two, counts, weights)
        sums: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0.0])
        for a, b, c, w in zip(A.tolist(), B.tolist(), count.tolist(), weight.tolist(), strict=True):
            if a != b:
                sums[min(a, b), max(a, b)][0] += c
                sums[min(a, b), max(a, b)][1] += w
        assert list(zip(one[:left].tolist(), two[:left].tolist(), strict=True)) == sorted(sums)
        assert counts[:left].tolist() == [sums[key][0] for key in sorted(sums)]
        assert weights[:left].tolist() == [sums[key][1] for key in sorted(sums)]


def connected(members: list[int], edges: list[tuple[int, int]]) -> dict[int, int]:
    """Return the first of those that edges connect with each member."""
    first = {p: p for p in members}
    for a, b in edges:
        low, high = sorted((first[a], first[b]))
        first = {p: low if f == high else f for p, f in first.items()}
    return first


@pytest.mark.parametrize("n", [0, 1, 2, 40])
@pytest.mark.parametrize("counted", [False, True])
def test_pieces_of_labels(n, counted):
    rng = np.random.default_rng(n)
    for labels in (rng.integers(-1, 4, n), np.zeros(n, dtype=np.int64), np.full(n, -1)):
        ends, first = matches(rng, n, n), np.empty(n, dtype=np.int64)
        some = rng.random(len(ends)) < 0.5 if counted else None
        call("find_parts", labels, n, ends, len(ends), some, first)
        edges = [
            (a, b)
            for t, (a, b) in enumerate(ends.tolist())
            if labels[a] == labels[b] >= 0 and (some is None or some[t])
        ]
        assert first.tolist() == list(connected(list(range(n)), edges).values())


def test_agreement_comparison_and_broken_components():
    rng = np.random.default_rng(1)
    for n in (1, 2, 60):
        ends, labels = matches(rng, n, 3 * n), rng.integers(-1, 5, n)
        M, agree, gain, weights = len(ends), np.empty(len(ends), bool), np.zeros(n), rng.integers(1, 9, len(ends)) / 4
        call("find_agreeing", ends, M, labels, agree)
        assert agree.tolist() == [labels[a] == labels[b] >= 0 for a, b in ends.tolist()]
        component, other, track = rng.integers(n, size=(3, n))
        call("compare_tracks", ends, weights, M, other, track, component, gain)
        expected = [0.0] * n
        for (a, b), w in zip(ends.tolist(), weights.tolist(), strict=True):
            expected[component[a]] += w * (int(other[a] == other[b]) - int(track[a] == track[b]))
        assert gain.tolist() == expected
        objects, last, broken = np.sort(rng.integers(n // 2 + 1, size=n)), np.full(n, -1, np.int32), np.zeros(n, bool)
        call("find_broken_components", component, objects.astype(np.int32), n, last, broken)
        held = [
            [o for o, c in zip(objects.tolist(), component.tolist(), strict=True) if c == name] for name in range(n)
        ]
        assert broken.tolist() == [len(set(one)) < len(one) for one in held]


class Clusters:
    """Clusters of points of different objects, edges between those without an object in common, as lists and arrays."""

    def __init__(self, rng: np.random.Generator, n: int, objects: int, edges: int, largest: int = 4) -> None:
        self.held = [
            sorted(rng.choice(objects, rng.integers(1, largest + 1), replace=False).tolist()) for _ in range(n)
        ]
        sizes = [len(one) for one in self.held]
        self.start = np.append(0, np.cumsum(sizes)).astype(np.int64)
        self.objects = np.array([o for one in self.held for o in one], dtype=np.int64)
        self.points = rng.permutation(len(self.objects)).astype(np.int64)
        self.k = objects
        pairs = sorted({tuple(sorted(pair)) for pair in rng.integers(n, size=(edges, 2)).tolist()})
        pairs = [(a, b) for a, b in pairs if a != b and not set(self.held[a]) & set(self.held[b])]
        self.A, self.B = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
        self.count = rng.integers(1, 3, len(pairs))
        self.weight = rng.integers(1, 9, len(pairs)) / 4

    @property
    def n(self) -> int:
        return len(self.held)

    def merge(self, gain: np.ndarray | None, untested: np.ndarray) -> tuple[list[list[object]], list[int]]:
        """Return what the kernel makes of them: clusters left, edges, finished points, marks; and matches dropped."""
        p, n, E = len(self.points), self.n, len(self.A)
        points, objects, start, A, B, count = (np.empty(size, dtype=np.int64) for size in (p, p, n + 1, E, E, E))
        weight, done, first, left = np.empty(E), np.empty(p, np.int64), np.empty(p, np.int64), np.empty(4, np.int64)
        lost_edge = np.zeros(p, dtype=bool)
        call(
            "merge_round", self.points, self.objects, self.start, n, self.k, self.A, self.B, self.count, self.weight, E,
            gain, untested, points, objects, start, A, B, count, weight, done, first, lost_edge, left,
        )  # fmt: skip
        n, E, stay, dropped = left.tolist()
        clusters = [points[a:b].tolist() for a, b in pairwise(start[: n + 1])]
        edges = [x[:E].tolist() for x in (A, B, count, weight)]
        return [clusters, *edges, done[: p - stay].tolist(), first[: p - stay].tolist(), lost_edge.tolist()], dropped


def literal_round(q: Clusters, gain: np.ndarray | None, untested: np.ndarray) -> tuple[list[list[object]], int]:
    """One round of Borůvka's rule that breaks no track, as `merge_and_prune` documents it."""
    tree, grown = list(range(q.n)), list(untested)
    if gain is not None:
        candidates = [e for e in range(len(q.A)) if gain[e] > 0]
        # By gain in single precision, then by a shuffled number.
        priority = {e: (float(np.float32(gain[e])), t * SHUFFLE % 2**31) for t, e in enumerate(candidates)}
        best: dict[int, int] = {}
        for e in candidates:
            for v in (int(q.A[e]), int(q.B[e])):
                if v not in best or priority[e] > priority[best[v]]:
                    best[v] = e
        chosen = [(int(q.A[e]), int(q.B[e])) for e in set(best.values())]
        mutual = {(int(q.A[e]), int(q.B[e])) for e in best.values() if best[int(q.A[e])] == best[int(q.B[e])] == e}
        whole = connected(list(range(q.n)), chosen)
        for root in set(whole.values()):
            inside = [v for v in range(q.n) if whole[v] == root]
            held = [o for v in inside for o in q.held[v]]
            if len(set(held)) < len(held):  # the tree would break a track: only edges that are the best of both ends
                own = connected(inside, [pair for pair in mutual if pair[0] in inside])
            else:
                own = connected(inside, [pair for pair in chosen if pair[0] in inside])
            for v in inside:
                tree[v] = own[v]
        grown = [tree.count(tree[v]) > 1 for v in range(q.n)]
    names = sorted(set(tree))  # by the first cluster of each
    members = [sorted((o, x) for v in range(q.n) if tree[v] == name for o, x in zip(
        q.held[v], q.points[q.start[v] : q.start[v + 1]].tolist(), strict=True)) for name in names]  # fmt: skip
    fresh_names = [any(grown[v] for v in range(q.n) if tree[v] == name) for name in names]
    edges: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0.0])
    for a, b, c, w in zip(q.A.tolist(), q.B.tolist(), q.count.tolist(), q.weight.tolist(), strict=True):
        low, high = sorted((names.index(tree[a]), names.index(tree[b])))
        if low != high:
            edges[low, high][0] += c
            edges[low, high][1] += w
    lost_edge, dropped = [False] * len(q.points), 0
    for (a, b), (c, _) in list(edges.items()):
        if (fresh_names[a] or fresh_names[b]) and {o for o, _ in members[a]} & {o for o, _ in members[b]}:
            dropped += c
            lost_edge[members[a][0][1]] = lost_edge[members[b][0][1]] = True
            del edges[a, b]
    kept = sorted({v for pair in edges for v in pair})
    done = [(x, own[0][1]) for t, own in enumerate(members) if t not in kept for _, x in own]
    pairs = sorted(edges)
    return [
        [[x for _, x in members[t]] for t in kept],
        [kept.index(a) for a, _ in pairs], [kept.index(b) for _, b in pairs],
        [edges[pair][0] for pair in pairs], [edges[pair][1] for pair in pairs],
        [x for x, _ in done], [f for _, f in done], lost_edge,
    ], dropped  # fmt: skip


@pytest.mark.parametrize("objects", [12, 90])
@pytest.mark.parametrize("levels", [0, 1, 3, 1000])
def test_rounds_of_merging(objects, levels):
    """Gains all zero, of one or of few kinds, so that most tie; objects within the bits of a word, and beyond."""
    rng, merged, dropped = np.random.default_rng(levels), 0, 0
    for n, edges in ((1, 0), (2, 3), (30, 90), (60, 200)):
        for _ in range(8):
            q = Clusters(rng, n, objects, edges)
            gain = rng.integers(levels + 1, size=len(q.A)) / max(levels, 1)
            found, lost = q.merge(gain, np.zeros(n, dtype=bool))
            expected, also = literal_round(q, gain, np.zeros(n, dtype=bool))
            assert found == expected
            assert lost == also
            merged += q.n - len(found[0]) - len(set(found[6]))
            dropped += lost
    assert (merged > 50) == (dropped > 10) == (levels > 0)


def test_gains_that_are_not_numbers_speak_for_nothing():
    q = Clusters(np.random.default_rng(3), 20, 30, 60)
    gain = np.where(np.arange(len(q.A)) % 2, np.nan, 1.0)
    assert q.merge(gain, np.zeros(20, bool)) == literal_round(q, np.nan_to_num(gain), np.zeros(20, bool))


@pytest.mark.parametrize("objects", [12, 90])
def test_pruning_drops_edges_between_clusters_in_conflict_of_which_one_is_untested(objects):
    rng, dropped = np.random.default_rng(5), 0
    for _ in range(20):
        q = Clusters(rng, 30, objects, 0)
        pairs = np.unique(np.sort(rng.integers(30, size=(80, 2)), axis=1), axis=0)
        q.A, q.B = (np.ascontiguousarray(end) for end in pairs[pairs[:, 0] < pairs[:, 1]].T)
        q.count, q.weight = np.ones(len(q.A), dtype=np.int64), np.ones(len(q.A))
        untested = rng.random(30) < 0.3
        found, lost = q.merge(None, untested)
        assert (found, lost) == literal_round(q, None, untested)
        dropped += lost
    assert dropped > 20


def test_a_cluster_with_many_edges():
    """Rows longer than what is sorted by insertion."""
    rng, n = np.random.default_rng(8), 400
    q = Clusters(rng, n, n, 0, largest=1)
    q.held = [[v] for v in range(n)]
    q.objects = np.arange(n)
    ends = [[0, b] for b in range(1, n)] + [[b, b + 1] for b in range(1, n - 1, 2)]
    q.A, q.B = np.array(sorted(ends)).T.copy()
    q.count, q.weight = np.ones(len(ends), dtype=np.int64), rng.integers(1, 9, len(ends)) / 4
    gain = np.where(q.A > 0, 1.0, 0.0)
    found = q.merge(gain, np.zeros(n, bool))
    assert found == literal_round(q, gain, np.zeros(n, bool))
    assert len(found[0][1]) == n // 2


@pytest.mark.parametrize("objects", [5, 64, 65, 200])
def test_conflicts(objects):
    q = Clusters(np.random.default_rng(objects), 40, objects, 0)
    words = np.array([sum(1 << (o % 64) for o in set(h)) if len({o % 64 for o in h}) == len(h) else
                      int(np.bitwise_or.reduce([np.uint64(1) << np.uint64(o % 64) for o in h])) for h in q.held],
                     dtype=np.uint64)  # fmt: skip
    A, B = np.array(list(combinations(range(40), 2)), dtype=np.int64).T.copy()
    bad = np.empty(len(A), dtype=bool)
    call("find_conflicts", q.objects, q.start, words, A, B, len(A), bad)
    assert bad.tolist() == [bool(set(q.held[a]) & set(q.held[b])) for a, b in zip(A, B, strict=True)]
    assert bad.any()


def literal_join(track, objects, ends, weights, places, copy, rounding, least, rounds):
    """Join tracks round after round, as `join` documents it; every sum made anew."""
    n, track, joins, tried = len(track), list(track), 0, set()
    # Only points of tracks with enough matches between them and another take part, from the beginning on.
    between = Counter(frozenset((track[a], track[b])) for a, b in ends if track[a] != track[b])
    involved = {name for pair, count in between.items() if count >= least for name in pair}
    alone = [p for p in range(n) if track[p] not in involved]
    named = {p: track[p] for p in alone}
    inner = [(end, w) for end, w in zip(ends, weights, strict=True) if not named.keys() & set(end)]
    ends, weights = [end for end, _ in inner], [w for _, w in inner]
    members = defaultdict(list)
    for p in range(n):
        members[track[p]].append(p)
    for _ in range(rounds):
        bundle: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0.0])
        held, degree = [0.0] * n, [0.0] * n
        for (a, b), w in zip(ends, weights, strict=True):
            A, B = sorted((track[a], track[b]))
            if A == B:
                held[a] += w
                held[b] += w
            else:
                bundle[A, B][0] += 1
                bundle[A, B][1] += w
        names = {name: tuple(p for p in range(n) if track[p] == name) for name in set(track)}
        fresh = [
            (A, B) for (A, B), (count, _) in sorted(bundle.items())
            if count >= least and (A, B) not in tried
        ]  # fmt: skip
        if not fresh:
            break
        order = {pair: (float(np.float32(bundle[pair][1])), t * SHUFFLE % 2**31) for t, pair in enumerate(fresh)}
        best: dict[int, tuple[int, int]] = {}
        for pair in fresh:
            for name in pair:
                if name not in best or order[pair] > order[best[name]]:
                    best[name] = pair
        moves = []
        for A, B in fresh:
            if best[A] != (A, B) or best[B] != (A, B):
                continue
            tried.add((A, B))
            owner = {objects[p]: p for p in names[B]}
            clash = [(p, owner[objects[p]]) for p in names[A] if objects[p] in owner]
            both = set(names[A]) | set(names[B])
            inside = [(a, b, w) for (a, b), w in zip(ends, weights, strict=True) if a in both and b in both]
            for p in both:
                degree[p] = sum(w for a, b, w in inside if p in (a, b))
            near = sum(places is not None and sum((places[p] - places[q]) ** 2) < 1 for p, q in clash)
            earned = copy * near if len(clash) < min(len(names[A]), len(names[B])) else 0.0
            before = sum(w for a, b, w in inside if track[a] == track[b])
            gain, expelled = 0.0, None
            for choice in (
                [p if degree[p] < degree[q] else q for p, q in clash], [p for p, _ in clash], [q for _, q in clash],
            ):  # fmt: skip
                out = set(choice)
                kept = [(a, b, w) for a, b, w in inside if a not in out and b not in out]
                linked = any(track[a] != track[b] for a, b, _ in kept)
                gained = sum(w for *_, w in kept) - before + (earned if linked else 0.0)
                if gained > gain + rounding:
                    gain, expelled = gained, out
            if expelled is not None:
                moves.append((both, expelled))
        if not moves:
            continue
        before = track.copy()
        for both, expelled in moves:
            joins += 1
            name = min(both - expelled)
            for p in both:
                track[p] = p if p in expelled else name
        # Tracks that won points or are new are tried again; those that only lost some are not.
        moved = [p for p in range(n) if track[p] != before[p]]
        new = {*moved, *(track[p] for p in moved)}
        tried = {pair for pair in tried if not new & set(pair)}
    # Without the expelled points a track may fall apart.
    first = connected(list(range(n)), [(a, b) for a, b in ends if track[a] == track[b]])
    return [named.get(p, first[p]) for p in range(n)], joins


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("kind", ["equal", "few", "many"])
def test_joins(kind, placed, least):
    """Weights that all tie, mostly tie, and do not; sums of eighths are exact in any order."""
    rng, total = np.random.default_rng(11), 0
    for n in (0, 1, 2, 12, 40, 40, 40):
        objects = rng.integers(0, max(n // 4, 1), n).astype(np.int32)
        track = np.arange(n)
        for p in range(n):
            t = int(rng.integers(max(p, 1))) if p and rng.random() < 0.8 else p
            if objects[p] not in objects[:p][track[:p] == track[t]]:
                track[p] = track[t]
        ends = matches(rng, n, 4 * n)
        ends = ends[objects[ends[:, 0]] != objects[ends[:, 1]]]
        # Every point is held to its track, lest it fall apart at once: that is another test's business.
        held = np.array([[track[p], p] for p in range(n) if track[p] != p], dtype=np.int64).reshape(-1, 2)
        ends = np.unique(np.vstack([ends, held]), axis=0)
        weights = {
            "equal": np.ones(len(ends)),
            "few": rng.choice([0.25, 1.0], len(ends)),
            "many": rng.integers(1, 200, len(ends)) / 8,
        }[kind]  # fmt: skip
        places = rng.random((n, 2)) * 1.5 if placed else None
        found = track.copy()
        given = 1.0, 1e-9, least, 20
        joins = call("join_tracks", ends, weights, len(ends), found, objects, n, places, *given)
        expected = literal_join(track.tolist(), objects.tolist(), ends.tolist(), weights.tolist(), places, *given)
        assert (found.tolist(), joins) == (expected[0], expected[1])
        total += joins
    assert total > 3
