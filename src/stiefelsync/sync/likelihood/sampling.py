"""Few objects: sample labellings from the posterior and answer with the labels of largest expected fscore.

With few objects many labellings are about as likely as the likeliest, and the likeliest fits noise. What can be said is
how probable it is that two points are the same; the answer that makes the expected fscore largest keeps the probable
pairs and leaves a point unmatched where no partner is probable enough.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.likelihood.gauss_seidel import assign
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.model import LogOdds

__all__ = ["decide", "pair_scores", "sample"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def pair_scores(table: MatchTable, rates: LogOdds) -> Floats:
    """Return T, shape (m, m): what two points of different objects earn by carrying the same label; zero otherwise.

    ``T_ab = α W_ab + ½ X_aj + ½ X_bi`` for a in i, b in j, in the notation of :mod:`stiefelsync.sync.likelihood.model`.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> pair_scores(table, LogOdds(np.ones(2), 1.0, None, -0.5 * table.compared)).tolist()
    [[0.0, 0.0, -0.5], [0.0, 0.0, 0.5], [-0.5, 0.5, 0.0]]
    """
    owner = table.owner
    X = rates.size[owner]
    if rates.seen is not None:
        X = X + table.by_object(rates.seen).toarray()
    half = 0.5 * X[:, owner]
    return np.asarray(table.matrix(rates.right).toarray() + half + half.T)


def sample(
    T: Floats,
    table: MatchTable,
    labels: Ints,
    *,
    rng: np.random.Generator,
    chains: int = 32,
    sweeps: int = 300,
    burn: int = 100,
    every: int = 4,
) -> tuple[Floats, Ints]:
    """Return the posterior probability that two points carry the same label, and the likeliest samples.

    Gibbs sampling: in one object, labels are paired off at random and each pair swaps (or hands over) its point with
    the probability that the scores T give, all pairs and all chains at once.

    Parameters
    ----------
    T : (m, m)
        Log-odds of pairs, zero within objects.
    labels : (m,) int
        Where every chain starts; no -1.
    chains, sweeps, burn, every
        Number of chains, sweeps over all objects, sweeps before the first sample, and sweeps between samples.

    Returns
    -------
    P : (m, m)
        Probabilities.
    states : (chains, m)
        The labels each chain ended with, those of largest Σ T first.

    Notes
    -----
    O(chains · m² ) per sample and O(chains · k² · d) per sweep.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> T = np.array([[0, 0, 0], [0, 0, 9.0], [0, 9.0, 0]])
    >>> sample(T, table, np.array([0, 1, 1]), rng=np.random.default_rng(0))[0].round(1).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    m, k, d = len(labels), table.matchings.n_objects, table.d
    padded = np.zeros((m + 1, m + 1))  # point m is nobody
    padded[:m, :m] = T
    flat = padded.ravel()
    member = np.full((chains, d, k), m)
    member[:, labels, table.owner] = np.arange(m)
    chain = np.arange(chains)[:, None]
    together = np.zeros((m, m))
    label = np.empty((chains, m + 1), dtype=np.int64)
    samples = 0
    for sweep in range(sweeps):
        for i in range(k):
            order = rng.random((chains, d)).argsort(axis=1)
            one, two = order[:, : d // 2], order[:, d // 2 : 2 * (d // 2)]
            A, B = member[chain, one], member[chain, two]
            a, b = A[..., i], B[..., i]
            at, bt = a[..., None] * (m + 1), b[..., None] * (m + 1)
            gain = (flat[at + B] + flat[bt + A] - flat[at + A] - flat[bt + B]).sum(axis=2)
            swap = rng.random(gain.shape) < 1 / (1 + np.exp(-np.clip(gain, -50, 50)))
            member[chain, one, i] = np.where(swap, b, a)
            member[chain, two, i] = np.where(swap, a, b)
        if sweep >= burn and (sweep - burn) % every == 0:
            label[chain[..., None], member] = np.arange(d)[:, None]
            together += (label[:, :m, None] == label[:, None, :m]).sum(axis=0)
            samples += chains
    value = padded[member[..., None], member[..., None, :]].sum(axis=(1, 2, 3))
    label[chain[..., None], member] = np.arange(d)[:, None]
    return together / max(samples, 1), label[np.argsort(-value, kind="stable"), :m]


def decide(P: Floats, table: MatchTable, labels: Ints, *, max_iter: int = 10) -> tuple[Ints, float, float]:
    """Return the consistent labels of largest expected fscore found, -1 = unmatched, that fscore, and the start's.

    For pair probabilities P the expected fscore of a labelling is about 2 Σ_kept P / (n_kept + Σ P). Its maximiser, of
    value f, also maximises Σ_kept (P − f/2) (Dinkelbach): each round improves the labels object by object for the
    current f, then updates f.

    Parameters
    ----------
    P : (m, m)
        Probability that two points are the same.
    labels : (m,) int
        The start.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> table = MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)
    >>> decide(np.array([[1, 0, 0.1], [0, 1, 0.8], [0.1, 0.8, 1]]), table, np.array([0, 1, 0]))[0].tolist()
    [-1, 0, 0]
    """
    owner, offsets = table.owner, table.matchings.offsets.tolist()
    other = owner[:, None] != owner
    P = np.where(other, P, 0.0)
    expected = P.sum()
    labels, f, first = labels.copy(), -1.0, None
    for _ in range(max_iter):
        U = table.one_hot(labels)
        kept = ((U @ U.T) > 0) & other
        after = 2 * float(P[kept].sum()) / max(float(kept.sum()) + float(expected), 1e-12)
        first = after if first is None else first
        if after <= f + 1e-9:
            break
        f = after
        worth = np.where(other, P - f / 2, 0.0)
        for _ in range(20):
            before = labels.copy()
            for a, b in pairwise(offsets):
                U[a:b] = 0
                S = np.maximum(worth[a:b] @ U, 0)
                # A point without a partner worth having waits under a free label, where others may join it.
                free = np.flatnonzero(~U.any(axis=0))
                S[:, free] += 1e-9
                labels[a:b] = assign(S) if b > a else labels[a:b]
                U[np.arange(a, b), labels[a:b]] = S[np.arange(b - a), labels[a:b]] > 0
            if np.array_equal(labels, before):
                break
    alone = ~(((U @ U.T) > 0) & other).any(axis=1)
    return np.where(alone, -1, labels), f, first or 0.0
