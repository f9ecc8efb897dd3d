"""NPZ: the arrays of :class:`Matchings`, or a SciPy sparse matrix W with the sizes of its blocks. Never pickles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import Content, Format, Labels, head, register
from stiefelsync.io.dispatch import as_path
from stiefelsync.io.frames import sniff as holds_frames
from stiefelsync.io.limits import as_integers, check_points, guarded, shown
from stiefelsync.io.npz_arrays import load
from stiefelsync.io.provenance import MADE_BY, as_text
from stiefelsync.io.sparse_arrays import from_parts
from stiefelsync.matching._canonical import OneToMany, check_sizes
from stiefelsync.matching.matchings import Matchings

__all__ = ["NPZ", "read_truth"]

PARTS = ("sizes", "pair_objects", "pair_start", "indices")
MATRIX = ("W", "format", "shape", "data", "indices", "indptr", "row", "col", "coords", "offsets")
READ = {*PARTS, *MATRIX, "weights", "names", "coordinates"}


def sniff(path: Path) -> bool:
    """Return whether a file is a ZIP archive of arrays, and not of tracks through frames."""
    return head(path, 4) == b"PK\x03\x04" and not holds_frames(path)


def read(
    path: Path, *, one_to_many: OneToMany = "error", sizes: ArrayLike | None = None, weighted: bool = False
) -> Matchings:
    """Read matchings from an NPZ file.

    Parameters
    ----------
    sizes : (k,) int
        Points per object, for a file that holds only the matrix W.
    weighted
        Whether the entries of the matrix W are weights, not just ones.
    """
    arrays = load(path, READ)
    if sizes is not None:
        arrays["sizes"] = np.asarray(sizes)
    if "sizes" not in arrays:
        raise FormatError(
            f"{path} holds no array 'sizes' (points per object), only {', '.join(sorted(arrays)) or 'nothing'}; "
            "pass sizes="
        )
    if missing := [part for part in PARTS if part not in arrays]:
        W = _matrix(arrays, path)
        if W is None:
            raise FormatError(f"{path} lacks the array {missing[0]!r} of matchings, and holds no matrix W either")
        check_points(as_integers(arrays["sizes"], "sizes"), W.size, path)
        return Matchings.from_matrix(W, arrays["sizes"], weighted=weighted, one_to_many=one_to_many)
    pair_objects, indices = arrays["pair_objects"], arrays["indices"]
    start = as_integers(arrays["pair_start"], "pair_start")
    length = np.diff(start) if start.ndim == 1 else np.array([-1])
    fits = pair_objects.shape == (len(length), 2) and indices.shape == (start[-1:].sum(), 2)
    if not fits or (start[1:] < start[:-1]).any() or start[:1].any():
        raise FormatError(
            f"{path} contradicts itself: pair_objects {pair_objects.shape}, pair_start {start.shape} and "
            f"indices {indices.shape} do not fit together"
        )
    if "coordinates" not in arrays:
        check_points(as_integers(arrays["sizes"], "sizes"), 2 * len(indices), path)
    return Matchings.from_arrays(
        np.repeat(pair_objects, length, axis=0),
        indices,
        arrays["sizes"],
        weights=arrays.get("weights"),
        names=_names(arrays["names"]) if "names" in arrays else None,
        coordinates=arrays.get("coordinates"),
        one_to_many=one_to_many,
    )


def _names(array: NDArray[Any]) -> list[str]:
    """Return the names of an array of text, shape (k,); bytes are UTF-8."""
    if array.ndim != 1 or (array.dtype.kind not in "US" and array.size):
        raise InputError(f"names must be one text per object, got {array.dtype} of shape {array.shape}")
    return [name.decode() if isinstance(name, bytes) else name for name in array.tolist()]


def _matrix(arrays: dict[str, NDArray[Any]], path: Path) -> Any:
    """Return the matrix W of a file made by `scipy.sparse.save_npz` or holding a dense W, or None."""
    if "W" in arrays:
        return arrays["W"]
    if "format" not in arrays or "shape" not in arrays:
        return None
    kind = bytes(arrays["format"]).decode("ascii", "replace").rstrip("\0")
    try:
        return from_parts(kind, arrays["shape"], arrays)
    except InputError as error:
        raise FormatError(f"{path} holds a broken {shown(kind).upper()} matrix: {error}") from None


def write(content: Content, path: Path, *, like: Path | None, truth: Labels | None = None) -> None:
    """Write the arrays of the matchings, the labels of the answer, how far to trust them, and true labels where given.

    Parameters
    ----------
    truth : (m,) int
        True universe point of every point, -1 = unmatched; read back by `read_truth`.
    """
    matchings = content.matchings
    names = None if matchings.names is None else np.array(matchings.names, dtype=np.str_)
    arrays = {
        **{part: getattr(matchings, part) for part in PARTS},
        "weights": matchings.weights,
        "names": names,
        "coordinates": matchings.coordinates,
        "labels": content.labels,
        "confidence": None if content.confidence is None else content.confidence(),
        MADE_BY: None if content.provenance is None else np.array(as_text(content.provenance)),
        "truth": None if truth is None else _checked(truth, matchings.n_points),
    }
    with path.open("wb") as file:
        np.savez_compressed(file, **{name: array for name, array in arrays.items() if array is not None})


def _checked(truth: ArrayLike, m: int) -> Labels:
    labels = np.asarray(truth)
    if labels.shape != (m,) or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(
            f"{m} points need {m} whole numbers as true labels, got {labels.dtype} of shape {labels.shape}"
        )
    return labels.astype(np.int64)


@typed
def read_truth(path: str | Path) -> Labels | None:
    """Return the true labels saved in an NPZ file by ``write(..., truth=labels)``, shape (m,), or None without any.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import io
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     io.write(problem, Path(folder, "small.npz"), truth=np.array([0, 1, 1, 0]))
    ...     read_truth(Path(folder, "small.npz"))
    array([0, 1, 1, 0])
    """
    path = as_path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not path.is_file() or not sniff(path):
        return None
    with guarded(path, NPZ.name):
        arrays = load(path, {"sizes", "truth"})
        if "truth" not in arrays or "sizes" not in arrays:
            return None
        return _checked(arrays["truth"], int(check_sizes(arrays["sizes"]).sum()))


NPZ = register(Format("npz", "the arrays of Matchings, or W and sizes", (".npz",), sniff, read, write))
