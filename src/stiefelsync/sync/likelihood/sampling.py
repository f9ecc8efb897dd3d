"""Few objects: answer with the labels of largest expected fscore.

With few objects many labellings are about as likely as the likeliest, and the likeliest fits noise. What can be said is
how probable it is that two points are the same; the answer that makes the expected fscore largest keeps the probable
pairs and leaves a point unmatched where no partner is probable enough.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.matching.graph import numbered
from stiefelsync.sync.likelihood.gauss_seidel import assign
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import LogOdds, log_likelihood

__all__ = ["break_ties", "decide", "expected_fscore", "optimism", "pair_scores"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GOLDEN = (5**0.5 - 1) / 2


def pair_scores(table: MatchTable, rates: LogOdds) -> Floats:
    """Return T, shape (m, m): what two points of different objects earn by carrying the same label; zero otherwise.

    ``T_ab = α W_ab + ½ X_aj + ½ X_bi`` for a in i, b in j, in the notation of :mod:`stiefelsync.sync.likelihood.model`.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> pair_scores(table, LogOdds(table, 1.0, None, -0.5 * table.compared)).tolist()
    [[0.0, 0.0, -0.5], [0.0, 0.0, 0.5], [-0.5, 0.5, 0.0]]
    """
    owner = table.owner
    X = rates.size[owner]
    if rates.seen is not None:
        X = X + table.by_object(rates.seen).toarray()
    half = 0.5 * X[:, owner]
    return np.asarray(table.matrix(rates.right).toarray() + half + half.T)


def decide(P: Floats, table: MatchTable, labels: Ints, *, max_iter: int = 10) -> Ints:
    """Return the consistent labels of largest expected fscore found, -1 = unmatched.

    For pair probabilities P the expected fscore of a labelling is about 2 Σ_kept P / (n_kept + Σ P). Its maximiser, of
    value f, also maximises Σ_kept (P − f/2) (Dinkelbach): each round improves the labels object by object for the
    current f, then updates f.

    Parameters
    ----------
    P : (m, m)
        Probability that two points are the same.
    labels : (m,) int
        The start; -1 = unmatched.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> decide(np.array([[1, 0, 0.1], [0, 1, 0.8], [0.1, 0.8, 1]]), table, np.array([0, 1, 0])).tolist()
    [-1, 0, 0]
    """
    P = np.where(table.owner[:, None] != table.owner, P, 0.0)
    best, f = labels, expected_fscore(P, table, labels)
    for _ in range(max_iter):
        tried = _improve(P, table, best, f)
        after = expected_fscore(P, table, tried)
        if after <= f + 1e-9:
            break
        best, f = tried, after
    return _without_singles(best, table.d)


def optimism(halves: Floats, table: MatchTable, labels: Ints) -> float:
    """Return by how much :func:`expected_fscore` is too large for labels chosen by the same probabilities.

    Labels that half of the chains choose look better to that half than to the other. Chosen by all chains, twice as
    many, they look better than they are by half as much.

    Parameters
    ----------
    halves : (2, m, m)
        Probability that two points are the same, by two independent estimates.
    labels : (m,) int
        The start of both choices.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> one, two = np.zeros((2, 3, 3))
    >>> one[0, 2] = one[2, 0] = two[1, 2] = two[2, 1] = 0.5
    >>> [optimism(np.stack([one, other]), table, np.array([0, 1, 0])) for other in (one, two)]
    [0.0, 0.3333333333333333]
    """
    chosen = [decide(P, table, labels) for P in halves]
    own, other = (sum(map(expected_fscore, some, [table] * 2, chosen)) for some in (halves, halves[::-1]))
    return (own - other) / 4


def expected_fscore(P: Floats, table: MatchTable, labels: Ints) -> float:
    """Return 2 Σ_kept P / (n_kept + Σ P) over points of different objects; pairs with equal labels are kept.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> expected_fscore(np.array([[0, 0, 0.5], [0, 0, 0.5], [0.5, 0.5, 0]]), table, np.array([0, 1, 0]))
    0.5
    """
    apart = table.owner[:, None] != table.owner
    kept = (labels[:, None] == labels) & (labels >= 0) & apart
    return 2 * float(P[kept].sum()) / max(float(kept.sum()) + float(P[apart].sum()), 1e-12)


def break_ties(table: MatchTable, labels: Ints, *, max_iter: int = 20) -> Ints:
    """Return labels that agree with as many matches, the same ones whichever of several equal answers is given.

    Two points swapped in one of three blocks leave three labellings that agree with equally many matches. The
    one preferred trusts the blocks that come first (mistakes in one block are likelier than in all), and is one
    whatever the start: match n of block r of B counts 1 + 2⁻¹³·(B − 1 − r + frac(n·φ)) / B, φ the golden ratio. All
    additions together are less than one match. Labels are then improved object by object, and returned if they are as
    likely. For at most 8,000 matches.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> swapped = {(0, 1): [[0, 0], [1, 1]], (0, 2): [[0, 0], [1, 1]], (1, 2): [[0, 1], [1, 0]]}
    >>> table = MatchTable.of(Matchings.from_pairs(swapped, [2, 2, 2]), 2)
    >>> one, two = (break_ties(table, np.array(x)) for x in ([0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 1, 0]))
    >>> one.tolist() == two.tolist()
    True
    """
    (a, b), m, first = table.ends, len(labels), labels
    blocks = len(table.matchings.pair_objects)
    rank = blocks - 1.0 - table.matchings.match_pairs
    # Multiples of 2⁻³³, whose sums are exact.
    extra = np.floor(np.ldexp((rank + np.arange(1, len(a) + 1) * _GOLDEN % 1) / blocks, 20))
    W = sparse.csr_array((np.tile(1 + np.ldexp(extra, -33), 2), (np.append(a, b), np.append(b, a))), shape=(m, m))
    U = np.zeros((m, table.d))
    U[np.arange(m), labels] = 1
    labels = labels.copy()
    for _ in range(max_iter):
        before = labels.copy()
        for start, stop in pairwise(table.matchings.offsets.tolist()):
            if start == stop:
                continue
            labels[start:stop] = assign(W[start:stop] @ U)
            U[start:stop] = 0
            U[np.arange(start, stop), labels[start:stop]] = 1
        if np.array_equal(labels, before):
            break
    return numbered(labels if log_likelihood(table, labels) > log_likelihood(table, first) - 1e-6 else first)


def _improve(P: Floats, table: MatchTable, labels: Ints, f: float, *, max_iter: int = 20) -> Ints:
    """Return labels of larger Σ_kept (P − f/2), improved object by object; there may be more of them than d."""
    # Multiples of 2⁻³⁰, whose sums are exact: ties are then broken alike on every processor.
    worth = np.ldexp(np.round(np.ldexp(P - f / 2, 30)), -30)
    offsets, labels = table.matchings.offsets.tolist(), labels.copy()
    U = np.zeros((len(labels), int(labels.max(initial=0)) + 1 + int(table.matchings.sizes.max(initial=0))))
    known = np.flatnonzero(labels >= 0)
    U[known, labels[known]] = 1
    for _ in range(max_iter):
        before = labels.copy()
        for a, b in pairwise(offsets):
            if a == b:
                continue
            U[a:b] = 0
            S = np.maximum(worth[a:b] @ U, 0)
            # A point without a partner worth having waits under a free label, where others may join it.
            S[:, ~U.any(axis=0)] = 2.0**-31
            labels[a:b] = assign(S)
            U[np.arange(a, b), labels[a:b]] = 1
        if np.array_equal(labels, before):
            break
    return labels


def _without_singles(labels: Ints, d: int) -> Ints:
    """Return the labels numbered by first appearance, -1 for those of one point only and for all beyond the d largest.

    Examples
    --------
    >>> _without_singles(np.array([5, 3, 5, 2, 3, 5]), 1).tolist()
    [0, -1, 0, -1, -1, 0]
    """
    counts = np.bincount(labels[labels >= 0], minlength=1)
    good = np.append(counts > 1, False)  # the last is that of -1
    good[np.argsort(-counts, kind="stable")[d:]] = False
    kept = good[labels]
    answer = np.full(len(labels), -1, dtype=np.int64)
    answer[kept] = numbered(labels[kept])
    return answer
