"""Folders of suite2p: `stat.npy` and `iscell.npy` of every plane, and the size of the image where it is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.cells.objects import as_array, read_npy
from stiefelsync.registration.session import Session, single

__all__ = ["find_planes", "name_of", "read_plane"]

MOST_PIXELS = 2**28  # of an image; a mesoscope's has 2²⁴
# Where the size of the image and its mean are kept: before version 1.0, and since.
ABOUT = ("ops.npy", "reg_outputs.npy", "db.npy")


def find_planes(path: Path) -> dict[int, Path]:
    """Return the folders of all planes by number, none if this is no session of suite2p.

    A session may be named in four ways: by its folder, its `suite2p` (by any name), one `plane0`, or a `stat.npy`.
    `combined` is never one of the planes: its pixels are shifted.
    """
    if path.is_file():
        return {_number(path.parent): path.parent} if path.name == "stat.npy" else {}
    if not path.is_dir():
        return {}
    if (path / "stat.npy").is_file():
        return {_number(path): path}
    below = _planes_in(path)
    if below:
        return below
    found = [planes for child in sorted(path.iterdir()) if child.is_dir() and (planes := _planes_in(child))]
    several = len(found) > 1 or (not found and any(path.glob("*/*/plane*/stat.npy")))
    if several:
        raise InputError(f"{path} holds several sessions; name the folder of each, as in {path}/*/")
    return found[0] if found else {}


def _planes_in(folder: Path) -> dict[int, Path]:
    planes = [plane for plane in sorted(folder.glob("plane*")) if (plane / "stat.npy").is_file()]
    return {_number(plane): plane for plane in sorted(planes, key=_number)}


def _number(plane: Path) -> int:
    found = re.fullmatch(r"plane_?([0-9]{1,6})", plane.resolve().name)
    return int(found[1]) if found else 0


def name_of(plane: Path) -> list[str]:
    """Return the folders that name a session, the nearest last: those above the one that holds the planes."""
    plane = plane.resolve()
    above = plane.parent.parent if re.fullmatch(r"plane_?[0-9]+", plane.name) else plane
    return [part for part in above.parts if part not in ("/", "\\")] or [plane.name]


def read_plane(plane: Path, name: str, *, iscell: bool | float = True) -> Session:
    """Read one plane.

    Parameters
    ----------
    iscell
        Which detections are cells: those that suite2p or its user says so (true), all (false), or those whose
        probability in the second column of `iscell.npy` is above a number.
    """
    stat = read_npy(plane / "stat.npy")
    if not isinstance(stat, np.ndarray) or stat.ndim != 1 or not all(isinstance(roi, dict) for roi in stat):
        raise FormatError(f"{plane / 'stat.npy'} is not a list of regions as suite2p writes it")
    kept = _kept(plane, len(stat), iscell)
    image, shape = _about(plane)
    pixels = [_pixels(stat[row], plane / "stat.npy", row) for row in kept]
    y, x, lam = (np.concatenate([p[part] for p in pixels] or [np.empty(0)]) for part in range(3))
    y, x = y.astype(np.int64), x.astype(np.int64)
    if shape is None:
        shape = int(y.max(initial=0)) + 1, int(x.max(initial=0)) + 1
    if len(y) and (y.min() < 0 or x.min() < 0 or y.max() >= shape[0] or x.max() >= shape[1]):
        raise FormatError(f"{plane / 'stat.npy'} has pixels outside its image of {shape[0]} × {shape[1]}")
    if not 0 < shape[0] * shape[1] <= MOST_PIXELS:
        raise FormatError(f"{plane} tells of an image of {shape[0]} × {shape[1]} pixels, which is not expected")
    cells = np.repeat(np.arange(len(kept)), [len(p[0]) for p in pixels])
    return Session.from_pixels(
        name, shape, cells, y * shape[1] + x, lam, numbers=kept, total=len(stat), plane=_number(plane),
        image=image, source="suite2p",
    )  # fmt: skip


def _kept(plane: Path, n: int, iscell: bool | float) -> NDArray[np.int64]:
    path = plane / "iscell.npy"
    if iscell is False or not path.is_file():
        return np.arange(n)
    table = read_npy(path)
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiub" or table.ndim not in (1, 2):
        raise FormatError(f"{path} is not a table of numbers")
    table = table[:, None] if table.ndim == 1 else table
    if len(table) != n:
        raise FormatError(f"{path} tells of {len(table)} regions, stat.npy of {n}; are they of one run?")
    if iscell is True:
        return np.flatnonzero(table[:, 0] > 0) if table.shape[1] else np.arange(n)
    if not 0 <= float(iscell) <= 1:
        raise InputError(f"iscell is {iscell}; it must be true, false or a probability", setting="iscell")
    if table.shape[1] < 2:
        raise FormatError(f"{path} has no column of probabilities; leave iscell={iscell} out", setting="iscell")
    return np.flatnonzero(table[:, 1] > float(iscell))


def _pixels(roi: Mapping[Any, Any], path: Path, row: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    try:
        y, x = (as_array(roi[key], path).ravel() for key in ("ypix", "xpix"))
    except KeyError as error:
        raise FormatError(f"{path}: region {row} has no {error.args[0]}") from None
    lam = as_array(roi["lam"], path).ravel() if "lam" in roi else np.ones(len(y), dtype=np.float32)
    if y.dtype.kind not in "iu" or x.dtype.kind not in "iu" or lam.dtype.kind not in "fiu":
        raise FormatError(f"{path}: the pixels of region {row} are not whole numbers")
    if not len(y) == len(x) == len(lam) or not np.isfinite(lam).all():
        raise FormatError(f"{path}: the pixels of region {row} are not complete")
    return y, x, np.maximum(lam, 0)


def _about(plane: Path) -> tuple[NDArray[np.float32] | None, tuple[int, int] | None]:
    """Return the mean image and the size of the image, as far as anything tells."""
    image, shape = None, None
    for file in ABOUT:
        path = plane / file
        about = read_npy(path) if path.is_file() else None
        if not isinstance(about, dict):
            continue
        if image is None and "meanImg" in about:
            mean = as_array(about["meanImg"], path)
            image = single(mean) if mean.ndim == 2 and mean.dtype.kind in "fiu" else None
        sides = about.get("Ly"), about.get("Lx")
        if shape is None and all(isinstance(side, int | np.integer) and side > 0 for side in sides):
            shape = int(sides[0]), int(sides[1])  # type: ignore[arg-type]
    if shape is None and image is not None:
        shape = (image.shape[0], image.shape[1])
    return (image if image is not None and image.shape == shape else None), shape
