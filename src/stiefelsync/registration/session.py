"""One imaging session: the footprints of the cells that were found on one day."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync._border import typed
from stiefelsync.errors import InputError

__all__ = ["Session", "single"]

Floats = NDArray[np.float64]

LARGEST = 1e15  # weight of a pixel, so that the squares of single precision stay finite


@dataclass(frozen=True, eq=False)
class Session:
    """The cells that one program found on one day in one plane.

    Attributes
    ----------
    name
        What the day is called.
    shape : (height, width)
        Size of the image in pixels.
    footprints : (n, height * width) sparse
        Weight of every pixel in every cell, not negative; pixel (y, x) is column ``y * width + x``.
    numbers : (n,) int
        What the program that found the cells calls them: rows of `stat.npy`, columns of `A`, and so on.
    total
        Number of cells in the file, those left out included.
    base
        What these numbers count from, 0 or 1.
    plane
        Number of the imaging plane.
    image : (height, width) float or None
        Mean image of the session, to look at; nothing is computed from it.
    source
        The program whose files these are.

    Examples
    --------
    >>> day = Session.from_masks("monday", np.array([[0, 1, 1], [2, 2, 0]]))
    >>> len(day), day.numbers.tolist(), day.centroids.tolist()
    (2, [1, 2], [[1.5, 0.0], [0.5, 1.0]])
    """

    name: str
    shape: tuple[int, int]
    footprints: sparse.csr_array
    numbers: NDArray[np.int64]
    total: int
    base: int = 0
    plane: int = 0
    image: NDArray[np.float32] | None = None
    source: str = "footprints"

    @typed
    def __post_init__(self) -> None:
        height, width = self.shape
        with np.errstate(over="ignore"):  # infinite is refused below
            prints = sparse.csr_array(self.footprints).astype(np.float32)
            prints.sum_duplicates()
        if prints.shape != (len(self.numbers), height * width):
            raise InputError(
                f"session {self.name!r}: footprints of shape {prints.shape} do not fit "
                f"{len(self.numbers)} cells in an image of {height} × {width} pixels"
            )
        if not (prints.data <= LARGEST).all() or (prints.data < 0).any():
            raise InputError(f"session {self.name!r}: the pixels of a cell must be numbers from 0 to {LARGEST:g}")
        prints.eliminate_zeros()
        if self.image is not None and self.image.shape != self.shape:
            raise InputError(f"session {self.name!r}: its image is not of {height} × {width} pixels")
        object.__setattr__(self, "footprints", prints)

    @classmethod
    @typed
    def from_pixels(
        cls,
        name: str,
        shape: tuple[int, int],
        cells: NDArray[Any],
        pixels: NDArray[Any],
        weights: NDArray[Any] | None = None,
        *,
        numbers: NDArray[Any],
        **more: Any,
    ) -> Session:
        """Build from the pixels of all cells: weight t belongs to pixel ``pixels[t]`` of cell ``cells[t]``.

        Examples
        --------
        >>> len(Session.from_pixels("a", (2, 2), np.array([0, 0]), np.array([1, 3]), numbers=np.array([7])))
        1
        """
        values = np.ones(len(pixels), dtype=np.float32) if weights is None else weights
        given = sparse.coo_array((values, (cells, pixels)), shape=(len(numbers), shape[0] * shape[1]))
        numbers = np.asarray(numbers, dtype=np.int64)
        return cls(name, shape, given.tocsr(), numbers, **({"total": len(numbers)} | more))

    @classmethod
    @typed
    def from_masks(cls, name: str, masks: NDArray[Any], **more: Any) -> Session:
        """Build from an image of labels, (height, width), 0 where no cell is, or from footprints, (n, height, width).

        Labels are the numbers of their cells; footprints are numbered from 0.
        """
        masks = np.asarray(masks)
        if masks.ndim == 2:
            pixels = np.flatnonzero(masks)
            numbers, cells = np.unique(masks.ravel()[pixels], return_inverse=True)
            if len(numbers) and numbers[0] < 0:
                raise InputError(f"session {name!r}: labels of cells must be 0 (none) or more")
            base = {"base": 1, "total": int(numbers.max(initial=0))}
            return cls.from_pixels(
                name, (masks.shape[0], masks.shape[1]), cells, pixels, numbers=numbers, **(base | more)
            )
        if masks.ndim != 3:
            raise InputError(f"session {name!r}: masks have 2 or 3 axes, got {masks.ndim}")
        cells, y, x = np.nonzero(masks)
        shape = (masks.shape[1], masks.shape[2])
        return cls.from_pixels(
            name, shape, cells, y * shape[1] + x, masks[cells, y, x], numbers=np.arange(len(masks)), **more
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        left_out = self.total - len(self)
        more = f", {left_out} more left out" if left_out > 0 else ""
        return f"Session({self.name!r}, {len(self)} cells{more}, {self.shape[0]} × {self.shape[1]} pixels)"

    @cached_property
    def centroids(self) -> Floats:
        """Weighted mean position (x, y) of every cell in pixels, (n, 2); NaN for a cell without any pixel."""
        x, y = self.columns
        owner, weight = self.owner, self.footprints.data.astype(np.float64)
        with np.errstate(invalid="ignore"):
            total = np.bincount(owner, weight, len(self))
            sums = [np.bincount(owner, weight * at, len(self)) / total for at in (x, y)]
        return np.stack(sums, axis=1)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """Cell of every entry of `footprints`."""
        return np.repeat(np.arange(len(self)), np.diff(self.footprints.indptr))

    @property
    def columns(self) -> tuple[Floats, Floats]:
        """Positions x and y of every entry of `footprints`."""
        at = self.footprints.indices.astype(np.int64)
        return (at % self.shape[1]).astype(np.float64), (at // self.shape[1]).astype(np.float64)

    @cached_property
    def diameter(self) -> float:
        """Median diameter of the cells: that of a circle with as many pixels of a fifth of the largest weight."""
        prints = self.footprints
        if not prints.nnz:
            return 0.0
        top = np.maximum.reduceat(prints.data, prints.indptr[:-1][np.diff(prints.indptr) > 0])
        peak = np.repeat(top, np.diff(prints.indptr)[np.diff(prints.indptr) > 0])
        area = np.bincount(self.owner[prints.data >= 0.2 * peak], minlength=len(self))
        return float(2 * np.sqrt(np.median(area[area > 0]) / np.pi))


def single(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers in single precision, infinite where they are too large for it.

    Examples
    --------
    >>> single(np.array([1.0, 1e300])).tolist()
    [1.0, inf]
    """
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)
