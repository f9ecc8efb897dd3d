"""MATLAB files: the block matrix `W` (or `Wnoise`) with `dimVector`, or with `m` points in each of `k` objects."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import io as scipy_io
from scipy import sparse

from stiefelsync.errors import FormatError
from stiefelsync.io.base import Content, Format, head, register
from stiefelsync.io.limits import shown
from stiefelsync.io.matlab import load
from stiefelsync.io.provenance import MADE_BY, as_text
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.matchings import Matchings

__all__ = ["MAT"]

VARIABLES = ("W", "Wnoise", "dimVector", "m", "k", "weighted", "names", "coordinates")


def sniff(path: Path) -> bool:
    """Return whether a file begins like a MAT file of version 5 or newer."""
    return head(path, 19).startswith((b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"))


def _load(path: Path) -> dict[str, Any]:
    if head(path, 10).startswith(b"MATLAB 7.3"):
        raise FormatError(f"{path} is a MAT file of version 7.3; save it in MATLAB with: save(..., '-v7')")
    try:
        return load(path, VARIABLES)
    except (zlib.error, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not a complete MAT file ({error}); was it cut short?") from None


def read(
    path: Path, *, one_to_many: OneToMany = "error", sizes: ArrayLike | None = None, weighted: bool | None = None
) -> Matchings:
    """Read the matrix W of a MAT file.

    Parameters
    ----------
    sizes : (k,) int
        Points per object, for a file that does not say.
    weighted
        Whether the entries of W are weights, not just ones; None: if the file says so.
    """
    found = _load(path)
    name = next((name for name in ("W", "Wnoise") if name in found), None)
    if name is None:
        raise FormatError(f"{path} holds no matrix 'W' or 'Wnoise'")
    W = _matrix(found[name], f"{path}: {name}")
    if weighted is None:
        weighted = bool(np.any(found.get("weighted", False)))
    return Matchings.from_matrix(
        W, _sizes(found, sizes, W.shape[0], path), weighted=weighted, names=_names(found, path),
        coordinates=found.get("coordinates"), one_to_many=one_to_many,
    )  # fmt: skip


def _matrix(W: Any, where: str) -> sparse.coo_array:
    if not (sparse.issparse(W) or isinstance(W, np.ndarray)) or W.ndim != 2:
        raise FormatError(f"{where} is not a matrix of real numbers")
    return sparse.coo_array(W).astype(np.float64)


def _sizes(found: dict[str, Any], given: ArrayLike | None, points: int, path: Path) -> NDArray[Any]:
    if given is not None:
        return np.asarray(given)
    if "dimVector" in found:
        sizes = np.asarray(found["dimVector"]).ravel()
    elif "m" in found and "k" in found and np.size(found["m"]) == np.size(found["k"]) == 1:
        m, k = (np.asarray(found[name]).item() for name in ("m", "k"))
        if not (isinstance(k, int | float) and 0 <= k <= points and float(k).is_integer()):
            raise FormatError(f"{path}: k is {shown(str(k))}; it must be the number of objects, of {points} points")
        sizes = np.full(int(k), m)
    else:
        raise FormatError(f"{path} does not say how many points each object has: it needs dimVector, or m and k")
    if sizes.dtype.kind not in "iuf" or not ((sizes == np.floor(sizes)) & (np.abs(sizes) < 2**31)).all():
        raise FormatError(f"{path}: the sizes of the objects must be whole numbers")
    return sizes.astype(np.int64)


def _names(found: dict[str, Any], path: Path) -> list[str] | None:
    if "names" not in found:
        return None
    given = found["names"]
    names = given if isinstance(given, list) else [given]
    if not all(isinstance(name, str) for name in names):
        raise FormatError(f"{path}: names must be a cell array of one string per object")
    return names


def write(content: Content, path: Path, *, like: Path | None) -> None:
    """Write W as a sparse matrix, dimVector, and where they exist names (a cell array) and coordinates."""
    matchings = content.matchings
    variables: dict[str, Any] = {
        "W": matchings.to_matrix().tocsc(),
        "dimVector": matchings.sizes.astype(np.float64),
        "weighted": matchings.weights is not None,
    }
    if matchings.names is not None:
        variables["names"] = np.array(matchings.names, dtype=object)
    if matchings.coordinates is not None:
        variables["coordinates"] = matchings.coordinates
    if content.provenance is not None:
        variables[MADE_BY] = as_text(content.provenance)
    with path.open("wb") as file:
        scipy_io.savemat(file, variables, do_compression=True, oned_as="column")


MAT = register(Format("mat", "MATLAB: W with dimVector, or with m and k", (".mat",), sniff, read, write))
