"""What a file format is, and the registry of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import FormatError, InputError, counted, unknown_name
from stiefelsync.io.limits import regular
from stiefelsync.matching.graph import components, conflicts
from stiefelsync.matching.left_out import are_among
from stiefelsync.matching.matchings import Matchings

__all__ = [
    "FORMATS", "Content", "Format", "Verification", "Written", "consistent_labels", "follows", "losses", "names_of",
    "register",
]  # fmt: skip

Labels = NDArray[np.int64]
MOST_MATCHES = 2**28  # of tracks: every two points of one are a match, 8 bytes at least


@dataclass(frozen=True)
class Content:
    """What a writer is given.

    Attributes
    ----------
    matchings
        The matches to be written.
    labels : (m,) int or None
        Universe point of every point, -1 = unmatched, where known.
    add
        Whether a writer that filters an existing file adds the matches which that file does not have.
    original
        What the reader of the file kept for writing a changed copy of it, if anything.
    provenance
        What made the content, for formats that have a place for it: version, method, options, seed and the digest of
        the input, as far as they are known.
    confidence
        Returns the confidence of the track of every point, (m,), NaN where unknown, for writers that hold it.
    barred : (B, 2) int64
        Pairs of objects i < j of which no match is to be written, whatever the labels say.
    """

    matchings: Matchings
    labels: Labels | None = None
    add: bool = True
    original: object = None
    provenance: Mapping[str, Any] | None = None
    confidence: Callable[[], NDArray[np.float64]] | None = None
    barred: Labels = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))

    def holds(self, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for every row of `ends`, (n, 2) global point indices, whether the answer matches the two."""
        if self.labels is not None:
            a, b = self.labels[ends].T
            held = np.asarray((a == b) & (a >= 0))
            return held & ~are_among(self.matchings.point_objects[ends], self.barred) if len(self.barred) else held
        key = np.array([self.matchings.n_points, 1])
        return np.isin(ends @ key, self.matchings.match_keys)


@dataclass(frozen=True)
class Verification:
    """What geometric verification left of matches.

    Attributes
    ----------
    pairs, matches
        That were verified.
    pairs_left, matches_left
        That passed.
    """

    pairs: int
    matches: int
    pairs_left: int
    matches_left: int


@dataclass(frozen=True)
class Written:
    """What became of the matches of a file that a changed copy was written of, counted as the file holds them.

    Attributes
    ----------
    before
        Matches of the original.
    kept
        Those of them that the copy has.
    distinct
        Different matches of the content among the kept: fewer, where several points were taken for one.
    added
        Matches of the content that the original did not have and the copy has.
    source, target
        The tables that the matches were read from and written to, where a file has several.
    to_verify
        Pairs whose verified matches were dropped, to be computed again.
    merged
        Distance in pixels within which points were taken for one, 0 for none.
    moved
        Points whose positions the copy has elsewhere.
    verification
        What was left where the matches were verified anew, None where they were not.
    """

    before: int
    kept: int
    distinct: int
    added: int
    source: str = ""
    target: str = ""
    to_verify: int = 0
    merged: float = 0.0
    moved: int = 0
    verification: Verification | None = None

    @property
    def reading(self) -> dict[str, str]:
        """The options with which to read the table that was written."""
        return {"source": self.target} if self.target else {}


@dataclass(frozen=True)
class Format:
    """A registered file format.

    Attributes
    ----------
    summary
        What it is, in a phrase.
    suffixes
        How its files usually end; the first is the usual one.
    sniff
        Whether the content of a file looks like this format.
    read
        ``read(path, *, one_to_many, **options) -> Matchings``.
    write
        ``write(content, path, *, like, **options)``; `path` is a fresh file, `like` the input file. A writer that
        filters a copy of `like` returns what became of its matches, any other None.
    loses
        Sentences on what of a problem the format cannot hold; none by default.
    loses_plainly
        The same for a file that is written with its option `plain`, which is true unless it is given.
    adds
        Whether matches the input did not have are written when nothing is said.
    whole
        Whether it holds tracks, and with them all that follows from the matches, asked for or not.
    copies
        Whether it writes a changed copy of a file of its own, where it is given one.
    photographs
        Whether its points are keypoints of photographs.
    half_pixel
        Whether positions of a file count from the centre of the first pixel, not from its corner as COLMAP's do.
    answers
        Name of the format in which answers to such a file are written where nothing else is said; its own by default.
    files
        Names of the options that name further files to read.
    recipes
        Options that stand for several others: by name, a function that returns these.
    load
        Like `read`, and returns what a writer of a changed copy would else read again; None where there is no such.
    next_command
        ``next_command(path, written, images)``: what to type next to go on with a file that was written.
    check_comparable
        Raises :class:`InputError` where what two files give when read as usual cannot be compared.
    advice
        ``advice(path, options)``: sentences on how a file is best dealt with, beside what these options do already.
    read_answer
        ``read_answer(path, **options) -> (labels, points)``: the track of every point, which may have two points of one
        object; None where a file holds no tracks. Only of formats whose files may hold such.
    read_options, write_options
        Names of the options reading and writing take, beside the common ones.
    """

    name: str
    summary: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Path], bool]
    read: Callable[..., Matchings]
    write: Callable[..., Written | None]
    loses: Callable[[Matchings], list[str]] = lambda _: []
    loses_plainly: Callable[[Matchings], list[str]] | None = None
    adds: bool = True
    whole: bool = False
    copies: bool = False
    photographs: bool = False
    half_pixel: Callable[[Path], bool] = lambda _: False
    answers: str = ""
    files: tuple[str, ...] = ()
    recipes: Mapping[str, Callable[[], dict[str, Any]]] = field(default_factory=dict)
    load: Callable[..., tuple[Matchings, object]] | None = None
    next_command: Callable[[Path, Written | None, Path | None], str | None] | None = None
    check_comparable: Callable[[Path, Path], None] | None = None
    advice: Callable[[Path, Mapping[str, Any]], list[str]] | None = None
    read_answer: Callable[..., tuple[NDArray[np.int64], Matchings] | None] | None = None
    read_options: tuple[str, ...] = field(init=False)
    write_options: tuple[str, ...] = field(init=False)

    @typed
    def __post_init__(self) -> None:
        for name, function in (("read_options", self.read), ("write_options", self.write)):
            taken = inspect.signature(function).parameters.values()
            options = tuple(p.name for p in taken if p.kind is p.KEYWORD_ONLY and p.name != "like")
            object.__setattr__(self, name, options)

    @property
    def options(self) -> tuple[str, ...]:
        """Names of all options, of reading and of writing."""
        return self.read_options + self.write_options

    @typed
    def lost(self, matchings: Matchings, path: Path, options: Mapping[str, Any]) -> list[str]:
        """Return sentences on what of a problem a file written with these options does not hold."""
        found = list(self.loses(matchings))
        text = path.suffix.lower() != ".parquet"  # which keeps all of it in its metadata
        if text and self.loses_plainly is not None and options.get("plain", True):
            found += self.loses_plainly(matchings)
        return found

    @typed
    def check(self, verb: str, options: Mapping[str, Any]) -> list[Path]:
        """Return the files that options name; raise :class:`InputError` if reading or writing (`verb`) lacks an option.

        The same holds for a value that is not a number, or below 0, where the default is a number with a fraction.
        """
        known = self.read_options if verb == "read" else self.write_options
        parameters = inspect.signature(self.read if verb == "read" else self.write).parameters
        for name, value in options.items():
            if name not in known:
                raise unknown_name(f"option of format {self.name!r}", name, known or ["none"])
            number = isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf
            if type(parameters[name].default) is float and not number:
                raise InputError(f"option {name} of format {self.name!r} must be a number, 0 or more, got {value!r}")
            if name in self.files and not (value is None or isinstance(value, str | os.PathLike)):
                raise InputError(f"option {name} of format {self.name!r} must be the name of a file, got {value!r}")
        return [regular(Path(options[name])) for name in self.files if options.get(name) is not None]


FORMATS: dict[str, Format] = {}


def register(known: Format) -> Format:
    """Enter a format into `FORMATS`; the order of entering is the order of sniffing."""
    FORMATS[known.name] = known
    return known


def losses(
    matchings: Matchings,
    where: str,
    *,
    sizes: bool = True,
    weights: bool = True,
    names: bool = True,
    coordinates: bool = True,
) -> list[str]:
    """Return one sentence for every part of a problem that `where` cannot hold.

    Examples
    --------
    >>> losses(Matchings.from_labels([0, 0], [1, 1], names=["a", "b"]), "This file", names=False)
    ['This file holds no object names: they become numbers.']
    """
    lost = []
    if not sizes:
        used = np.zeros(matchings.n_points, dtype=bool)
        used[matchings.endpoints.ravel()] = True
        if not used.all():
            lost.append(f"{where} holds matched points only: {int((~used).sum()):,} unmatched points are left out.")
    if not weights and matchings.weights is not None:
        lost.append(f"{where} holds no weights: every match counts the same.")
    if not names and matchings.names is not None:
        lost.append(f"{where} holds no object names: they become numbers.")
    if not coordinates and matchings.coordinates is not None:
        lost.append(f"{where} holds no point coordinates.")
    return lost


def names_of(matchings: Matchings, *, numbered: str = "{}") -> list[str]:
    """Return one different name per object, made from its number where there are none."""
    if matchings.names is None:
        return [numbered.format(i) for i in range(matchings.n_objects)]
    seen: set[str] = set()
    for name in matchings.names:
        if name in seen:
            raise InputError(f"two objects are named {name!r}; this format tells objects apart by name, rename one")
        seen.add(name)
    return list(matchings.names)


def consistent_labels(content: Content) -> Labels:
    """Return the labels of the content's tracks, -1 for points in none, in O(M).

    Without labels the tracks are the components of the matches, so what follows from the matches is in them too. Raises
    :class:`InputError` if a component holds two points of one object and so is not a track.
    """
    matchings = content.matchings
    if content.labels is None:
        _, labels = components(matchings)
        broken = conflicts(matchings, labels).count
        if broken:
            raise InputError(
                f"these matches contradict each other ({counted(broken, 'conflict')}), so they form no tracks; "
                "synchronise them first"
            )
    else:
        labels = np.array(content.labels, dtype=np.int64)
    matched = labels >= 0
    matched[matched] = np.bincount(labels[matched], minlength=1)[labels[matched]] > 1
    labels[~matched] = -1
    labels[matched] = np.unique(labels[matched], return_inverse=True)[1]
    return labels


def follows(matchings: Matchings, where: str) -> list[str]:
    """Return a sentence on the matches that tracks (`where`) hold beyond the given ones.

    Examples
    --------
    >>> follows(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1]), "This file")
    ['This file also holds what follows from the matches: 1 more.']
    """
    count = np.bincount(components(matchings)[1], minlength=1)
    more = int((count * (count - 1) // 2).sum()) - matchings.n_matches
    return [f"{where} also holds what follows from the matches: {more:,} more."] if more else []


def head(path: Path, size: int = 4096) -> bytes:
    """Return the first bytes of a file, none of a folder."""
    if path.is_dir():
        return b""
    regular(path)
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
