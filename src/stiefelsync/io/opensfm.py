"""OpenSfM: `tracks.csv` of version 2 (tab-separated), and folders of pickled matches, those only on explicit request.

Positions are OpenSfM's normalised ones: the origin at the image's centre, the larger side 1.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import Content, Format, consistent_labels, follows, head, losses, names_of, register
from stiefelsync.io.csv import labels_of_tracks, points_of_tracks
from stiefelsync.io.csv_table import Table, parse_rows
from stiefelsync.io.in_memory import from_dict
from stiefelsync.io.limits import lines, whole
from stiefelsync.io.pickled import read_pickled
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.matchings import Matchings

__all__ = ["OPENSFM"]

VERSION = "OPENSFM_TRACKS_VERSION_v2"
HEADER = ["object", "track", "point", "x", "y", "scale", "r", "g", "b", "segmentation", "instance"]
ENDING = "_matches.pkl.gz"


def sniff(path: Path) -> bool:
    """Return whether a file begins like OpenSfM's tracks, or is a file or folder of its pickled matches."""
    if path.is_dir():
        return any(path.glob("*" + ENDING))
    return head(path, 23).startswith(b"OPENSFM_TRACKS_VERSION_") or path.name.endswith(ENDING)


def read(
    path: Path, *, one_to_many: OneToMany = "error", sizes: ArrayLike | None = None, allow_pickle: bool = False
) -> Matchings:
    """Read `tracks.csv`, or the folder `matches` (one file of it, respectively).

    Parameters
    ----------
    sizes : (k,) int
        Points per image; None: as many as the file mentions.
    allow_pickle
        Whether pickled matches may be opened at all. Even then nothing is built but containers, numbers, texts and
        arrays of whole numbers, none of them by NumPy's own unpickling.
    """
    if path.is_dir() or path.name.endswith(ENDING):
        if allow_pickle is not True:  # any other value may be a slip
            raise FormatError(
                f"{path} holds pickled Python objects, which could run code; pass allow_pickle=True if you trust it"
            )
        return from_dict(read_pickled(path, ENDING), sizes, one_to_many=one_to_many)
    return points_of_tracks(_table(path), path, sizes)


def read_answer(
    path: Path, *, one_to_many: OneToMany = "error", sizes: ArrayLike | None = None, allow_pickle: bool = False
) -> tuple[NDArray[np.int64], Matchings] | None:
    """Return the track of every point of `tracks.csv`, -1 for none, and its points, without matches.

    Tracks may have two points of one image. None for pickled matches, which are no tracks.
    """
    if path.is_dir() or path.name.endswith(ENDING):
        return None
    labels, counts, names, coordinates = labels_of_tracks(_table(path), path, sizes, strict=False)
    return labels, Matchings.from_pairs({}, counts, names=names, coordinates=coordinates)


def _table(path: Path) -> Table:
    """Return the columns of `tracks.csv`."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(lines(file, path), delimiter="\t", quoting=csv.QUOTE_NONE)
        version = next(reader, [""])[0].strip()
        if version != VERSION:
            raise FormatError(f"{path} begins with {version[:40]!r}; only {VERSION} is read")
        return parse_rows(reader, HEADER, path, Table({}, {}))


def write(
    content: Content,
    path: Path,
    *,
    like: Path | None,
    image_size: tuple[int, int] | None = None,
    scale: float = 0.004,
) -> None:
    """Write `tracks.csv`; rows of an original `like` keep their position, scale and colour.

    Parameters
    ----------
    image_size
        Width and height in pixels, to normalise coordinates that are in pixels (the centre of the top-left pixel being
        (0.5, 0.5), as in COLMAP). Positions more than a pixel outside are refused.
    scale
        Normalised scale of every keypoint where no original tells.
    """
    matchings, labels = content.matchings, consistent_labels(content)
    kept = like is not None and sniff(like) and not like.is_dir() and not like.name.endswith(ENDING)
    names = names_of(matchings)
    for name in names:
        if set(name) & set("\t\n\r"):
            raise InputError(
                f"the object name {name!r} has a tab or line break, which tracks.csv cannot hold; rename it"
            )
    rows = (
        _kept(like, names, matchings, labels)
        if kept and like
        else _new_rows(names, matchings, labels, image_size, scale)
    )
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(VERSION + "\n")
        file.writelines("\t".join(map(str, row)) + "\n" for row in rows)


def _kept(like: Path, names: list[str], matchings: Matchings, labels: Any) -> Iterator[list[Any]]:
    number = {name: i for i, name in enumerate(names)}
    with like.open(encoding="utf-8", newline="") as file:
        next(file)
        for line in file:
            row = line.rstrip("\r\n").split("\t")
            if len(row) != len(HEADER):
                continue
            i, point = number.get(row[0]), whole(row[2])
            if i is None or point >= matchings.sizes[i]:
                raise InputError(
                    f"these matches are not about the images of {like}: it has point {point} of {row[0]!r}"
                )
            label = int(labels[matchings.offsets[i] + point])
            if label >= 0:
                yield [row[0], label, *row[2:]]


def _new_rows(
    names: list[str], matchings: Matchings, labels: Any, image_size: tuple[int, int] | None, scale: float
) -> Iterator[list[Any]]:
    if matchings.coordinates is None:
        raise InputError("tracks.csv holds positions, and these matches have none; use format 'tracks' instead")
    listed = np.flatnonzero(labels >= 0)
    listed = listed[np.argsort(labels[listed], kind="stable")]
    owner = matchings.point_objects[listed]
    point = listed - matchings.offsets[owner]
    at = matchings.coordinates[listed].astype(np.float64)
    if image_size is not None:
        size = _checked(image_size)
        inside = ((at >= -1) & (at <= size + 1)).all(axis=1)  # refined positions may leave the image a little
        for t in np.flatnonzero(~inside)[:1]:
            raise InputError(
                f"point {point[t]} of {names[owner[t]]!r} lies at ({at[t, 0]:g}, {at[t, 1]:g}), outside an image of "
                f"{size[0]:g} × {size[1]:g} pixels; pass image_size=(width, height) of the images"
            )
        at = (at - size / 2) / size.max()
    elif (np.abs(at) > 1).any():
        raise InputError("tracks.csv holds normalised positions; pass image_size=(width, height) in pixels")
    for i, label, a, (x, y) in zip(owner.tolist(), labels[listed].tolist(), point.tolist(), at.tolist(), strict=True):
        yield [names[i], label, a, x, y, scale, 255, 255, 255, -1, -1]


def _checked(image_size: Any) -> NDArray[np.float64]:
    try:
        size = np.array(image_size, dtype=np.float64)
    except (TypeError, ValueError):
        size = np.empty(0)
    if size.shape != (2,) or not ((size > 0) & (size < np.inf)).all():
        raise InputError(f"image_size must be a width and a height in pixels, got {image_size!r}")
    return size


def loses(matchings: Matchings) -> list[str]:
    """Tracks have no place for weights and unmatched points, and hold all that follows."""
    where = "OpenSfM's tracks.csv"
    return losses(matchings, where, sizes=False, weights=False) + follows(matchings, where)


OPENSFM = register(
    Format(
        "opensfm", "OpenSfM tracks.csv (v2)", (".csv", ".tsv"), sniff, read, write, loses, whole=True, copies=True,
        read_answer=read_answer,
    )
)  # fmt: skip
