"""Which method runs on a problem, and which way within it: decided here and nowhere else.

:func:`choose_method` decides for ``synchronise``, ``compare`` and ``clean``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from stiefelsync.errors import ConvergenceWarning, InputError
from stiefelsync.matching.graph import components
from stiefelsync.matching.matchings import Matchings
from stiefelsync.positions.neighbours import is_smooth, neighbour_support
from stiefelsync.sync.method import BY_POSITIONS, DEFAULT, Method, find_method
from stiefelsync.sync.outcome import Outcome

__all__ = [
    "PRESETS", "Choice", "Reason", "choose_method", "fits", "moves_alike", "warn_of_single_points",
]  # fmt: skip

PRESETS = ("accurate", "fast")
"""Methods that hold dense arrays, points × labels and objects × objects, and hand over where these are too large."""

MAX_DENSE_ENTRIES = 250_000_000
"""Entries of a dense array, (m, d) or (k, k), beyond which it is refused: 2 GB."""
MAX_PRESET_ENTRIES = 20_000_000
"""Entries of (m, d), d being the size of the largest object, beyond which presets hand over to "tracks"."""
MAX_SCORED = 1_500_000
"""Scored pairs of records up to which these are clustered one by one, some 20 microseconds each."""
_BY_SCORES = ("correlation",)
"""Methods that need no object of several points, as matches not there speak against a cluster."""


class Reason(StrEnum):
    """Why a method was chosen."""

    ASKED = "it was asked for"
    USUAL = "it is the usual one"
    RECORDS = "records of sources without duplicates are clustered by all of their scores"
    SINGLE = "every object has one point, so nothing but scores tells who belongs together"
    LARGE = "the universe is so large that dense arrays are out of reach"
    POSITIONS = "positions say much here"


@dataclass(frozen=True)
class Choice:
    """The method that runs, its options, and why it was chosen."""

    method: Method
    options: dict[str, Any]
    reason: Reason


def choose_method(
    matchings: Matchings,
    universe: str | int,
    method: str | Method | Callable[..., Outcome] | None,
    options: Mapping[str, Any],
    *,
    photographs: bool = False,
) -> Choice:
    """Return the method that really runs when asked for `method`.

    1. A method that is asked for runs, and "accurate" if none is.
    2. But "accurate" and "fast" hand over to "correlation" where no object has more than one point,
       as with records of sources that may hold duplicates, unless an option or a universe is given.
    3. Where no method, no option and no universe is given, "correlation" runs on records of sources
    without duplicates,
       all of whose scored pairs are known, up to a million and a half of these.
    4. They hand over to "tracks" where the universe is to be estimated and is so large that dense
       arrays are out of reach.
    5. Where no method, no option and no universe is given, "tracks" runs on keypoints of
       photographs (`photographs`) if neighbouring matches move alike: it alone looks at positions.

    Examples
    --------
    >>> chosen = choose_method(Matchings.from_labels([0, 0], [1, 1]), "auto", "sparse-stiefel", {"p": 4})
    >>> chosen.method.name, chosen.options
    ('sparse-stiefel', {'p': 4})
    """
    asked = find_method(DEFAULT if method is None else method)
    asked.check_options(options)
    if asked.name in PRESETS:
        records = matchings.records
        scored = None if method is not None or universe != "auto" or options or records is None else records.scored
        if scored is not None and len(scored[0]) <= MAX_SCORED:
            return Choice(find_method("correlation"), {}, Reason.RECORDS)
        if universe == "auto" and not options and int(matchings.sizes.max(initial=0)) == 1:
            return Choice(find_method("correlation"), {}, Reason.SINGLE)
        # Their likelihood has a table of object pairs.
        many_objects = matchings.n_objects**2 > MAX_DENSE_ENTRIES
        least_entries = int(matchings.sizes.max(initial=0)) * matchings.n_points
        if universe == "auto" and (least_entries > MAX_PRESET_ENTRIES or many_objects):
            return Choice(find_method("tracks"), {}, Reason.LARGE)
        if many_objects:
            raise InputError(
                f"method {asked.name!r} needs a dense array of {matchings.n_objects:,} × {matchings.n_objects:,}"
                " entries; use method='tracks', which needs none"
            )
    if method is not None:
        return Choice(asked, dict(options), Reason.ASKED)
    if photographs and universe == "auto" and not options and moves_alike(matchings):
        return Choice(find_method(BY_POSITIONS), {}, Reason.POSITIONS)
    return Choice(asked, dict(options), Reason.USUAL)


def warn_of_single_points(matchings: Matchings, method: str) -> None:
    """Warn if every object has one point, so that nothing contradicts, and the method knows no other rule.

    Components all of whose points are matched with each other are what any method would find.

    Examples
    --------
    >>> import warnings
    >>> chain = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_single_points(chain, "tracks")
    >>> len(caught)
    1
    """
    if method in _BY_SCORES or int(matchings.sizes.max(initial=0)) != 1:
        return
    sizes = np.bincount(components(matchings)[1]).astype(np.int64)
    if int((sizes * (sizes - 1) // 2).sum()) > matchings.n_matches:
        warnings.warn(
            "every object has one point: all that tells matches apart is that a track holds at most one point of an"
            " object, so whatever is connected becomes one track; make objects of points that are surely different (an"
            f" image, a source without duplicates), or use method='correlation', which goes by scores, not {method!r}",
            ConvergenceWarning,
            stacklevel=3,
        )


def fits(matchings: Matchings, universe: int) -> bool:
    """Return whether an m×d array for a universe of that size is small enough for the dense methods.

    Examples
    --------
    >>> fits(Matchings.from_labels([0, 0], [1, 1]), 1_000)
    True
    """
    return universe * matchings.n_points <= MAX_DENSE_ENTRIES


def moves_alike(matchings: Matchings) -> bool:
    """Return whether positions are known and neighbouring matches move alike.

    Examples
    --------
    >>> moves_alike(Matchings.from_labels([0, 0], [1, 1]))
    False
    """
    known = matchings.coordinates is not None and matchings.n_matches > 0
    return known and is_smooth(neighbour_support(matchings))
