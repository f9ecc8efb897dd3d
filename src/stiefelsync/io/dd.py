"""The .dd files of multi-graph matching: candidate assignments with costs, of which the linear part is used.

Every pair of objects is a line ``gm i j``, a line ``p N0 N1 A E``, A lines ``a id i0 i1 cost`` and E lines
``e id1 id2 cost``. A cost is minimised, so a match of weight w costs −w. Quadratic costs (e) are not read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import Content, Format, head, losses, register
from stiefelsync.matching.matchings import Matchings

__all__ = ["DD"]


def sniff(path: Path) -> bool:
    """Return whether the first line that is no comment opens a pair of objects."""
    for line in head(path).splitlines():
        words = line.split()
        if words and words[0] != b"c":
            return (words[0] == b"gm" and len(words) == 3) or (words[0] == b"p" and len(words) == 5)
    return False


def read(path: Path) -> Matchings:
    """Read the linear part: of the candidates that lower the cost, in each pair the best one-to-one choice."""
    sizes: dict[int, int] = {}
    candidates: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
    pair, announced, number = (0, 1), 0, 0
    try:
        with path.open(encoding="ascii") as file:
            for line in file:
                number += 1
                match line.split():
                    case [] | ["c" | "e" | "i0" | "i1" | "n0" | "n1", *_]:
                        continue
                    case ["gm", i, j]:
                        _expect(pair, candidates, announced)
                        pair, announced = (int(i), int(j)), 0
                        if pair[0] == pair[1] or min(pair) < 0 or pair in candidates:
                            raise ValueError(f"a pair of two different objects, given once, is expected, not {pair}")
                    case ["p", n0, n1, count, _]:
                        for o, size in zip(pair, (int(n0), int(n1)), strict=True):
                            if size < 0 or sizes.setdefault(o, size) != size:
                                raise ValueError(f"object {o} has {size} points here and {sizes[o]} before")
                        candidates[pair], announced = [], int(count)
                    case ["a", _, i0, i1, cost]:
                        if pair not in candidates:
                            raise ValueError("an assignment before the line that begins with p")
                        a, b = int(i0), int(i1)
                        if not (0 <= a < sizes[pair[0]] and 0 <= b < sizes[pair[1]]):
                            raise ValueError(f"point {a} or {b} does not exist")
                        candidates[pair].append((a, b, float(cost)))
                    case words:
                        raise ValueError(f"{' '.join(words)[:40]!r} is not understood")
            _expect(pair, candidates, announced)
    except UnicodeDecodeError:  # a ValueError too, but of the whole file
        raise
    except ValueError as error:
        raise FormatError(f"{path}, line {number}: {error}") from None
    if not sizes:
        raise FormatError(f"{path} holds no pair of objects")
    return _problem(sizes, candidates)


def _expect(pair: tuple[int, int], candidates: dict[tuple[int, int], list[tuple[int, int, float]]], n: int) -> None:
    found = len(candidates.get(pair, []))
    if found != n:
        raise ValueError(f"pair {pair} announces {n} assignments and has {found}; was the file cut short?")


def _problem(sizes: dict[int, int], candidates: dict[tuple[int, int], list[tuple[int, int, float]]]) -> Matchings:
    chosen = {}
    for (i, j), rows in candidates.items():
        table = np.array(rows, dtype=np.float64).reshape(-1, 3)
        if not np.isfinite(table).all():
            raise InputError(f"a cost of pair ({i}, {j}) is not a finite number")
        chosen[i, j] = _best(table[table[:, 2] < 0], (sizes[i], sizes[j]))
    weights = {key: -table[:, 2] for key, table in chosen.items()}
    plain = all((weight == 1).all() for weight in weights.values())
    return Matchings.from_pairs(
        {key: table[:, :2].astype(np.int64) for key, table in chosen.items()},
        [sizes.get(o, 0) for o in range(max(sizes) + 1)],
        weights=None if plain else weights,
    )


def _best(table: NDArray[np.float64], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the rows (a, b, cost) of the cheapest one-to-one choice, shape (n, 3)."""
    a, b = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    if len(np.unique(a)) == len(a) and len(np.unique(b)) == len(b):
        return table
    cost = np.zeros(shape)
    np.minimum.at(cost, (a, b), table[:, 2])
    rows, cols = linear_sum_assignment(cost)
    useful = cost[rows, cols] < 0
    rows, cols = rows[useful], cols[useful]
    return np.stack([rows, cols, cost[rows, cols]], axis=1)


def write(content: Content, path: Path, *, like: Path | None) -> None:
    """Write every pair of objects, also those without matches, so that all sizes are kept."""
    matchings = content.matchings
    k, pairs = matchings.n_objects, matchings.pairs()
    if k < 2:
        raise InputError("a .dd file describes pairs of objects; it needs at least two objects")
    start = dict(zip(pairs, matchings.pair_start.tolist(), strict=False))
    weights = matchings.match_weights
    with path.open("w", encoding="ascii") as file:
        for i in range(k):
            for j in range(i + 1, k):
                block = pairs.get((i, j), matchings.indices[:0])
                file.write(f"gm {i} {j}\np {matchings.sizes[i]} {matchings.sizes[j]} {len(block)} 0\n")
                own = weights[start.get((i, j), 0) :][: len(block)]
                rows = enumerate(zip(block.tolist(), own.tolist(), strict=True))
                file.writelines(f"a {t} {a} {b} {-weight!r}\n" for t, ((a, b), weight) in rows)
                file.write("\n")


def loses(matchings: Matchings) -> list[str]:
    """A .dd file has no place for names and coordinates."""
    return losses(matchings, "A .dd file", names=False, coordinates=False)


DD = register(Format("dd", "multi-graph matching, linear part", (".dd",), sniff, read, write, loses))
