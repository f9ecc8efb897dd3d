"""Few objects: sample labellings together with the rates of the model, so that neither is fitted to the other.

With many objects one set of rates, fitted to the likeliest labels, will do. With few, the likeliest labels make their
own noise look like structure. So here labels and rates are sampled in turn, each given the other, and the likelihood
of a block is the whole one instead of the mean of its two readings. Let i < j be two objects, a point of i be a *row*
and one of j a *column*. Of the labels that both hold, each is matched with probability p. All other rows and columns
are left over: a row that has a partner is matched (wrongly) with probability u₁, one that has none with u₀, a column
with v₁ and v₀, and the w wrong matches are any of the w! ways to pair off the matched ones. Against "no partners", two
points that carry the same label are worth

    log p + log w − log u₀ − log v₀                          if they are matched with each other, and otherwise
    log(1 − p) + log(u₁ / u₀)  or  log((1 − u₁) / (1 − u₀))  if the row is matched elsewhere, or nowhere
               + log(v₁ / v₀)  or  log((1 − v₁) / (1 − v₀))  for the column.

Rates have flat priors (p) and Jeffreys' (the others). That rows must be matched as often as columns is left out.

The universe size d is sampled too, for a universe too large is room for points without partners. An object that sees
each universe point at a rate of its own, flat a priori, has its n_i points with probability ∝ B(n_i + 1, d − n_i + 1);
d!/(d − t)! ways to name them give the same t tracks (points without a partner are tracks too). With 1/d a priori,

    P(d | labels) ∝ (d − 1)! / (d − t)! · Π_i B(n_i + 1, d − n_i + 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logit

from stiefelsync.matching.graph import connected
from stiefelsync.sync.likelihood.kernels import sample_sweep
from stiefelsync.sync.likelihood.matches import MatchTable

__all__ = ["Evidence", "evidence", "sample_posterior"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CLASSES = 24  # classes of weights
_WORK = 60_000  # pairs of points with equal labels, over all chains, that a sweep looks at
_STEEP = 4.0  # most that a standard deviation of the weights' normal scores may add to a match's log-odds
# Kinds of pairs of points; matches are _MATCH + class of their weight. The first four: which of them is matched.
_BOTH, _ROW, _COLUMN, _NEITHER, _MATCH = 1, 2, 3, 4, 5
_PRIORS = np.array([[1.0], [0.5], [0.5], [0.5], [0.5]])  # both parameters of the beta priors of p, u₁, v₁, u₀ and v₀


@dataclass(frozen=True)
class Evidence:
    """What was observed about every pair of points, as small numbers.

    Attributes
    ----------
    kinds : (m + 1, m + 1) int64
        0: same object, objects that were not compared, or nobody (point m). Otherwise 5 and above: matched, by the
        class of the weight. 1: not, but both are matched in the other's object; 2: only the point of the object that
        comes first is; 3: only the other; 4: neither.
    totals : (n_classes,)
        Matches of each class of weight.
    scores : (n_classes,) or None
        Mean normal score of the weights of each class; None where all weights are equal.
    rows, columns
        Rows and columns of all blocks.
    blocks
        Number of compared pairs of objects.
    """

    kinds: Ints
    totals: Floats
    scores: Floats | None
    rows: float
    columns: float
    blocks: int


def evidence(table: MatchTable) -> Evidence:
    """Return what a problem says about every pair of points; O(m²).

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> evidence(MatchTable.of(Matchings.from_labels([0, 1, 1], [2, 1]), 2)).kinds.tolist()
    [[0, 0, 3, 0], [0, 0, 5, 0], [3, 5, 0, 0], [0, 0, 0, 0]]
    """
    problem, owner = table.matchings, table.owner
    m, M = problem.n_points, problem.n_matches
    z, scores = table.weight_scores, None
    classes = np.zeros(M, dtype=np.int64)
    if z is not None:
        # Classes of equal numbers of matches, by rank.
        classes = np.argsort(np.argsort(z, kind="stable"), kind="stable") * min(_CLASSES, M) // M
        scores = np.bincount(classes, z) / np.bincount(classes)
    seen = np.zeros((m, problem.n_objects), dtype=np.int64)
    seen[np.repeat(np.arange(m), np.diff(table.indptr)), table.partners] = 1
    met = np.asarray(table.compared if isinstance(table.compared, np.ndarray) else table.compared.toarray()) > 0
    here, there = seen[:, owner], seen[:, owner].T
    first = owner[:, None] < owner
    row, column = np.where(first, here, there), np.where(first, there, here)
    kinds = np.zeros((m + 1, m + 1), dtype=np.int64)
    kinds[:m, :m] = np.where(met[owner][:, owner], _NEITHER - 2 * row - column, 0)
    a, b = table.ends
    kinds[a, b] = kinds[b, a] = _MATCH + classes
    totals = np.bincount(classes, minlength=1).astype(np.float64)
    i, j = problem.pair_objects.T
    return Evidence(kinds, totals, scores, float(problem.sizes[i].sum()), float(problem.sizes[j].sum()), len(i))


def sample_posterior(
    table: MatchTable,
    labels: Ints,
    *,
    rng: np.random.Generator,
    chains: int | None = None,
    sweeps: int = 1000,
    burn: int = 600,
    every: int = 4,
) -> Floats:
    """Return the posterior probability that two points carry the same label, (2, m, m): one by each half of the chains.

    The mean of both is the estimate; what was chosen by one half can be judged by the other. It is 1 on the diagonal,
    and 0 for points of objects that no comparisons connect: they may carry the same label, but nothing says so.

    Gibbs sampling. In one object labels are paired off at random and each pair swaps (or hands over) its point with the
    probability that the scores give, all pairs and all chains at once. After every sweep each chain draws the rates,
    what weights are worth, and the universe size, which may exceed the given one by a quarter, from their posterior
    given its own labels, so that uncertain labels make for uncertain rates. In the first half of the burn-in chains
    begin hot, at scores times zero, and cool down, so that they do not all stay near the labels they were given. Rates
    and universe are then still those given: hot chains that learnt from themselves would find all matches wrong, and
    never come back from that.

    Parameters
    ----------
    labels : (m,) int
        Where every chain starts; no -1.
    chains, sweeps, burn, every
        Number of chains, even (by default 24, and down to 8 where k²d is large), sweeps over all objects, sweeps before
        the first sample, and sweeps between samples.

    Notes
    -----
    O(m²) memory and O(chains·k²·d) per sweep.

    Examples
    --------
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 1, 2, 0, 1, 2, 0, 1, 2], [3, 3, 3])
    >>> P = sample_posterior(MatchTable.of(problem, 3), np.tile([0, 1, 2], 3), rng=np.random.default_rng(0))
    >>> (P[:, 0, 3] > 0.9).tolist(), (P[:, 0, 4] < 0.1).tolist()
    ([True, True], [True, True])
    """
    seen = evidence(table)
    m, k = len(labels), table.matchings.n_objects
    chains = min(max(_WORK // (k * k * table.d) // 2 * 2, 8), 24) if chains is None else chains
    prior = _size_prior(table.matchings.sizes.astype(np.int64), table.d + table.d // 4 + 2)
    member, size = np.full((chains, len(prior) - 1, k), m, dtype=np.int64), np.full(chains, table.d)
    member[:, labels, table.owner] = np.arange(m)
    together, samples = np.zeros(2 * (m + 1) ** 2, dtype=np.int64), 0
    one, two = np.triu_indices(k, 1)
    half = np.repeat([0, (m + 1) ** 2], chains // 2)[:, None, None]
    counts = _count(seen, member)
    for sweep in range(sweeps):
        if sweep >= burn // 2:
            counts = _count(seen, member)
            member, size = _resize(member, member < m, prior, rng)
        _sweep(seen, member, size, _worth(seen, counts, rng) * min(2 * sweep / max(burn, 1), 1.0), rng)
        if sweep >= burn and (sweep - burn) % every == 0:
            at = half + member[..., one] * (m + 1) + member[..., two]
            together += np.bincount(at.ravel(), minlength=len(together))
            samples += chains // 2
    P = together.reshape(2, m + 1, m + 1)[:, :m, :m] / max(samples, 1)
    part = connected(k, table.matchings.pair_objects)[table.owner]
    P[:, part[:, None] != part] = 0
    return np.asarray(P + P.transpose(0, 2, 1) + np.eye(m))


def _count(seen: Evidence, member: Ints) -> Floats:
    """Return each chain's number of pairs with equal labels of every kind, shape (chains, kinds)."""
    chains, _, k = member.shape
    one, two = np.triu_indices(k, 1)
    n = _MATCH + len(seen.totals)
    kinds = seen.kinds.ravel()[member[..., one] * len(seen.kinds) + member[..., two]].reshape(chains, -1)
    counts = np.bincount((kinds + np.arange(chains)[:, None] * n).ravel(), minlength=chains * n).astype(np.float64)
    return counts.reshape(chains, n)


def _size_prior(sizes: Ints, most: int) -> Floats:
    """Return log (d − 1)! Π_i B(n_i + 1, d − n_i + 1) for d = 0, …, `most`; -inf below the size of an object."""
    d, prior = np.arange(most + 1.0), np.full(most + 1, -np.inf)
    fits = d >= max(int(sizes.max(initial=1)), 1)
    prior[fits] = gammaln(d[fits]) + betaln(sizes + 1.0, d[fits][:, None] - sizes + 1).sum(axis=1)
    return prior


def _resize(member: Ints, held: NDArray[np.bool_], prior: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw each chain's universe size given its labels; return the members, those of used labels first, and the sizes.

    `held`, shaped as `member`, says who is somebody.
    """
    used = held.any(axis=2)
    member = member[np.arange(len(member))[:, None], np.argsort(~used, axis=1, kind="stable")]
    unseen = np.arange(len(prior)) - used.sum(axis=1)[:, None]
    chances = np.where(unseen >= 0, prior - gammaln(np.maximum(unseen, 0) + 1.0), -np.inf)
    return member, (chances + rng.gumbel(size=chances.shape)).argmax(axis=1)


def _sweep(seen: Evidence, member: Ints, size: Ints, worth: Floats, rng: np.random.Generator) -> None:
    """Let every object swap the points of labels paired off at random; `member`, (chains, labels, k), is changed.

    Each chain uses its first `size` labels only.
    """
    chains, d, k = member.shape
    drawn = rng.random((k, chains * (d + d // 2)))
    places = drawn[:, : chains * d].reshape(k, chains, d) + (np.arange(d) >= size[:, None])
    order = places.argsort(axis=2).astype(np.int64, copy=False)
    # A swap is likely by the logistic function of its gain: the gain exceeds noise of that distribution.
    noise = logit(drawn[:, chains * d :].reshape(k, chains, d // 2))
    sample_sweep(member, size, seen.kinds, worth, order, noise)


def _worth(seen: Evidence, counts: Floats, rng: np.random.Generator) -> Floats:
    """Draw each chain's rates given its counts; return what every kind of pair is worth, shape (chains, kinds)."""
    right, present, M = counts[:, _MATCH:].sum(axis=1), counts[:, 1:].sum(axis=1), float(seen.totals.sum())
    row, column = counts[:, _BOTH] + counts[:, _ROW], counts[:, _BOTH] + counts[:, _COLUMN]
    yes = np.stack([right, row, column, M - right - row, M - right - column])
    all_ = np.stack([present, present - right, present - right, seen.rows - present, seen.columns - present])
    rates = rng.beta(np.maximum(yes, 0) + _PRIORS, np.maximum(all_ - yes, 0) + _PRIORS).clip(1e-3, 0.999)
    (p, u1, v1, u0, v0), (q, not_u1, not_v1, not_u0, not_v0) = np.log(rates), np.log(1 - rates)
    worth = np.zeros_like(counts)
    worth[:, _BOTH] = q + (u1 - u0) + (v1 - v0)
    worth[:, _ROW] = q + (u1 - u0) + (not_v1 - not_v0)
    worth[:, _COLUMN] = q + (not_u1 - not_u0) + (v1 - v0)
    worth[:, _NEITHER] = q + (not_u1 - not_u0) + (not_v1 - not_v0)
    # From w! to (w - 1)! or (w + 1)!: half way between both.
    wrong = np.maximum(M - right, 0) / max(seen.blocks, 1) + 0.5
    worth[:, _MATCH:] = (p + np.log(wrong) - u0 - v0)[:, None]
    if seen.scores is not None:
        worth[:, _MATCH:] += _trust(seen.scores, counts[:, _MATCH:], seen.totals, rng)
    return worth


def _trust(z: Floats, right: Floats, totals: Floats, rng: np.random.Generator) -> Floats:
    """Draw what weights add to a match's log-odds, shape (chains, classes).

    Normal scores z of right and of wrong matches are taken to be normal with one variance and two means.
    """
    wrong = np.maximum(totals - right, 0)
    n, w = right.sum(axis=1), wrong.sum(axis=1)
    one, two = (right * z).sum(axis=1) / (n + 1), (wrong * z).sum(axis=1) / (w + 1)
    variance = np.maximum((np.sum(totals * z**2) - n * one**2 - w * two**2) / totals.sum(), 0.05)
    one = one + rng.standard_normal(len(n)) * np.sqrt(variance / (n + 1))
    two = two + rng.standard_normal(len(n)) * np.sqrt(variance / (w + 1))
    slope = np.clip((one - two) / variance, 0, _STEEP)
    return np.asarray(slope[:, None] * (z - 0.5 * (one + two)[:, None]))
