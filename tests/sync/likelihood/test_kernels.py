"""Compiled sweeps over labels against those written with NumPy, which serve where BLAS is quicker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from stiefelsync import datasets
from stiefelsync.datasets.shapes import ring, weighted, window
from stiefelsync.sync.likelihood import matches
from stiefelsync.sync.likelihood.annealing import anneal
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.exchange import _Entries, _Numbered, exchange
from stiefelsync.sync.likelihood.gauss_seidel import State, ascend, gauss_seidel, refine
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_odds

PROBLEMS: dict[str, Callable[[], Any]] = {
    "full": lambda: datasets.synthetic(9, 8, 1.0, 0.5, rng=1),
    "partial": lambda: datasets.synthetic(12, 10, 0.6, 0.4, rng=2),
    "ring": lambda: ring(20, 9, rng=3),
    "window": lambda: window(24, 40, width=8, rng=4),
    "weighted": lambda: weighted(rng=5),
}


def both(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> tuple[Any, Any]:
    """Return what a call gives with compiled sweeps and with the others."""
    compiled = call()
    with monkeypatch.context() as patch:
        patch.setattr(State, "sweeps", lambda state: None)
        return compiled, call()


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


def test_labels_beyond_the_last_are_refused() -> None:
    problem, truth = PROBLEMS["partial"]()
    d = int(truth.max())
    for call in (block_counts, lambda table, start: gauss_seidel(table.matchings, start, d)):
        with pytest.raises(IndexError):
            call(MatchTable.of(problem, d), truth.astype(np.int64))


def test_something_moves() -> None:
    """Else equal labels would mean nothing."""
    problem, truth = PROBLEMS["window"]()
    table = MatchTable.of(problem, int(truth.max()) + 3)
    for start in starts(table, truth)[1:]:
        assert (refine(table, start)[0] != start).any()
        assert (anneal(table, start, rng=np.random.default_rng(1), sweeps=5) != start).any()


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


def test_a_label_that_two_points_of_an_object_share_counts_for_both() -> None:
    problem, truth = PROBLEMS["full"]()
    table = MatchTable.of(problem, int(truth.max()) + 1)
    labels = np.minimum(np.asarray(truth, dtype=np.int64), 3)
    (a, b), first = table.ends, problem.pair_start[:-1]
    assert np.array_equal(block_counts(table, labels).right, np.add.reduceat(1 * (labels[a] == labels[b]), first))


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
