"""How good an answer is: precision, recall and fscore against a truth, and the objective it reaches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings

__all__ = ["Score", "objective", "score"]


@dataclass(frozen=True)
class Score:
    """How well the matches of an answer agree with the true ones.

    Attributes
    ----------
    precision
        Share of the answer's matches that are true; 1 when the answer has none.
    recall
        Share of the true matches that the answer has; 1 when there are none.
    fscore
        Harmonic mean of the two, ``2 |A ∩ T| / (|A| + |T|)``; 1 when both are empty.
    """

    precision: float
    recall: float
    fscore: float


def score(answer: ArrayLike | Matchings, truth: ArrayLike | Matchings) -> Score:
    """Compare the matches of an answer with the true ones, over all object pairs i < j.

    Parameters
    ----------
    answer, truth : (m,) int, or Matchings
        Universe point of every point (-1 = unmatched), or matches. The names of universe points are irrelevant.

    Notes
    -----
    O(m log m) for labels: a universe point seen n times stands for n(n-1)/2 matches and none of them is made. Object
    sizes are not needed, because two points of one object never carry the same label in a valid answer.
    Matches cost O(M log M). Weights are ignored.

    Examples
    --------
    >>> score([0, 1, 0, 1, 0, -1], [5, 3, 5, 3, 3, 5])
    Score(precision=0.5, recall=0.333..., fscore=0.4)
    """
    sides = [side if isinstance(side, Matchings) else _as_labels(side) for side in (answer, truth)]
    m = [side.n_points if isinstance(side, Matchings) else len(side) for side in sides]
    if m[0] != m[1]:
        raise InputError(f"the answer has {m[0]} points but the truth has {m[1]}; both must describe the same points")
    found, true = map(_count, sides)
    both = _count_common(*sides)
    return Score(
        precision=both / found if found else 1.0,
        recall=both / true if true else 1.0,
        fscore=2 * both / (found + true) if found + true else 1.0,
    )


def objective(labels: ArrayLike, matchings: Matchings) -> float:
    """Return the objective tr(PᵀWP) of a labelling, equation (7) of the paper in terms of labels.

    With P the 0/1 matrix of the labels and W the matching matrix with identity diagonal blocks this is
    ``m + 2 · (weight of the kept matches)``; an unmatched point (label -1) counts as a universe point of its own.

    Parameters
    ----------
    labels : (m,) int

    Notes
    -----
    O(m + M).

    Examples
    --------
    >>> objective([0, 1, 1, 0], Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]]}, [2, 2]))
    8.0
    """
    flat = _as_labels(labels)
    if len(flat) != matchings.n_points:
        raise InputError(f"{matchings.n_points} points need {matchings.n_points} labels, got {len(flat)}")
    kept = _agree(flat, matchings)
    weight = kept.sum() if matchings.weights is None else matchings.weights[kept].sum()
    return float(matchings.n_points + 2 * weight)


def _as_labels(values: ArrayLike) -> NDArray[np.int64]:
    labels = np.asarray(values)
    if labels.ndim != 1 or not (labels.size == 0 or np.issubdtype(labels.dtype, np.integer)):
        raise InputError(f"labels must be one whole number per point, got {labels.dtype} of shape {labels.shape}")
    return labels.astype(np.int64, copy=False)


def _agree(labels: NDArray[np.int64], matchings: Matchings) -> NDArray[np.bool_]:
    """Mark the matches whose two ends carry the same label; shape (M,)."""
    a, b = labels[matchings.endpoints].T
    agree: NDArray[np.bool_] = (a == b) & (a >= 0)
    return agree


def _pairs_in(keys: NDArray[np.int64]) -> int:
    """Return Σ n(n-1)/2 over the multiplicities n of the keys."""
    n = np.unique(keys, return_counts=True)[1]
    return int((n * (n - 1) // 2).sum())


def _count(side: NDArray[np.int64] | Matchings) -> int:
    return side.n_matches if isinstance(side, Matchings) else _pairs_in(side[side >= 0])


def _count_common(answer: NDArray[np.int64] | Matchings, truth: NDArray[np.int64] | Matchings) -> int:
    if isinstance(answer, Matchings) and isinstance(truth, Matchings):
        if not np.array_equal(answer.sizes, truth.sizes):
            raise InputError("the answer and the truth have objects of different sizes")
        found, true = (side.endpoints[:, 0] * side.n_points + side.endpoints[:, 1] for side in (answer, truth))
        return len(np.intersect1d(found, true, assume_unique=True))
    if isinstance(answer, Matchings):
        return int(_agree(truth, answer).sum())  # type: ignore[arg-type]
    if isinstance(truth, Matchings):
        return int(_agree(answer, truth).sum())
    seen = (answer >= 0) & (truth >= 0)
    first, second = (np.unique(side[seen], return_inverse=True)[1] for side in (answer, truth))
    return _pairs_in(first * (int(second.max(initial=0)) + 1) + second)
