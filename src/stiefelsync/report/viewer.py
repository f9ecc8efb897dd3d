"""The matches the page's viewer can draw: which pairs of objects are embedded, and how they are packed."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.report.collect import Change

__all__ = ["PairTable", "are_normalised", "choose_pairs", "encode", "frame", "in_pixels", "pack_objects", "pack_pairs"]

Ints = NDArray[np.int64]
UNKNOWN = 255  # the confidence of a match that has none
HALF = 0.55  # of the larger side of an image, with room for positions a little outside


@dataclass(frozen=True)
class PairTable:
    """Every pair of objects that has a match before or after, those that lost most first, then those with most matches.

    Attributes
    ----------
    objects : (P, 2) int64
        The pair (i, j), i < j.
    kept, removed, added : (P,) int64
        Matches of each kind.
    embedded : (P,) bool
        Whether the page holds the pair's matches.
    """

    objects: Ints
    kept: Ints
    removed: Ints
    added: Ints
    embedded: NDArray[np.bool_]

    @property
    def left_out(self) -> int:
        """Pairs the page does not hold."""
        return int((~self.embedded).sum())


def choose_pairs(found: Change, *, max_pairs: int, max_matches: int) -> PairTable:
    """Choose what the viewer shows: the pairs that lost most, while their matches fit.

    Notes
    -----
    O(P log P). A pair that alone exceeds what is left of `max_matches` is left out and smaller ones are still taken.

    Examples
    --------
    >>> from stiefelsync.report.collect import change
    >>> problem = Matchings.from_labels([0, 1, 0, 1, 0], [2, 2, 1])
    >>> table = choose_pairs(change(problem, problem), max_pairs=2, max_matches=9)
    >>> table.objects.tolist(), table.embedded.tolist()
    ([[0, 1], [0, 2], [1, 2]], [True, True, False])
    """
    k = max(found.input.n_objects, 1)
    codes = [_pair_codes(found.input, k), _pair_codes(found.added, k)]
    pairs = np.unique(np.concatenate(codes))
    old = np.searchsorted(pairs, codes[0])[found.input.match_pairs]
    new = np.searchsorted(pairs, codes[1])[found.added.match_pairs]
    kept, removed, added = (
        np.bincount(which, minlength=len(pairs)) for which in (old[found.kept], old[~found.kept], new)
    )
    total = kept + removed + added
    order = np.lexsort((pairs, -total, -removed))
    embedded = np.zeros(len(pairs), dtype=bool)
    room = max_matches
    for place, size in enumerate(total[order].tolist()):
        if max_pairs <= 0:
            break
        if size <= room:
            embedded[place] = True
            room -= size
            max_pairs -= 1
    objects = np.stack([pairs // k, pairs % k], axis=1)
    return PairTable(objects[order], kept[order], removed[order], added[order], embedded)


def pack_pairs(found: Change, table: PairTable) -> tuple[list[dict[str, Any]], dict[int, Ints]]:
    """Pack the embedded pairs for the page, and return the points they use.

    Returns
    -------
    packed
        Per pair its objects ``i, j``; how many are ``kept, removed, added``; and for all of them in this order,
        base64 little-endian: ``a``, ``b`` uint32 (places in the objects' used points) and ``support`` uint8
        (per cent, 255 = unknown).
    used
        Object → the points of it that occur, ascending.
    """
    chosen = table.objects[table.embedded].tolist()
    blocks = []
    old = {pair: s for s, pair in enumerate(map(tuple, found.input.pair_objects.tolist()))}
    fresh = found.added.pairs()
    nothing = np.empty((0, 2), dtype=np.int32)
    for pair in map(tuple, chosen):
        s = old.get(pair)
        span = slice(0, 0) if s is None else slice(found.input.pair_start[s], found.input.pair_start[s + 1])
        matches, kept = found.input.indices[span], found.kept[span]
        new = fresh.get(pair, nothing)
        support = np.full(len(matches), UNKNOWN) if found.support is None else _per_cent(found.support[span])
        points = np.concatenate([matches[kept], matches[~kept], new])
        values = np.concatenate([support[kept], support[~kept], np.full(len(new), UNKNOWN)])
        blocks.append((pair, points, values, (int(kept.sum()), int((~kept).sum()), len(new))))
    ends: dict[int, list[NDArray[Any]]] = {}
    for (i, j), points, _, _ in blocks:
        ends.setdefault(i, []).append(points[:, 0])
        ends.setdefault(j, []).append(points[:, 1])
    used = {i: np.unique(np.concatenate(parts)).astype(np.int64) for i, parts in ends.items()}
    packed = [
        {
            "i": i,
            "j": j,
            "kept": counts[0],
            "removed": counts[1],
            "added": counts[2],
            "a": encode(np.searchsorted(used[i], points[:, 0]), "<u4"),
            "b": encode(np.searchsorted(used[j], points[:, 1]), "<u4"),
            "support": encode(values, "u1"),
        }
        for (i, j), points, values, counts in blocks
    ]
    return packed, used


def pack_objects(
    found: Change, used: Mapping[int, Ints], sizes: Mapping[int, tuple[int, int]]
) -> dict[int, dict[str, Any]]:
    """Pack the used points of every object: their numbers and where they lie in a frame.

    The frame is the photograph where its size is known, else the bounding box of the object's coordinates; without
    coordinates there is no frame and ``xy`` is None.
    """
    packed = {}
    normalised = are_normalised(found.input.coordinates)
    for i, points in used.items():
        here = _positions(found.input, i)
        entry: dict[str, Any] = {"points": encode(points, "<u4"), "size": int(found.input.sizes[i]), "xy": None}
        if here is not None:
            if normalised and i in sizes:
                here = in_pixels(here, sizes[i])
            low, extent = (np.zeros(2), np.array(sizes[i], dtype=float)) if i in sizes else frame(here)
            share = np.nan_to_num((here[points] - low) / extent, nan=0.5)
            entry["xy"] = encode((share.clip(0, 1) * 65535).round(), "<u2")
            entry["frame"] = extent.tolist()
        packed[i] = entry
    return packed


def encode(values: NDArray[Any], dtype: str) -> str:
    """Return the values as base64 of the given type.

    Examples
    --------
    >>> encode(np.array([1, 2]), "<u2")
    'AQACAA=='
    """
    return base64.b64encode(np.ascontiguousarray(values).astype(dtype).tobytes()).decode()


def frame(positions: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corner and the extent, each (2,), of the bounding box with a margin of 4 %; the unit square for none.

    Examples
    --------
    >>> corner, extent = frame(np.array([[0.0, 0.0], [100.0, 50.0]]))
    >>> corner.tolist(), extent.tolist()
    ([-4.0, -2.0], [108.0, 54.0])
    """
    finite = positions[np.isfinite(positions).all(axis=1)]
    if not len(finite):
        return np.zeros(2), np.ones(2)
    low, high = finite.min(axis=0), finite.max(axis=0)
    # A frame is never flatter than 1 : 4, so that points on a line can be told apart.
    extent = np.maximum(high - low, max((high - low).max() / 4, 1e-6)) * 1.08
    return (low + high) / 2 - extent / 2, extent


def are_normalised(coordinates: NDArray[Any] | None) -> bool:
    """Return whether positions, (m, 2), are OpenSfM's: the origin at the image's centre, the larger side 1.

    They are if none lies much farther than half a side from the origin and some are negative, which pixels are not.

    Examples
    --------
    >>> are_normalised(np.array([[-0.501, 0.3], [0.2, np.nan]])), are_normalised(np.array([[0.0, 0.3], [812.0, 55.0]]))
    (True, False)
    """
    if coordinates is None:
        return False
    known = coordinates[np.isfinite(coordinates)]
    return bool((np.abs(known) <= HALF).all() and (known < 0).any())


def in_pixels(positions: NDArray[Any], size: tuple[int, int]) -> NDArray[np.float64]:
    """Return normalised positions, (n, 2), in pixels of an image of that width and height.

    Examples
    --------
    >>> in_pixels(np.array([[0.0, 0.0], [-0.5, 0.25]]), (400, 200)).tolist()
    [[200.0, 100.0], [0.0, 200.0]]
    """
    return np.asarray(positions, dtype=np.float64) * max(size) + np.array(size) / 2


def _pair_codes(matchings: Matchings, k: int) -> Ints:
    return matchings.pair_objects[:, 0].astype(np.int64) * k + matchings.pair_objects[:, 1]


def _per_cent(support: NDArray[np.float64]) -> NDArray[Any]:
    return np.where(np.isfinite(support), (support.clip(0, 1) * 100).round(), UNKNOWN)


def _positions(matchings: Matchings, i: int) -> NDArray[np.float64] | None:
    if matchings.coordinates is None:
        return None
    return matchings.coordinates[matchings.offsets[i] : matchings.offsets[i + 1]].astype(np.float64)
