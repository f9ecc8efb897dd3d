"""Two castles that look alike, photographed in turn: the one case in which cycles cannot help."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from stiefelsync.datasets._drawn import drawn
from stiefelsync.datasets.cameras import photograph
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["TwinScene", "twins"]

_NOISE = 0.3  # of descriptors from photograph to photograph: within one castle they are easily told apart


@dataclass(frozen=True)
class TwinScene:
    """Photographs of two castles that look alike, and what a network that compares images says of its pairs.

    Attributes
    ----------
    matchings
        Descriptor matches with keypoint coordinates in pixels, one object per photograph.
    truth : (m,) int64
        The corner that each keypoint shows; those of the second castle follow those of the first.
    castle : (k,) int64
        Which castle, 0 or 1, a photograph shows.
    scores : (P,) float64
        Probability of each pair in ``matchings.pair_objects`` that both photographs show the same castle.
    """

    matchings: Matchings
    truth: NDArray[np.int64]
    castle: NDArray[np.int64]
    scores: NDArray[np.float64]


@drawn
def twins(
    cameras: int = 20,
    *,
    differ: float = 0.1,
    auc: float = 0.9,
    noise: float = _NOISE,
    rng: int | np.random.Generator | None = 0,
) -> TwinScene:
    """Photograph two castles that look alike, in turn, match all photographs, and score the pairs.

    Photographs of different castles match as well as those of one, and what they match is consistent: going round by
    any third photograph confirms it. Scores of pairs are drawn as from two normal distributions of equal variance, so
    far apart that a pair of one castle exceeds a pair of two with probability `auc`, and given as the probabilities
    that follow for even odds.

    Parameters
    ----------
    cameras
        How many photographs are taken in all, at least 4.
    differ
        How far corresponding corners of the two castles look different, relative to what corners of a kind have in
        common.
    auc
        Area under the ROC curve of the scores, between 0.5 and 1, both excluded.
    noise
        How far a corner's look changes from photograph to photograph, relative to the same.
    rng
        Seed or generator.

    Notes
    -----
    O(cameras² · points² · 32), as :func:`~stiefelsync.datasets.cameras`.

    Examples
    --------
    >>> scene = twins(8, rng=0)
    >>> right = scene.matchings.agreeing(scene.truth)
    >>> scene.castle.tolist(), len(scene.scores), bool(right.mean() < 0.6)
    ([0, 1, 0, 1, 0, 1, 0, 1], 28, True)
    """
    if cameras < 4:
        raise InputError(f"two castles need at least 4 cameras, got {cameras}")
    if not 0.5 < auc < 1:
        raise InputError(f"auc must lie between 0.5 and 1, got {auc}")
    rng = generator(rng)
    castle = np.arange(cameras) % 2
    shots = photograph(castle, differ=differ, noise=noise, rng=rng)
    # Scores x with means ±d/2 and variance 1 have log-odds d·x; the AUC is Φ(d/√2).
    distance = 2**0.5 * ndtri(auc)
    same = np.equal(*castle[shots.matchings.pair_objects].T)
    x = rng.standard_normal(len(same)) + distance * (same - 0.5)
    return TwinScene(shots.matchings, shots.truth, castle, expit(distance * x))
