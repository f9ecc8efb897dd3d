"""Read matches from files, write consistent ones back: one file per format, a registry that sniffs content."""

from stiefelsync.io import (
    cells,
    colmap,
    correspondences,
    csv,
    dd,
    frames,
    gtsfm,
    hloc,
    in_memory,
    mat,
    npz,
    opensfm,
    parquet,
)
from stiefelsync.io.base import FORMATS, Format
from stiefelsync.io.constraint_files import read_constraints, write_constraints
from stiefelsync.io.correspondences import from_correspondences
from stiefelsync.io.dispatch import detect, read, write
from stiefelsync.io.gtsfm import TracksEstimator
from stiefelsync.io.in_memory import from_dict, from_permutations, from_tensor, to_dict, to_permutations, to_tensor
from stiefelsync.io.next_steps import next_command
from stiefelsync.io.npz import read_truth
from stiefelsync.io.route import convert
from stiefelsync.io.tables import clusters as clusters
from stiefelsync.io.tables import edges as edges

__all__ = [
    "FORMATS",
    "Format",
    "TracksEstimator",
    "cells",
    "colmap",
    "convert",
    "correspondences",
    "csv",
    "dd",
    "detect",
    "frames",
    "from_correspondences",
    "from_dict",
    "from_permutations",
    "from_tensor",
    "gtsfm",
    "hloc",
    "in_memory",
    "mat",
    "next_command",
    "npz",
    "opensfm",
    "parquet",
    "read",
    "read_constraints",
    "read_truth",
    "to_dict",
    "to_permutations",
    "to_tensor",
    "write",
    "write_constraints",
]
