"""Leave a poor optimum: label objects at random, by scores that count less at first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.likelihood.counts import BlockCounts, block_counts
from stiefelsync.sync.likelihood.gauss_seidel import State
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import log_odds

__all__ = ["anneal"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PAIRINGS = 2  # times an object's labels are paired off in a sweep


def anneal(
    table: MatchTable,
    labels: Ints,
    *,
    rng: np.random.Generator,
    blocks: BlockCounts | None = None,
    hot: float = 2.2,
    sweeps: int = 40,
) -> Ints:
    """Return labels, (m,), drawn by Gibbs sampling at a temperature that falls from `hot` to 1.

    In one object after the other labels are paired off at random, and each pair swaps (or hands over) its point with
    probability ``1 / (1 + exp(−gain / temperature))``. The rates of the model are those of the start throughout, for
    those of hot labels would be too poor. Points without a label stay without.

    Parameters
    ----------
    labels : (m,) int
        The start, -1 = unmatched.
    hot
        The first temperature. At 1 labels are drawn from the posterior, which stays near the start for long.

    Notes
    -----
    O(nnz + m·d) per sweep.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 2] * 8, [3] * 8), 3)
    >>> anneal(table, np.tile([0, 1, 2], 8), rng=np.random.default_rng(0)).reshape(8, 3).tolist()[5]
    [0, 1, 2]
    """
    state = State(table, labels.copy(), log_odds(table, block_counts(table, labels), blocks))
    kernels = state.sweeps()
    objects, d = np.flatnonzero(table.matchings.sizes).tolist(), table.d
    labels_in_turn = np.tile(np.arange(d), (len(objects) * _PAIRINGS, 1))
    for temperature in np.linspace(hot, 1.0, sweeps).tolist():
        order = rng.permuted(labels_in_turn, axis=1).reshape(-1, _PAIRINGS, d)
        # A swap is likely by the logistic function of its gain: the gain exceeds noise of that distribution.
        noise = temperature * rng.logistic(size=(len(objects), _PAIRINGS, d // 2))
        if kernels is not None:
            kernels.draw_sweep(order, noise)
            continue
        for i, pairings, limits in zip(objects, order, noise, strict=True):
            _draw(state, i, pairings, limits)
    return state.labels


def _draw(state: State, i: int, order: Ints, noise: Floats) -> None:
    """Draw the labels of one object, given how they are paired off and what gains must exceed."""
    old, half = state.labels_of(i), state.table.d // 2
    n = len(old)
    S = np.vstack([state.scores(i, i + 1), np.zeros(state.table.d)])  # point n is nobody
    member = np.full(state.table.d, n)
    known = np.flatnonzero(old >= 0)
    member[old[known]] = known
    for pairing, least in zip(order, noise, strict=True):
        one, two = pairing[:half], pairing[half : 2 * half]
        a, b = member[one], member[two]
        swap = S[a, two] + S[b, one] - S[a, one] - S[b, two] > least
        member[one], member[two] = np.where(swap, b, a), np.where(swap, a, b)
    new = np.full(n + 1, -1, dtype=np.int64)
    new[member] = np.arange(state.table.d)
    state.give(i, np.where(old >= 0, new[:n], -1))
