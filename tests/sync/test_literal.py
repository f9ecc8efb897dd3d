"""Projection, certificate and confidence written out case by case, on small random problems."""

from __future__ import annotations

import re
from itertools import permutations, product

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, datasets, round_labels, synchronise
from stiefelsync.matching.metrics import objective
from stiefelsync.sync import certificate
from stiefelsync.sync.certificate import upper_bound
from stiefelsync.sync.confidence import match_confidence
from stiefelsync.sync.rounding import project


@pytest.mark.parametrize("seed", range(6))
def test_projection_is_the_best_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    sizes = [2, 0, 3, 1, 4]
    U = rng.integers(-2, 3, size=(sum(sizes), 4)) / 2.0  # with many ties
    labels, start = project(U, sizes), 0
    for n in sizes:
        rows = range(start, start + n)
        assert len(set(labels[start : start + n])) == n
        best = max(sum(U[a, c] for a, c in zip(rows, choice, strict=True)) for choice in permutations(range(4), n))
        assert sum(U[a, labels[a]] for a in rows) == best
        start += n


def test_rounding_by_its_public_name():
    U = np.random.default_rng(0).normal(size=(6, 3))
    assert np.array_equal(round_labels(U.tolist(), [3, 1, 2]), project(U, [3, 1, 2]))
    for bad, message in (
        ([[1j]], "U must hold real numbers, got complex128"),
        ([[1.0], [1.0, 2.0]], "U must form an array, but the rows given have different lengths"),
        ([[1.0, 2.0]], "U must have shape (3, d), got (1, 2)"),
        ([[np.nan, 1.0]] * 3, "U holds NaN or infinite entries and cannot be projected"),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            round_labels(bad, [2, 1])


@pytest.mark.parametrize("seed", range(4))
def test_the_table_has_the_points_of_every_track(seed):
    problem, _ = datasets.synthetic(6, 5, 0.6, 0.3, rng=seed)
    result = synchronise(problem, 6, method="union-find" if seed % 2 else "accurate")
    table = result.table()
    assert table.shape == (len(result.tracks()), problem.n_objects)
    for row, track in zip(table.tolist(), result.tracks(), strict=True):
        assert [[o, p] for o, p in enumerate(row) if p >= 0] == sorted(track.tolist())
    assert (table >= -1).all()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ties_are_broken_by_chance_not_by_column(size):
    # A constant U knows nothing; it must not be handed the identity, nor the first column.
    labels = project(np.ones((400 * size, 4)), [size] * 400)
    share = np.bincount(labels.reshape(400, size)[:, 0], minlength=4) / 400
    assert (abs(share - 0.25) < 0.1).all()
    half = np.tile([[1.0, 1.0, 0.0, 0.0]], (400, 1))  # two largest entries in a row
    share = np.bincount(project(half, [1] * 400), minlength=4) / 400
    assert (abs(share - [0.5, 0.5, 0, 0]) < 0.1).all()


def labellings(sizes, d):
    """Yield all labellings of objects of such sizes by d labels, points unmatched or not."""
    of_object = [
        [c for c in product(range(-1, d), repeat=n) if len({x for x in c if x >= 0}) == sum(x >= 0 for x in c)]
        for n in sizes
    ]
    for choice in product(*of_object):
        yield [c for part in choice for c in part]


@pytest.mark.parametrize("seed", range(8))
def test_the_certificate_is_its_formula_and_no_labelling_exceeds_it(seed):
    rng = np.random.default_rng(seed)
    sizes = [(2, 2, 1), (1, 1, 1, 1), (2, 0, 2, 1)][seed % 3]
    pairs = {}
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            n = rng.integers(0, min(sizes[i], sizes[j]) + 1)
            if n:
                pairs[i, j] = np.stack([rng.permutation(sizes[o])[:n] for o in (i, j)], axis=1)
    problem = Matchings.from_pairs(pairs or {(0, 1): [[0, 0]]}, sizes)
    if seed % 2:
        problem = problem.with_weights(rng.random(problem.n_matches) + 0.2)
    W = problem.to_matrix().toarray()
    m, k = len(W), sum(n > 0 for n in sizes)
    values = np.sort(np.linalg.eigvalsh(W))[::-1]
    spectral = sum(k * x for x in values[: m // k]) + (m % k) * values[min(m // k, m - 1)]
    bound = upper_bound(problem)
    assert bound == pytest.approx(min(W.sum(), spectral), rel=1e-8)
    assert bound >= max(objective(labels, problem) for labels in labellings(sizes, 3)) - 1e-9


def test_where_eigenvalues_cost_too_much_the_total_weight_is_the_certificate(monkeypatch):
    problem, _ = datasets.synthetic(5, 6, 1.0, 0.6, rng=0)
    W = problem.to_matrix()
    assert upper_bound(problem) < W.sum()
    monkeypatch.setattr(certificate, "MAX_VECTOR_ENTRIES", 5 * 30)
    assert upper_bound(problem) < W.sum()
    monkeypatch.setattr(certificate, "MAX_VECTOR_ENTRIES", 5 * 30 - 1)
    assert upper_bound(problem) == W.sum()
    assert upper_bound(Matchings.from_pairs({}, [2, 2])) == 4


def test_the_lanczos_method_gives_the_same_certificate_within_its_budget(monkeypatch):
    problem, _ = datasets.synthetic(5, 6, 1.0, 0.6, rng=0)
    exact = upper_bound(problem)
    monkeypatch.setattr(certificate, "MAX_ROWS_OF_ALL_VALUES", 29)
    assert upper_bound(problem) == pytest.approx(exact, rel=1e-9)
    monkeypatch.setattr(certificate, "MAX_LANCZOS_WORK", 5**2 * 30 - 1)
    assert upper_bound(problem) == problem.to_matrix().sum()


@pytest.mark.parametrize("seed", range(5))
def test_confidence_counts_witnesses(seed):
    problem, truth = datasets.synthetic(5, 6, 0.7, 0.4, rng=seed)
    i, j = problem.pair_objects[problem.match_pairs].T
    problem = problem.keep((i + j) % 4 > 0)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(len(truth)) < 0.2, -1, truth)
    matched = {frozenset(pair) for pair in problem.endpoints.tolist()}
    compared = {frozenset(pair) for pair in problem.pair_objects.tolist()}
    owner = problem.point_objects.tolist()

    def same(a, b):
        return a == b or labels[a] == labels[b] >= 0

    expected = []
    for a, b in problem.endpoints.tolist():
        spoken = witnesses = 0
        for x, y in ((a, b), (b, a)):  # the points of y's universe point, asked about x
            for z in range(len(labels)):
                if z != y and same(z, y) and frozenset((owner[z], owner[x])) in compared:
                    witnesses += 1
                    spoken += frozenset((z, x)) in matched
        expected.append((spoken + 1) / (witnesses + 2))
    np.testing.assert_allclose(match_confidence(problem, labels), expected)


def test_confidence_does_not_depend_on_the_chunks(monkeypatch):
    problem, truth = datasets.synthetic(6, 7, 0.7, 0.4, rng=1)
    whole = match_confidence(problem, truth)
    monkeypatch.setattr("stiefelsync.sync.confidence._MAX_TABLE_ENTRIES", 8)
    np.testing.assert_array_equal(match_confidence(problem, truth), whole)
