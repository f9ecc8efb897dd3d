"""Photographs for the page: found by object name, cut into patches, shrunk into a budget of bytes."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, MissingExtraError
from stiefelsync.io.photographs import inside, opened
from stiefelsync.positions.units import are_normalised
from stiefelsync.report.viewer import in_pixels

try:
    from PIL import Image
except ImportError as error:
    raise MissingExtraError("a report with images", "pillow", "report") from error

__all__ = ["Pictures", "find_images", "take_pictures"]

SIDE, LEAST_SIDE = 1280, 240  # longest side of an embedded photograph, in pixels
BYTES_PER_PIXEL = 0.16  # of a JPEG of quality 80, data URI included, with room to spare
PATCH = 96  # side of a patch, in pixels
PATCH_SHARE = 0.036  # side of the window a patch shows, relative to the longer side of its photograph


@dataclass(frozen=True)
class Pictures:
    """What the page embeds.

    Attributes
    ----------
    photographs
        Object → data URI of its shrunk photograph.
    sizes
        Object → (width, height) of the original in pixels, the unit of the coordinates.
    patches
        Point → data URI of the window around it.
    left_out
        Objects whose photograph did not fit the budget.
    unreadable
        Objects whose file is not an image that can be read.
    """

    photographs: Mapping[int, str]
    sizes: Mapping[int, tuple[int, int]]
    patches: Mapping[int, str]
    left_out: tuple[int, ...] = ()
    unreadable: tuple[int, ...] = ()


def find_images(folder: Path, names: Sequence[str]) -> dict[int, Path]:
    """Find the image of every object: the file of that name, else the only file whose name differs in its ending.

    A name that leads out of the folder is not followed.

    Raises
    ------
    InputError
        When the folder does not exist or holds none of the images.

    Examples
    --------
    >>> find_images(Path("nowhere"), ["a.jpg"])
    Traceback (most recent call last):
    stiefelsync.errors.InputError: there is no folder of images 'nowhere'
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder of images {str(folder)!r}")
    root = folder.resolve()
    by_stem: dict[str, list[Path]] = {}
    for path in sorted(root.iterdir()):
        if path.is_file():
            by_stem.setdefault(path.stem.casefold(), []).append(path)
    found = {}
    for i, name in enumerate(names):
        exact = inside(root, name)
        alike = by_stem.get(Path(name).stem.casefold(), []) if Path(name).name == name else []
        if exact is not None:
            found[i] = exact
        elif len(alike) == 1:
            found[i] = alike[0]
    if not found:
        example = f", such as {names[0]!r}" if names else ""
        raise InputError(f"the folder {str(folder)!r} holds no image named like an object{example}")
    return found


def take_pictures(
    files: Mapping[int, Path],
    shown: Iterable[int],
    points: Collection[int],
    owners: NDArray[Any],
    coordinates: NDArray[np.float32] | None,
    *,
    budget: int,
) -> Pictures:
    """Read every needed image once; cut the patches and shrink the photograph.

    Parameters
    ----------
    files
        Object → image file.
    shown
        Objects whose photograph is wanted, the most wanted first.
    points
        Points, by global index, whose surroundings are wanted.
    owners : (m,) int
        Object of every point.
    coordinates : (m, 2)
        Positions in the original image as stored, in pixels or normalised like OpenSfM's: like COLMAP this ignores a
        rotation noted in the file.
    budget
        Bytes for all the photographs as data URIs.

    Notes
    -----
    One full decode per image. The patches are not part of the budget: about 3 kB each.
    """
    wanted = [i for i in dict.fromkeys(shown) if i in files]
    by_object: dict[int, list[int]] = {}
    if coordinates is not None:
        for point in points:
            if owners[point] in files and np.isfinite(coordinates[point]).all():
                by_object.setdefault(int(owners[point]), []).append(point)
    normalised = are_normalised(coordinates)
    side = int(np.clip(math.sqrt(budget / (BYTES_PER_PIXEL * 0.75 * max(len(wanted), 1))), LEAST_SIDE, SIDE))
    photographs: dict[int, str] = {}
    sizes: dict[int, tuple[int, int]] = {}
    patches: dict[int, str] = {}
    left_out, unreadable, used = [], [], 0
    for i in [*wanted, *(i for i in by_object if i not in wanted)]:
        try:
            with opened(files[i]) as photograph:
                sizes[i] = photograph.size
                if i not in by_object:  # nobody needs the full resolution: decode a JPEG faster
                    photograph.draft("RGB", (side, side))
                image = photograph.convert("RGB")
        except FormatError:
            sizes.pop(i, None)
            unreadable.append(i)
            continue
        for point in by_object.get(i, []):
            assert coordinates is not None
            position = in_pixels(coordinates[point], image.size) if normalised else coordinates[point]
            patches[point] = _patch(image, *position.tolist())
        if i in wanted:
            image.thumbnail((side, side))
            uri = _data_uri(image)
            if used + len(uri) > budget:
                left_out.append(i)
            else:
                photographs[i] = uri
                used += len(uri)
    return Pictures(photographs, sizes, patches, tuple(left_out), tuple(unreadable))


def _patch(image: Image.Image, x: float, y: float) -> str:
    half = max(PATCH_SHARE * max(image.size) / 2, 20.0)
    window = (x - half, y - half, x + half, y + half)
    # Past the border the window is filled with black.
    return _data_uri(image.transform((PATCH, PATCH), Image.Transform.EXTENT, window, Image.Resampling.BILINEAR))


def _data_uri(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
