"""Objects and pairs of objects that are not to count, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError, unknown_name
from stiefelsync.matching.matchings import Matchings

__all__ = ["are_among", "pairs_to_drop"]

Ints = NDArray[np.int64]


def pairs_to_drop(matchings: Matchings, objects: Iterable[str], pairs: Iterable[Sequence[str]]) -> Ints:
    """Return the pairs with matches that belong to one of these objects, or are one of these pairs.

    Parameters
    ----------
    objects
        Names, or numbers as texts where objects have no names.
    pairs
        Two of these each.

    Returns
    -------
    (B, 2) int64
        Objects i < j.

    Examples
    --------
    >>> blocks = {(0, 1): [[0, 0]], (0, 2): [[0, 0]], (1, 2): [[0, 0]]}
    >>> problem = Matchings.from_pairs(blocks, [1] * 3, names=["a", "b", "c"])
    >>> pairs_to_drop(problem, [], [("c", "a")]).tolist(), pairs_to_drop(problem, ["b"], []).tolist()
    ([[0, 2]], [[0, 1], [1, 2]])
    """
    names = matchings.names or [str(i) for i in range(matchings.n_objects)]
    number = {str(name): i for i, name in enumerate(names)}

    def found(name: str) -> int:
        if str(name) not in number:
            raise unknown_name("object", name, list(number))
        return number[str(name)]

    gone = [found(name) for name in objects]
    single = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"a pair to drop is two names, got {pair!r}")
        single.append(sorted(map(found, pair)))
    given = matchings.pair_objects.astype(np.int64)
    drop = np.isin(given, gone).any(axis=1) | are_among(given, np.array(single, dtype=np.int64).reshape(-1, 2))
    return given[drop]


def are_among(objects: NDArray[np.integer], pairs: Ints) -> NDArray[np.bool_]:
    """Return which rows of `objects`, (n, 2) in either order, are among these pairs.

    Of pairs, (B, 2), the smaller object comes first.

    Examples
    --------
    >>> are_among(np.array([[1, 0], [0, 2]]), np.array([[0, 1]])).tolist()
    [True, False]
    """
    if not len(pairs):
        return np.zeros(len(objects), dtype=bool)
    both, k = np.sort(objects.astype(np.int64), axis=1), np.int64(pairs.max() + 1)
    inside = (both < k).all(axis=1)
    return inside & np.isin(both @ np.array([k, 1]), pairs @ np.array([k, 1]))
