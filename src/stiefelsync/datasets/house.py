"""The CMU house sequence: 111 frames, 30 keypoints each, matched pairwise by shape contexts."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from stiefelsync._border import typed
from stiefelsync.datasets.fetch import RemoteFile, find
from stiefelsync.errors import FormatError, InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["HOUSE", "house"]

_FRAMES, _POINTS = 111, 30

HOUSE = RemoteFile(
    path="house/house_sync_data.mat",
    url="https://raw.githubusercontent.com/fbernardpi/SparseStiefelOpt/"
    "37c96fdc6ee60c796d41e4b17817bf2fe95d52ee/house_sync_data.mat",
    sha256="902a249cd9b89f4a17586083ffe2eb5c3084014ceeff5bc6e39536b60ff56f73",
)


@typed
def house(
    k: int = _FRAMES,
    *,
    shuffle: bool = True,
    rng: np.random.Generator | int | None = 0,
    path: str | PathLike[str] | None = None,
    download: bool = False,
) -> tuple[Matchings, NDArray[np.int64]]:
    """Load the CMU house sequence as published with the paper: k evenly spaced frames of 30 keypoints.

    The file is looked for below the folder ``STIEFELSYNC_DATA``, then in the user's cache.

    Parameters
    ----------
    k
        Number of frames, 1 to 111: the frames nearest to k even steps from the first to the last.
    shuffle
        Put the points of every frame in random order. In the authors' order (False) the truth is
        the identity, and a solver that returns a constant scores 1.0 because assignment solvers
        break ties by index: use it only to reproduce published numbers.
    rng
        Generator or seed of the shuffle.
    path
        The file ``house_sync_data.mat``, or a folder that holds it, if it lies elsewhere.
    download
        Fetch the file from its authors' repository when it is nowhere to be found.

    Returns
    -------
    matchings : Matchings
        With names ("frame 0", …) and keypoint coordinates in pixels.
    truth : (m,) int64
        Universe point of every point, 0 to 29.

    Examples
    --------
    >>> house(200)
    Traceback (most recent call last):
    ...
    stiefelsync.errors.InputError: the house sequence has 111 frames, so k must be between 1 and 111, got 200
    """
    if not 1 <= k <= _FRAMES:
        raise InputError(f"the house sequence has {_FRAMES} frames, so k must be between 1 and {_FRAMES}, got {k}")
    W, coordinates = _load(find(HOUSE, download=download) if path is None else _located(Path(path)))
    frames = np.rint(np.linspace(0, _FRAMES - 1, k)).astype(np.int64)
    rng = generator(rng)
    order = np.tile(np.arange(_POINTS), (k, 1))
    if shuffle:
        order = rng.permuted(order, axis=1)
    rows = (frames[:, None] * _POINTS + order).ravel()
    matchings = Matchings.from_matrix(
        W[np.ix_(rows, rows)],
        np.full(k, _POINTS),
        names=[f"frame {frame}" for frame in frames],
        coordinates=coordinates[rows],
    )
    return matchings, order.ravel()


def _located(path: Path) -> Path:
    if path.is_dir():
        name = Path(HOUSE.path).name
        path = next((p for p in (path / name, path / HOUSE.path) if p.is_file()), path / name)
    if not path.is_file():
        raise InputError(f"there is no file {path}; it should be the house_sync_data.mat published with the paper")
    return path


def _load(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Return W, shape (3330, 3330), and the coordinates, shape (3330, 2), in the authors' order."""
    try:
        content = loadmat(path, variable_names=["Wnoise", "data"])
        W, data = content["Wnoise"], content["data"]
        coordinates = np.concatenate([np.asarray(cell, dtype=np.float64) for cell in data.ravel()])
    except (MatReadError, NotImplementedError, LookupError, ValueError, TypeError) as error:
        raise FormatError(f"{path} is not the house_sync_data.mat published with the paper ({error})") from error
    m = _FRAMES * _POINTS
    if W.shape != (m, m) or coordinates.shape != (m, 2):
        raise FormatError(f"{path} is not the house_sync_data.mat published with the paper (Wnoise is {W.shape})")
    return W, coordinates
