"""Random synchronisation problems with a known answer: noise models row, edge and mix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.errors import InputError, unknown_name
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["NOISES", "synthetic"]

Ints = NDArray[np.int64]

# Shares of the mistakes of model "mix"; the rest are added wrong matches.
_SWAP, _DROP = 1 / 3, 0.567


@drawn
def synthetic(
    universe: int,
    objects: int,
    observed: float,
    error: float,
    *,
    noise: str = "row",
    rng: np.random.Generator | int | None = 0,
) -> tuple[Matchings, Ints]:
    """Draw a random problem: k objects see parts of a universe of d points, and their pairwise matches are disturbed.

    Every universe point is seen by an object with probability ρ (drawn again if an object sees
    none), in random order. Blocks i < j start from the true matches and are disturbed
    independently; W_ji = W_ijᵀ.

    Parameters
    ----------
    universe
        Universe size d.
    objects
        Number of objects k.
    observed
        Observation rate ρ in (0, 1].
    error
        Error rate σ in [0, 1].
    noise : {"row", "edge", "mix"}
        "row": each row of W_ij is selected with probability σ and the selected rows are permuted at
        random; fits the data published with the paper. "edge": with probability σ the whole block
        comes from an independent random relabelling of the universe. "mix": round(σ·min(m_i, m_j))
        mistakes, each a swap of a matched row with any other (1 in 3, counts twice), a dropped
        match (.567) or an added wrong one (.1); one for which a block has no room left has no
        effect.
    rng
        Generator or seed; the same seed gives the same problem.

    Returns
    -------
    matchings : Matchings
    truth : (m,) int64
        True universe point of every point, in 0, …, d - 1. Points nobody sees do not occur, so the
        size of the universe that can be found is ``len(np.unique(truth))``.

    Notes
    -----
    O(k²d log d).

    Examples
    --------
    >>> matchings, truth = synthetic(25, 30, 0.6, 0.0, rng=0)
    >>> matchings == Matchings.from_labels(truth, matchings.sizes)
    True
    """
    if universe < 1 or objects < 1:
        raise InputError(f"a problem needs at least one universe point and one object, got {universe} and {objects}")
    if not 0 < observed <= 1:
        raise InputError(f"observed must be above 0 and at most 1, got {observed}")
    if not 0 <= error <= 1:
        raise InputError(f"error must be between 0 and 1, got {error}")
    if noise not in NOISES:
        raise unknown_name("noise", noise, NOISES)
    rng = generator(rng)
    seen = rng.random((objects, universe)) < observed
    while (empty := ~seen.any(axis=1)).any():
        seen[empty] = rng.random((int(empty.sum()), universe)) < observed
    labels = [rng.permutation(np.flatnonzero(row)) for row in seen]
    # where[j, u] is the point of object j that shows universe point u, or -1.
    where = np.full((objects, universe), -1, dtype=np.int64)
    for i, label in enumerate(labels):
        where[i, label] = np.arange(len(label))
    pair_objects, points = [np.empty((0, 2), dtype=np.int64)], [np.empty((0, 2), dtype=np.int64)]
    for i in range(objects - 1):
        targets = NOISES[noise](labels[i], where[i + 1 :], error, rng)
        row, a = np.nonzero(targets >= 0)
        pair_objects.append(np.stack([np.full_like(row, i), row + i + 1], axis=1))
        points.append(np.stack([a, targets[row, a]], axis=1))
    sizes = seen.sum(axis=1)
    return Matchings.from_arrays(np.concatenate(pair_objects), np.concatenate(points), sizes), np.concatenate(labels)


def _row(label: Ints, where: Ints, error: float, rng: np.random.Generator) -> Ints:
    """Return the targets of object i's points in every later object j, shape (number of j, m_i), -1 = none."""
    targets = where[:, label]
    return permute_selected(targets, rng.random(targets.shape) < error, rng)


def _edge(label: Ints, where: Ints, error: float, rng: np.random.Generator) -> Ints:
    """Return the targets as `_row` does, whole blocks relabelled."""
    n, d = where.shape
    names = np.tile(np.arange(d), (n, 1))
    wrong = rng.random(n) < error
    names[wrong] = rng.permuted(names[wrong], axis=1)
    targets: Ints = np.take_along_axis(where, names[:, label], axis=1)
    return targets


def _mix(label: Ints, where: Ints, error: float, rng: np.random.Generator) -> Ints:
    """Return the targets as `_row` does, with a counted number of mistakes in every block."""
    targets = where[:, label]
    for target, there in zip(targets, where, strict=True):
        size = int((there >= 0).sum())
        left = round(error * min(len(label), size))
        while left > 0:
            kind = rng.random()
            if kind < _SWAP:
                if left >= 2:
                    _swap(target, rng)
                    left -= 2
            elif kind < _SWAP + _DROP:
                _drop(target, rng)
                left -= 1
            else:
                _add(target, there[label], size, rng)
                left -= 1
    return targets


def _swap(target: Ints, rng: np.random.Generator) -> None:
    matched = np.flatnonzero(target >= 0)
    if len(matched) and len(target) >= 2:
        a = int(rng.choice(matched))
        b = (a + int(rng.integers(1, len(target)))) % len(target)
        target[[a, b]] = target[[b, a]]


def _drop(target: Ints, rng: np.random.Generator) -> None:
    matched = np.flatnonzero(target >= 0)
    if len(matched):
        target[rng.choice(matched)] = -1


def _add(target: Ints, true: Ints, size: int, rng: np.random.Generator) -> None:
    free = np.flatnonzero(target < 0)
    open_ = np.setdiff1d(np.arange(size), target)
    a, b = (grid.ravel() for grid in np.meshgrid(free, open_, indexing="ij"))
    wrong = np.flatnonzero(true[a] != b)
    if len(wrong):
        chosen = rng.choice(wrong)
        target[a[chosen]] = b[chosen]


def permute_selected(values: Ints, selected: NDArray[np.bool_], rng: np.random.Generator) -> Ints:
    """Return `values` with the selected entries of each row permuted at random among themselves.

    Parameters
    ----------
    values, selected : (n, m)

    Examples
    --------
    >>> permute_selected(np.array([[5, 6, 7]]), np.array([[True, False, True]]), np.random.default_rng(1)).tolist()
    [[7, 6, 5]]
    """
    chosen = np.argsort(~selected, axis=1, kind="stable")
    shuffled = np.argsort(np.where(selected, rng.random(values.shape), 2.0), axis=1)
    inside = np.arange(values.shape[1]) < selected.sum(axis=1)[:, None]
    row = np.nonzero(inside)[0]
    result = values.copy()
    result[row, chosen[inside]] = values[row, shuffled[inside]]
    return result


NOISES: dict[str, Callable[[Ints, Ints, float, np.random.Generator], Ints]] = {"row": _row, "edge": _edge, "mix": _mix}
