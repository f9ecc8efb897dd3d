"""What is read beside matches: reconstructions, constraints, scores and pairs of images, cells of other programs."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

import numpy as np

from stiefelsync import Matchings
from stiefelsync.io.cells import write_table
from stiefelsync.io.cells.answers import read_cells
from stiefelsync.io.colmap.reconstruction import read_reconstruction
from stiefelsync.io.constraint_files import read_constraints
from stiefelsync.io.pair_scores import read_pair_scores, read_pairs
from stiefelsync.registration.confidence import Trust
from stiefelsync.registration.table import CellTable, table_of

__all__ = [
    "cell_seeds", "cells", "constraint_seeds", "constraints", "pair_scores", "pair_seeds", "pairs", "place_images",
    "reconstruction", "reconstruction_seeds", "score_seeds",
]  # fmt: skip

_NAMES = ("a.jpg", "b/c.jpg", "é.jpg")


@cache
def _problem() -> Matchings:
    return Matchings.from_labels([0, 1, 2, 1, 0, 1], [2, 2, 2], names=list(_NAMES))


@cache
def _table() -> CellTable:
    """Return three sessions, two of them with four detections."""
    labels = np.array([0, 1, 2, -1, 1, 0, 3, 2, 0, 3])
    numbers = [np.array([0, 2, 3, 5]), np.arange(4), np.array([7, 1])]
    return table_of(labels, ["day1", "day2", "day3"], numbers, Trust(np.full(10, 0.9), np.ones(4)), totals=[9, 9, 9])


def reconstruction_seeds(_: Path) -> list[bytes]:
    """Return images of a reconstruction after a byte that tells their format, binary or text."""
    binary, text = struct.pack("<Q", len(_NAMES)), "# images\n"
    for number, name in enumerate(_NAMES, start=1):
        points = [(1.5, 2.5, 3), (4.0, 5.0, -1)]
        binary += struct.pack("<I7dI", number, *(0.5,) * 7, 1) + name.encode() + b"\0" + struct.pack("<Q", len(points))
        binary += b"".join(struct.pack("<ddq", *point) for point in points)
        text += f"{number} 1 0 0 0 0.5 0.5 0.5 1 {name}\n" + " ".join(f"{x} {y} {p}" for x, y, p in points) + "\n"
    return [b"\0" + binary, b"\1" + text.encode()]


def place_images(path: Path, data: bytes) -> None:
    """Make a folder with the images of a reconstruction."""
    path.mkdir(exist_ok=True)
    for name in ("images.bin", "images.txt"):
        (path / name).unlink(missing_ok=True)
    (path / ("images.txt" if data[:1] == b"\1" else "images.bin")).write_bytes(data[1:])


def reconstruction(path: Path) -> object:
    """Read images of a reconstruction."""
    return read_reconstruction(path, _problem())


def constraint_seeds(_: Path) -> list[bytes]:
    """Return constraints of both kinds."""
    rows = "must,a.jpg,0,b/c.jpg,1\ncannot,é.jpg,1,a.jpg,1\n"
    return [f"kind,object_a,point_a,object_b,point_b\n{rows}".encode()]


def constraints(path: Path) -> object:
    """Read constraints, and hold them against the problem."""
    return read_constraints(path, _problem())


def score_seeds(_: Path) -> list[bytes]:
    """Return scores of pairs of images."""
    return ["image_a,image_b,score\na.jpg,b/c.jpg,0.25\né.jpg,a.jpg,1\n".encode()]


def pair_scores(path: Path) -> object:
    """Read scores of pairs of images."""
    return read_pair_scores(path, _problem())


def pair_seeds(_: Path) -> list[bytes]:
    """Return lists of pairs, with spaces and with tabs."""
    return [b"a.jpg b.jpg\n# others\nc.jpg d.jpg\n", b"my photo.jpg\tb.jpg\n"]


def pairs(path: Path) -> object:
    """Read a list of pairs."""
    return read_pairs(path)


def cell_seeds(folder: Path) -> list[bytes]:
    """Return the cells of three sessions as every program keeps them that is read back."""
    made = []
    for name, ending in (
        ("cells", "csv"), ("cells", "parquet"), ("places", "csv"), ("caiman", "npy"), ("cellreg", "mat"),
        ("track2p", "csv"), ("roicat", "json"),
    ):  # fmt: skip
        path = folder / f"{name}.{ending}"
        path.unlink(missing_ok=True)
        write_table(_table(), path, name)
        made.append(path.read_bytes())
    return made


def cells(path: Path) -> object:
    """Read which detections are one cell."""
    return read_cells(path, _table())
