"""All local moves in turn, as long as they make the labels likelier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts
from stiefelsync.sync.likelihood.exchange import exchange
from stiefelsync.sync.likelihood.gauss_seidel import refine
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.merge_labels import merge
from stiefelsync.sync.likelihood.model import log_likelihood
from stiefelsync.sync.likelihood.tree import tree_start
from stiefelsync.sync.outcome import by_first_appearance

__all__ = ["improve", "improve_tree"]

Ints = NDArray[np.int64]

_PASSES = 3


def improve(table: MatchTable, labels: Ints, *, blocks: BlockCounts | None = None) -> Ints:
    """Return what the local moves of `accurate` make of labels, (m,), accepting only likelier ones; O(k³·d²) at most.

    Parameters
    ----------
    labels : (m,) int
    blocks
        Reliabilities to begin with; by default all blocks count alike at first.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> improve(MatchTable.of(problem, 2), np.array([0, 1, 1, 0, 1, 0])).tolist()
    [0, 1, 1, 0, 0, 1]
    """
    value = log_likelihood(table, labels)
    for _ in range(_PASSES):
        tried = merge(table, refine(table, labels, blocks=blocks)[0], blocks=blocks)[0]
        tried, after = exchange(table, tried, blocks=blocks)
        if after > value:
            labels, value = tried, after
        elif blocks is not None:
            break
        blocks = block_counts(table, labels)
    return labels


def improve_tree(table: MatchTable, labels: Ints, value: float) -> tuple[Ints, float]:
    """Return the labels of a tree of blocks that agree, and their log-likelihood, improved where there is hope.

    Where the rates of blocks are a mixture, the tree says which blocks are good, and its labels are refined by these.
    There is hope if they are then likelier than the best `labels`, of log-likelihood `value`, or if fewer than half of
    the matches agree with these: otherwise no very different labelling could be better.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> improve_tree(MatchTable.of(problem, 2), np.array([0, 1, 1, 0, 1, 0]), 0.0)[0].tolist()
    [0, 1, 1, 0, 0, 1]
    """
    tree = tree_start(table)
    blocks = block_counts(table, tree)
    weights = None
    if blocks.mixture is not None:
        # Numbered as the best labels are, lest what is the same be counted and fitted again.
        tree = by_first_appearance(refine(table, tree, blocks=blocks)[0])
        weights = block_counts(table, tree)
    reached = log_likelihood(table, tree, weights)
    few = 2 * block_counts(table, labels).right.sum() < table.matchings.n_matches
    if reached > value or few:
        tree = improve(table, tree, blocks=weights)
        reached = log_likelihood(table, tree)
    return tree, reached
