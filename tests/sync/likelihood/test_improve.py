"""In which order local moves are made, what is accepted, and when a tree is given another chance."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood import improve as module
from stiefelsync.sync.likelihood.counts import block_counts
from stiefelsync.sync.likelihood.improve import improve, improve_tree
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_likelihood
from stiefelsync.sync.likelihood.tree import tree_start

TABLE = MatchTable.of(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2)
START = np.array([0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    ("gains", "known", "kept", "passes"),
    [
        ([1, 1, 1, 1], False, 3, 3),  # ever likelier: three passes
        ([-1, 1, 0, 1], False, 2, 3),  # one that fails before blocks have rates of their own is tried again with them
        ([0, 0, 1], False, 0, 2),
        ([0, 1, 1], True, 0, 1),  # blocks that had rates from the start end it at once
        ([1, 0, 1], True, 1, 2),
    ],
)
def test_passes_go_on_while_labels_become_likelier(gains, known, kept, passes, monkeypatch):
    value, made, seen = log_likelihood(TABLE, START), [], []
    given = block_counts(TABLE, START) if known else None

    def exchange(table, labels, blocks):
        nonlocal value
        made.append(labels + 10)
        gain = gains[len(made) - 1]
        value += max(gain, 0)
        return made[-1], value if gain >= 0 else value + gain

    monkeypatch.setattr(module, "refine", lambda table, labels, blocks: (seen.append(blocks) or labels + 1, 0))
    monkeypatch.setattr(module, "merge", lambda table, labels, blocks: (labels + 1, 0.0))
    monkeypatch.setattr(module, "exchange", exchange)
    monkeypatch.setattr(module, "block_counts", lambda table, labels: ("rates of", labels.tolist()))
    found = improve(TABLE, START, blocks=given)
    expected = START if kept == 0 else made[kept - 1]
    np.testing.assert_array_equal(found, expected)
    assert len(made) == passes
    assert seen[0] is given
    assert all(blocks[0] == "rates of" for blocks in seen[1:])


def test_moves_find_what_they_can():
    problem, truth = datasets.synthetic(8, 10, 0.8, 0.4, rng=100)
    table = MatchTable.of(problem, 8)
    rng = np.random.default_rng(0)
    start = np.concatenate([rng.permutation(8)[:n] for n in problem.sizes])
    assert log_likelihood(table, improve(table, start)) > log_likelihood(table, start)
    best = improve(table, truth)
    assert log_likelihood(table, best) >= log_likelihood(table, truth)


@pytest.mark.parametrize(
    ("above", "agree", "asked"), [(1, 1.0, True), (0, 1.0, False), (-1, 1.0, False), (-1, 0.0, True)]
)
def test_a_tree_is_improved_if_it_is_likelier_or_few_matches_agree(above, agree, asked, monkeypatch):
    problem, truth = datasets.synthetic(6, 8, 0.8, 0.3, rng=101)
    table = MatchTable.of(problem, 6)
    assert block_counts(table, tree_start(table)).mixture is None
    reached = log_likelihood(table, tree_start(table))
    labels = truth if agree else np.full(problem.n_points, -1)
    called = []
    monkeypatch.setattr(module, "improve", lambda table, tree, blocks: called.append(blocks) or truth)
    found, value = improve_tree(table, labels, reached - above)
    assert bool(called) == asked
    np.testing.assert_array_equal(found, truth if asked else tree_start(table))
    assert value == pytest.approx(log_likelihood(table, found))


def test_half_of_the_matches_are_not_few(monkeypatch):
    problem = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]], (0, 2): [[0, 0], [1, 1]]}, [2, 2, 2])
    table, called = MatchTable.of(problem, 2), []
    monkeypatch.setattr(module, "improve", lambda table, tree, blocks: called.append(1) or tree)
    improve_tree(table, np.array([0, 1, 0, 1, -1, -1]), np.inf)  # two of four agree
    assert not called
    improve_tree(table, np.array([0, 1, 0, -1, -1, -1]), np.inf)
    assert called


def test_blocks_of_two_kinds_say_how_to_refine_the_tree(monkeypatch):
    problem, truth = datasets.shapes.video(40, 12, look_alikes=2, rng=0)
    table = MatchTable.of(problem, 12)
    assert block_counts(table, tree_start(table)).mixture is not None
    given = []
    monkeypatch.setattr(module, "improve", lambda table, tree, blocks: given.append((tree, blocks)) or tree)
    found, value = improve_tree(table, truth, -np.inf)
    ((tree, blocks),) = given
    assert log_likelihood(table, tree) >= log_likelihood(table, tree_start(table))
    np.testing.assert_allclose(blocks.right, block_counts(table, tree).right)
    assert value == pytest.approx(log_likelihood(table, found))
