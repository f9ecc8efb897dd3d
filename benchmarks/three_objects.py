"""What three objects allow: the best consistent answer when everything but the labels is known.

    python -m benchmarks.three_objects             # 20 fresh instances, a minute; needs `pip install numba`

Problems are those of the shape "three" (k = 3, d = 25, ρ = .8, row noise σ = .3). Labels are sampled from their exact
posterior, with the true d, ρ and σ and the generator's own likelihood: nothing that must be estimated in practice is.
From the probabilities that two points are the same follow the consistent labels of largest expected fscore, and the
pairs of largest expected fscore, which need not be consistent.

The likelihood of a block. Every row is selected with probability σ and the selected rows' targets are permuted. Let A
rows be matched as they should be, B be rightly unmatched, and D differ, z of which have no partner. Then x of the A and
y of the B were selected too, and (z + y)! of the (D + x + y)! permutations give what is observed. A column is matched
exactly if it has a partner; chains may break this rule at e⁻⁶ each so that they can move.
"""

from __future__ import annotations

import argparse
from math import exp, lgamma, log
from typing import Any

import numpy as np
from numba import njit

from stiefelsync import score, synchronise
from stiefelsync.datasets import synthetic
from stiefelsync.sync.likelihood.decision import Samples, decide

K, D, RHO, SIGMA = 3, 25, 0.8, 0.3
CHAINS, SWEEPS, BURN, EVERY = 6, 1200, 600, 5
BROKEN = 6.0


@njit(cache=True)
def block_likelihoods(n: int, sigma: float) -> Any:  # pragma: no cover
    """Return log P(A, B, D, z), shape (n + 1,) * 4."""
    T = np.full((n + 1, n + 1, n + 1, n + 1), -1e9)
    for A in range(n + 1):
        for B in range(n + 1 - A):
            for D in range(n + 1 - A - B):
                for z in range(D + 1):
                    total = 0.0
                    for x in range(A + 1):
                        for y in range(B + 1):
                            s = D + x + y
                            ways = lgamma(A + 1.0) - lgamma(x + 1.0) - lgamma(A - x + 1.0)
                            ways += lgamma(B + 1.0) - lgamma(y + 1.0) - lgamma(B - y + 1.0)
                            ways += lgamma(z + y + 1.0) - lgamma(s + 1.0)
                            total += exp(ways + s * log(sigma) + (A + B + D - s) * log(1 - sigma))
                    T[A, B, D, z] = log(total)
    return T


@njit(cache=True)
def block(i: int, j: int, where: Any, label: Any, target: Any, sizes: Any, T: Any) -> float:  # pragma: no cover
    """Return the log-likelihood of the block between objects i < j."""
    A = B = D = z = broken = 0
    for a in range(sizes[i]):
        true, found = where[j, label[i, a]], target[i, a, j]
        if true == found:
            A += found >= 0
            B += found < 0
        else:
            D += 1
            z += true < 0
    for b in range(sizes[j]):
        broken += (where[i, label[j, b]] >= 0) != (target[j, b, i] >= 0)
    return T[A, B, D, z] - BROKEN * broken


@njit(cache=True)
def swap(i: int, c: int, e: int, where: Any, label: Any) -> None:  # pragma: no cover
    """Swap the points of labels c and e in object i; either may have none."""
    a, b = where[i, c], where[i, e]
    where[i, c], where[i, e] = b, a
    if a >= 0:
        label[i, a] = e
    if b >= 0:
        label[i, b] = c


@njit(cache=True)
def chain(where: Any, label: Any, target: Any, sizes: Any, offsets: Any, T: Any, rng: Any) -> Any:  # pragma: no cover
    """Return labels, (samples, m), from a chain that begins hot and cools down."""
    k, d = where.shape
    samples = np.zeros(((SWEEPS - BURN) // EVERY, offsets[-1]), dtype=np.int32)
    L = np.zeros((k, k))
    for i in range(k):
        for j in range(i + 1, k):
            L[i, j] = block(i, j, where, label, target, sizes, T)
    for sweep in range(SWEEPS):
        heat = min(1.0, (sweep + 1) / (0.7 * BURN))
        for i in range(k):
            for _ in range(d):
                c, e = rng.integers(0, d), rng.integers(0, d)
                if c == e or (where[i, c] < 0 and where[i, e] < 0):
                    continue
                new, gain = L.copy(), 0.0
                swap(i, c, e, where, label)
                for j in range(k):
                    if j != i:
                        one, two = min(i, j), max(i, j)
                        new[one, two] = block(one, two, where, label, target, sizes, T)
                        gain += new[one, two] - L[one, two]
                if log(rng.random() + 1e-300) < heat * gain:
                    L = new
                else:
                    swap(i, c, e, where, label)
        if sweep >= BURN and (sweep - BURN) % EVERY == 0:
            for i in range(k):
                samples[(sweep - BURN) // EVERY, offsets[i] : offsets[i + 1]] = label[i, : sizes[i]]
    return samples


def posterior(problem: Any, T: Any, seed: int) -> Samples:
    """Return labels from chains that start at random."""
    k, sizes, offsets = problem.n_objects, problem.sizes.astype(np.int64), problem.offsets.astype(np.int64)
    target = np.full((k, sizes.max(), k), -1)
    owner = problem.point_objects
    for x, y in problem.endpoints:
        i, j = owner[x], owner[y]
        target[i, x - offsets[i], j], target[j, y - offsets[j], i] = y - offsets[j], x - offsets[i]
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(CHAINS):
        label, where = np.full((k, sizes.max()), -1), np.full((k, D), -1)
        for i in range(k):
            label[i, : sizes[i]] = rng.permutation(D)[: sizes[i]]
            where[i, label[i, : sizes[i]]] = np.arange(sizes[i])
        found.append(chain(where, label, target, sizes, offsets, T, rng))
    return Samples.of(offsets, np.concatenate(found))


def best_pairs(P: Any, truth: Any, owner: Any) -> float:
    """Return the fscore of the pairs of largest expected fscore."""
    upper = np.triu(P, 1)
    order = np.sort(upper[upper > 0])[::-1]
    expected = 2 * np.cumsum(order) / (np.arange(1, len(order) + 1) + upper.sum())
    kept = upper >= order[expected.argmax()]
    same = np.triu((truth[:, None] == truth) & (owner[:, None] != owner), 1)
    return float(2 * (kept & same).sum() / (kept.sum() + same.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(200, 220)))
    T = block_likelihoods(D, SIGMA)
    rows = []
    for seed in parser.parse_args().seeds:
        problem, truth = synthetic(D, K, RHO, SIGMA, rng=seed)
        result = synchronise(problem, "auto", rng=seed)
        samples = posterior(problem, T, seed)
        labels, promised = decide(samples, D)
        P = np.mean([label[:, None] == label for label in samples.label], axis=0)
        answers = score(problem, truth), score(result.labels, truth), score(labels, truth)
        own = getattr(result.outcome.details, "expected_fscore", None)
        rows.append([*(s.fscore for s in answers), promised, best_pairs(P, truth, problem.point_objects), own])
        print(seed, *np.round(rows[-1], 3), flush=True)
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / len(rows) ** 0.5
    names = ["input", "`accurate`", "ideal consistent", "it expects", "ideal pairs", "`accurate` expects"]
    print("\n| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    print("| " + " | ".join(f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)) + " |")


if __name__ == "__main__":
    main()
