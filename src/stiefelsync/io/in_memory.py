"""The types in which other Python programs hold matches in memory: dicts, permutation vectors, k×k×n×n tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.io.base import names_of
from stiefelsync.matching._canonical import OneToMany, as_labels, as_pairs, check_sizes
from stiefelsync.matching.matchings import Matchings

__all__ = ["from_dict", "from_permutations", "from_tensor", "to_dict", "to_permutations", "to_tensor"]


@typed
def from_dict(
    matches: Mapping[tuple[Any, Any], ArrayLike],
    sizes: ArrayLike | Mapping[str, int] | None = None,
    *,
    weights: Mapping[tuple[Any, Any], ArrayLike] | None = None,
    one_to_many: OneToMany = "error",
) -> Matchings:
    """Build from ``{(a, b): (K, 2) ints}``, objects given by number or by name.

    Parameters
    ----------
    matches
        Keys are pairs of object numbers, or pairs of names (kept, in sorted order).
    sizes : (k,) int, or dict by name
        Points per object; None: as many as the matches mention.
    weights : {(a, b): (K,)}
        One positive number per match, under the same keys.
    one_to_many : {"error", "repair"}
        Where a point has two partners in one object: raise, or keep the heaviest.

    Examples
    --------
    >>> problem = from_dict({("b.jpg", "a.jpg"): [[0, 4]]}, weights={("b.jpg", "a.jpg"): [0.5]})
    >>> problem.names, problem.sizes.tolist(), problem.pair(0, 1).tolist(), problem.weights.tolist()
    (('a.jpg', 'b.jpg'), [5, 1], [[4, 0]], [0.5])
    """
    keys = [key for pair in matches for key in pair]
    names: list[str] | None = None
    number: dict[Any, int] = {}
    if isinstance(sizes, Mapping) or any(isinstance(key, str) for key in keys):
        if not all(isinstance(key, str) for key in keys):
            raise InputError("objects must be given all by number or all by name")
        names = sorted({*keys, *(sizes if isinstance(sizes, Mapping) else ())})
        number = {name: i for i, name in enumerate(names)}

    def numbered(given: Mapping[tuple[Any, Any], ArrayLike]) -> dict[tuple[Any, Any], ArrayLike]:
        return {(number.get(a, a), number.get(b, b)): block for (a, b), block in given.items()}

    pairs = numbered(matches)
    if isinstance(sizes, Mapping):
        sizes = [sizes.get(name, 0) for name in names or ()]
    if sizes is None:
        least: dict[int, int] = dict.fromkeys(range(len(names or ())), 0)
        for pair, block in pairs.items():
            for o, column in zip(pair, as_pairs(block).T, strict=True):
                least[o] = max(least.get(o, 0), int(column.max(initial=-1)) + 1)
        sizes = _counted(least)
    values = None if weights is None else numbered(weights)
    return Matchings.from_pairs(pairs, sizes, weights=values, names=names, one_to_many=one_to_many)


@typed
def to_dict(matchings: Matchings) -> dict[tuple[str, str], NDArray[np.int32]]:
    """Return ``{(name, name): (K, 2) int32}``, or object numbers as text where there are no names.

    Examples
    --------
    >>> to_dict(Matchings.from_labels([0, 0], [1, 1], names=["x", "y"]))
    {('x', 'y'): array([[0, 0]], dtype=int32)}
    """
    names = names_of(matchings)
    return {(names[i], names[j]): block for (i, j), block in matchings.pairs().items()}


@typed
def from_permutations(
    permutations: Mapping[tuple[int, int], ArrayLike] | Sequence[ArrayLike],
    sizes: ArrayLike | None = None,
    *,
    weights: Mapping[tuple[int, int], ArrayLike] | None = None,
    one_to_many: OneToMany = "error",
) -> Matchings:
    """Build from permutation vectors, as model merging has them; -1 means no partner.

    Parameters
    ----------
    permutations
        Either ``{(i, j): v}``, where point t of object i goes with point ``v[t]`` of object j, or one vector per
        object, where point t of object i is universe point ``v[t]``.
    sizes : (k,) int
        Points per object; None: the lengths of the vectors, or as many as they mention.
    weights : {(i, j): vector}
        One positive number per entry of a vector of pair (i, j); those of points without a partner are ignored.
    one_to_many : {"error", "repair"}
        Where a point has two partners in one object: raise, or keep the heaviest.

    Examples
    --------
    >>> from_permutations({(0, 1): [1, 0], (1, 2): [-1, 0]}).pairs()[1, 2].tolist()
    [[1, 0]]
    >>> from_permutations([[0, 1], [1, 0]]).pairs()[0, 1].tolist()
    [[0, 1], [1, 0]]
    """
    if not isinstance(permutations, Mapping):
        return _from_vectors(permutations, sizes, weights)
    pairs, values, least = {}, {}, dict[int, int]()
    for (i, j), given in permutations.items():
        v = _vector(given)
        own = np.flatnonzero(v >= 0)
        pairs[i, j] = np.stack([own, v[own]], axis=1)
        least[i] = max(least.get(i, 0), len(v))
        least[j] = max(least.get(j, 0), int(v.max(initial=-1)) + 1)
        if weights is not None and (i, j) in weights:
            w = np.asarray(weights[i, j])
            if w.shape != v.shape:
                raise InputError(f"the permutation of pair ({i}, {j}) needs {len(v)} weights, got shape {w.shape}")
            values[i, j] = w[own]
    if weights is not None and set(weights) != set(pairs):
        raise InputError("weights must have exactly the object pairs that the permutations have")
    return Matchings.from_pairs(
        pairs, _counted(least) if sizes is None else sizes, weights=values if weights is not None else None,
        one_to_many=one_to_many,
    )  # fmt: skip


def _from_vectors(vectors: Sequence[ArrayLike], sizes: ArrayLike | None, weights: object) -> Matchings:
    listed = [_vector(v) for v in vectors]
    lengths = [len(v) for v in listed]
    if sizes is not None and np.asarray(sizes).tolist() != lengths:
        raise InputError(f"the sizes are {np.asarray(sizes).tolist()}, but the vectors have lengths {lengths}")
    if weights is not None:
        raise InputError("weights belong to pairs of objects; give the permutations as {(i, j): vector}, too")
    return Matchings.from_labels(np.concatenate([np.empty(0, dtype=np.int64), *listed]), lengths)


def _counted(least: Mapping[int, int]) -> NDArray[np.int64]:
    """Return the sizes of all objects up to the last mentioned."""
    return np.array([least.get(o, 0) for o in range(max(least, default=-1) + 1)], dtype=np.int64)


def _vector(given: ArrayLike) -> NDArray[np.int64]:
    v = np.asarray(given)
    if v.ndim != 1 or (v.size and not np.issubdtype(v.dtype, np.integer)) or (v < -1).any():
        raise InputError("a permutation must be a vector of whole numbers, -1 for no partner")
    return v.astype(np.int64)


@typed
def to_permutations(labels: ArrayLike, sizes: ArrayLike) -> list[NDArray[np.int64]]:
    """Return the universe point of every point, one vector per object; -1 = unmatched.

    Examples
    --------
    >>> [v.tolist() for v in to_permutations([0, 1, 1, 0, -1], [2, 3])]
    [[0, 1], [1, 0, -1]]
    """
    counts = check_sizes(sizes)
    flat = as_labels(labels, int(counts.sum(dtype=np.int64)))
    return np.split(flat, np.cumsum(counts)[:-1])


@typed
def from_tensor(
    X: ArrayLike,
    sizes: ArrayLike | None = None,
    *,
    weighted: bool = False,
    names: Sequence[str] | None = None,
    one_to_many: OneToMany = "error",
) -> Matchings:
    """Build from a tensor of shape (k, k, n, n) whose block (i, j) is P_ij, as multi-graph matching programs have.

    Scores that are not matches yet are for :meth:`Matchings.from_scores`.

    Parameters
    ----------
    sizes : (k,) int
        Points per object where fewer than n; the rest of a block is padding and must be zero (or identity, i = j).
    weighted
        Take the entries for weights; otherwise they must be 0 or 1.
    one_to_many : {"error", "repair"}
        Where a point has two partners in one object: raise, or keep the heaviest.

    Examples
    --------
    >>> from_tensor(np.tile(np.eye(2), (3, 3, 1, 1)))
    Matchings(3 objects, 6 points, 6 matches in 3 of 3 pairs)
    """
    blocks = np.asarray(X)
    if blocks.ndim != 4 or blocks.shape[0] != blocks.shape[1] or blocks.shape[2] != blocks.shape[3]:
        raise InputError(f"the tensor must have shape (k, k, n, n), got {blocks.shape}")
    k, n = blocks.shape[0], blocks.shape[2]
    counts = np.full(k, n) if sizes is None else np.asarray(sizes)
    if counts.shape != (k,) or (counts > n).any() or (counts < 0).any():
        raise InputError(f"the tensor needs {k} sizes between 0 and {n}")
    real = (np.arange(n) < counts[:, None]).ravel()
    W = blocks.transpose(0, 2, 1, 3).reshape(k * n, k * n)
    padding = W * ~np.outer(real, real)
    if np.count_nonzero(padding - np.diag(np.diag(padding))):
        raise InputError("the tensor has matches of points beyond the sizes")
    kept = W[np.ix_(real, real)]
    return Matchings.from_matrix(kept, counts, weighted=weighted, names=names, one_to_many=one_to_many)


@typed
def to_tensor(matchings: Matchings) -> NDArray[np.float64]:
    """Return a tensor of shape (k, k, n, n), n the largest size, whose block (i, j) is P_ij, padded with zeros.

    Examples
    --------
    >>> to_tensor(Matchings.from_labels([0, 1, 1], [2, 1]))[0, 1].tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    k, n = matchings.n_objects, int(matchings.sizes.max(initial=0))
    X = np.zeros((k, k, n, n))
    i, j = matchings.pair_objects[matchings.match_pairs].T
    a, b = matchings.indices.T
    X[i, j, a, b] = X[j, i, b, a] = matchings.match_weights
    own = matchings.point_objects
    point = np.arange(matchings.n_points) - matchings.offsets[own]
    X[own, own, point, point] = 1
    return X
