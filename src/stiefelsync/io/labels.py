"""The labels that answers in files hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stiefelsync.errors import FormatError
from stiefelsync.io import npz, parquet
from stiefelsync.io.base import Labels
from stiefelsync.io.npz_arrays import load

__all__ = ["read_labels"]


def read_labels(path: str | Path) -> Labels:
    """Return the labels of an answer that this package wrote as NPZ file or Parquet dataset, shape (m,).

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import Matchings, io, synchronise
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     io.write(synchronise(Matchings.from_labels([0, 1, 1, 0], [2, 2]), 2), f"{folder}/answer.npz")
    ...     read_labels(f"{folder}/answer.npz").tolist()
    [0, 1, 1, 0]
    """
    path = Path(path)
    if parquet.sniff(path):
        return parquet.read_labels(path)
    arrays = load(path, {"labels", "sizes"}) if npz.sniff(path) else {}
    if "labels" not in arrays or not np.issubdtype(arrays["labels"].dtype, np.integer):
        raise FormatError(f"{path} holds no labels; name an answer written as NPZ file or Parquet dataset")
    return arrays["labels"].astype(np.int64)
