"""An answer as a table, one row per point, for any library of data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import MissingExtraError

if TYPE_CHECKING:
    from stiefelsync.sync.result import Synchronisation

__all__ = ["Frame", "frame_of"]


class Frame(dict[str, NDArray[Any]]):
    """Columns by name, in order, all of one length.

    ``pandas.DataFrame(frame)``, ``polars.DataFrame(frame)`` and ``pyarrow.table(frame)`` take it as it is; whatever
    knows Arrow's interface for streams reads it, too.

    Examples
    --------
    >>> Frame({"a": np.array([1, 2])})
    Frame(2 rows: a)
    """

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as Arrow hands tables on; needs pyarrow."""
        try:
            import pyarrow
        except ImportError:
            raise MissingExtraError("Arrow's interface", "pyarrow", "tables") from None
        return pyarrow.table(dict(self)).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        rows = len(next(iter(self.values()))) if self else 0
        return f"Frame({rows:,} rows: {', '.join(self)})"


def frame_of(result: Synchronisation) -> Frame:
    """Return the points of an answer; what :meth:`Synchronisation.to_frame` does."""
    problem, labels = result.input, result.labels
    count = np.bincount(labels[labels >= 0], minlength=1)
    if problem.records is not None:
        # A record alone is a cluster of its own, so that every row has a number.
        alone = labels < 0
        cluster = np.where(alone, labels.max(initial=-1) + np.cumsum(alone), labels)
        return Frame({"cluster_id": cluster, **problem.records.columns(), "confidence": result.point_confidence})
    objects = problem.point_objects
    names = None if problem.names is None else np.array(problem.names, dtype=object)
    columns: dict[str, NDArray[Any]] = {
        "track": np.where((labels >= 0) & (count[labels] > 1), labels, -1),
        "object": objects.astype(np.int64) if names is None else names[objects],
        "point": np.arange(problem.n_points) - problem.offsets[objects],
    }
    if problem.coordinates is not None:
        columns |= {"x": problem.coordinates[:, 0], "y": problem.coordinates[:, 1]}
    return Frame(columns | {"confidence": result.point_confidence})
