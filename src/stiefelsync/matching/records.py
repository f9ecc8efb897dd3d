"""Whose the points of a problem are, in the words of those who gave them.

Sources and their own ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError

__all__ = ["Records"]


@dataclass(frozen=True, eq=False)
class Records:
    """The source and the own id of every point, for problems whose points are records of tables.

    A problem made from a table of scored pairs has them as :attr:`Matchings.records`. Where sources
    are free of duplicates its objects are the sources; where records of one source may be the same
    thing every record is an object of its own, and `source` tells which of them belong together.

    Attributes
    ----------
    sources : tuple of str
        Names of the sources; a single one, "", where the table names none.
    source : (m,) int64
        Source of every point, ascending.
    ids : (m,) array
        The id of every point in its source, of the type it was given in.
    duplicate_free : (S,) bool
        Whether a source is known to hold everything once: two of its records are never joined.
    scored
        All pairs that were scored, points a < b, (M, 2), and their probabilities, (M,), where the
        matches of the problem are only the best one-to-one choice among them; else None.

    Examples
    --------
    >>> records = Records(("a", "b"), np.array([0, 0, 1]), np.array(["x", "y", "x"]), np.array([True, False]))
    >>> records
    Records(3 records of 2 sources)
    >>> records.apart.tolist()
    [0, 0, -1]
    """

    sources: tuple[str, ...]
    source: NDArray[np.int64]
    ids: NDArray[Any]
    duplicate_free: NDArray[np.bool_]
    scored: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None

    def __post_init__(self) -> None:
        if not len(self.source) == len(self.ids):
            raise InputError(f"{len(self.source):,} sources of records do not fit {len(self.ids):,} ids")
        if len(self.duplicate_free) != len(self.sources):
            raise InputError(f"{len(self.sources)} sources need as many truth values, got {len(self.duplicate_free)}")

    @property
    def apart(self) -> NDArray[np.int64]:
        """The number of its source for every record that no other of that source may join, else -1.

        Shape (m,).
        """
        return np.where(self.duplicate_free[self.source], self.source, -1)

    def without_scores(self) -> Records:
        """Return the same for a problem with other matches, of which the scored pairs say nothing."""
        return self if self.scored is None else replace(self, scored=None)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return ``source_dataset``, where sources have names, and ``unique_id`` of each record."""
        named: dict[str, NDArray[Any]] = {}
        if self.sources != ("",):
            named["source_dataset"] = np.array(self.sources, dtype=object)[self.source]
        return named | {"unique_id": self.ids}

    def named(self) -> list[tuple[str, str]]:
        """Return source and id of every record, as texts.

        Examples
        --------
        >>> Records(("a",), np.zeros(2, dtype=np.int64), np.array([7, 9]), np.array([True])).named()
        [('a', '7'), ('a', '9')]
        """
        return [(self.sources[s], str(one)) for s, one in zip(self.source.tolist(), self.ids.tolist(), strict=True)]

    def __getitem__(self, points: NDArray[np.int64]) -> Records:
        """Return the records of some points."""
        return Records(self.sources, self.source[points], self.ids[points], self.duplicate_free)

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Records({len(self):,} records of {len(self.sources)} source{'s' * (len(self.sources) != 1)})"
