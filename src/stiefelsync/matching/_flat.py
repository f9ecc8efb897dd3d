"""Flat match arrays (objects, points, weights) from what users have.

Pairs, a block matrix, labels, blocks, scores.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from stiefelsync.errors import InputError, unknown_name
from stiefelsync.matching._canonical import as_array, as_labels, as_pairs, check_sizes, check_weights, describe
from stiefelsync.matching._sorting import ordered

__all__ = [
    "Assign",
    "Flat",
    "flat_blocks",
    "flat_endpoints",
    "flat_matrix",
    "flat_pairs",
    "flat_scores",
]

Int32s = NDArray[np.int32]
Floats = NDArray[np.float64]
Names = tuple[str, ...] | None
Blocks = dict[tuple[int, int], Any]
Assign = Literal["hungarian", "mutual"]


class Flat(NamedTuple):
    """M matches in any order: objects and points of shape (M, 2), weights of shape (M,) or None."""

    objects: NDArray[Any]
    points: NDArray[Any]
    weights: Floats | None = None


def flat_pairs(pairs: Any, weights: Mapping[tuple[int, int], ArrayLike] | None) -> Flat:
    """Return the matches of ``{(i, j): (K, 2) ints}``."""
    if not isinstance(pairs, Mapping):
        raise InputError(f"pairs must map (i, j) to an array of shape (K, 2), got {type(pairs).__name__}")
    named = next((o for key in pairs if isinstance(key, tuple) for o in key if isinstance(o, str)), None)
    if named is not None:
        raise InputError(f"keys must be pairs of object numbers, got {named!r}; io.from_dict takes pairs of names, too")
    blocks = {key: as_pairs(block) for key, block in pairs.items()}
    objects = np.repeat(as_pairs(list(blocks)), [len(block) for block in blocks.values()], axis=0)
    points = np.concatenate(list(blocks.values())) if blocks else np.empty((0, 2), dtype=np.int32)
    if weights is None:
        return Flat(objects, points)
    if set(weights) != set(blocks):
        raise InputError("weights must have exactly the object pairs that the matches have")
    values = [check_weights(weights[key], len(block)) for key, block in blocks.items()]
    return Flat(objects, points, np.concatenate([np.empty(0), *values]))


def flat_endpoints(ends: ArrayLike, sizes: Int32s) -> Flat:
    """Return the matches whose two ends are given as global point indices, shape (M, 2)."""
    both = as_pairs(ends)
    offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
    outside = (both < 0) | (both >= offsets[-1])
    if outside.any():
        raise InputError(
            f"point {int(both[outside][0])} does not exist; there are {offsets[-1]:,} points, numbered from 0",
            int(outside.any(axis=1).argmax()),
        )
    # A table of all points is faster than a search, unless there are many points and few ends.
    if offsets[-1] <= 8 * both.size:
        objects = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[both]
    else:
        objects = (np.searchsorted(offsets, both, side="right") - 1).astype(np.int32)
    return Flat(objects, (both - offsets[objects]).astype(np.int32))


def flat_matrix(W: Any, sizes: Int32s, *, weighted: bool, names: Names) -> Flat:
    """Return the matches of the block matrix W, (m, m), symmetric and binary (or weighted)."""
    m = int(sizes.sum())
    entries: Any = sparse.coo_array(W if sparse.issparse(W) else _as_numeric(as_array(W, "W"), "the matching matrix"))
    entries.sum_duplicates()
    entries.eliminate_zeros()
    if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
        raise InputError(f"the matching matrix must be square, got shape {entries.shape}")
    if entries.shape[0] != m:
        raise InputError(f"sizes add up to {m} points but the matrix has {entries.shape[0]} rows")
    data = _entries(entries.data, "the matching matrix", weighted)
    if (entries != entries.T).nnz:
        raise InputError("the matching matrix must be symmetric: block (j, i) is the transpose of block (i, j)")
    row, col = entries.coords
    upper = row < col
    objects, points, _ = flat_endpoints(np.stack([row[upper], col[upper]], axis=1), sizes)
    inside = objects[:, 0] == objects[:, 1]
    if inside.any():
        i = int(objects[inside][0, 0])
        called = describe(i, names)
        raise InputError(f"diagonal block ({i}, {i}) matches {called} with itself; it must be identity or zero")
    return Flat(objects, points, data[upper] if weighted else None)


@dataclass(frozen=True)
class Tracks:
    """Labels sorted so that the matches of any range of objects come out in canonical order.

    Attributes
    ----------
    labels : (m,) int64
        -1 is in no track.
    sizes, offsets : (k,) int
        Points per object, and the first of each.
    owner : (m,) int32
        Object of every point.
    points : (n,) int32
        Points with a label, track by track, ascending in each.
    place : (m,) int32
        Where among these a point stands.
    end : (n,) int32
        Where the track of each of these ends.
    """

    labels: NDArray[np.int64]
    sizes: Int32s
    offsets: NDArray[np.int64]
    owner: Int32s
    points: Int32s
    place: Int32s
    end: Int32s

    @classmethod
    def of(cls, labels: ArrayLike, sizes: Int32s) -> Tracks:
        """Sort labels, shape (m,), in O(m)."""
        flat = as_labels(labels, int(sizes.sum()))
        on = np.flatnonzero(flat >= 0).astype(np.int32)
        points = on[ordered(flat[on])]
        del on
        n = len(points)
        # Where tracks end: at the last point, and where the next one has another label.
        ends = np.ones(n, dtype=bool)
        label = flat[points]
        ends[:-1] = label[1:] != label[:-1]
        del label
        last = np.flatnonzero(ends)
        end = np.repeat((last + 1).astype(np.int32), np.diff(np.append(-1, last)))
        place = np.zeros(len(flat), dtype=np.int32)
        place[points] = np.arange(n, dtype=np.int32)
        owner = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        return cls(flat, sizes, np.cumsum(sizes, dtype=np.int64) - sizes, owner, points, place, end)

    def n_matches(self) -> NDArray[np.int64]:
        """Return for every object how many matches it has with later ones, (k,)."""
        follow = np.zeros(len(self.labels) + 1, dtype=np.int64)
        follow[self.points + 1] = self.end - np.arange(1, len(self.points) + 1, dtype=np.int32)
        np.cumsum(follow, out=follow)
        counts: NDArray[np.int64] = follow[self.offsets + self.sizes] - follow[self.offsets]
        return counts

    def layout(self, first: int, last: int, names: Names = None) -> tuple[Int32s, NDArray[np.int64], Int32s]:
        """Return the matches of objects ``first … last - 1`` with all later ones.

        They come as (pair_objects, pair_start, indices), in canonical order. O(m' + M'), of those
        objects.
        """
        begin = int(self.offsets[first]) if first < len(self.sizes) else len(self.labels)
        end = int(self.offsets[last]) if last < len(self.sizes) else len(self.labels)
        own = (begin + np.flatnonzero(self.labels[begin:end] >= 0)).astype(np.int32)
        # A point knows its place in its track, so those that follow it there come out ascending.
        here = self.place[own]
        follow = self.end[here] - here - 1
        a = np.repeat(own, follow)
        # The place of the other end: one more from match to match of a point.
        stop = np.cumsum(follow, dtype=np.int64)
        there = np.arange(len(a)) + np.repeat(here + 1 - (stop - follow), follow)
        b = self.points[there]
        del there
        one, two = np.repeat(self.owner[own], follow), self.owner[b]
        if (one == two).any():
            t = int((one == two).argmax())
            label, called = int(self.labels[a[t]]), describe(int(one[t]), names)
            raise InputError(f"two points of {called} carry the same label {label}")
        order = ordered(one, two)
        one, two, a, b = one[order], two[order], a[order], b[order]
        del order
        begins = np.ones(len(one), dtype=bool)
        begins[1:] = (one[1:] != one[:-1]) | (two[1:] != two[:-1])
        starts = np.flatnonzero(begins)
        points = np.empty((len(a), 2), dtype=np.int32)
        points[:, 0], points[:, 1] = a - self.offsets[one], b - self.offsets[two]
        pairs = np.stack([one[starts], two[starts]], axis=1)
        return pairs, np.append(starts, len(one)).astype(np.int64), points


def flat_blocks(blocks: Any, sizes: ArrayLike | None, *, weighted: bool) -> tuple[Flat, Int32s]:
    """Return the matches, nonzero entries of one matrix per object pair, and the sizes."""
    listed, counts = _listed(blocks, sizes)
    parts = []
    for pair, block in listed.items():
        entries: Any = sparse.coo_array(_as_numeric(block, f"block {pair}"))
        entries.sum_duplicates()
        entries.eliminate_zeros()
        data = _entries(entries.data, f"block {pair}", weighted)
        parts.append((pair, np.stack(entries.coords, axis=1), data))
    return _joined(parts, weighted), counts


def flat_scores(
    scores: Any, sizes: ArrayLike | None, *, threshold: float, assign: str, weighted: bool
) -> tuple[Flat, Int32s]:
    """Return the one-to-one matches chosen among the scores above a threshold, and the sizes."""
    if assign not in ASSIGNMENTS:
        raise unknown_name("assign", assign, ASSIGNMENTS)
    if not np.isfinite(threshold):
        raise InputError(f"threshold must be a finite number, got {threshold}")
    listed, counts = _listed(scores, sizes)
    parts = []
    for pair, block in listed.items():
        S = _as_numeric(block, f"block {pair}").astype(np.float64)
        if np.isnan(S).any() or np.isposinf(S).any():
            raise InputError(f"block {pair} holds NaN or infinite scores; mark what is impossible with -inf")
        rows, columns = ASSIGNMENTS[assign](S - threshold)
        good = S[rows, columns] > threshold
        chosen = np.stack([rows[good], columns[good]], axis=1)
        # Weights are positive: a score that only a negative threshold lets pass counts from there.
        parts.append((pair, chosen, S[rows[good], columns[good]] - min(threshold, 0.0)))
    return _joined(parts, weighted), counts


def _hungarian(gain: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the assignment of largest total gain in which a point may also stay alone."""
    rows, columns = linear_sum_assignment(np.maximum(gain, 0), maximize=True)
    return rows, columns


def _mutual(gain: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the entries that are the largest of row and column, the first on a tie."""
    if not gain.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    best = gain.argmax(axis=1)
    rows = np.flatnonzero(gain.argmax(axis=0)[best] == np.arange(len(gain)))
    return rows, best[rows]


ASSIGNMENTS: dict[str, Callable[[Floats], tuple[NDArray[np.int64], NDArray[np.int64]]]] = {
    "hungarian": _hungarian,
    "mutual": _mutual,
}


def _entries(data: NDArray[Any], what: str, weighted: bool) -> Floats:
    """Return the nonzero entries of a matrix as float64, or say what is wrong with them."""
    values: Floats = _as_numeric(data, what).astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"{what} holds NaN or infinite entries")
    if not weighted and (values != 1).any():
        raise InputError(f"{what} must be binary, found {values[values != 1][0]:g}; pass weighted=True for weights")
    return values


def _as_numeric(matrix: Any, what: str) -> Any:
    """Return a dense or sparse matrix if it holds real numbers, or truth values."""
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{what} must hold real numbers, got {matrix.dtype}")
    return matrix


def _joined(parts: list[tuple[tuple[int, int], NDArray[Any], Floats]], weighted: bool) -> Flat:
    pairs = np.array([pair for pair, _, _ in parts], dtype=np.int64).reshape(-1, 2)
    points = np.concatenate([np.empty((0, 2), dtype=np.int64), *(points for _, points, _ in parts)])
    values = np.concatenate([np.empty(0), *(values for _, _, values in parts)])
    objects = np.repeat(pairs, [len(points) for _, points, _ in parts], axis=0)
    return Flat(objects, points, values if weighted else None)


def _listed(blocks: Any, sizes: ArrayLike | None) -> tuple[Blocks, Int32s]:
    """Return one matrix per object pair i < j, and the sizes.

    Given are such matrices, or a tensor (k, k, n, n).
    """
    if isinstance(blocks, Mapping):
        return _from_mapping(blocks, sizes)
    X = as_array(blocks, "blocks")
    if X.ndim != 4 or X.shape[0] != X.shape[1] or X.shape[2] != X.shape[3]:
        raise InputError(f"expected {{(i, j): matrix}} or a tensor of shape (k, k, n, n), got {_kind(blocks, X)}")
    k, n = X.shape[0], X.shape[2]
    counts = check_sizes(np.full(k, n) if sizes is None else sizes)
    if counts.shape != (k,) or (counts > n).any():
        raise InputError(f"the tensor needs {k} sizes between 0 and {n}")
    cut = counts.tolist()
    listed = {}
    for i in range(k):
        for j in range(i + 1, k):
            block, other = X[i, j, : cut[i], : cut[j]], X[j, i, : cut[j], : cut[i]]
            if other.any() and not np.array_equal(block, other.T, equal_nan=X.dtype.kind == "f"):
                raise _disagree(i, j)
            listed[i, j] = block
    return listed, counts


def _from_mapping(blocks: Mapping[Any, Any], sizes: ArrayLike | None) -> tuple[Blocks, Int32s]:
    listed: Blocks = {}
    counts: dict[int, int] = {}
    for key, given in blocks.items():
        i, j = _pair(key)
        block = given if sparse.issparse(given) else as_array(given, f"block ({i}, {j})")
        if block.ndim != 2:
            raise InputError(f"block ({i}, {j}) must be a matrix, got shape {block.shape}")
        for o, n in zip((i, j), block.shape, strict=True):
            if counts.setdefault(o, n) != n:
                raise InputError(f"block ({i}, {j}) says that object {o} has {n} points, another block {counts[o]}")
        at, block = ((i, j), block) if i < j else ((j, i), block.T)
        if at in listed:
            same = listed[at] != block
            if same.nnz if sparse.issparse(same) else np.any(same):
                raise _disagree(*at)
        listed[at] = block
    if sizes is None:
        return listed, check_sizes([counts.get(o, 0) for o in range(max(counts, default=-1) + 1)])
    checked = check_sizes(sizes)
    for o, n in counts.items():
        if o >= len(checked) or checked[o] != n:
            told = f"sizes say {checked[o]}" if o < len(checked) else f"there are sizes for {len(checked)} objects"
            raise InputError(f"the blocks of object {o} have {n} points, but {told}")
    return listed, checked


def _pair(key: Any) -> tuple[int, int]:
    try:
        i, j = (operator.index(o) for o in key)
    except (TypeError, ValueError):
        raise InputError(f"keys must be pairs of object numbers, got {key!r}") from None
    if i == j or min(i, j) < 0:
        raise InputError(f"keys must be pairs of different object numbers from 0 on, got {key!r}")
    return i, j


def _disagree(i: int, j: int) -> InputError:
    return InputError(
        f"blocks ({i}, {j}) and ({j}, {i}) are not each other's transpose; give one of them, or their mean"
    )


def _kind(given: Any, array: NDArray[Any]) -> str:
    return f"shape {array.shape}" if array.ndim else type(given).__name__
