"""The longest tracks of an answer, for programs that more of them only burden."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stiefelsync.errors import InputError
from stiefelsync.sync.outcome import by_first_appearance
from stiefelsync.sync.result import Synchronisation

__all__ = ["keep_longest"]


def keep_longest(result: Synchronisation, count: int) -> Synchronisation:
    """Return the answer with its `count` longest tracks only; of equally long ones the surest stay.

    Points of other tracks become unmatched. Of equally long and sure ones the first stay.

    Examples
    --------
    >>> from stiefelsync import Matchings, synchronise
    >>> problem = Matchings.from_labels([0, 1, 0, 1, 0, 2], [2, 2, 2])
    >>> keep_longest(synchronise(problem, method="tracks"), 1).labels.tolist()
    [0, -1, 0, -1, 0, -1]
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"the number of tracks to keep is {count!r}; it must be a whole number, 1 or more")
    labels = result.labels
    length = np.bincount(labels[labels >= 0], minlength=1)
    if np.count_nonzero(length > 1) <= count:
        return result
    # Only among tracks of the length at which some stay and some go does it matter how sure they
    # are.
    sure = np.zeros(len(length))
    sure[labels[labels >= 0]] = np.nan_to_num(result.point_confidence[labels >= 0])
    kept = np.zeros(len(length), dtype=bool)
    kept[np.lexsort((np.arange(len(length)), -sure, -length))[:count]] = True
    left = by_first_appearance(np.where(np.append(kept, False)[labels], labels, -1))
    size = int(left.max(initial=-1)) + 1
    outcome = replace(result.outcome, labels=left)
    return replace(result, outcome=outcome, universe_size=min(result.universe_size, size))
