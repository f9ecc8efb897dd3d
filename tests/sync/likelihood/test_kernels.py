"""The compiled kernels give the labels of the NumPy code, bit for bit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from stiefelsync import datasets
from stiefelsync._kernels.library import address, library
from stiefelsync.datasets.shapes import ring, weighted, window
from stiefelsync.sync.likelihood import matches
from stiefelsync.sync.likelihood.annealing import anneal
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.exchange import _Entries, _Numbered, exchange
from stiefelsync.sync.likelihood.gauss_seidel import State, ascend, gauss_seidel, refine
from stiefelsync.sync.likelihood.kernels import scale_soft
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.mean_field import sinkhorn
from stiefelsync.sync.likelihood.model import log_odds
from stiefelsync.sync.likelihood.posterior import sample_posterior
from stiefelsync.sync.likelihood.tree import agreement
from stiefelsync.sync.methods._spectral_start import _normalised, _row_sums, _sketch
from stiefelsync.sync.rounding import project

pytestmark = pytest.mark.skipif(library() is None, reason="the package was built without its kernels")

PROBLEMS: dict[str, Callable[[], Any]] = {
    "full": lambda: datasets.synthetic(9, 8, 1.0, 0.5, rng=1),
    "partial": lambda: datasets.synthetic(12, 10, 0.6, 0.4, rng=2),
    "ring": lambda: ring(20, 9, rng=3),
    "window": lambda: window(24, 40, width=8, rng=4),
    "weighted": lambda: weighted(rng=5),
}


def both(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> tuple[Any, Any]:
    """Return what a call gives with the kernels and without."""
    compiled = call()
    monkeypatch.setenv("STIEFELSYNC_COMPILED", "0")
    assert library() is None
    plain = call()
    monkeypatch.delenv("STIEFELSYNC_COMPILED")
    return compiled, plain


def starts(table: MatchTable, truth: Any) -> list[Any]:
    """Return the truth, the truth with holes, and labels drawn at random."""
    rng = np.random.default_rng(7)
    shuffled = np.concatenate([rng.permutation(table.d)[:n] for n in table.matchings.sizes.tolist()])
    truth = np.asarray(truth, dtype=np.int64)
    return [truth, np.where(rng.random(len(truth)) < 0.2, -1, truth), shuffled.astype(np.int64)]


@pytest.mark.parametrize("sparse_pairs", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_sweeps_give_equal_labels(name: str, sparse_pairs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "_DENSE", 0 if sparse_pairs else 1000)
    problem, truth = PROBLEMS[name]()
    table = MatchTable.of(problem, int(truth.max()) + 3)
    for start in starts(table, truth):
        blocks = block_counts(table, start)
        for call in (
            lambda start=start: refine(table, start),
            lambda start=start, blocks=blocks: ascend(table, start, log_odds(table, blocks, blocks)),
            lambda start=start: gauss_seidel(problem, start, table.d),
            lambda start=start: exchange(table, start, max_rounds=3),
            lambda start=start: (anneal(table, start, rng=np.random.default_rng(1), sweeps=5), 0),
        ):
            (one, sweeps), (two, as_many) = both(monkeypatch, call)
            assert one.tolist() == two.tolist()
            assert sweeps == as_many


@pytest.mark.parametrize("name", PROBLEMS)
def test_states_begin_with_equal_sums(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = PROBLEMS[name]()
    table = MatchTable.of(problem, int(truth.max()) + 3)
    for start in starts(table, truth):
        rates = log_odds(table, block_counts(table, start))
        one, two = both(monkeypatch, lambda start=start, rates=rates: State(table, start.copy(), rates))
        assert one.kernels is not None
        assert two.kernels is None
        for array in ("O", "holders", "shared", "near", "reach"):
            assert np.array_equal(getattr(one, array), getattr(two, array))
        assert one.O.any()


def test_labels_beyond_the_last_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = PROBLEMS["partial"]()
    d = int(truth.max())

    def refuse() -> None:
        for call in (block_counts, lambda table, start: gauss_seidel(table.matchings, start, d)):
            with pytest.raises(IndexError):
                call(MatchTable.of(problem, d), truth.astype(np.int64))

    both(monkeypatch, refuse)


@pytest.mark.parametrize("name", PROBLEMS)
def test_tables_and_counts_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = PROBLEMS[name]()
    d = int(truth.max()) + 3

    def arranged() -> list[Any]:
        table = MatchTable.of(problem, d)  # a new one, which remembers nothing
        counts = [block_counts(table, start) for start in starts(table, truth)]
        found = [x for one in counts for x in (one.right, one.present, one.holders, np.array(one.found))]
        sides = [x for one in counts if one.sides is not None for x in (one.sides.found, one.sides.rows)]
        return [table.indptr, table.indices, table.numbers, table.ends, *found, *sides]

    compiled, plain = both(monkeypatch, arranged)
    assert len(compiled) == len(plain)
    for one, two in zip(compiled, plain, strict=True):
        assert one.dtype == two.dtype
        assert np.array_equal(one, two)
    assert len(np.unique(plain[4])) > 1


def test_something_moves() -> None:
    """Else equal labels would mean nothing."""
    problem, truth = PROBLEMS["window"]()
    table = MatchTable.of(problem, int(truth.max()) + 3)
    for start in starts(table, truth)[1:]:
        assert (refine(table, start)[0] != start).any()
        assert (anneal(table, start, rng=np.random.default_rng(1), sweeps=5) != start).any()


@pytest.mark.parametrize("name", PROBLEMS)
def test_exchange_looks_at_the_same_pairs_of_labels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = PROBLEMS[name]()
    table = MatchTable.of(problem, int(truth.max()) + 1)
    some = 0
    for start in starts(table, truth):
        rates = log_odds(table, block_counts(table, start))
        compiled, plain = both(monkeypatch, lambda start=start, rates=rates: _Entries(table, start, rates))
        for field in ("first", "i", "j", "right", "across", "inside"):
            assert np.array_equal(getattr(compiled, field), getattr(plain, field))
        pairs = plain.joined()
        assert compiled.hopeful(pairs).tolist() == plain.hopeful(pairs).tolist()
        some += int(plain.hopeful(pairs).sum())
    assert some


@pytest.mark.parametrize("even", [False, True])
def test_numbered_matches_couple_labels_as_sorted_ones_do(even: bool) -> None:
    problem, truth = PROBLEMS["full"]()
    table = MatchTable.of(problem, int(truth.max()) + 1)
    start = starts(table, truth)[2]
    blocks = block_counts(table, truth)
    rates = log_odds(table, blocks, None if even else blocks)
    assert _Numbered.can_do(table, start, rates)
    # Neither with a point without a label, nor with two points of an object that share one.
    assert not _Numbered.can_do(table, starts(table, truth)[1], rates)
    assert not _Numbered.can_do(table, np.maximum(start, 1), rates)
    one, two = _Numbered(table, start, rates), _Entries(table, start, rates)
    assert np.array_equal(one.across, two.across)
    assert np.array_equal(one.inside, two.inside)
    pairs = two.joined()
    assert np.array_equal(one.joined(), pairs)
    assert one.hopeful(pairs).tolist() == two.hopeful(pairs).tolist()
    for pair in pairs.tolist():
        for x, y in zip(one.coupling(*pair), two.coupling(*pair), strict=True):
            assert np.array_equal(x, y)


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_a_label_that_two_points_of_an_object_share_counts_for_both(
    compiled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STIEFELSYNC_COMPILED", compiled)
    problem, truth = PROBLEMS["full"]()
    table = MatchTable.of(problem, int(truth.max()) + 1)
    labels = np.minimum(np.asarray(truth, dtype=np.int64), 3)
    (a, b), first = table.ends, problem.pair_start[:-1]
    assert np.array_equal(block_counts(table, labels).right, np.add.reduceat(1 * (labels[a] == labels[b]), first))


@pytest.mark.parametrize("name", PROBLEMS)
def test_partners_are_numbered_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = PROBLEMS[name]()
    one, two = both(monkeypatch, lambda: MatchTable.of(problem, int(truth.max()) + 1).partner_numbers)
    assert one.dtype == two.dtype == np.uint8
    assert np.array_equal(one, two)
    assert np.count_nonzero(one) == 2 * problem.n_matches


@pytest.mark.parametrize("name", PROBLEMS)
def test_soft_labels_and_triangles_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = PROBLEMS[name]()
    table = MatchTable.of(problem, int(truth.max()) + 1)
    S = np.random.default_rng(3).standard_normal((problem.n_points, table.d)) * 3
    one, two = both(monkeypatch, lambda: sinkhorn(S.copy(), table))
    assert np.array_equal(one, two)
    one, two = both(monkeypatch, lambda: agreement(table))
    assert np.array_equal(one, two)
    assert one.any()


@pytest.mark.parametrize(("d", "k"), [(130, 65), (300, 4)])
def test_triangles_of_large_objects_are_equal(d: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than bytes can count, and more points than bytes can number."""
    table = MatchTable.of(datasets.synthetic(d, k, 1.0, 0.4, rng=1)[0], d)
    one, two = both(monkeypatch, lambda: agreement(table))
    assert np.array_equal(one, two)
    assert 0 < one.min() < one.max() < 1


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_labels_earn_and_who_has_support_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = PROBLEMS[name]()
    table = MatchTable.of(problem, int(truth.max()) + 1)
    rng = np.random.default_rng(2)
    values, s = rng.random(len(table.indices)), rng.random(problem.n_points)
    for start in starts(table, truth):
        one, two = both(monkeypatch, lambda start=start: table.product(start, values))
        assert np.array_equal(one, two)
        for match in (0.3, values[: len(problem.pair_objects)], values):
            one, two = both(monkeypatch, lambda start=start, match=match: table.earned(start, match))
            assert np.array_equal(one, two)
        one, two = both(monkeypatch, lambda start=start: table.supported(start))
        assert np.array_equal(one, two)
        assert one.any()
    P = len(problem.pair_objects)
    one, two = both(monkeypatch, lambda: table.each(values[:P]))
    assert np.array_equal(one, two)
    one, two = both(monkeypatch, lambda: _row_sums(table.matrix(values)))
    assert np.array_equal(one, two)
    for dtype in (np.float32, np.float64):
        one, two = both(monkeypatch, lambda dtype=dtype: _normalised(table.matrix(values), s, dtype))
        assert one.dtype == two.dtype == dtype
        assert np.array_equal(one.data, two.data)
        sketch = partial(_sketch, one, s.astype(dtype), 7)
        one, two = both(monkeypatch, lambda sketch=sketch: sketch(np.random.default_rng(1)))
        assert one.dtype == two.dtype == dtype
        assert np.array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ties", [False, True])
def test_projections_are_equal(dtype: Any, ties: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    sizes = rng.integers(0, 10, 60)
    U = rng.standard_normal((sizes.sum(), 9)).astype(dtype)
    if ties:
        U = U.round()
    # One object is clear, and its labels are not to be touched.
    sizes, U = np.append(sizes, 9), np.vstack([U, np.eye(9, dtype=dtype)[::-1]])
    one, two = both(monkeypatch, lambda: project(np.asfortranarray(U), sizes))
    assert one.dtype == two.dtype == np.int64
    assert one.tolist() == two.tolist()
    assert one[-9:].tolist() == list(range(9))[::-1]


@pytest.mark.parametrize("name", ["full", "partial", "weighted"])
def test_samples_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = PROBLEMS[name]()
    table = MatchTable.of(problem, int(truth.max()) + 1)
    start = np.asarray(truth, dtype=np.int64)
    settings = {"sweeps": 30, "burn": 10, "chains": 4}
    one, two = both(monkeypatch, lambda: sample_posterior(table, start, rng=np.random.default_rng(5), **settings))
    assert np.array_equal(one, two)
    assert len(np.unique(one)) > 5


@pytest.mark.parametrize("n", [1, 7, 8, 9, 30, 127, 128, 129, 300])
def test_sums_are_those_of_numpy(n: int) -> None:
    """Of rows of soft labels, too: a column of ones and one object, so that the first scale is one over the sum."""
    K = np.random.default_rng(n).random((1, n))
    columns = np.ones((1, n))
    expected = 1 / K.sum(axis=1)
    assert np.array_equal(scale_soft(library(), K, columns, np.array([0]), 1, 0.0), K * expected[:, None])


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (7, 7), (7, 12), (30, 31)])
@pytest.mark.parametrize("steps", [0, 1, 3, 1000])
def test_assignment_is_that_of_scipy_even_for_ties(shape: tuple[int, int], steps: int) -> None:
    rng = np.random.default_rng(11)
    for _ in range(40):
        S = rng.integers(-steps, steps + 1, shape) / 8.0
        columns = np.empty(shape[0], dtype=np.int64)
        arrays = (ctypes.c_void_p(address(array)) for array in (S, columns))
        S_at, columns_at = arrays
        assert library().assign(S_at, *map(ctypes.c_int64, shape), columns_at) == 0
        best = S.argmax(axis=1)
        expected = linear_sum_assignment(S, maximize=True)[1] if len(set(best.tolist())) < len(best) else best
        assert columns.tolist() == expected.tolist()


def test_sums_of_rounded_rates_do_not_depend_on_their_order() -> None:
    problem, truth = PROBLEMS["partial"]()
    table = MatchTable.of(problem, int(truth.max()) + 1)
    rates = log_odds(table, block_counts(table, np.asarray(truth, dtype=np.int64)))
    right = State(table, np.asarray(truth, dtype=np.int64), rates).rates.right
    rng = np.random.default_rng(0)
    right = right + np.ldexp(np.round(np.ldexp(rng.random(len(right)), 30)), -30)
    sums = {float(np.cumsum(rng.permutation(right))[-1]) for _ in range(20)}
    assert len(sums) == 1
    assert sparse.csr_array(right[None]).sum() in sums
