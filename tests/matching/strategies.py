"""Hypothesis strategies for Matchings, shared by the tests of this folder."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from stiefelsync.matching import Matchings

__all__ = ["labellings", "problems"]


@st.composite
def problems(draw: st.DrawFn, *, weighted: bool | None = None) -> Matchings:
    """Draw partial matchings among up to six objects of up to five points, some empty, some pairs missing."""
    sizes = draw(st.lists(st.integers(0, 5), min_size=0, max_size=6))
    pairs = {}
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            n = draw(st.integers(0, min(sizes[i], sizes[j])))
            if n:
                a, b = (draw(st.permutations(range(sizes[o])))[:n] for o in (i, j))
                pairs[i, j] = np.stack([a, b], axis=1)
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        positive = st.floats(0.25, 4.0)
        weights = {
            key: draw(st.lists(positive, min_size=len(block), max_size=len(block))) for key, block in pairs.items()
        }
    names = [f"object {i}" for i in range(len(sizes))] if draw(st.booleans()) else None
    coordinates = np.arange(2 * sum(sizes)).reshape(-1, 2) if draw(st.booleans()) else None
    return Matchings.from_pairs(pairs, sizes, weights=weights, names=names, coordinates=coordinates)


@st.composite
def labellings(draw: st.DrawFn, sizes: list[int] | None = None) -> tuple[np.ndarray, list[int]]:
    """Draw a valid labelling, some points unmatched, and its object sizes."""
    if sizes is None:
        sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    labels = []
    for size in sizes:
        names = draw(st.permutations(range(max(sizes) + 2)))[:size]
        kept = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        labels += [name if keep else -1 for name, keep in zip(names, kept, strict=True)]
    return np.array(labels, dtype=np.int64), list(sizes)
