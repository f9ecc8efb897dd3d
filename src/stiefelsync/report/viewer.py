"""The matches the page's viewer can draw: which pairs of objects are embedded, and how they are packed."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.difference import Difference
from stiefelsync.positions.units import are_normalised

__all__ = ["PairTable", "choose_pairs", "encode", "frame", "in_pixels", "pack_objects", "pack_pairs"]

Ints = NDArray[np.int64]
UNKNOWN = 255  # the confidence of a match that has none


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


def choose_pairs(found: Difference, *, max_pairs: int, max_matches: int) -> PairTable:
    """Choose what the viewer shows: the pairs that lost most, while their matches fit.

    Notes
    -----
    O(P log P). A pair that alone exceeds what is left of `max_matches` is left out and smaller ones are still taken.

    Examples
    --------
    >>> from stiefelsync.matching.difference import difference
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_labels([0, 1, 0, 1, 0], [2, 2, 1])
    >>> table = choose_pairs(difference(problem, problem), max_pairs=2, max_matches=9)
    >>> table.objects.tolist(), table.embedded.tolist()
    ([[0, 1], [0, 2], [1, 2]], [True, True, False])
    """
    k = max(found.input.n_objects, 1)
    codes = [part.pair_objects.astype(np.int64) @ np.array([k, 1]) for part in (found.input, found.added)]
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


def pack_pairs(
    found: Difference, table: PairTable, confidence: NDArray[np.float64] | None = None
) -> tuple[list[dict[str, Any]], dict[int, Ints]]:
    """Pack the embedded pairs for the page, and return the points they use.

    Parameters
    ----------
    confidence : (M,) float64, optional
        How far the other matches agree with each of the input.

    Returns
    -------
    packed
        Per pair its objects ``i, j``; how many are ``kept, removed, added``; and for all of them in this order,
        base64 little-endian: ``a``, ``b`` uint32 (places in the objects' used points) and ``support`` uint8
        (per cent, 255 = unknown).
    used
        Object → the points of it that occur, ascending.
    """
    support = np.full(len(found.kept), UNKNOWN)
    if confidence is not None:
        support = np.where(np.isfinite(confidence), (confidence.clip(0, 1) * 100).round(), UNKNOWN)
    parts = found.input, found.added
    number = [{pair: s for s, pair in enumerate(map(tuple, part.pair_objects.tolist()))} for part in parts]
    blocks = []
    ends: dict[int, list[NDArray[Any]]] = {}
    for pair in map(tuple, table.objects[table.embedded].tolist()):
        rows = [numbers.get(pair) for numbers in number]
        old, new = (
            slice(0, 0) if s is None else slice(*part.pair_start[[s, s + 1]])
            for part, s in zip(parts, rows, strict=True)
        )
        matches, kept, added = found.input.indices[old], found.kept[old], found.added.indices[new]
        points = np.concatenate([matches[kept], matches[~kept], added])
        known = support[old]
        values = np.concatenate([known[kept], known[~kept], np.full(len(added), UNKNOWN)])
        blocks.append((pair, points, values, (int(kept.sum()), int((~kept).sum()), len(added))))
        for side, i in enumerate(pair):
            ends.setdefault(i, []).append(points[:, side])
    used = {i: np.unique(np.concatenate(lists)).astype(np.int64) for i, lists in ends.items()}
    packed = [
        {
            "i": i,
            "j": j,
            **dict(zip(("kept", "removed", "added"), counts, strict=True)),
            "a": encode(np.searchsorted(used[i], points[:, 0]), "<u4"),
            "b": encode(np.searchsorted(used[j], points[:, 1]), "<u4"),
            "support": encode(values, "u1"),
        }
        for (i, j), points, values, counts in blocks
    ]
    return packed, used


def pack_objects(
    found: Difference, used: Mapping[int, Ints], sizes: Mapping[int, tuple[int, int]]
) -> dict[int, dict[str, Any]]:
    """Pack the used points of every object: their numbers and where they lie in a frame.

    The frame is the photograph where its size is known, else the bounding box of the object's coordinates; without
    coordinates there is no frame and ``xy`` is None.
    """
    problem, packed = found.input, {}
    normalised = are_normalised(problem.coordinates)
    for i, points in used.items():
        entry: dict[str, Any] = {"points": encode(points, "<u4"), "size": int(problem.sizes[i]), "xy": None}
        if problem.coordinates is not None:
            here = problem.coordinates[problem.offsets[i] : problem.offsets[i + 1]].astype(np.float64)
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


def in_pixels(positions: NDArray[Any], size: tuple[int, int]) -> NDArray[np.float64]:
    """Return normalised positions, (n, 2), in pixels of an image of that width and height.

    Examples
    --------
    >>> in_pixels(np.array([[0.0, 0.0], [-0.5, 0.25]]), (400, 200)).tolist()
    [[200.0, 100.0], [0.0, 200.0]]
    """
    return np.asarray(positions, dtype=np.float64) * max(size) + np.array(size) / 2
