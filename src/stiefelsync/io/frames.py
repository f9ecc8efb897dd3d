"""Point tracks of a video as programs that track points save them: NPZ with an array (frames, tracks, 2).

Positions are in the array `tracks` (or `pred_tracks`), in pixels, x first; which of them count is in `visibility` (or
`pred_visibility`, `visibles`), (frames, tracks), and in their being numbers. `names`, (frames,), may give the frames
names, and `origin`, a text, may say where pixels count from.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, counted, unknown_name
from stiefelsync.io.base import MOST_MATCHES, Content, Format, consistent_labels, follows, head, losses, register
from stiefelsync.io.npz_arrays import load
from stiefelsync.io.pixels import shifted
from stiefelsync.io.provenance import MADE_BY, as_text
from stiefelsync.io.windows import in_window
from stiefelsync.matching.matchings import Matchings

__all__ = ["FRAMES"]

POSITIONS = ("tracks", "pred_tracks")
SEEN = ("visibility", "pred_visibility", "visibles")
ORDERS = ("TN", "NT")


def sniff(path: Path) -> bool:
    """Return whether a file is a ZIP archive with an array of positions."""
    if head(path, 4) != b"PK\x03\x04":
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            members = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, NotImplementedError, UnicodeDecodeError):
        return False
    return not members.isdisjoint(f"{name}.npy" for name in POSITIONS)


def read(
    path: Path,
    *,
    origin: str | None = None,
    window: int | None = None,
    order: str = "TN",
    frames: str | os.PathLike[str] | None = None,
) -> Matchings:
    """Read tracks through frames, every two points of a track being a match.

    Parameters
    ----------
    origin : {"centre", "corner"}, optional
        Where (0, 0) is in the first pixel, which must be told unless the file says it; half a pixel is added to
        positions from its centre.
    window
        Only matches of frames at most so many apart, and of every so-manieth one.
    order : {"TN", "NT"}
        Whether frames come first or tracks.
    frames
        Folder whose files, sorted by name, are the frames: they get these names.
    """
    if order not in ORDERS:
        raise unknown_name("order", order, ORDERS)
    arrays = load(path, {*POSITIONS, *SEEN, "names", "origin"})
    name = next((name for name in POSITIONS if name in arrays), None)
    if name is None:
        raise FormatError(f"{path} holds no array 'tracks' of shape (frames, tracks, 2)")
    xy = _without_batch(arrays[name], 3)
    if xy.ndim != 3 or xy.shape[2] != 2 or xy.dtype.kind not in "fiu":
        raise FormatError(
            f"{path}: the array {name!r} must hold numbers and have the shape (frames, tracks, 2), it holds "
            f"{arrays[name].dtype} and has {arrays[name].shape}"
        )
    seen = np.isfinite(xy).all(axis=2)
    for other in SEEN:
        if other in arrays:
            seen &= _visible(arrays[other], xy.shape[:2], f"{path}: the array {other!r}")
    if order == "NT":
        xy, seen = xy.swapaxes(0, 1), seen.T
    names = _names(arrays, frames, len(xy), path)
    if origin is None and "origin" in arrays:
        origin = str(arrays["origin"])
    frame, track = np.nonzero(seen)
    sizes, on = np.bincount(frame, minlength=len(xy)), np.bincount(track, minlength=1)
    coordinates = xy[frame, track].astype(np.float64) + shifted(origin)
    if window is not None:
        return in_window(track, sizes, window, names=names, coordinates=coordinates)
    if int((on * (on - 1) // 2).sum()) > MOST_MATCHES:
        raise FormatError(
            f"{path} has tracks so long that they make more than {MOST_MATCHES:,} matches; window=30 takes only those"
            " of frames at most 30 apart",
            setting="window",
        )
    return Matchings.from_labels(track, sizes, names=names, coordinates=coordinates)


def _without_batch(array: NDArray[Any], axes: int) -> NDArray[Any]:
    """Return an array without the first axis that programs have for several videos, where there is one video."""
    return array[0] if array.ndim == axes + 1 and len(array) == 1 else array


def _visible(array: NDArray[Any], shape: tuple[int, ...], where: str) -> NDArray[np.bool_]:
    """Return which positions count, shape as told."""
    flags = _without_batch(array[..., 0] if array.ndim == 4 and array.shape[-1] == 1 else array, 2)
    if flags.ndim == 3 and flags.shape[-1] == 1:
        flags = flags[..., 0]
    if flags.shape != shape or flags.dtype.kind not in "biu" or not np.isin(flags, (0, 1)).all():
        raise FormatError(
            f"{where} must say of every position whether it is visible, as {shape} truth values; it holds "
            f"{array.dtype} and has {array.shape}"
        )
    return flags.astype(bool)


def _names(
    arrays: dict[str, NDArray[Any]], frames: str | os.PathLike[str] | None, n: int, path: Path
) -> list[str] | None:
    """Return the names of frames, None where they have none."""
    if frames is not None:
        folder = Path(frames)
        if not folder.is_dir():
            raise InputError(f"frames must name a folder, got {str(frames)!r}", setting="frames")
        found = sorted(file.name for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    elif "names" in arrays:
        if arrays["names"].dtype.kind != "U" or arrays["names"].ndim != 1:
            raise FormatError(f"{path}: the array 'names' must hold one text per frame")
        found = arrays["names"].tolist()
    else:
        return None
    if len(found) != n:
        raise InputError(f"{path} has {counted(n, 'frame')}, and there are names of {len(found)}", setting="frames")
    return found


def write(content: Content, path: Path, *, like: Path | None) -> None:
    """Write tracks, visibility, and where there are some names; positions count from the corner of the first pixel."""
    matchings, labels = content.matchings, consistent_labels(content)
    if matchings.coordinates is None:
        raise InputError("tracks through frames need positions of points, and there are none")
    on = np.flatnonzero(labels >= 0)
    shape = matchings.n_objects, int(labels.max(initial=-1)) + 1
    xy, seen = np.full((*shape, 2), np.nan), np.zeros(shape, dtype=bool)
    place = matchings.point_objects[on], labels[on]
    xy[place], seen[place] = matchings.coordinates[on], True
    arrays: dict[str, Any] = {"tracks": xy, "visibility": seen, "origin": np.array("corner")}
    if matchings.names is not None:
        arrays["names"] = np.array(matchings.names, dtype=np.str_)
    if content.provenance is not None:
        arrays[MADE_BY] = np.array(as_text(content.provenance))
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def loses(matchings: Matchings) -> list[str]:
    """Hold tracks and positions, no weights and no points alone."""
    where = "An array of tracks"
    return losses(matchings, where, sizes=False, weights=False) + follows(matchings, where)


FRAMES = register(
    Format(
        "frames",
        "tracks of points through a video: arrays (frames, tracks, 2) and visibility",
        (".frames.npz",),  # asked for by name: what ends in .npz is the format npz
        sniff,
        read,
        write,
        loses,
        whole=True,
        photographs=True,
    )
)
