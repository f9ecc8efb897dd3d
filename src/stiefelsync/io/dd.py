"""The .dd files of multi-graph matching: candidate assignments with costs, of which the linear part is used.

Every pair of objects is a line ``gm i j``, a line ``p N0 N1 A E``, A lines ``a id i0 i1 cost`` and E lines
``e id1 id2 cost``. A cost is minimised, so a match of weight w costs −w. Quadratic costs (e) are not read.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import Content, Format, head, losses, register
from stiefelsync.io.limits import check_points, lines, real, shown, whole
from stiefelsync.matching.matchings import Matchings

__all__ = ["DD"]

# Numbers of objects that no pair mentions make up empty objects: more of them, and more than this many for each one
# mentioned, are refused.
SMALL, SPARSE = 10_000, 100
Candidates = dict[tuple[int, int], list[tuple[int, int, float]]]


def sniff(path: Path) -> bool:
    """Return whether the first line that is not a comment opens a pair of objects."""
    for line in head(path).splitlines():
        words = line.split()
        if words and words[0] != b"c":
            return (words[0] == b"gm" and len(words) == 3) or (words[0] == b"p" and len(words) == 5)
    return False


def read(path: Path) -> Matchings:
    """Read the linear part: of the candidates that lower the cost, in each pair the best one-to-one choice."""
    sizes, candidates = _parse(path)
    if not sizes:
        raise FormatError(f"{path} holds no pair of objects")
    k = max(sizes) + 1
    if k > max(SMALL, SPARSE * len(sizes)):
        raise FormatError(f"{path} mentions {len(sizes)} objects by numbers up to {k - 1:,}; number them from 0")
    counts = np.array([sizes.get(o, 0) for o in range(k)], dtype=np.int64)
    check_points(counts, 2 * sum(map(len, candidates.values())), path)
    return _problem(counts, candidates)


def _parse(path: Path) -> tuple[dict[int, int], Candidates]:
    """Return the size of every object mentioned, and the candidates (a, b, cost) of every pair."""
    sizes: dict[int, int] = {}
    candidates: Candidates = {}
    pair, announced, number = (0, 1), 0, 0
    try:
        with path.open(encoding="ascii") as file:
            for line in lines(file, path):
                number += 1
                match line.split():
                    case [] | ["c" | "e" | "i0" | "i1" | "n0" | "n1", *_]:
                        continue
                    case ["gm", i, j]:
                        _expect(pair, candidates, announced)
                        pair, announced = (whole(i), whole(j)), 0
                        if pair[0] == pair[1] or min(pair) < 0 or pair in candidates:
                            raise ValueError(f"a pair of two different objects, given once, is expected, not {pair}")
                    case ["p", n0, n1, count, _]:
                        if pair in candidates:
                            raise ValueError(f"a second line p for the pair {pair}")
                        for o, size in zip(pair, (whole(n0), whole(n1)), strict=True):
                            if not 0 <= size < 2**31:
                                raise ValueError(f"object {o} cannot have {shown(str(size))} points")
                            if sizes.setdefault(o, size) != size:
                                raise ValueError(f"object {o} has {size} points here and {sizes[o]} before")
                        candidates[pair], announced = [], whole(count)
                    case ["a", _, i0, i1, cost]:
                        if pair not in candidates:
                            raise ValueError("an assignment before the line that begins with p")
                        a, b = whole(i0), whole(i1)
                        if not (0 <= a < sizes[pair[0]] and 0 <= b < sizes[pair[1]]):
                            raise ValueError(f"point {a} or {b} does not exist")
                        candidates[pair].append((a, b, real(cost)))
                    case words:
                        raise ValueError(f"{' '.join(words)[:40]!r} is not understood")
            _expect(pair, candidates, announced)
    except (FormatError, UnicodeDecodeError):  # ValueErrors too, but of the whole file
        raise
    except ValueError as error:
        raise FormatError(f"{path}, line {number}: {error}") from None
    return sizes, candidates


def _expect(pair: tuple[int, int], candidates: Candidates, n: int) -> None:
    found = len(candidates.get(pair, []))
    if found != n:
        raise ValueError(f"pair {pair} announces {n} assignments and has {found}; was the file cut short?")


def _problem(sizes: NDArray[np.int64], candidates: Candidates) -> Matchings:
    chosen = {}
    for (i, j), rows in candidates.items():
        table = np.array(rows, dtype=np.float64).reshape(-1, 3)
        if not np.isfinite(table).all():
            raise InputError(f"a cost of pair ({i}, {j}) is not a finite number")
        chosen[i, j] = _best(table[table[:, 2] < 0])
    weights = {key: -table[:, 2] for key, table in chosen.items()}
    plain = all((weight == 1).all() for weight in weights.values())
    return Matchings.from_pairs(
        {key: table[:, :2].astype(np.int64) for key, table in chosen.items()},
        sizes,
        weights=None if plain else weights,
    )


def _best(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows (a, b, cost) of the cheapest one-to-one choice, shape (n, 3), of those given, all of cost < 0.

    A sparse assignment problem: every a may also go without, at cost 0. Its cost is about that of sorting the table.
    """
    table = table[np.lexsort(table.T[[2, 1, 0]])]  # the cheapest of equal candidates first
    begins = np.ones(len(table), dtype=bool)
    begins[1:] = (table[1:, :2] != table[:-1, :2]).any(axis=1)
    table = table[begins]
    (points_a, a), (points_b, b) = (np.unique(table[:, side], return_inverse=True) for side in (0, 1))
    if len(points_a) == len(points_b) == len(table):
        return table
    # Costs are raised to be positive, which the assignment wants: each a has exactly one, so the choice is the same.
    # Indices have 32 bits, as SciPy before 1.15 accepts no others here.
    raised = 1 - table[:, 2].min()
    alone = np.arange(len(points_a))
    cost = sparse.csr_array(
        (
            np.append(table[:, 2] + raised, np.full(len(alone), raised)),
            (np.append(a, alone).astype(np.int32), np.append(b, len(points_b) + alone).astype(np.int32)),
        ),
        shape=(len(points_a), len(points_b) + len(alone)),
    )
    rows, cols = min_weight_full_bipartite_matching(cost)
    partner = np.full(len(points_a), -1)
    partner[rows] = cols
    chosen: NDArray[np.float64] = table[partner[a] == b]
    return chosen


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


DD = register(
    Format(
        "dd",
        "multi-graph matching, linear part",
        (".dd",),
        sniff,
        read,
        write,
        partial(losses, where="A .dd file", names=False, coordinates=False),
    )
)
