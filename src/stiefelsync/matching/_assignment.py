"""The best one-to-one choice among scored pairs.

Most points have one candidate and few have several.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from stiefelsync.matching.graph import connected

__all__ = ["best_pairs"]

Ints = NDArray[np.int64]

_PAIRS_PER_CHUNK = 1_000  # pairs: few enough for quadratic cost, enough to outweigh the calls


def best_pairs(rows: Ints, columns: Ints, gain: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which pairs are chosen, (n,): one at most of every row and column, of highest sum.

    Parameters
    ----------
    rows, columns : (n,) int64
        The two ends of every pair; no pair occurs twice.
    gain : (n,) float64
        What a pair is worth, in (0, 1].

    Notes
    -----
    Pairs whose both ends occur nowhere else are chosen at once. The others are a sparse assignment
    problem in which every row may also stay alone, solved by shortest augmenting paths: O(n log n)
    where conflicts are small, and up to O(n²) for one that spans everything.

    Examples
    --------
    >>> best_pairs(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0.9, 0.8, 0.7])).tolist()
    [False, True, True]
    """
    _, row, row_count = np.unique(rows, return_inverse=True, return_counts=True)
    _, column, column_count = np.unique(columns, return_inverse=True, return_counts=True)
    chosen: NDArray[np.bool_] = (row_count[row] == 1) & (column_count[column] == 1)
    rest = np.flatnonzero(~chosen)
    # Conflicts that share no point are independent; small ones are solved some hundred at a time.
    n_rows = len(row_count)
    part = connected(n_rows + len(column_count), np.stack([row[rest], n_rows + column[rest]], axis=1))[row[rest]]
    rest = rest[np.argsort(part, kind="stable")]
    part = np.sort(part)
    ends = np.flatnonzero(np.diff(part, append=-1)) + 1
    first = 0
    while first < len(rest):
        enough = np.searchsorted(ends, first + _PAIRS_PER_CHUNK, side="right") - 1
        last = int(ends[max(enough, np.searchsorted(ends, first + 1))])
        now = rest[first:last]
        chosen[now] = _assign(row[now], column[now], gain[now])
        first = last
    return chosen


def _assign(row: Ints, column: Ints, gain: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Solve one sparse assignment problem in which rows may stay alone.

    Time grows with rows times pairs at worst.
    """
    row, column = (np.unique(side, return_inverse=True)[1] for side in (row, column))
    n_rows, n_columns = int(row.max()) + 1, int(column.max()) + 1
    # Each row has a column of its own, at the cost of gaining nothing; costs stay above 0, which
    # would mean no pair.
    alone = np.arange(n_rows)
    cost = np.concatenate([2.0 - gain, np.full(n_rows, 2.0)])
    where = np.concatenate([row, alone]), np.concatenate([column, n_columns + alone])
    problem = sparse.csr_matrix(sparse.coo_array((cost, where), shape=(n_rows, n_columns + n_rows)))
    # SciPy's solver takes 32-bit indices only.
    problem.indices, problem.indptr = problem.indices.astype(np.int32), problem.indptr.astype(np.int32)
    taken_rows, taken = min_weight_full_bipartite_matching(problem)
    partner = np.empty(n_rows, dtype=np.int64)
    partner[taken_rows] = taken
    return np.asarray(partner[row] == column)
