"""Random problems for the round trips of every format."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from stiefelsync import Matchings

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=8)


@st.composite
def problems(draw, weights=True, names=True, coordinates=True, name=NAMES, min_objects=0, offset=0):
    """Draw matchings among up to five objects, some empty, some unmatched; `offset` pushes the indices up."""
    sizes = draw(st.lists(st.integers(0, 6), min_size=min_objects, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = np.array(sizes, dtype=np.int64) + offset
    pairs = {}
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            most = int(min(sizes[i], sizes[j], 6))
            n = int(rng.integers(0, most + 1))
            if n:
                ends = [int(s) - 1 - rng.permutation(min(int(s), 6 + most))[:n] for s in (sizes[i], sizes[j])]
                pairs[i, j] = np.stack(ends, axis=1)
    k, m = len(sizes), int(sizes.sum())
    total = sum(len(block) for block in pairs.values())
    problem = Matchings.from_pairs(
        pairs,
        sizes,
        names=draw(st.lists(name, min_size=k, max_size=k, unique=True)) if names and draw(st.booleans()) else None,
        coordinates=rng.normal(0, 100, (m, 2)).astype(np.float32) if coordinates and draw(st.booleans()) else None,
    )
    return problem.with_weights(rng.uniform(0.01, 2, total)) if weights and draw(st.booleans()) else problem


@st.composite
def labellings(draw, **options):
    """Draw cycle-consistent matchings."""
    problem = draw(problems(**options))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    labels = np.concatenate([np.empty(0, dtype=np.int64), *(rng.permutation(int(s) + 2)[:s] for s in problem.sizes)])
    labels[rng.random(len(labels)) < 0.2] = -1
    return Matchings.from_labels(labels, problem.sizes, names=problem.names, coordinates=problem.coordinates)
