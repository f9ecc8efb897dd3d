"""MATLAB files: the block matrix `W` (or `Wnoise`) with `dimVector`, or with `m` points in each of `k` objects."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import io as scipy_io
from scipy import sparse

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import Content, Format, head, losses, register
from stiefelsync.io.limits import check_bytes, shown
from stiefelsync.io.sparse_arrays import from_parts
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.matchings import Matchings

__all__ = ["MAT"]

VARIABLES = ("W", "Wnoise", "dimVector", "m", "k", "weighted", "names", "coordinates")


def sniff(path: Path) -> bool:
    """Return whether a file begins like a MAT file of version 5 or newer."""
    return head(path, 19).startswith((b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"))


def _load(path: Path) -> dict[str, Any]:
    """Return the variables of a file, after a look at what their headers declare."""
    try:
        with path.open("rb") as file:
            declared = [math.prod(shape) for name, shape, kind in scipy_io.whosmat(file) if kind != "sparse"]
            check_bytes(sum(declared), path, "its variables")  # an entry takes a byte at least
            file.seek(0)
            return dict(scipy_io.loadmat(file, variable_names=VARIABLES))
    except NotImplementedError:
        raise FormatError(f"{path} is a MAT file of version 7.3; save it in MATLAB with: save(..., '-v7')") from None
    except (FormatError, PermissionError, MemoryError):
        raise
    except Exception as error:  # SciPy's reader meets damage in many ways
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


def _matrix(W: Any, where: str) -> Any:
    """Return a matrix whose structure is sound, or say what is wrong with it."""
    if not (sparse.issparse(W) or isinstance(W, np.ndarray)) or W.dtype.kind not in "biuf" or W.ndim != 2:
        raise FormatError(f"{where} is not a matrix of real numbers")
    if not sparse.issparse(W):
        return sparse.coo_array(W.astype(np.float64))
    try:
        parts = {"data": W.data, "indices": W.indices, "indptr": W.indptr}
        return from_parts("csc", np.array(W.shape), parts).astype(np.float64)
    except InputError as error:
        raise FormatError(f"{where} is broken: {error}") from None


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
    cells = np.asarray(found["names"]).ravel()
    try:
        return [str(cell.item()) if isinstance(cell, np.ndarray) else str(cell) for cell in cells]
    except ValueError:
        raise FormatError(f"{path}: names must be a cell array of one string per object") from None


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
    with path.open("wb") as file:
        scipy_io.savemat(file, variables, do_compression=True, oned_as="column")


def loses(matchings: Matchings) -> list[str]:
    """A MAT file holds everything."""
    return losses(matchings, "A MAT file")


MAT = register(Format("mat", "MATLAB: W with dimVector, or with m and k", (".mat",), sniff, read, write, loses))
