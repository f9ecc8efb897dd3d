"""Kernels that arrange matches and count, score or soften labels, against loops that say what they do."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from stiefelsync import Matchings, datasets
from stiefelsync._core.binding import call, constant, struct

LANES = constant("row_lanes")


def problem(name: str) -> Matchings:
    """Problems of any kind: full, partial, one object, no match, objects without points or with many."""
    made = {
        "full": lambda: datasets.synthetic(9, 8, 1.0, 0.5, rng=1)[0],
        "partial": lambda: datasets.synthetic(7, 6, 0.5, 0.4, rng=2)[0],
        "one object": lambda: Matchings.from_labels([0, 1, 2], [3]),
        "no match": lambda: Matchings.from_labels([0, 1, 2, 3], [2, 2]),
        "empty objects": lambda: Matchings.from_labels([0, 1, 1, 0, 0], [0, 2, 0, 2, 1, 0]),
        "nothing": lambda: Matchings.from_labels([], []),
        "large objects": lambda: datasets.synthetic(300, 3, 1.0, 0.3, rng=3)[0],
    }
    return made[name]()


PROBLEMS = ("full", "partial", "one object", "no match", "empty objects", "nothing", "large objects")


class Table:
    """The matches of a problem as kernels take them, and as lists."""

    def __init__(self, matchings: Matchings) -> None:
        n, self.m, self.k = matchings.n_matches, matchings.n_points, matchings.n_objects
        self.pairs, self.start = matchings.pair_objects, matchings.pair_start
        self.offsets, self.owner = matchings.offsets, matchings.point_objects.astype(np.int64)
        self.indptr, self.indices = np.empty(self.m + 1, dtype=np.int32), np.empty(2 * n, dtype=np.int32)
        self.a, self.b = np.empty((2, n), dtype=np.int32)
        call(
            "arrange_matches", len(self.pairs), self.pairs, self.start, matchings.indices, self.offsets, self.m,
            self.a, self.b, self.indptr, self.indices,
        )  # fmt: skip
        self.ends = matchings.endpoints.tolist()
        self.partners: list[list[int]] = [[] for _ in range(self.m)]
        for a, b in self.ends:
            self.partners[a].append(b)
            self.partners[b].append(a)
        self.partners = [sorted(one) for one in self.partners]
        self.sizes = np.diff(self.offsets).tolist()

    def rows(self) -> list[list[int]]:
        return [self.indices[a:b].tolist() for a, b in zip(self.indptr, self.indptr[1:], strict=False)]

    def numbers(self) -> np.ndarray:
        """Return the number of every point's match in every object."""
        width = -(-self.k // LANES) * LANES
        out = np.zeros((self.m, width), dtype=np.uint8 if max(self.sizes, default=0) < 255 else np.uint32)
        where = (out, None) if out.dtype == np.uint8 else (None, out)
        call("number_partners", self.m, width, self.indptr, self.indices, self.owner, self.offsets, *where)
        return out

    def labellings(self, d: int) -> list[np.ndarray]:
        """Return labels below d: different ones within an object, the same with holes, none at all, all the same."""
        rng = np.random.default_rng(self.m)
        draw = [rng.permutation(d)[:n] for n in self.sizes]
        labels = np.concatenate([*draw, np.empty(0, dtype=np.int64)]).astype(np.int64)
        return [labels, np.where(rng.random(self.m) < 0.3, -1, labels), np.full(self.m, -1), np.zeros(self.m, np.int64)]


@pytest.fixture(params=PROBLEMS, scope="module")
def table(request: pytest.FixtureRequest) -> Table:
    return Table(problem(request.param))


@pytest.fixture
def d(table: Table) -> int:
    return max(table.sizes, default=0) + 2


def test_matches_are_arranged_by_point(table):
    assert table.rows() == table.partners
    assert list(zip(table.a.tolist(), table.b.tolist(), strict=True)) == [tuple(end) for end in table.ends]
    place, numbers = table.indptr[:-1].copy(), np.empty_like(table.indices)
    call("number_matches", len(table.a), table.a, table.b, place, numbers)
    number = {frozenset(end): t for t, end in enumerate(table.ends)}
    expected = [number[frozenset((r, c))] for r, row in enumerate(table.partners) for c in row]
    assert numbers.tolist() == expected


def test_partners_are_numbered_from_one(table):
    expected = np.zeros(table.numbers().shape, dtype=int)
    for a, row in enumerate(table.partners):
        for b in row:
            expected[a, table.owner[b]] = b - table.offsets[table.owner[b]] + 1
    assert np.array_equal(table.numbers(), expected)


@pytest.mark.parametrize("numbered", [False, True])
def test_labels_are_counted(table, d, numbered):
    numbers = table.numbers() if numbered else None
    if numbered and numbers.dtype != np.uint8:
        pytest.skip("a byte numbers no more than 254 points")
    # By numbers only objects that give no label to two points; else the kernel counts match by match.
    for labels in table.labellings(d):
        P = len(table.pairs)
        right, present, holders, found = np.empty(P), np.empty(P), np.zeros(d), np.empty(2)
        call(
            "count_labels", table.k, d, P, table.pairs, table.start, table.a, table.b, table.offsets,
            numbers.shape[1] if numbered else 0, numbers, labels, right, present, holders, found,
        )  # fmt: skip
        held = [
            {x for x in labels[a:b].tolist() if x >= 0} for a, b in zip(table.offsets, table.offsets[1:], strict=False)
        ]
        rows = columns = 0
        for s, (i, j) in enumerate(table.pairs.tolist()):
            own = table.ends[table.start[s] : table.start[s + 1]]
            assert right[s] == sum(labels[a] == labels[b] and labels[a] >= 0 for a, b in own)
            assert present[s] == len(held[i] & held[j])
            rows += sum(labels[a] in held[j] for a, _ in own)
            columns += sum(labels[b] in held[i] for _, b in own)
        assert found.tolist() == [rows, columns]
        assert holders.tolist() == [sum(c in one for one in held) for c in range(d)]


def test_a_label_beyond_the_last_is_told(table):
    labels, P = np.full(table.m, 3), len(table.pairs)
    told = call(
        "count_labels", table.k, 3, P, table.pairs, table.start, table.a, table.b, table.offsets, 0, None, labels,
        np.empty(P), np.empty(P), np.zeros(3), None,
    )  # fmt: skip
    assert told == (table.m > 0)


def test_what_labels_earn(table, d):
    values = np.random.default_rng(0).random(len(table.indices))
    worth = np.random.default_rng(1).random((table.k, table.numbers().shape[1]))
    for labels in table.labellings(d):
        out, even, expected, block = (np.zeros((table.m, d)) for _ in range(4))
        e = 0
        for a, row in enumerate(table.partners):
            for b in row:
                if labels[b] >= 0:
                    expected[a, labels[b]] += values[e]
                    block[a, labels[b]] += worth[table.owner[a], table.owner[b]]
                e += 1
        call("label_product", table.m, d, table.indptr, table.indices, labels, values, out)
        np.testing.assert_allclose(out, expected, rtol=1e-12)
        if table.numbers().dtype == np.uint8:
            known = table.offsets, table.numbers(), labels, worth
            call("earn", table.k, d, worth.shape[1], *known, even)
            np.testing.assert_allclose(even, block, rtol=1e-12)


def test_points_with_a_match_of_the_same_label(table, d):
    for labels in table.labellings(d):
        found = np.zeros(table.m, dtype=bool)
        call("mark_supported", table.m, table.indptr, table.indices, labels, found)
        assert found.tolist() == [any(labels[b] == labels[a] for b in row) for a, row in enumerate(table.partners)]


def test_values_of_entries_and_their_sums(table):
    rng, entries = np.random.default_rng(2), [(a, b) for a, row in enumerate(table.partners) for b in row]
    values, s, out = rng.random((table.k, table.k)), rng.random(table.m), np.empty(len(entries))
    call("spread_values", table.k, table.offsets, table.indptr, table.indices, table.owner, values, out)
    assert out.tolist() == [values[table.owner[a], table.owner[b]] for a, b in entries]
    sums = np.empty(table.m)
    call("sum_rows", table.m, table.indptr, out, sums)
    expected = [math.fsum(v for v, (a, _) in zip(out, entries, strict=True) if a == row) for row in range(table.m)]
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    scaled, single = np.empty(len(entries)), np.empty(len(entries), dtype=np.float32)
    call("scale_entries", table.m, table.indptr, table.indices, out, s, scaled, None)
    np.testing.assert_allclose(scaled, [v * s[a] * s[b] for v, (a, b) in zip(out, entries, strict=True)], rtol=1e-15)
    call("scale_entries", table.m, table.indptr, table.indices, out, s, None, single)
    assert np.array_equal(single, scaled.astype(np.float32))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_sketches(table, kind):
    rng, dtype, width = np.random.default_rng(3), np.dtype(kind.replace("f", "float")), 5
    data, shift = rng.random(len(table.indices)).astype(dtype), rng.random(table.m).astype(dtype)
    column, sign = rng.integers(width, size=table.m), rng.choice([-1, 1], table.m).astype(dtype)
    out = np.empty((table.m, width), dtype=dtype)
    call(f"sketch_{kind}", table.m, width, table.indptr, table.indices, data, shift, column, sign, out)
    expected = np.zeros((table.m, width))
    for a in range(table.m):
        expected[a, column[a]] += shift[a] * sign[a]
        for e in range(table.indptr[a], table.indptr[a + 1]):
            b = table.indices[e]
            expected[a, column[b]] += float(data[e]) * float(sign[b])
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


def test_triangles(table):
    P, numbers = len(table.pairs), table.numbers()
    closed, every = np.empty(P), np.empty(P)
    where = (numbers, None) if numbers.dtype == np.uint8 else (None, numbers)
    call("count_triangles", numbers.shape[1], *where, P, table.start, table.a, table.b, closed, every)
    for s in range(P):
        same = both = 0
        for a, b in table.ends[table.start[s] : table.start[s + 1]]:
            one, two = ({table.owner[x]: x for x in table.partners[end]} for end in (a, b))
            both += len(one.keys() & two.keys())
            same += sum(one[j] == two[j] for j in one.keys() & two.keys())
        assert (closed[s], every[s]) == (same, both)


def test_entries_are_sorted_by_the_labels_they_join(table, d):
    right = np.random.default_rng(4).integers(-3, 9, len(table.indices)) / 4
    for labels in table.labellings(d):
        given = table.m, d, table.k, table.indptr, table.indices, table.owner, labels, right
        first = np.zeros(d * d + 1, dtype=np.int64)
        call("sort_entries", *given, first, None, None, None, None, None)
        first = np.cumsum(first)
        n = int(first[-1])
        i, j = np.empty((2, n), dtype=np.int32)
        worth, across, inside = np.empty(n), np.zeros((d, d)), np.zeros((d, table.k))
        call("sort_entries", *given, first.copy(), i, j, worth, across, inside)
        expected: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        e = 0
        for a, row in enumerate(table.partners):
            for b in row:
                one, two = labels[a], labels[b]
                if 0 <= one <= two:
                    entry = int(table.owner[a]), int(table.owner[b]), float(right[e])
                    expected.setdefault((int(one), int(two)), []).append(entry)
                e += 1
        for one in range(d):
            for two in range(d):
                own = expected.get((one, two), [])
                at = slice(*first[one * d + two : one * d + two + 2])
                assert list(zip(i[at].tolist(), j[at].tolist(), worth[at].tolist(), strict=True)) == own
                assert across[one, two] == sum(w for *_, w in own)
            for obj in range(table.k):
                assert inside[one, obj] == sum(w for x, _, w in expected.get((one, one), []) if x == obj)


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (3, 2), (5, 9), (40, 130)])
def test_soft_labels(shape):
    rng = np.random.default_rng(5)
    m, d = shape
    S = rng.standard_normal(shape) * 5
    if d:
        S[:: max(m // 3, 1)] = 0.0  # ties
        shifted = S.copy()
        call("less_maximum", shifted, m, d)
        assert np.array_equal(shifted, [[x - max(row) for x in row] for row in S.tolist()])
    offsets = np.array([0, m // 3, m // 3, m], dtype=np.int64)
    K, columns = np.exp(S), np.empty((3, d))
    call("scale_rows", K, d, offsets, 3, columns)
    expected = [[x / math.fsum(row) for x in row] for row in np.exp(S).tolist()]
    np.testing.assert_allclose(K, np.array(expected).reshape(shape), rtol=1e-12)
    for g in range(3):
        np.testing.assert_allclose(columns[g], K[offsets[g] : offsets[g + 1]].sum(axis=0), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("rounds", [1, 2, 20])
def test_full_columns_are_scaled_to_one(rounds):
    rng = np.random.default_rng(6)
    first, d = np.array([0, 3, 4, 9], dtype=np.int64), 6
    K = rng.random((9, d)) ** 4
    columns = np.array([K[a:b].sum(axis=0) for a, b in pairwise(first)])
    u, v, sums = np.ones(9), np.ones((3, d)), columns.copy()
    for _ in range(rounds):
        for g in range(3):
            v[g] = 1 / np.maximum(sums[g], 1)
            for r in range(first[g], first[g + 1]):
                u[r] = 1 / math.fsum(K[r] * v[g])
            sums[g] = sum(K[r] * u[r] for r in range(first[g], first[g + 1]))
        if (sums * v).max() <= 1 + 1e-3:
            break
    owner = np.repeat(np.arange(3), np.diff(first))
    found = K.copy()
    call("scale_soft", found, d, first, 3, columns.copy(), rounds, 1e-3, np.finfo(float).tiny)
    np.testing.assert_allclose(found, K * u[:, None] * v[owner], rtol=1e-12)


def couplings(table: Table, labels: np.ndarray, worth: np.ndarray, one: int, two: int) -> np.ndarray:
    """What two labels couple every pair of objects by, match by match."""
    J = np.zeros((table.k, table.k))
    sign = {one: 1, two: -1}
    for a, b in table.ends:
        i, j = table.owner[a], table.owner[b]
        J[i, j] += worth[i, j] * sign.get(labels[a], 0) * sign.get(labels[b], 0)
        J[j, i] = J[i, j]
    return J


def test_pairs_of_labels_by_numbers_and_by_entries():
    """Where all objects hold all labels and matches are numbered, and where nothing is known of that."""
    matchings, truth = datasets.synthetic(6, 9, 1.0, 0.2, rng=1)
    table = Table(matchings)
    d, k, hope, lift, some = 6, table.k, 0.5, 1e-6, []
    # Right, but for two labels that three of the objects exchanged.
    labels, numbers = truth.astype(np.int64), table.numbers()
    labels = np.where((table.owner < 3) & (labels < 2), 1 - labels, labels)
    width = numbers.shape[1]
    worth = np.zeros((k, width))
    worth[:, :k] = np.random.default_rng(0).integers(1, 9, (k, k))
    worth[:, :k] += worth[:, :k].T
    joined, across, inside = np.zeros((d, d), dtype=bool), np.zeros((d, d)), np.zeros((d, k))
    call("sum_pairs", k, d, width, table.offsets, numbers, labels, worth, joined, across, inside)
    where = np.ascontiguousarray(np.argsort(labels.reshape(k, d), axis=1).T + table.offsets[:-1])
    pairs = np.array([(one, two) for one in range(d) for two in range(one + 1, d)])
    for one in range(d):
        own = [(a, b) for a, b in table.ends if labels[a] == labels[b] == one]
        assert across[one, one] == 2 * sum(worth[table.owner[a], table.owner[b]] for a, b in own)
        for obj in range(k):
            expected = sum(
                worth[table.owner[a], table.owner[b]] for a, b in own if obj in (table.owner[a], table.owner[b])
            )
            assert inside[one, obj] == expected
    for one, two in pairs.tolist():
        between = [(a, b) for a, b in table.ends if {labels[a], labels[b]} == {one, two}]
        assert joined[one, two] == bool(between)
        assert across[one, two] == sum(worth[table.owner[a], table.owner[b]] for a, b in between)
        J = couplings(table, labels, worth, one, two)
        against = np.minimum(J, 0).sum(axis=1)
        laplacian = np.diag(J.sum(axis=1) + lift) - J
        least = (J.sum(axis=1) - against).min()
        hopeful = (against < 0).any() and -against.sum() >= hope * least and np.linalg.eigvalsh(laplacian)[0] < 0
        some.append(bool(hopeful))
    sizes = {"k": k, "d": d, "m": table.m, "hope": hope, "lift": lift, "where": where, "offsets": table.offsets}
    found = np.zeros(len(pairs), dtype=bool)
    entries = struct("Entries", **sizes, width=width, partner=numbers, worth=worth)
    call("hopeful_pairs", entries, pairs, len(pairs), found)
    assert found.tolist() == some
    assert 0 < sum(some) < len(some)
    right = np.array([worth[table.owner[a], table.owner[b]] for a, row in enumerate(table.partners) for b in row])
    given = table.m, d, k, table.indptr, table.indices, table.owner, labels, right
    first = np.zeros(d * d + 1, dtype=np.int64)
    call("sort_entries", *given, first, None, None, None, None, None)
    first = np.cumsum(first)
    i, j = np.empty((2, first[-1]), dtype=np.int32)
    ordered = np.empty(first[-1])
    call("sort_entries", *given, first.copy(), i, j, ordered, np.zeros((d, d)), np.zeros((d, k)))
    found[:] = False
    entries = struct("Entries", **sizes, first=first, i=i, j=j, right=ordered, size=np.zeros((k, k)))
    call("hopeful_pairs", entries, pairs, len(pairs), found)
    assert found.tolist() == some
