"""Results of CaImAn: HDF5 files that ``cnm.save`` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError
from stiefelsync.io.hdf5 import Datasets, opened
from stiefelsync.io.sparse_arrays import from_parts
from stiefelsync.registration.session import Session, single

__all__ = ["read"]

MOST_PIXELS = 2**28


def read(path: Path, name: str, *, iscell: bool = True) -> Session:
    """Read the components of a session; those that were accepted, unless `iscell` is false.

    Column c of `A` is a component, and pixel (y, x) of an image of height h its row y + x·h.
    """
    with opened(path) as data:
        if "estimates/A" not in data.groups:
            raise FormatError(f"{path} has no estimates/A: it is no result of CaImAn")
        parts = {key: _known(data, "estimates/A", key, "iuf") for key in ("data", "indices", "indptr", "shape")}
        if any(part is None for part in parts.values()):
            raise FormatError(f"{path}: the matrix estimates/A is not complete")
        dims = _known(data, "estimates", "dims", "iu")
        dims = _known(data, "", "dims", "iu") if dims is None else dims
        accepted = _known(data, "estimates", "idx_components", "iu")
        image = _known(data, "estimates", "Cn", "f")
    if dims is None or dims.shape != (2,):
        raise FormatError(f"{path} has no dims of two numbers: the height and the width of the image are unknown")
    height, width = (int(side) for side in dims)
    shape = parts.pop("shape")
    A = from_parts("csc", shape, parts).tocoo()  # type: ignore[arg-type]
    if not 0 < height * width <= MOST_PIXELS or A.shape[0] != height * width:
        raise FormatError(f"{path}: components of {A.shape[0]:,} pixels do not fit an image of {height} × {width}")
    n = A.shape[1]
    kept = np.arange(n) if accepted is None or not iscell else np.unique(accepted.ravel())
    if len(kept) and not 0 <= kept[0] <= kept[-1] < n:
        raise FormatError(f"{path}: idx_components names components that are not there")
    place = np.full(n, -1)
    place[kept] = np.arange(len(kept))
    row, cell = A.row.astype(np.int64), place[A.col]
    inside = (cell >= 0) & (A.data > 0)
    y, x = row[inside] % height, row[inside] // height
    mean = single(image) if image is not None and image.shape == (height, width) else None
    return Session.from_pixels(
        name, (height, width), cell[inside], y * width + x, A.data[inside], numbers=kept, total=n, image=mean,
        source="caiman",
    )  # fmt: skip


def _known(data: Datasets, group: str, key: str, kinds: str) -> NDArray[Any] | None:
    """Return an array; None where there is none, which CaImAn writes as the text "NoneType"."""
    item = data.groups.get(group, {}).get(key)
    if item is None or item.dtype.kind in "SO":
        return None
    return data.read(group, key, kinds)
