"""Labels of largest expected fscore, from samples of the posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call

__all__ = ["Samples", "decide", "largest", "shared"]

Ints = NDArray[np.int64]

_ROUNDS, _SWEEPS = 8, 12
_STARTS = 5


@dataclass(frozen=True)
class Samples:
    """Labels that were sampled, (S, m), below m, and their points by label."""

    offsets: Ints
    label: NDArray[np.int32]
    start: NDArray[np.int32]
    members: NDArray[np.int32]

    @classmethod
    def of(cls, offsets: Ints, label: NDArray[np.int32]) -> Samples:
        """Group the points of samples, (S, m), by label; objects begin at `offsets`."""
        S, m = label.shape
        start, members = np.empty(S * (m + 1), dtype=np.int32), np.empty(S * m, dtype=np.int32)
        label = np.ascontiguousarray(label, dtype=np.int32)
        call("group_samples", S, m, label.ravel(), start, members)
        return cls(offsets, label, start, members)

    @property
    def pairs(self) -> float:
        """Mean number of pairs of points with equal labels."""
        n = np.diff(self.start.reshape(len(self.label), -1), axis=1).astype(np.float64)
        return float((n * (n - 1)).sum() / 2 / len(self.label))

    def expected_fscore(self, answer: Ints) -> float:
        """Return 2 E[shared] / (pairs of the answer + E[pairs of the truth])."""
        S, m = self.label.shape
        shared = call("count_shared", S, m, self.start, self.members, answer) / S
        n = np.bincount(answer[answer >= 0]).astype(np.float64)
        total = float((n * (n - 1)).sum() / 2) + self.pairs
        return 2 * shared / total if total else 1.0

    def share_equal(self, a: Ints, b: Ints) -> NDArray[np.float64]:
        """Return in how many of the samples points a and b have the same label, as a share, (n,).

        Half a sample for and half a sample against are added: nothing is certain.
        """
        equal = np.zeros(len(a))
        for label in self.label:
            equal += label[a] == label[b]
        return (equal + 0.5) / (len(self.label) + 1)

    def point_confidence(self, answer: Ints) -> NDArray[np.float64]:
        """Return how often a point shares its label with the other members of its track, (m,).

        For points without a track it is how often they are alone.
        """
        m = len(answer)
        total, count = np.zeros(m), np.bincount(answer[answer >= 0], minlength=1)
        others = np.where(answer >= 0, count[answer] - 1, 0)
        for label in self.label:
            # Members of a track that a sample gives one label, without the point itself.
            key = label.astype(np.int64) * (len(count) + 1) + answer
            _, which, n = np.unique(key, return_inverse=True, return_counts=True)
            alone = np.bincount(label, minlength=m)[label] == 1
            total += np.where(others > 0, (n[which] - 1) / np.maximum(others, 1), alone)
        return (total + 0.5) / (len(self.label) + 1)

    def improve(self, answer: Ints, most: int) -> tuple[Ints, float]:
        """Move points until the expected fscore grows no more (Dinkelbach's method)."""
        S, m = self.label.shape
        best, value = answer, self.expected_fscore(answer)
        k = len(self.offsets) - 1
        for _ in range(_ROUNDS):
            now = best.copy()
            for _ in range(_SWEEPS):
                if (
                    call(
                        "decide_sweep",
                        k,
                        m,
                        self.offsets,
                        S,
                        self.label.ravel(),
                        self.start,
                        self.members,
                        value / 2,
                        now,
                        most,
                    )
                    < 2
                ):
                    break
            reached = self.expected_fscore(now)
            if reached <= value + 1e-6:
                break
            best, value = now, reached
        return best, value


def decide(samples: Samples, most: int) -> tuple[Ints, float]:
    """Return labels, (m,), of at most `most` kinds, of largest expected fscore, and that.

    With P(a, b) the share of samples in which points a and b have the same label, that of labels is

        F = 2 Σ P(a, b) / (n + E[n]),    summed over the n pairs of points that they label alike,

    E[n] being the mean number of such pairs in samples. Some samples are improved, and the best is
    taken: at a price F/2 every pair inside a track gains P(a, b) − F/2, and objects take in turn
    the assignment that gains most; then F is computed anew (Dinkelbach's method).

    Notes
    -----
    P is never formed: what a point gains by joining a track is counted over the samples. O(S·m·size
    of tracks) a pass.

    Examples
    --------
    >>> samples = Samples.of(np.array([0, 1, 2, 3]), np.array([[0, 0, 0], [0, 0, 1]], dtype=np.int32))
    >>> labels, expected = decide(samples, 3)
    >>> bool(labels[0] == labels[1]), round(expected, 2)
    (True, 0.8)
    """
    S = len(samples.label)
    # Samples may have more labels than the answer: only the largest are kept, and others may join them.
    tried = [largest(shared(samples.label[n]), most) for n in np.linspace(0, S - 1, _STARTS).astype(int)]
    found = [samples.improve(one, most) for one in tried]
    best, value = max(found, key=lambda x: x[1])
    kept = largest(shared(best), most)
    return kept, value if np.array_equal(kept, best) else samples.expected_fscore(kept)


def shared(labels: NDArray[Any]) -> Ints:
    """Return labels with -1 where nobody else has the same.

    Examples
    --------
    >>> shared(np.array([0, 1, 1])).tolist()
    [-1, 1, 1]
    """
    labels = np.asarray(labels, dtype=np.int64)
    count = np.bincount(labels[labels >= 0], minlength=int(labels.max(initial=-1)) + 1)
    return np.where((labels >= 0) & (np.append(count, 0)[labels] > 1), labels, -1)


def largest(labels: Ints, most: int) -> Ints:
    """Return labels with -1 for all but the `most` that have most points.

    Examples
    --------
    >>> largest(np.array([0, 1, 1, -1]), 1).tolist()
    [-1, 0, 0, -1]
    """
    counts = np.bincount(labels[labels >= 0], minlength=1)
    kept = np.argsort(-counts, kind="stable")[:most]
    number = np.full(len(counts) + 1, -1)
    number[kept] = np.arange(len(kept))
    return np.asarray(number[labels])
