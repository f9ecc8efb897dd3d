"""How alike the footprints of near cells of two aligned sessions are: their cosine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from stiefelsync.registration.align import Alignment
from stiefelsync.registration.session import Session

__all__ = ["Near", "moved", "similarities"]

Floats = NDArray[np.float64]


class Near(NamedTuple):
    """Cells of two sessions that lie near each other.

    Attributes
    ----------
    first, second : (n,) int
        The cell of the first and of the second session.
    cosine : (n,)
        How alike their footprints are, from 0 to 1.
    distance : (n,)
        How far apart their centroids are, in pixels.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    cosine: Floats
    distance: Floats


def moved(session: Session, matrix: Floats, shape: tuple[int, int]) -> sparse.csr_array:
    """Return the footprints of a session laid over an image of a shape, (n, height * width), in O(pixels of cells)."""
    height, width = shape
    x, y = session.columns
    at = np.stack([x, y], axis=1) @ matrix[:, :2].T + matrix[:, 2]
    low = np.floor(at).astype(np.int64)
    part = at - low
    rows, columns, values = [], [], []
    # A pixel that lies between pixels is shared out among the four around it.
    for dy in (0, 1):
        for dx in (0, 1):
            px, py = low[:, 0] + dx, low[:, 1] + dy
            weight = np.abs(1 - dx - part[:, 0]) * np.abs(1 - dy - part[:, 1]) * session.footprints.data
            inside = (px >= 0) & (py >= 0) & (px < width) & (py < height) & (weight > 0)
            rows.append(session.owner[inside])
            columns.append(py[inside] * width + px[inside])
            values.append(weight[inside])
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return sparse.coo_array(entries, shape=(len(session), height * width)).tocsr()


def similarities(first: Session, second: Session, alignment: Alignment, reach: float) -> Near:
    """Return all cells of two sessions at most `reach` pixels apart, and the cosines of their footprints.

    Notes
    -----
    O(n log n) for the neighbours and O(pixels) for the sparse products: no matrix of all pairs is made.
    """
    a, b = first.centroids, alignment(second.centroids)
    known = [np.flatnonzero(np.isfinite(c).all(axis=1)) for c in (a, b)]
    if not (len(known[0]) and len(known[1])):
        none = np.empty(0, dtype=np.int64)
        return Near(none, none, np.empty(0), np.empty(0))
    trees = [cKDTree(c[k]) for c, k in zip((a, b), known, strict=True)]
    found = trees[0].sparse_distance_matrix(trees[1], reach, output_type="ndarray")
    i, j = known[0][found["i"]], known[1][found["j"]]
    order = np.lexsort((j, i))
    i, j, distance = i[order], j[order], found["v"][order]
    prints = first.footprints, moved(second, alignment.matrix, first.shape)
    norms = [np.sqrt(np.asarray(p.multiply(p).sum(axis=1)).ravel()) for p in prints]
    products = sparse.csr_array(prints[0] @ prints[1].T)
    inner = np.asarray(products[i, j]).ravel().astype(np.float64) if len(i) else np.empty(0)
    scale = norms[0][i] * norms[1][j]
    cosine = np.divide(inner, scale, out=np.zeros(len(i)), where=scale > 0)
    return Near(i, j, np.clip(cosine, 0.0, 1.0), distance)
