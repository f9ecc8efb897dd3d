"""Plain label images and footprints: NPY and NPZ arrays, TIFF images."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, MissingExtraError
from stiefelsync.io.base import head
from stiefelsync.io.cells.objects import read_npy
from stiefelsync.io.limits import regular
from stiefelsync.io.npz_arrays import load
from stiefelsync.registration.session import Session

__all__ = ["is_masks", "read"]

NAMES = ("labels", "masks", "footprints")
TIFF = (b"II*\0", b"MM\0*")
# Pixels of all pages of a TIFF image, or for every byte of its file: masks are nearly all zeros and shrink so far.
MOST_PIXELS, EXPANSION = 2**24, 2000


def is_masks(path: Path) -> bool:
    """Return whether a file begins like an NPY, NPZ or TIFF file."""
    start = head(path, 6)
    return start == b"\x93NUMPY" or start[:4] in (b"PK\x03\x04", *TIFF)


def read(path: Path, name: str) -> Session:
    """Read labels, (height, width), 0 where no cell is, or footprints, (n, height, width), of an array or of pages."""
    start = head(path, 6)
    masks = _npy(path) if start == b"\x93NUMPY" else _npz(path) if start[:2] == b"PK" else _tiff(path)
    if masks.dtype.kind not in "biuf" or masks.ndim not in (2, 3) or 0 in masks.shape[-2:]:
        raise FormatError(
            f"{path} holds an array of shape {masks.shape} and type {masks.dtype}; labels are whole numbers, "
            "height × width, and footprints are numbers, cells × height × width"
        )
    if masks.ndim == 2 and masks.dtype.kind == "f":
        if not (masks == np.floor(masks)).all():
            raise FormatError(f"{path} holds an image of fractions; labels of cells are whole numbers")
        masks = masks.astype(np.int64)
    return Session.from_masks(name, masks, source="masks")


def _npy(path: Path) -> NDArray[Any]:
    value = read_npy(path)
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        raise FormatError(f"{path} holds Python objects; save labels or footprints as a plain array")
    return value


def _npz(path: Path) -> NDArray[Any]:
    found = load(path, None)
    for name in (*NAMES, *found):
        if name in found and found[name].ndim in (2, 3):
            return found[name]
    raise FormatError(f"{path} holds no array of labels or footprints; name it {', '.join(NAMES)}")


def _tiff(path: Path) -> NDArray[Any]:
    try:
        from PIL import Image, ImageSequence
    except ImportError:
        raise MissingExtraError("reading TIFF images", "pillow", "report") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd tags
        try:
            with Image.open(regular(path), formats=["TIFF"]) as image:
                pixels = image.width * image.height * getattr(image, "n_frames", 1)
                if pixels > max(MOST_PIXELS, EXPANSION * path.stat().st_size):
                    raise FormatError(f"{path} tells of {pixels:,} pixels, which a file of its size does not hold")
                pages = [np.array(page) for page in ImageSequence.Iterator(image)]
        except FormatError:
            raise
        except Exception as error:  # what pillow raises on a damaged file
            raise FormatError(f"{path} is not a complete TIFF image ({error})") from None
    if any(page.shape != pages[0].shape or page.ndim != 2 for page in pages):
        raise FormatError(f"{path} has pages in colour or of different sizes; labels and footprints are plain images")
    return pages[0] if len(pages) == 1 else np.stack(pages)
