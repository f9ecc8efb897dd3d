"""CSV, TSV and Parquet: one match per row, or one point of a track per row.

A file is a header line and one row per match, ``object_a,point_a,object_b,point_b[,weight]``, or per point of a track,
``track,object,point[,x,y]`` (track -1: unmatched). Before the header may stand the lines ``# sizes,…`` and
``# names,…``, which tell of points and objects without any match; without them the rows tell what there is. Parquet
files are the same tables, and keep sizes and names in their metadata.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
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
from stiefelsync.io.pixels import shifted
from stiefelsync.io.tables.files import PARQUET, Coded, write_columns, write_rows
from stiefelsync.io.windows import in_window
from stiefelsync.matching._canonical import OneToMany, check_sizes, describe
from stiefelsync.matching.matchings import Matchings

__all__ = ["CSV", "TRACKS"]

MATCH = (("object_a", "point_a", "object_b", "point_b"), ("weight",))
TRACK = (("track", "object"), ("point", "x", "y", "confidence"))


def _sniff(path: Path, first: str) -> bool:
    if path.is_dir():
        return False
    start = head(path)
    if start[:4] != PARQUET and b"\0" in start:
        return False
    try:
        return first in header_of(path)[1]
    except (FormatError, UnicodeDecodeError):
        return False


def _objects(table: Table, columns: Sequence[str], path: Path) -> tuple[list[NDArray[np.int32]], list[str] | None, int]:
    """Return the object numbers of the given text columns, the names of the objects, and how many there are."""
    counts = sum(np.bincount(table.columns[column], minlength=len(table.texts)) for column in columns)
    used = np.flatnonzero(counts)
    place, names, k = number_objects(table, used, path)
    strange = used[place[used] < 0]
    if len(strange):
        code = int(strange[0])
        t = int(np.any([table.columns[column] == code for column in columns], axis=0).argmax())
        raise bad_row(path, table, t, f"unknown object {list(table.texts)[code].strip()!r}")
    return [place[table.columns[column]] for column in columns], names, k


def number_objects(
    table: Table, used: NDArray[np.int64], path: Path
) -> tuple[NDArray[np.int32], list[str] | None, int]:
    """Number the objects of a table.

    Parameters
    ----------
    used : (u,) int64
        Numbers of the texts, among `table.texts`, that are names of objects.

    Returns
    -------
    place : (texts,) int32
        Object of each text, -1 of one that is none.
    names
        Of the objects, None where they are numbers from 0 on.
    k
        How many objects there are.
    """
    texts = list(table.texts)
    k = len(table.sizes) if table.sizes is not None else None
    names: list[str] | None = table.names
    if names is not None:
        if len(set(names)) != len(names) or k not in (None, len(names)):
            raise FormatError(f"{path}: the line '# names' must give one different name per object")
        # Rows may have the outer spaces of a name, or not.
        number = {name.strip(): i for i, name in enumerate(names)} | {name: i for i, name in enumerate(names)}
        k = len(names)
    else:
        mentioned = sorted({texts[code].strip() for code in used})
        whole = all(name.isdecimal() and name.isascii() for name in mentioned)
        if whole:
            mentioned.sort(key=int)
        in_order = whole and [int(name) for name in mentioned] == list(range(len(mentioned)))
        names = None if in_order or k is not None else mentioned
        number = {str(i): i for i in range(k)} if k is not None else {name: i for i, name in enumerate(mentioned)}
        k = len(number)
    place = np.full(len(texts), -1, dtype=np.int32)
    for code in used:
        place[code] = number.get(texts[code], number.get(texts[code].strip(), -1))
    return place, names, k


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
            np.maximum.at(sizes, owner, point.astype(np.int64) + 1)
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


def read_tracks(
    path: Path, *, sizes: ArrayLike | None = None, origin: str | None = None, window: int | None = None
) -> Matchings:
    """Read ``track,object,point[,x,y]``, every two points of a track being a match.

    Parameters
    ----------
    sizes : (k,) int
        Points per object, for a file that does not say.
    origin : {"centre", "corner"}, optional
        Where (0, 0) is in the first pixel. It must be told of a table without the column `point`,
        which a tracker wrote; half a pixel is added to positions from its centre.
    window
        Only matches of objects at most so many places apart, and of every so-manieth one: the pairs
        of all frames of a video grow with the square of its length.
    """
    return points_of_tracks(parse(path, TRACK), path, sizes, origin=origin, window=window)


def points_of_tracks(
    table: Table, path: Path, sizes: ArrayLike | None, *, origin: str | None = None, window: int | None = None
) -> Matchings:
    """Return the matchings of a table with the columns track, object, and point, or x and y, or all of them.

    Without the column point, the points of an object are numbered in the order of their rows.
    """
    labels, counts, names, coordinates = labels_of_tracks(table, path, sizes, origin=origin)
    together = np.bincount(labels[labels >= 0])
    if window is None and int((together * (together - 1) // 2).sum()) > MOST_MATCHES:
        raise FormatError(
            f"{path} has tracks so long that they make more than {MOST_MATCHES:,} matches; window=30 takes only those"
            " of objects at most 30 places apart"
        )
    if window is not None:
        return in_window(labels, counts, window, names=names, coordinates=coordinates)
    return Matchings.from_labels(labels, counts, names=names, coordinates=coordinates)


def read_answer(
    path: Path, *, sizes: ArrayLike | None = None, origin: str | None = None, window: int | None = None
) -> tuple[NDArray[np.int64], Matchings]:
    """Return the track of every point of such a file, -1 for none, and its points, without matches.

    Tracks of other programs may have two points of one object; `window` is about matches, and
    changes nothing.
    """
    labels, counts, names, coordinates = labels_of_tracks(parse(path, TRACK), path, sizes, origin=origin, strict=False)
    return labels, Matchings.from_pairs({}, counts, names=names, coordinates=coordinates)


def labels_of_tracks(
    table: Table, path: Path, sizes: ArrayLike | None, *, origin: str | None = None, strict: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str] | None, NDArray[np.float64] | None]:
    """Return the track of every point, -1 for none, the points of every object, names of objects and positions.

    Parameters
    ----------
    strict
        Whether a track must not have two points of one object.
    """
    (objects,), names, k = _objects(table, ("object",), path)
    track = table.columns["track"]
    if "point" not in table.columns and not {"x", "y"} <= table.columns.keys():
        raise FormatError(f"{path} has no column 'point', which only a table with x and y may do without")
    if "point" in table.columns:
        points, half = table.columns["point"], shifted(origin) if origin is not None else 0.0
    else:
        points, half = _numbered_in_turn(objects), shifted(origin)
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

    check(_first_marked(points >= counts[objects]), "point {a} of {o} does not exist; it has {size}, numbered from 0")
    place = np.append(0, np.cumsum(counts))[objects] + points
    check(_first_marked(_repeats(place)), "point {a} of {o} is listed twice; it belongs to one track only")
    tracked = track != table.texts.get("-1", -1)
    if strict:
        twice = tracked & _repeats(track.astype(np.int64) * k + objects)
        check(_first_marked(twice), "track {track} has two points of {o}")
    labels = np.full(int(counts.sum()), -1, dtype=np.int64)
    labels[place] = np.where(track == table.texts.get("-1", -1), -1, track)
    coordinates = None
    if "x" in table.columns and "y" in table.columns:
        coordinates = np.full((len(labels), 2), np.nan)
        coordinates[place] = np.stack([table.columns["x"], table.columns["y"]], axis=1) + half
    return labels, counts, names, coordinates


def _numbered_in_turn(objects: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return for every row how many rows of the same object stand before it."""
    order = np.argsort(objects, kind="stable")
    ordered = objects[order]
    number = np.empty(len(objects), dtype=np.int64)
    number[order] = np.arange(len(objects)) - np.searchsorted(ordered, ordered)
    return number


def _first_marked(marked: NDArray[np.bool_]) -> int | None:
    """Return the first place that is marked, None if none is."""
    return int(marked.argmax()) if marked.any() else None


def _repeats(keys: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Mark the keys, shape (n,), that stand before, too."""
    marked = np.ones(len(keys), dtype=bool)
    marked[np.unique(keys, return_index=True)[1]] = False
    return marked


def _dump(
    path: Path,
    columns: Mapping[str, NDArray[Any] | Coded],
    content: Content,
    *,
    delimiter: str | None,
    plain: bool,
) -> None:
    """Write a table; in Parquet sizes and names are kept beside it, in text before the header unless `plain`."""
    matchings, names = content.matchings, names_of(content.matchings)
    for name in names:
        if "\n" in name or "\r" in name:
            raise InputError(f"the object name {name!r} has a line break, which a table cannot hold; rename the object")
    objects: dict[str, Any] = {"sizes": matchings.sizes.tolist()}
    if matchings.names is not None:
        objects["names"] = names
    if plain or path.suffix.lower() == ".parquet":
        write_columns(path, columns, provenance=content.provenance, delimiter=delimiter, objects=objects)
        return
    delimiter = delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")
    if delimiter not in DELIMITERS:
        raise InputError(f"a delimiter is a comma, a semicolon or a tab, got {delimiter!r}")
    before = io.StringIO()
    rows = ([f"# {name}", *values] for name, values in objects.items())
    csv.writer(before, delimiter=delimiter, lineterminator="\n").writerows(rows)
    with path.open("wb") as file:
        file.write(before.getvalue().encode())
        write_rows(file, columns, delimiter)


def _object_column(matchings: Matchings, objects: NDArray[np.integer]) -> NDArray[Any] | Coded:
    """Return the name of the object of every row, or its number."""
    if matchings.names is None:
        return objects.astype(np.int64)
    return Coded(names_of(matchings), objects)


def write_matches(
    content: Content, path: Path, *, like: Path | None, delimiter: str | None = None, plain: bool = True
) -> None:
    """Write ``object_a,point_a,object_b,point_b[,weight]``.

    Parameters
    ----------
    delimiter
        A comma, or a tab for a file that ends in ``.tsv``, when None.
    plain
        Write text that every program reads; False puts lines before the header that keep sizes and
        names.
    """
    matchings = content.matchings
    objects = matchings.pair_objects[matchings.match_pairs]
    columns: dict[str, NDArray[Any] | Coded] = {}
    for side, end in enumerate("ab"):
        columns[f"object_{end}"] = _object_column(matchings, objects[:, side])
        columns[f"point_{end}"] = matchings.indices[:, side]
    if matchings.weights is not None:
        columns["weight"] = matchings.weights
    _dump(path, columns, content, delimiter=delimiter, plain=plain)


def write_tracks(
    content: Content, path: Path, *, like: Path | None, delimiter: str | None = None, plain: bool = True
) -> None:
    """Write ``track,object,point[,x,y][,confidence]``; with coordinates unmatched points are listed too, as track -1.

    The confidence, that of the track, is there where an answer is written. `delimiter` and `plain`
    are as for matches.
    """
    matchings, labels = content.matchings, consistent_labels(content)
    listed = np.flatnonzero(labels >= 0) if matchings.coordinates is None else np.arange(len(labels))
    listed = listed[np.argsort(labels[listed], kind="stable")]
    objects = matchings.point_objects[listed]
    columns: dict[str, NDArray[Any] | Coded] = {
        "track": labels[listed],
        "object": _object_column(matchings, objects),
        "point": listed - matchings.offsets[objects],
    }
    if matchings.coordinates is not None:
        columns |= dict(zip("xy", matchings.coordinates[listed].astype(np.float64).T, strict=True))
    if content.confidence is not None:
        columns["confidence"] = content.confidence()[listed].round(4)
    _dump(path, columns, content, delimiter=delimiter, plain=plain)


def loses_matches(matchings: Matchings) -> list[str]:
    """A table of matches has no place for coordinates."""
    return losses(matchings, "A CSV file of matches", coordinates=False)


def plainly(matchings: Matchings, where: str, told: NDArray[np.bool_]) -> list[str]:
    """Return sentences on what text without lines before its header does not tell.

    Parameters
    ----------
    told : (m,) bool
        Which points stand in a row.
    """
    sizes = matchings.sizes.astype(np.int64)
    last = np.full(len(sizes), -1, dtype=np.int64)
    local = np.arange(matchings.n_points) - matchings.offsets[matchings.point_objects]
    np.maximum.at(last, matchings.point_objects[told], local[told])
    lost = []
    unseen = int((sizes - 1 - last).sum())
    if unseen:
        lost.append(f"{where} tells of no points behind the last one matched: {counted(unseen, 'point')} left out.")
    if alone := int((last < 0).sum()):
        lost.append(f"{where} tells of no objects without a match: {counted(alone, 'object')} left out.")
    if lost:
        lost.append("With plain=False it does, in lines before its header.")
    return lost


def loses_tracks(matchings: Matchings) -> list[str]:
    """A table of tracks has no place for weights, and holds all that follows."""
    return losses(matchings, "A CSV file of tracks", weights=False) + follows(matchings, "A CSV file of tracks")


def _plain_matches(matchings: Matchings) -> list[str]:
    told = np.zeros(matchings.n_points, dtype=bool)
    told[matchings.endpoints.ravel()] = True
    return plainly(matchings, "A plain CSV file of matches", told)


def _plain_tracks(matchings: Matchings) -> list[str]:
    told = np.ones(matchings.n_points, dtype=bool)
    if matchings.coordinates is None:
        told[:] = False
        told[matchings.endpoints.ravel()] = True
    return plainly(matchings, "A plain CSV file of tracks", told)


CSV = register(
    Format(
        "csv",
        "one match per line: object_a,point_a,object_b,point_b[,weight]",
        (".csv", ".tsv", ".txt", ".parquet"),
        lambda path: _sniff(path, "object_a"),
        read_matches,
        write_matches,
        loses_matches,
        loses_plainly=_plain_matches,
    )
)
TRACKS = register(
    Format(
        "tracks",
        "one point of a track per line: track,object,point[,x,y][,confidence]",
        (".csv", ".tsv", ".txt", ".parquet"),
        lambda path: _sniff(path, "track"),
        read_tracks,
        write_tracks,
        loses_tracks,
        loses_plainly=_plain_tracks,
        whole=True,
        read_answer=read_answer,
    )
)
