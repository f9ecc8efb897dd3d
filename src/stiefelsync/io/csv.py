"""CSV and TSV: one match per line, or one point of a track per line, with sizes and names kept.

A file is a header line and one row per match, ``object_a,point_a,object_b,point_b[,weight]``, or per point of a track,
``track,object,point[,x,y]`` (track -1: unmatched). Before the header may stand the lines ``# sizes,…`` and
``# names,…``, which tell of points and objects without any match; without them the rows tell what there is.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import FormatError, InputError, counted
from stiefelsync.io.base import (
    MOST_MATCHES,
    Content,
    Format,
    consistent_labels,
    follows,
    head,
    losses,
    names_of,
    register,
)
from stiefelsync.io.csv_table import DELIMITERS, Table, bad_row, header_of, parse
from stiefelsync.io.limits import check_points
from stiefelsync.matching._canonical import OneToMany, check_sizes, describe
from stiefelsync.matching.matchings import Matchings

__all__ = ["CSV", "TRACKS"]

MATCH = (("object_a", "point_a", "object_b", "point_b"), ("weight",))
TRACK = (("track", "object", "point"), ("x", "y", "confidence"))


def _sniff(path: Path, first: str) -> bool:
    if path.is_dir() or b"\0" in head(path):
        return False
    try:
        return first in header_of(path)[1]
    except (FormatError, UnicodeDecodeError):
        return False


def _objects(table: Table, columns: Sequence[str], path: Path) -> tuple[list[NDArray[np.int64]], list[str] | None, int]:
    """Return the object numbers of the given text columns, the names of the objects, and how many there are."""
    used = np.unique(np.concatenate([table.columns[column] for column in columns]))
    texts = list(table.texts)
    k = len(table.sizes) if table.sizes is not None else None
    names: list[str] | None = table.names
    if names is not None:
        if len(set(names)) != len(names) or k not in (None, len(names)):
            raise FormatError(f"{path}: the line '# names' must give one different name per object")
        k = len(names)
        # Rows may have the outer spaces of a name, or not.
        number = {name.strip(): i for i, name in enumerate(names)} | {name: i for i, name in enumerate(names)}
    else:
        mentioned = sorted({texts[code].strip() for code in used})
        whole = all(name.isdecimal() and name.isascii() for name in mentioned)
        if whole:
            mentioned.sort(key=int)
        in_order = whole and [int(name) for name in mentioned] == list(range(len(mentioned)))
        names = None if in_order or k is not None else mentioned
        number = {str(i): i for i in range(k)} if k is not None else {name: i for i, name in enumerate(mentioned)}
        k = len(number)
    place = np.full(len(texts), -1, dtype=np.int64)
    for code in used:
        name = texts[code] if texts[code] in number else texts[code].strip()
        if name not in number:
            t = int(np.any([table.columns[column] == code for column in columns], axis=0).argmax())
            raise bad_row(path, table, t, f"unknown object {name!r}")
        place[code] = number[name]
    return [place[table.columns[column]] for column in columns], names, k


def _sizes(
    table: Table, given: ArrayLike | None, objects: Iterable[Any], points: Iterable[Any], k: int, path: Path
) -> ArrayLike:
    """Return the sizes said by the caller or the file, else the least that hold every point mentioned."""
    if given is not None:
        return given
    sizes = np.zeros(k, dtype=np.int64) if table.sizes is None else np.array(table.sizes, dtype=np.int64)
    mentions = 0
    for owner, point in zip(objects, points, strict=True):
        if table.sizes is None:
            np.maximum.at(sizes, owner, point + 1)
        mentions += len(point)
    check_points(sizes, mentions, path)
    return sizes


def read_matches(path: Path, *, one_to_many: OneToMany = "error", sizes: ArrayLike | None = None) -> Matchings:
    """Read ``object_a,point_a,object_b,point_b[,weight]``.

    Parameters
    ----------
    sizes : (k,) int
        Points per object, for a file that does not say.
    """
    table = parse(path, MATCH)
    (a, b), names, k = _objects(table, ("object_a", "object_b"), path)
    p, q = table.columns["point_a"], table.columns["point_b"]
    try:
        return Matchings.from_arrays(
            np.stack([a, b], axis=1),
            np.stack([p, q], axis=1),
            _sizes(table, sizes, (a, b), (p, q), k, path),
            weights=table.columns.get("weight"),
            names=names,
            one_to_many=one_to_many,
        )
    except InputError as error:
        if error.match is None:
            raise
        raise bad_row(path, table, error.match, error) from None


def read_tracks(path: Path, *, sizes: ArrayLike | None = None) -> Matchings:
    """Read ``track,object,point[,x,y]``, every two points of a track being a match."""
    return points_of_tracks(parse(path, TRACK), path, sizes)


def points_of_tracks(table: Table, path: Path, sizes: ArrayLike | None) -> Matchings:
    """Return the matchings of a table with the columns track, object, point and perhaps x and y."""
    (objects,), names, k = _objects(table, ("object",), path)
    points, track = table.columns["point"], table.columns["track"]
    counts = check_sizes(_sizes(table, sizes, (objects,), (points,), k, path)).astype(np.int64)
    if len(counts) < k:
        raise InputError(f"{counted(k, 'object')} are mentioned, but the sizes of {len(counts)} given")

    def check(t: int | None, message: str) -> None:
        """Raise the error about row t, if there is one."""
        if t is not None:
            o, words = int(objects[t]), list(table.texts)
            called = describe(o, None if names is None else tuple(names))
            size = counted(counts[o], "point")
            raise bad_row(path, table, t, message.format(a=points[t], o=called, size=size, track=words[track[t]]))

    check(_first(points >= counts[objects]), "point {a} of {o} does not exist; it has {size}, numbered from 0")
    place = np.append(0, np.cumsum(counts))[objects] + points
    check(_first(_repeats(place)), "point {a} of {o} is listed twice; it belongs to one track only")
    tracked = track != table.texts.get("-1", -1)
    check(_first(tracked & _repeats(track * k + objects)), "track {track} has two points of {o}")
    together = np.bincount(track[tracked]) if len(track) else track
    if int((together * (together - 1) // 2).sum()) > MOST_MATCHES:
        raise FormatError(f"{path} has tracks so long that they make more than {MOST_MATCHES:,} matches")
    labels = np.full(int(counts.sum()), -1, dtype=np.int64)
    labels[place] = np.where(track == table.texts.get("-1", -1), -1, track)
    coordinates = None
    if "x" in table.columns and "y" in table.columns:
        coordinates = np.full((len(labels), 2), np.nan)
        coordinates[place] = np.stack([table.columns["x"], table.columns["y"]], axis=1)
    return Matchings.from_labels(labels, counts, names=names, coordinates=coordinates)


def _first(marked: NDArray[np.bool_]) -> int | None:
    """Return the first place that is marked, None if none is."""
    return int(marked.argmax()) if marked.any() else None


def _repeats(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the keys, shape (n,), that stand before, too."""
    marked = np.ones(len(keys), dtype=bool)
    marked[np.unique(keys, return_index=True)[1]] = False
    return marked


def _dump(
    path: Path, delimiter: str | None, matchings: Matchings, plain: bool, header: list[str], rows: Iterable[Any]
) -> None:
    names = names_of(matchings)
    for name in names:
        if "\n" in name or "\r" in name:
            raise InputError(f"the object name {name!r} has a line break, which a table cannot hold; rename the object")
    before: list[list[Any]] = []
    if not plain:
        before = [["# sizes", *matchings.sizes.tolist()]]
        before += [] if matchings.names is None else [["# names", *names]]
    delimiter = delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")
    if delimiter not in DELIMITERS:
        raise InputError(f"a delimiter is a comma, a semicolon or a tab, got {delimiter!r}")
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(chain(before, [header], rows))


def write_matches(
    content: Content, path: Path, *, like: Path | None, delimiter: str | None = None, plain: bool = False
) -> None:
    """Write ``object_a,point_a,object_b,point_b[,weight]``.

    Parameters
    ----------
    delimiter
        A comma, or a tab for a file that ends in ``.tsv``, when None.
    plain
        Leave out the lines before the header that keep sizes and names.
    """
    matchings = content.matchings
    names = np.array(names_of(matchings), dtype=object)
    ends = names[matchings.pair_objects][matchings.match_pairs].reshape(-1, 2)
    columns = [ends[:, 0], matchings.indices[:, 0], ends[:, 1], matchings.indices[:, 1]]
    header = [*MATCH[0]]
    if matchings.weights is not None:
        header.append("weight")
        columns.append(matchings.weights)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    _dump(path, delimiter, matchings, plain, header, rows)


def write_tracks(
    content: Content, path: Path, *, like: Path | None, delimiter: str | None = None, plain: bool = False
) -> None:
    """Write ``track,object,point[,x,y][,confidence]``; with coordinates unmatched points are listed too, as track -1.

    The confidence, that of the track, is there where an answer is written.
    """
    matchings, labels = content.matchings, consistent_labels(content)
    names = np.array(names_of(matchings), dtype=object)
    listed = np.flatnonzero(labels >= 0) if matchings.coordinates is None else np.arange(len(labels))
    listed = listed[np.argsort(labels[listed], kind="stable")]
    objects = matchings.point_objects[listed]
    columns = [labels[listed], names[objects], listed - matchings.offsets[objects]]
    header = [*TRACK[0]]
    if matchings.coordinates is not None:
        header += ["x", "y"]
        columns += [*matchings.coordinates[listed].T]
    if content.confidence is not None:
        header.append("confidence")
        columns.append(content.confidence()[listed].round(4))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    _dump(path, delimiter, matchings, plain, header, rows)


def loses_tracks(matchings: Matchings) -> list[str]:
    """A table of tracks has no place for weights, and holds all that follows."""
    return losses(matchings, "A CSV file of tracks", weights=False) + follows(matchings, "A CSV file of tracks")


CSV = register(
    Format(
        "csv",
        "one match per line: object_a,point_a,object_b,point_b[,weight]",
        (".csv", ".tsv", ".txt"),
        lambda path: _sniff(path, "object_a"),
        read_matches,
        write_matches,
        partial(losses, where="A CSV file of matches", coordinates=False),
    )
)
TRACKS = register(
    Format(
        "tracks",
        "one point of a track per line: track,object,point[,x,y][,confidence]",
        (".csv", ".tsv", ".txt"),
        lambda path: _sniff(path, "track"),
        read_tracks,
        write_tracks,
        loses_tracks,
        whole=True,
    )
)
