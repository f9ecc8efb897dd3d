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

__all__ = ["improve"]

Ints = NDArray[np.int64]

_PASSES = 3


def improve(table: MatchTable, labels: Ints) -> Ints:
    """Return what the local moves of `accurate` make of labels, (m,), accepting only likelier ones; O(k³·d²) at most.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    >>> improve(MatchTable.of(problem, 2), np.array([0, 1, 1, 0, 1, 0])).tolist()
    [0, 1, 1, 0, 0, 1]
    """
    value = log_likelihood(table, labels)
    blocks: BlockCounts | None = None
    for _ in range(_PASSES):
        tried = merge(table, refine(table, labels, blocks=blocks)[0], blocks=blocks)[0]
        tried, after = exchange(table, tried, blocks=blocks)
        if after > value:
            labels, value = tried, after
        elif blocks is not None:
            break
        blocks = block_counts(table, labels)
    return labels
