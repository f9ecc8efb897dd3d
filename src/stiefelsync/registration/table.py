"""One row per cell, one column per session: the answer in the numbers of whoever found the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.registration.confidence import Trust

__all__ = ["CellTable", "stacked", "table_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CellTable:
    """Which detections are one cell.

    Attributes
    ----------
    names : tuple of k str
        The sessions.
    index : (T, k) int
        Place of the cell among the detections of each session that were compared, -1 where it is absent.
    numbers : tuple of k arrays
        What every detection of a session is called by the program that found it: whole numbers or texts.
    confidence : (T,)
        Share of the places of the cell that are expected to be right; NaN for a cell with a single place.
    places : (T, k)
        Probability that a place is right, NaN where there is none to tell.
    plane : (T,) int
        Imaging plane.
    totals : (k,) int
        Detections in the file of each session, those that were left out included.
    base
        What numbers count from: 0 or 1.
    source
        The program whose files the sessions are.
    """

    names: tuple[str, ...]
    index: Ints
    numbers: tuple[NDArray[np.generic], ...]
    confidence: Floats
    places: Floats
    plane: Ints
    totals: Ints
    base: int = 0
    source: str = ""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def own(self) -> NDArray[np.object_]:
        """Their own numbers, (T, k) objects, None where a cell is absent."""
        table = np.full(self.index.shape, None, dtype=object)
        for session, numbers in enumerate(self.numbers):
            here = self.index[:, session] >= 0
            table[here, session] = numbers[self.index[here, session]].tolist()
        return table

    @typed
    def from_zero(self) -> Ints:
        """Return their own numbers counted from 0, (T, k), -1 where a cell is absent."""
        table = np.full(self.index.shape, -1, dtype=np.int64)
        for session, numbers in enumerate(self.numbers):
            if numbers.dtype.kind not in "iu":
                raise InputError(f"session {self.names[session]!r} has detections without numbers; write a CSV table")
            here = self.index[:, session] >= 0
            table[here, session] = numbers[self.index[here, session]].astype(np.int64) - self.base
        return table

    @typed
    def one_plane(self, where: str) -> None:
        """Raise :class:`InputError` if there are several planes, which `where` cannot hold."""
        if len(np.unique(self.plane)) > 1:
            raise InputError(f"{where} holds one plane; choose it with plane=", setting="plane")

    @property
    def sessions_per_cell(self) -> Ints:
        """In how many sessions every cell was found, (T,)."""
        return np.asarray((self.index >= 0).sum(axis=1))


@typed
def table_of(
    labels: Ints,
    names: Sequence[str],
    numbers: Sequence[NDArray[np.generic]],
    trust: Trust,
    *,
    totals: Ints | None = None,
    plane: int = 0,
    base: int = 0,
    source: str = "",
) -> CellTable:
    """Return the table of a labelling, the cells with most places first.

    Parameters
    ----------
    labels : (m,) int
        Cell of every detection, sessions one after another; each -1 is a cell of its own.

    Examples
    --------
    >>> trust = Trust(np.array([0.9, np.nan, 0.9]), np.array([0.9]))
    >>> found = table_of(np.array([0, -1, 0]), ["a", "b"], [np.array([5, 8]), np.array([3])], trust)
    >>> found.own.tolist(), found.confidence.tolist()
    ([[5, 3], [8, None]], [0.9, nan])
    """
    sizes = np.array([len(of) for of in numbers])
    labels = np.array(labels, dtype=np.int64)
    if len(labels) != sizes.sum():
        raise InputError(f"{len(labels)} labels do not fit {int(sizes.sum())} detections")
    alone = labels < 0
    labels[alone] = labels.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    session = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    _, first, cell, count = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -count))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    row = rank[cell]
    index = np.full((len(order), len(sizes)), -1, dtype=np.int64)
    places = np.full(index.shape, np.nan)
    index[row, session], places[row, session] = within, trust.places
    known = np.isfinite(places)
    mean = np.divide(
        np.where(known, places, 0).sum(axis=1), known.sum(axis=1),
        out=np.full(len(order), np.nan), where=known.any(axis=1),
    )  # fmt: skip
    return CellTable(
        tuple(names), index, tuple(numbers), mean, places, np.full(len(order), plane),
        sizes if totals is None else totals, base, source,
    )  # fmt: skip


@typed
def stacked(tables: Sequence[CellTable]) -> CellTable:
    """Return the tables of several planes as one; sessions are the same in all."""
    first = tables[0]
    if len(tables) == 1:
        return first
    offsets = [np.zeros(len(first.names), dtype=np.int64)]
    for table in tables[:-1]:
        offsets.append(offsets[-1] + np.array([len(numbers) for numbers in table.numbers]))
    index = [np.where(t.index >= 0, t.index + offset, -1) for t, offset in zip(tables, offsets, strict=True)]
    numbers = tuple(np.concatenate([t.numbers[s] for t in tables]) for s in range(len(first.names)))
    return CellTable(
        first.names, np.concatenate(index), numbers, np.concatenate([t.confidence for t in tables]),
        np.concatenate([t.places for t in tables]), np.concatenate([t.plane for t in tables]),
        np.sum([t.totals for t in tables], axis=0), first.base, first.source,
    )  # fmt: skip
