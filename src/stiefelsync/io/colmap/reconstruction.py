"""The tracks of a COLMAP reconstruction: which keypoints it takes for one point in space."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, counted
from stiefelsync.io.base import names_of
from stiefelsync.io.limits import lines, real, regular, whole
from stiefelsync.matching.matchings import Matchings

__all__ = ["is_reconstruction", "read_reconstruction"]

Ints = NDArray[np.int64]

_POSE = struct.Struct("<I7dI")  # number, rotation, translation, camera
_COUNT = struct.Struct("<Q")
_POINT = np.dtype([("x", "<f8"), ("y", "<f8"), ("point3D", "<i8")])
_LONGEST_NAME = 4096
NAMES = ("images.bin", "images.txt")


def is_reconstruction(path: Path) -> bool:
    """Return whether a folder holds a reconstruction as COLMAP writes it.

    Examples
    --------
    >>> is_reconstruction(Path("nowhere"))
    False
    """
    return path.is_dir() and any((path / name).is_file() for name in NAMES)


def read_reconstruction(path: Path, problem: Matchings) -> Ints:
    """Return the point in space of every keypoint of a problem, (m,), -1 for those in none.

    Parameters
    ----------
    path
        Folder with ``images.bin`` or ``images.txt``, such as ``sparse/0``.
    problem
        Matches of the database that it was made from. Images are told by name.

    Raises
    ------
    FormatError
        If a file is damaged.
    InputError
        If it has an image, or more keypoints of one, than the problem.
    """
    file = next(path / name for name in NAMES if (path / name).is_file())
    images = _binary(regular(file)) if file.suffix == ".bin" else _text(regular(file))
    number = {name: i for i, name in enumerate(names_of(problem))}
    labels = np.full(problem.n_points, -1, dtype=np.int64)
    for name, points in images:
        if name not in number:
            raise InputError(f"{path} has the image {name!r}, which the matches do not know")
        i = number[name]
        if len(points) > problem.sizes[i]:
            has = counted(int(problem.sizes[i]), "keypoint")
            raise InputError(f"{path} has {len(points):,} keypoints of {name!r}, and the matches {has}")
        first = int(problem.offsets[i])
        labels[first : first + len(points)] = np.maximum(points, -1)
    return labels


def _binary(path: Path) -> Iterator[tuple[str, Ints]]:
    """Yield the name of every image and the points in space of its keypoints, from images.bin."""
    data = path.read_bytes()
    damaged = FormatError(f"{path} is not a complete images.bin of COLMAP; was it cut short?")
    try:
        (count,), at = _COUNT.unpack_from(data), _COUNT.size
        for _ in range(count):
            at += _POSE.size
            end = data.index(b"\0", at, at + _LONGEST_NAME)
            name = data[at:end].decode("utf-8")
            (points,), at = _COUNT.unpack_from(data, end + 1), end + 1 + _COUNT.size
            if points * _POINT.itemsize > len(data) - at:
                raise damaged
            yield name, np.frombuffer(data, dtype=_POINT, count=points, offset=at)["point3D"].astype(np.int64)
            at += points * _POINT.itemsize
    except (struct.error, ValueError):
        raise damaged from None


def _text(path: Path) -> Iterator[tuple[str, Ints]]:
    """Yield the same from images.txt: two lines per image."""
    with path.open(encoding="utf-8") as file:
        rows = (line.rstrip("\r\n") for line in lines(file, path) if not line.startswith("#"))
        try:
            for row in rows:
                if not row.strip():
                    continue
                pose = row.split(maxsplit=9)
                cells = next(rows, "").split()
                for cell in pose[1:8]:
                    real(cell)
                whole(pose[0]), whole(pose[8])
                if len(cells) % 3:
                    raise ValueError
                yield pose[9], np.array([whole(cell) for cell in cells[2::3]], dtype=np.int64)
        except (ValueError, IndexError, OverflowError):
            raise FormatError(f"{path} is not images.txt of a reconstruction: two lines per image") from None
