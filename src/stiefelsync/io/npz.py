"""NPZ: the arrays of :class:`Matchings`, or a SciPy sparse matrix W with the sizes of its blocks. Never pickles."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import Content, Format, Labels, head, losses, register
from stiefelsync.matching.matchings import Matchings

__all__ = ["NPZ", "read_truth"]

PARTS = ("sizes", "pair_objects", "pair_start", "indices")


def sniff(path: Path) -> bool:
    """Return whether a file is a ZIP archive of arrays."""
    return head(path, 4) == b"PK\x03\x04"


def load(path: Path) -> dict[str, NDArray[Any]]:
    """Return all arrays of an NPZ file, refusing pickled objects."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise FormatError(f"{path} holds one array, not an NPZ archive; save with numpy.savez")
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise FormatError(f"{path} is not a complete NPZ file ({error}); was it cut short?") from None
    except FormatError:
        raise
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise FormatError(
                f"{path} holds pickled Python objects, which could run code; save plain arrays instead"
            ) from None
        raise FormatError(f"{path} is not a complete NPZ file ({error}); was it cut short?") from None


def read(
    path: Path, *, one_to_many: str = "error", sizes: ArrayLike | None = None, weighted: bool = False
) -> Matchings:
    """Read matchings from an NPZ file.

    Parameters
    ----------
    sizes : (k,) int
        Points per object, for a file that holds only the matrix W.
    weighted
        Whether the entries of the matrix W are weights, not just ones.
    """
    arrays = load(path)
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
        return Matchings.from_matrix(W, arrays["sizes"], weighted=weighted, one_to_many=one_to_many)
    pair_objects, start, indices = (arrays[part] for part in PARTS[1:])
    length = np.diff(start) if start.ndim == 1 and np.issubdtype(start.dtype, np.integer) else np.array([-1])
    fits = pair_objects.shape == (len(length), 2) and indices.shape == (length.sum(), 2)
    if not fits or (length < 0).any() or start[:1].any():
        raise FormatError(
            f"{path} contradicts itself: pair_objects {pair_objects.shape}, pair_start {start.shape} and "
            f"indices {indices.shape} do not fit together"
        )
    return Matchings.from_arrays(
        np.repeat(pair_objects, length, axis=0),
        indices,
        arrays["sizes"],
        weights=arrays.get("weights"),
        names=arrays["names"].tolist() if "names" in arrays else None,
        coordinates=arrays.get("coordinates"),
        one_to_many=one_to_many,
    )


def _matrix(arrays: dict[str, NDArray[Any]], path: Path) -> Any:
    """Return the matrix W of a file made by `scipy.sparse.save_npz` or holding a dense W, or None."""
    if "W" in arrays:
        return arrays["W"]
    if "format" not in arrays or "shape" not in arrays:
        return None
    kind = bytes(arrays["format"]).decode("ascii", "replace").rstrip("\0")
    shape = tuple(arrays["shape"].tolist())
    try:
        if kind in ("csr", "csc", "bsr"):
            maker = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}[kind]
            matrix = maker((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
            return matrix
        if "row" in arrays and "col" in arrays:
            return sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
        if kind == "dia":
            return sparse.dia_array((arrays["data"], arrays["offsets"]), shape=shape)
    except (KeyError, ValueError) as error:
        raise FormatError(f"{path} holds a broken {kind.upper()} matrix: {error}") from None
    raise FormatError(f"{path} holds a sparse matrix of unknown kind {kind!r}; save it as CSR")


def write(content: Content, path: Path, *, like: Path | None, truth: Labels | None = None) -> None:
    """Write the arrays of the matchings, the labels of the answer, and the true labels where given.

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
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not sniff(path):
        return None
    arrays = load(path)
    if "truth" not in arrays or "sizes" not in arrays:
        return None
    return _checked(arrays["truth"], int(arrays["sizes"].sum()))


def loses(matchings: Matchings) -> list[str]:
    """NPZ holds everything."""
    return losses(matchings, "An NPZ file")


NPZ = register(Format("npz", "the arrays of Matchings, or W and sizes", (".npz",), sniff, read, write, loses))
