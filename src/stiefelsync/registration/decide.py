"""One answer of several: where two ways to join points differ, the one that promises more right pairs is taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from stiefelsync._border import typed
from stiefelsync.registration.candidates import Candidates
from stiefelsync.registration.confidence import Kind, confidences
from stiefelsync.registration.fits import LEAST_ODDS, fits

__all__ = ["exchanged", "greedy", "sure_places", "weighed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Places less sure are left out. What is taken because it promises most keeps a little less than it promises: of the
# places that promise .5 to .6, .48 were right on simulated days (seeds 400 to 402).
SURE = 0.6


@typed
def greedy(candidates: Candidates, threshold: float = 0.5) -> Ints:
    """Join points by pairs, the most probable ones first, never two points of one object; -1 for points alone.

    Notes
    -----
    O(n log n) for n candidates: each is looked at once.

    Examples
    --------
    >>> found = Candidates(np.array([2, 1]), np.array([[0, 2], [1, 2]]), np.array([0.8, 0.9]), ("a", "b"))
    >>> greedy(found).tolist()
    [-1, 0, 0]
    """
    m = len(candidates.objects)
    parent = list(range(m))
    held = [1 << owner for owner in candidates.objects.tolist()]  # the objects of a track, as bits
    above = np.flatnonzero(candidates.p > threshold)
    order = above[np.argsort(-candidates.p[above], kind="stable")]
    for a, b in candidates.ends[order].tolist():
        while parent[a] != a:
            parent[a] = a = parent[parent[a]]
        while parent[b] != b:
            parent[b] = b = parent[parent[b]]
        if not held[a] & held[b]:
            parent[max(a, b)] = min(a, b)
            held[min(a, b)] = held[a] | held[b]
    labels = np.array(parent, dtype=np.int64)
    while (labels != labels[labels]).any():
        labels = labels[labels]
    return _numbered(labels)


def _numbered(labels: Ints) -> Ints:
    """Return labels from 0 on in order of appearance; -1 for points that share theirs with none."""
    _, first, inverse, count = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    kept = (count > 1) & (labels[first] >= 0)
    number = np.full(len(first), -1)
    order = np.flatnonzero(kept)[np.argsort(first[kept])]
    number[order] = np.arange(len(order))
    return np.asarray(number[inverse])


def sure_places(candidates: Candidates, labels: Ints, *, kind: Kind = "cells") -> tuple[Ints, Floats]:
    """Leave out places that are less sure than `SURE`; return labels and what is promised of each place."""
    promised = np.nan_to_num(confidences(candidates, labels, kind=kind).places)
    kept = _numbered(np.where(promised >= SURE, labels, -1))
    return kept, np.where(kept >= 0, promised, 0.0)


@typed
def weighed(candidates: Candidates, answers: Sequence[Ints], *, kind: Kind = "cells") -> Ints:
    """Return the best parts of several answers, without the places that are less sure than `SURE`.

    Points that any answer puts together make a part, which is taken from one answer as a whole: the one whose tracks
    have the largest sum of expected right less expected wrong pairs, the first of equal ones.

    Parameters
    ----------
    answers : sequence of (m,) int
        Labels, -1 for a point alone.

    Examples
    --------
    >>> found = Candidates(np.array([1, 1, 1]), np.array([[0, 1], [0, 2], [1, 2]]), np.full(3, 0.99), ("a", "b", "c"))
    >>> weighed(found, [np.array([0, 0, -1]), np.array([0, 0, 0])]).tolist()
    [0, 0, 0]
    """
    m = len(candidates.objects)
    kept = [sure_places(candidates, labels, kind=kind) for labels in answers]
    part = _parts([labels for labels, _ in kept], m)
    values = np.zeros((len(kept), int(part.max(initial=-1)) + 1))
    for row, (labels, promised) in enumerate(kept):
        inside = labels >= 0
        n_tracks = int(labels.max(initial=-1)) + 1
        size, total, squares = (
            np.bincount(labels[inside], weight, n_tracks)
            for weight in (None, promised[inside], promised[inside] ** 2)
        )  # fmt: skip
        # Two places make a right pair if both are right; all other pairs of the track are wrong.
        value = (total**2 - squares) - size * (size - 1) / 2
        of_track = np.zeros(n_tracks, dtype=np.int64)
        of_track[labels[inside]] = part[inside]
        values[row] = np.bincount(of_track, value, values.shape[1])
    best = np.argmax(values, axis=0)[part]
    labels, begin = np.full(m, -1, dtype=np.int64), 0
    for row, (found, _) in enumerate(kept):
        taken = (best == row) & (found >= 0)
        labels[taken] = found[taken] + begin
        begin += int(found.max(initial=-1)) + 1
    return _numbered(labels)


@typed
def exchanged(candidates: Candidates, labels: Ints) -> Ints:
    """Return labels in which points alone have taken the places that they fit better than who is there.

    Parameters
    ----------
    labels : (m,) int
        Track of every point, -1 for none; no track has two points of one object.

    Notes
    -----
    O(n log n) for n candidates. Every point and every place takes part in one exchange at most, the largest gain first.

    Examples
    --------
    >>> ends = np.array([[0, 1], [0, 3], [1, 3], [0, 2], [2, 3]])
    >>> found = Candidates(np.array([1, 2, 1]), ends, np.array([0.6, 0.9, 0.6, 0.9, 0.5]), ("a", "b", "c"))
    >>> exchanged(found, np.array([0, 0, -1, 0])).tolist()
    [0, -1, 0, 0]
    """
    point, track, fit = fits(candidates, labels)
    owner, inside = candidates.objects, labels >= 0
    holder = np.full((int(labels.max(initial=-1)) + 1, len(candidates.sizes)), -1)
    holder[labels[inside], owner[inside]] = np.flatnonzero(inside)
    held = np.full(len(labels), LEAST_ODDS)
    own = labels[point] == track
    held[point[own]] = fit[own]
    point, track, fit = point[~own], track[~own], fit[~own]
    there = holder[track, owner[point]]
    gain = np.where(there >= 0, fit - held[there], 0.0)
    changed, used = labels.copy(), np.zeros(len(labels), dtype=bool)
    for row in np.argsort(-gain, kind="stable").tolist():
        if gain[row] <= 0:
            break
        new, old = point[row], there[row]
        if not used[new] and not used[old]:
            changed[new], changed[old] = labels[old], -1
            used[new] = used[old] = True
    return changed


def _parts(answers: Sequence[Ints], m: int) -> Ints:
    """Return which points hang together by the tracks of any answer."""
    rows, columns, begin = [], [], m
    for labels in answers:
        inside = np.flatnonzero(labels >= 0)
        rows.append(inside)
        columns.append(labels[inside] + begin)
        begin += int(labels.max(initial=-1)) + 1
    ends = np.concatenate(rows), np.concatenate(columns)
    graph = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(begin, begin))
    return np.asarray(connected_components(graph, directed=False)[1][:m], dtype=np.int64)
