"""What can be said of anybody's table of cells without knowing the truth, in the measures of the field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import cycle_error
from stiefelsync.registration.candidates import Candidates
from stiefelsync.stiefel.checks import as_integers

__all__ = ["Judgement", "judge"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Judgement:
    """A table of cells, judged by the probabilities of all near pairs (CellReg's scores) and by cycles.

    Attributes
    ----------
    cells
        Rows of the table, those with a single place included.
    sessions_per_cell : tuple of int
        How many cells have a place in 1, 2, … sessions.
    active
        Share of the table that is filled.
    score, true_positive, true_negative, exclusivity
        CellReg's: mean probability of the pairs that are in the table; one less the probability of what is not; one
        less the probability of other neighbours of what is. NaN where there is nothing to compare.
    doubled
        Places of the table with two cells of one session.
    cycle_error
        Share of the cycles of three matches that do not close, before anything was decided; None without cycles.
    transitivity
        Share of the paths of two matches whose third match is there, before anything was decided; NaN without paths.
    """

    cells: int
    sessions_per_cell: tuple[int, ...]
    active: float
    score: float
    true_positive: float
    true_negative: float
    exclusivity: float
    doubled: int
    cycle_error: float | None
    transitivity: float


@typed
def judge(candidates: Candidates, labels: Ints, *, threshold: float = 0.5) -> Judgement:
    """Judge a table of cells, whoever made it.

    Parameters
    ----------
    labels : (m,) int
        Cell of every point, -1 for one that is alone.
    threshold
        Probability above which pairs are matches, for cycle error and transitivity.

    Examples
    --------
    >>> found = Candidates(np.array([1, 1, 1]), np.array([[0, 1], [0, 2], [1, 2]]), np.full(3, 0.9), ("a", "b", "c"))
    >>> judge(found, np.array([0, 0, 0])).exclusivity, judge(found, np.array([0, 0, -1])).cells
    (1.0, 2)
    """
    labels = as_integers(labels, "labels")
    if len(labels) != candidates.sizes.sum():
        raise InputError(f"{len(labels)} labels do not fit {int(candidates.sizes.sum())} cells")
    alone = labels < 0
    labels[alone] = labels.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    _, labels = np.unique(labels, return_inverse=True)
    objects, m, k = candidates.objects, len(labels), len(candidates.sizes)
    n = int(labels.max(initial=-1)) + 1
    held = np.bincount(labels * k + objects, minlength=n * k).reshape(n, k)
    seen = (held > 0).sum(axis=1)
    found = candidates.matchings(threshold)
    cycles = cycle_error(found) if found.n_objects > 2 and found.n_matches else None
    scores = _scores(candidates, labels, objects, held > 0)
    return Judgement(
        n,
        tuple(np.bincount(seen, minlength=k + 1)[1:].tolist()),
        float((held > 0).mean()) if m else np.nan,
        *scores,
        int((held > 1).sum()),
        cycles.value if cycles is not None and cycles.judged else None,
        transitivity(found),
    )


def transitivity(matchings: Matchings) -> float:
    """Return the share of the paths of two matches whose ends are matched, too; NaN without such paths.

    Examples
    --------
    >>> transitivity(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1]))
    0.0
    """
    W = sparse.csr_array(matchings.to_matrix())
    W.data[:] = 1
    W.setdiag(0)
    W.eliminate_zeros()
    paths = sparse.coo_array(W @ W)
    # Only ends in different sessions could be matched.
    owner = matchings.point_objects
    open_ = owner[paths.row] != owner[paths.col]
    total = paths.data[open_].sum()
    return float(W.multiply(paths.tocsr()).sum() / total) if total else np.nan


def _scores(
    candidates: Candidates, labels: Ints, objects: Ints, seen: NDArray[np.bool_]
) -> tuple[float, float, float, float]:
    """Return CellReg's four scores: over every place and every other session, then by cell, then over cells."""
    m, k = len(labels), len(candidates.sizes)
    (a, b), p = candidates.ends.T, candidates.p
    same = labels[a] == labels[b]
    # Probability of all neighbours in a session, and of the partner there.
    near, partner = (
        (np.bincount(a * k + objects[b], w, m * k) + np.bincount(b * k + objects[a], w, m * k)).reshape(m, k)
        for w in (p, p * same)
    )
    other = np.arange(k)[None, :] != objects[:, None]
    there = seen[labels] & other
    absent = ~seen[labels] & other
    positive = np.where(there, partner, 0.0)
    negative = np.where(absent, 1 - near, 0.0)
    exclusive = np.where(there, 1 - (near - partner), 0.0)

    def by_cell(values: Floats, counted: NDArray[np.bool_]) -> float:
        n = len(seen)
        number = np.bincount(labels, counted.sum(axis=1), n)
        total = np.bincount(labels, values.sum(axis=1), n)
        return float((total[number > 0] / number[number > 0]).mean()) if (number > 0).any() else np.nan

    return (
        by_cell(positive + negative, there | absent),
        by_cell(positive, there),
        by_cell(negative, absent),
        by_cell(exclusive, there),
    )
