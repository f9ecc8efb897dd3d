"""Few objects: sample labellings together with the rates of the model, so that neither is fitted to the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiefelsync.sync.likelihood.matches import MatchTable

__all__ = ["Evidence", "evidence", "sample_posterior"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BINS = 6  # classes of weights
_BOTH, _ONE, _NEITHER, _MATCH = 1, 2, 3, 4  # kinds of pairs of points; matches are _MATCH + class of their weight


@dataclass(frozen=True)
class Evidence:
    """What was observed about every pair of points, as small numbers.

    Attributes
    ----------
    kinds : (m + 1, m + 1) int64
        0: same object, objects that were not compared, or nobody (point m). Otherwise 4 and above: matched, by the
        class of the weight. 1: not, but both are matched in the other's object; 2: one of them is; 3: neither.
    totals : (n_classes,)
        Matches of each class of weight.
    matched, rows
        Matched rows and rows of all blocks, in both readings.
    spread
        Logarithm of the mean size of an object.
    """

    kinds: Ints
    totals: Floats
    matched: float
    rows: float
    spread: float


def evidence(table: MatchTable) -> Evidence:
    """Return what a problem says about every pair of points; O(m²).

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> evidence(MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)).kinds.tolist()
    [[0, 0, 2, 0], [0, 0, 4, 0], [2, 4, 0, 0], [0, 0, 0, 0]]
    """
    m, owner = table.matchings.n_points, table.owner
    z = table.weight_scores
    M = table.matchings.n_matches
    if z is None:
        classes = np.zeros(M, dtype=np.int64)
    else:
        # Classes of equal numbers of matches, by rank.
        classes = np.minimum(np.argsort(np.argsort(z, kind="stable"), kind="stable") * _BINS // max(M, 1), _BINS - 1)
    seen = np.zeros((m, table.matchings.n_objects), dtype=np.int64)
    seen[np.repeat(np.arange(m), np.diff(table.indptr)), table.partners] = 1
    met = np.asarray(table.compared if isinstance(table.compared, np.ndarray) else table.compared.toarray()) > 0
    both = seen[:, owner] + seen[:, owner].T
    kinds = np.zeros((m + 1, m + 1), dtype=np.int64)
    kinds[:m, :m] = np.where(met[owner][:, owner], _NEITHER - both, 0)
    a, b = table.ends
    kinds[a, b] = kinds[b, a] = _MATCH + classes
    totals = np.bincount(classes, minlength=1).astype(np.float64)
    return Evidence(kinds, totals, float(len(table.indices)), float(table.rows), table.spread)


def sample_posterior(
    table: MatchTable,
    labels: Ints,
    *,
    rng: np.random.Generator,
    chains: int = 24,
    sweeps: int = 1600,
    burn: int = 1200,
    every: int = 4,
) -> Floats:
    """Return the posterior probability, (m, m), that two points carry the same label; 1 on the diagonal.

    Gibbs sampling. In one object labels are paired off at random and each pair swaps (or hands over) its point with the
    probability that the scores give, all pairs and all chains at once. After every sweep each chain draws the rates p,
    r₁, r₀, and what classes of weights are worth, from their posterior given its own labels, so that uncertain labels
    make for uncertain rates. Chains begin hot, at scores times zero, and cool down while no samples are taken, so that
    they do not all stay near the labels they were given.

    Parameters
    ----------
    labels : (m,) int
        Where every chain starts; no -1.
    chains, sweeps, burn, every
        Number of chains, sweeps over all objects, sweeps before the first sample, and sweeps between samples.

    Notes
    -----
    O(chains·m²) per sample and O(chains·k²·d) per sweep.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 1, 2, 0, 1, 2, 0, 1, 2], [3, 3, 3])
    >>> P = sample_posterior(MatchTable.of(problem, 3), np.tile([0, 1, 2], 3), rng=np.random.default_rng(0))
    >>> bool(P[0, 3] > 0.9), bool(P[0, 4] < 0.1)
    (True, True)
    """
    seen = evidence(table)
    m, k, d = len(labels), table.matchings.n_objects, table.d
    kinds = seen.kinds.ravel()
    member = np.full((chains, d, k), m)
    member[:, labels, table.owner] = np.arange(m)
    chain = np.arange(chains)[:, None]
    together, samples = np.zeros((m, m)), 0
    label = np.empty((chains, m + 1), dtype=np.int64)
    n_kinds = _MATCH + len(seen.totals)
    upper = np.triu_indices(k, 1)
    for sweep in range(sweeps):
        pairs = kinds[member[..., upper[0]] * (m + 1) + member[..., upper[1]]].reshape(chains, -1)
        counts = np.bincount((pairs + chain * n_kinds).ravel(), minlength=chains * n_kinds).reshape(chains, n_kinds)
        worth = _worth(seen, counts.astype(np.float64), rng).ravel()
        heat = min(sweep / max(burn, 1), 1.0)
        base = chain[..., None] * n_kinds
        for i in range(k):
            order = rng.random((chains, d)).argsort(axis=1)
            one, two = order[:, : d // 2], order[:, d // 2 : 2 * (d // 2)]
            A, B = member[chain, one], member[chain, two]
            a, b = A[..., i], B[..., i]
            at, bt = a[..., None] * (m + 1), b[..., None] * (m + 1)
            gain = worth[base + kinds[at + B]] + worth[base + kinds[bt + A]]
            gain -= worth[base + kinds[at + A]] + worth[base + kinds[bt + B]]
            gain *= heat
            swap = rng.random(a.shape) < 1 / (1 + np.exp(-np.clip(gain.sum(axis=2), -50, 50)))
            member[chain, one, i] = np.where(swap, b, a)
            member[chain, two, i] = np.where(swap, a, b)
        if sweep >= burn and (sweep - burn) % every == 0:
            label[chain[..., None], member] = np.arange(d)[:, None]
            together += (label[:, :m, None] == label[:, None, :m]).sum(axis=0)
            samples += chains
    return together / max(samples, 1)


def _worth(seen: Evidence, counts: Floats, rng: np.random.Generator) -> Floats:
    """Draw each chain's rates given its counts of kinds of pairs with equal labels; return what each kind is worth.

    Shapes (chains, kinds). A match is worth α + β and what its class of weights says, other pairs the mean of what the
    two readings say, β where a point is matched and γ where not.
    """
    right, present = counts[:, _MATCH:].sum(axis=1), counts[:, 1:].sum(axis=1)
    found = 2 * right + 2 * counts[:, _BOTH] + counts[:, _ONE]
    p = np.clip(rng.beta(right + 1, present - right + 1), 1e-3, 0.999)
    # Rows and columns are both read and count one half each.
    wrong, missed = 0.5 * (found - 2 * right), 0.5 * np.maximum(2 * present - found, 0)
    stray = 0.5 * np.maximum(seen.matched - found, 0)
    absent = 0.5 * np.maximum(seen.rows - 2 * present, 0) - stray
    r1 = (1 - p) * np.clip(rng.beta(wrong + 0.5, missed + 0.5), 1e-3, 0.999)
    r0 = np.clip(rng.beta(stray + 0.5, np.maximum(absent, 0) + 0.5), 1e-3, 0.999)
    alpha, beta = np.log(p) - np.log(r1) + seen.spread, np.log(r1) - np.log(r0)
    gamma = np.log(1 - p - r1) - np.log(1 - r0)
    worth = np.zeros_like(counts)
    worth[:, _BOTH], worth[:, _ONE], worth[:, _NEITHER] = beta, 0.5 * (beta + gamma), gamma
    worth[:, _MATCH:] = np.maximum(alpha + beta, beta)[:, None]
    if len(seen.totals) > 1:
        share = rng.beta(counts[:, _MATCH:] + 1, np.maximum(seen.totals - counts[:, _MATCH:], 0) + 1)
        mean = (right + 1) / (seen.totals.sum() + 2)
        worth[:, _MATCH:] += np.log(share / (1 - share)) - np.log(mean / (1 - mean))[:, None]
    return worth
